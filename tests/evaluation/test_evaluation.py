"""Evaluation: counted by hand, against scikit-learn and SciPy, on every backend."""

import numpy as np
import pytest
from scipy.stats import binomtest

from mlpcore import Network
from mlpcore.evaluation.evaluation import BATCH, Evaluation, evaluate, wilson_interval


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


@pytest.mark.parametrize("counts", [(0, 1), (1, 1), (35, 10_000), (5, 7), (10**6, 10**6)])
def test_the_interval_is_wilsons(counts):
    """As SciPy computes it, to the last bit."""
    expected = binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert wilson_interval(*counts) == (expected.low, expected.high)


def test_batches_are_put_together(reference):
    n = 2 * BATCH + 3
    images = np.random.default_rng(0).uniform(-1, 1, (n, 2)).astype(np.float32)
    network = Network((2, 2), seed=3)
    labels = reference.predict(network, images).argmax(1)
    labels[[BATCH, -1]] = 1 - labels[[BATCH, -1]]
    wrong = evaluate(network, images, labels, reference).misclassified
    assert wrong.indices.tolist() == [BATCH, n - 1]
