"""Probabilities: the nearest distribution, and what it estimates."""

import numpy as np
import pytest

from mlpcore import OnlineMLPClassifier
from mlpcore.evaluation.probabilities import nearest_distributions, unsure
from small_classifiers import PAPER


def test_by_hand():
    points = [[0.5, 0.3, 0.2], [1.3, 0.0, -0.3], [0.9, 0.7, -0.2], [-0.3, -0.3, -0.3], [1.3] * 3]
    expected = [[0.5, 0.3, 0.2], [1, 0, 0], [0.6, 0.4, 0], [1 / 3] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(nearest_distributions(np.array(points)), expected, atol=1e-15)


@pytest.mark.parametrize("target", [1.0, 1.5])
def test_they_estimate_the_posterior(target):
    """Two values of x, whose second class has the probabilities 0.8 and 0.3.

    4,000 samples estimate these to 4 standard errors of 0.015 at most; the last random steps of
    the weights add another 0.02.
    """
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (4000, 1))
    y = rng.uniform(size=4000) < np.where(x[:, 0] < 0, 0.8, 0.3)
    rates = {"learning_rate_init": 0.02, "learning_rate_end": 1e-3}
    mlp = OnlineMLPClassifier((8,), target=target, max_iter=20, random_state=0, **PAPER, **rates)
    found = mlp.fit(x, y).set_params(target=0.7).predict_proba([[-1.0], [1.0]])
    np.testing.assert_allclose(found, [[0.2, 0.8], [0.7, 0.3]], atol=0.08)


def test_as_unsure_as_one_more_sample_of_each_class():
    found = unsure(np.array([[1.0, 0.0], [0.5, 0.5]]), 8)
    np.testing.assert_allclose(found, [[0.9, 0.1], [0.5, 0.5]], rtol=1e-15)


def test_no_sample_is_beyond_doubt():
    """300 samples of two classes far from each other: the outputs reach their targets."""
    x = np.linspace(-1, 1, 300)[:, None]
    y = (x[:, 0] > 0).astype(int)
    mlp = OnlineMLPClassifier((8,), **PAPER, learning_rate_init=0.05, max_iter=60, random_state=0)
    found = mlp.fit(np.sign(x), y).partial_fit(np.sign(x[:100]), y[:100]).predict_proba([[-1.0]])
    # Two classes and 400 samples: the least probability is 1 / 402.
    assert found[0].tolist() == pytest.approx([401 / 402, 1 / 402], abs=1e-4)
