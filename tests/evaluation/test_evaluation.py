"""Evaluation: counted by hand, against scikit-learn and SciPy, on every backend."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from mlpcore import Network, backends
from mlpcore.evaluation.evaluation import BATCH, Evaluation, evaluate, wilson_interval
from small_runs import BACKENDS, make_dataset


def test_by_hand():
    outputs = np.array(
        [
            [0.9, -1.0, 0.1],  # 0: right
            [0.2, 0.7, 0.3],  # 2: wrong, second guess right
            [1.0, 0.5, 0.5],  # 1: wrong, second guess the first of equals: right
            [0.5, 1.0, 0.5],  # 2: wrong, second guess wrong
            [0.4, 0.4, 0.4],  # 0: right, the first of equals
        ]
    )
    result = Evaluation.of(outputs, np.array([0, 2, 1, 2, 0], np.uint8))
    assert (result.n_classes, repr(result)) == (3, "Evaluation(3 of 5 wrong, 60.00 %)")
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


#: Few values, so that equal outputs are common.
VALUES = st.sampled_from([-1.5, 0, 0.25, 1.5])


@given(st.data(), st.integers(1, 30), st.integers(2, 6))
def test_any_outputs(data, n, n_classes):
    outputs = data.draw(hnp.arrays(np.float32, (n, n_classes), elements=VALUES))
    labels = data.draw(hnp.arrays(np.uint8, n, elements=st.integers(0, n_classes - 1)))
    result = Evaluation.of(outputs, labels)
    matrix = confusion_matrix(labels, outputs.argmax(1), labels=range(n_classes))
    assert np.array_equal(result.confusion, matrix)
    assert result.errors == n - np.trace(matrix)
    wrong = result.misclassified
    assert wrong.guesses.shape == wrong.outputs.shape == (result.errors, 2)
    for i, label, guesses, two in zip(wrong.indices, wrong.labels, wrong.guesses, wrong.outputs):
        assert label == labels[i] != guesses[0] == outputs[i].argmax()
        others = [c for c in range(n_classes) if c != guesses[0]]
        assert guesses[1] == max(others, key=lambda c: outputs[i, c])  # the first such
        assert two.tolist() == outputs[i, guesses].tolist()


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts):
    """As SciPy computes it, to the last bit."""
    expected = binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert wilson_interval(*counts) == (expected.low, expected.high)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_network_on_every_backend(name):
    data = make_dataset(n_test=130)
    backend = backends.get(name)
    network = Network((35, 9, 3), seed=1)
    result = evaluate(network, data.test_images, data.test_labels, backend)
    inputs, labels = data.test_images.reshape(130, 35), data.test_labels
    counted = backend.count_errors(backend.load(network), backend.put(inputs), backend.put(labels))
    assert result.errors == counted > 0
    flat = evaluate(network, inputs, labels, backend)
    assert np.array_equal(flat.confusion, result.confusion)


def test_batches_are_put_together(reference):
    n = 2 * BATCH + 3
    images = np.random.default_rng(0).uniform(-1, 1, (n, 2)).astype(np.float32)
    network = Network((2, 2), seed=3)
    labels = reference.predict(network, images).argmax(1)
    labels[[BATCH, -1]] = 1 - labels[[BATCH, -1]]
    wrong = evaluate(network, images, labels, reference).misclassified
    assert wrong.indices.tolist() == [BATCH, n - 1]
