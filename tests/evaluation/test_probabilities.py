"""Probabilities: the nearest distribution, and what it estimates."""

import numpy as np
import pytest

from mlpcore import OnlineMLPClassifier
from mlpcore.evaluation.probabilities import nearest_distributions, of_outputs, unsure
from small_classifiers import PAPER


def test_by_hand():
    points = [[0.5, 0.3, 0.2], [1.3, 0.0, -0.3], [0.9, 0.7, -0.2], [-0.3, -0.3, -0.3], [1.3] * 3]
    expected = [[0.5, 0.3, 0.2], [1, 0, 0], [0.6, 0.4, 0], [1 / 3] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(nearest_distributions(np.array(points)), expected, atol=1e-15)


def test_outputs_estimate_twice_the_probability_less_1_of_their_target():
    found = of_outputs(np.array([[1.5, -1.5], [0.9, -0.9]], np.float32), 1.5)
    np.testing.assert_allclose(found, [[1, 0], [0.8, 0.2]], rtol=1e-6)


def test_as_unsure_as_one_more_sample_of_each_class():
    found = unsure(np.array([[1.0, 0.0], [0.5, 0.5]]), 8)
    np.testing.assert_allclose(found, [[0.9, 0.1], [0.5, 0.5]], rtol=1e-15)


def test_no_sample_is_beyond_doubt():
    """300 samples of two classes far from each other: the outputs reach their targets."""
    x = np.linspace(-1, 1, 300)[:, None]
    y = (x[:, 0] > 0).astype(int)
    settings = {"target": 1.2, "learning_rate_init": 0.05, "max_iter": 60, "random_state": 0}
    mlp = OnlineMLPClassifier((8,), **PAPER | settings).fit(np.sign(x), y)
    mlp.partial_fit(np.sign(x[:100]), y[:100]).set_params(target=1.6)  # of the next training
    found = mlp.predict_proba([[-1.0]])
    # Two classes and 400 samples: the least probability is 1 / 402.
    assert found[0].tolist() == pytest.approx([401 / 402, 1 / 402], abs=1e-4)
