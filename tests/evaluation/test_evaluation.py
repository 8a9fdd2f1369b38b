"""Evaluation, committees, copies and probabilities: by hand and as SciPy's; refusals."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.stats import binomtest

import emulated
from mlpcore import DeformationParameters, InputError, Network, OnlineMLPClassifier, backends
from mlpcore.data import pixels
from mlpcore.data.pixels import BACKGROUNDS, to_range
from mlpcore.deformation import deform_selected
from mlpcore.deformation.values import border_values
from mlpcore.evaluation import Copies, Evaluation, evaluate, evaluation
from mlpcore.evaluation.committee import compare
from mlpcore.evaluation.evaluation import wilson_interval
from mlpcore.evaluation.probabilities import nearest_distributions, of_outputs, unsure
from oracle import random_network
from small_classifiers import PAPER
from small_runs import DATA


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
    (lambda: Copies(8, 0.5, -1), "seed -1: expected"),
    (lambda: Evaluation.of(ZEROS[:, :, None], LABELS), r"^outputs: .* \(2, 3, 1\), expected"),
    (lambda: Evaluation.of(ZEROS[:, :1], LABELS), "^outputs: .*2 or more classes"),
    (lambda: Evaluation.of(ZEROS[:0], LABELS), "^outputs: .*1 or more samples"),
    (lambda: Evaluation.of(ZEROS, np.arange(3)), r"^labels: .*\(3,\), expected"),
    (lambda: Evaluation.of(ZEROS, LABELS / 1), "^labels: float64 .*expected whole"),
    (lambda: Evaluation.of(ZEROS, 3 * LABELS), "^labels: from 0 to 3, expected 0 to 2"),
    (lambda: Evaluation.of(ZEROS / 0, LABELS), "^outputs: expected finite"),
    (images((2, 6, 5)), r"^images: .*\(2, 30\), expected"),
]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


IMAGES, NETWORK = DATA.test_images[:10], random_network((35, 8, 3), 1, loss="cross-entropy")

#: One of each kind of arithmetic: the oracle is plain, C the fastest, CUDA computes elsewhere.
BACKENDS = [name for name in emulated.BACKENDS if name in ("reference", "scalar", "cuda")]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("input_range", BACKGROUNDS)
def test_the_mean_of_copies_deformed_one_by_one(name, input_range):
    """Copy k has the map that a training with these parameters would give to image k."""
    backend = emulated.get_backend(name, 1, "streaming" if name == "cuda" else None)
    images = to_range(IMAGES, input_range)
    parameters = DeformationParameters(6.0, 9.0, 3.75, 3.75, similar_labels=())
    # Ones, which turn by half the angle in training.
    drawing = np.arange(5), np.ones(5, np.uint8), parameters, 3, 0, backend
    singly = []
    for image in images:
        around = float(border_values(image[None, None])[0])
        copies = deform_selected(np.repeat(image[None], 5, axis=0), *drawing, around)
        singly.append(evaluation.outputs(NETWORK, copies, backend).mean(axis=0))
    found = Copies(5, 0.25, seed=3).outputs(NETWORK, images, backend)
    # Displacements are rounded once more: by 1e-6 pixels of a slope of 2 at most, in 35 inputs.
    np.testing.assert_allclose(found, singly, rtol=0, atol=2e-5)
    plain = evaluation.outputs(NETWORK, images, backend)
    assert np.abs(found - plain).max() > 1e-3


def test_parts_are_small_and_change_nothing(reference, monkeypatch):
    """So neither the number of images nor that of copies decides the memory."""
    whole, deform = Copies(9).outputs(NETWORK, IMAGES, reference), Mock(wraps=reference.deform_by)
    monkeypatch.setattr(pixels, "_BATCH_PIXELS", 4 * 35)
    monkeypatch.setattr(reference, "deform_by", deform)
    found = Copies(9).outputs(NETWORK, IMAGES, reference)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-14)  # sums in another order
    sizes = [each.args[0].size for each in deform.call_args_list]
    assert max(sizes) <= 4 * 35 and sum(sizes) == 9 * IMAGES.size
