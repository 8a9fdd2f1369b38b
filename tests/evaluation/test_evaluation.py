"""Evaluation, committees and probabilities: by hand and as SciPy's; refusals."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from mlpcore import InputError, Network, OnlineMLPClassifier, backends
from mlpcore.evaluation import Copies, Evaluation, evaluate
from mlpcore.evaluation.committee import compare
from mlpcore.evaluation.evaluation import wilson_interval
from mlpcore.evaluation.probabilities import nearest_distributions, of_outputs, unsure
from small_classifiers import PAPER


def test_errors_by_hand():
    outputs = [
        [0.9, -1.0, 0.1],  # 0: right
        [0.2, 0.7, 0.3],  # 2: wrong, second guess right
        [1.0, 0.5, 0.5],  # 1: wrong, second guess the first of equals: right
        [0.5, 1.0, 0.5],  # 2: wrong, second guess wrong
        [0.4, 0.4, 0.4],  # 0: right, the first of equals
    ]
    result = Evaluation.of(outputs, np.array([0, 2, 1, 2, 0], np.uint8))
    assert result.to_json() == {
        "n": 5,
        "errors": 3,
        "error_rate": 60.0,
        "interval": result.interval,
        "second_right": 2,
        "confusion": [[2, 0, 0], [1, 0, 0], [0, 2, 0]],
        "misclassified": [
            {"sample": 1, "label": 2, "guesses": [1, 2], "outputs": [0.7, 0.3]},
            {"sample": 2, "label": 1, "guesses": [0, 1], "outputs": [1.0, 0.5]},
            {"sample": 3, "label": 2, "guesses": [1, 0], "outputs": [1.0, 0.5]},
        ],
    }


@pytest.mark.parametrize("counts", [(0, 10), (16, 16), (35, 10_000), (5, 7), (0, 1), (10**6,) * 2])
def test_the_interval_is_wilsons(counts):
    """As SciPy computes it, to the last bit."""
    expected = binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert wilson_interval(*counts) == (expected.low, expected.high)


@pytest.mark.parametrize(("alone", "p_value"), [((0, 0), 1), ((1, 9), 22 / 2**10), ((7, 0), 2**-6)])
def test_mcnemars_exact_test(alone, p_value):
    """Each of the two is wrong alone for so many of 90 samples, and both are for 5."""
    outputs = np.zeros((2, 90, 2))
    outputs[..., 0] = 1
    outputs[:, :5, 1] = outputs[0, 5 : 5 + alone[0], 1] = 2
    outputs[1, 90 - alone[1] :, 1] = 2
    first, second = (Evaluation.of(each, np.zeros(90, int)) for each in outputs)
    assert compare(first, second) == (*alone, pytest.approx(p_value))


def test_probabilities_by_hand():
    points = [[0.5, 0.3, 0.2], [1.3, 0.0, -0.3], [0.9, 0.7, -0.2], [-0.3, -0.3, -0.3], [1.3] * 3]
    expected = [[0.5, 0.3, 0.2], [1, 0, 0], [0.6, 0.4, 0], [1 / 3] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(nearest_distributions(np.array(points)), expected, atol=1e-15)
    found = of_outputs(np.array([[1.5, -1.5], [0.9, -0.9]], np.float32), 1.5)
    np.testing.assert_allclose(found, [[1, 0], [0.8, 0.2]], rtol=1e-6)
    found = unsure(np.array([[1.0, 0.0], [0.5, 0.5]]), 8)
    np.testing.assert_allclose(found, [[0.9, 0.1], [0.5, 0.5]], rtol=1e-15)


def test_no_sample_is_beyond_doubt():
    """300 samples of two classes far from each other: the outputs reach their targets."""
    x = np.sign(np.linspace(-1, 1, 300))[:, None]
    settings = {"target": 1.2, "learning_rate_init": 0.05, "max_iter": 60, "random_state": 0}
    mlp = OnlineMLPClassifier((8,), **PAPER | settings).fit(x, x[:, 0])
    mlp.partial_fit(x[:100], x[:100, 0]).set_params(target=1.6)  # of the next training
    found = mlp.predict_proba([[-1.0]])
    # Two classes and 400 samples: the least probability is 1 / 402.
    assert found[0].tolist() == pytest.approx([401 / 402, 1 / 402], abs=1e-4)


LABELS, ZEROS = np.array([0, 1]), np.zeros((2, 3))


def images(shape, dtype=np.float32):
    images = np.zeros(shape, dtype)
    return lambda: evaluate(Network((35, 3)), images, LABELS, backends.get("scalar"))


REFUSED = [
    (lambda: Copies(0), "copies 0: expected .* 1 to"),
    (lambda: Copies(8, 0), "strength 0: expected more than 0, at most 5"),
    (lambda: Copies(8, math.nan), "strength nan: expected more than 0"),
    (lambda: Copies(8, 0.5, -1), "seed -1: expected"),
    (lambda: Evaluation.of(ZEROS[:, :, None], LABELS), r"^outputs: .* \(2, 3, 1\), expected"),
    (lambda: Evaluation.of(ZEROS[:, :1], LABELS), "^outputs: .*2 or more classes"),
    (lambda: Evaluation.of(ZEROS[:0], LABELS), "^outputs: .*1 or more samples"),
    (lambda: Evaluation.of(ZEROS.astype(int), LABELS), "^outputs: int64 .*expected real"),
    (lambda: Evaluation.of(ZEROS, np.arange(3)), r"^labels: .*\(3,\), expected"),
    (lambda: Evaluation.of(ZEROS, LABELS / 1), "^labels: float64 .*expected whole"),
    (lambda: Evaluation.of(ZEROS, 3 * LABELS), "^labels: from 0 to 3, expected 0 to 2"),
    (lambda: Evaluation.of(ZEROS, -LABELS), "^labels: from -1 to 0, expected"),
    (lambda: Evaluation.of(ZEROS / 0, LABELS), "^outputs: expected finite"),
    (images((2, 6, 5)), r"^images: .*\(2, 30\), expected"),
    (images((2, 7, 5), np.float64), "^images: float64"),
]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
