"""What calls of `partial_fit` with few samples keep between them, and what makes them forget it."""

import numpy as np
import pytest

from mlpcore import DeformationParameters, OnlineMLPClassifier
from mlpcore.estimators import classifier

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, (12, 9)), np.arange(12) % 3


def started(**params):
    """A classifier that has taken its first step."""
    mlp = OnlineMLPClassifier((5,), random_state=0, **params)
    return mlp.partial_fit(X[:1], Y[:1], classes=[0, 1, 2])


def test_a_sample_that_is_not_finite_is_not_learnt():
    mlp, before = started(), started().coefs_
    with pytest.raises(ValueError, match="NaN"):
        mlp.partial_fit(np.full((1, 9), np.nan), Y[:1])
    assert all(map(np.array_equal, mlp.coefs_, before))


def test_weights_that_are_written_are_those_of_the_next_step():
    mlp = started()
    mlp.coefs_[0][:] = 0
    mlp.coefs_[1][:] = 0  # so the layer below learns nothing
    mlp.partial_fit(X[1:2], Y[1:2])
    assert not mlp.coefs_[0].any()


def test_a_parameter_that_changes_is_that_of_the_next_step():
    slow, fast = started(), started().set_params(learning_rate_init=0.5)
    before = started().coefs_[1]
    for mlp in (slow, fast):
        mlp.partial_fit(X[1:2], Y[1:2])
    moved = [np.abs(mlp.coefs_[1] - before).max() for mlp in (slow, fast)]
    assert moved[1] > 10 * moved[0] > 0


def test_losses_of_the_last_calls_are_kept(monkeypatch):
    monkeypatch.setattr(classifier, "LONGEST_CURVE", 4)
    mlp = started()
    for _ in range(10):
        mlp.partial_fit(X[1:2], Y[1:2])
    assert (len(mlp.loss_curve_), mlp.n_iter_, mlp.t_) == (7, 11, 11)


@pytest.mark.parametrize("deformation, epochs", [(None, 4), (DeformationParameters(), 8)])
def test_the_loss_alone_stops_no_deformed_training(deformation, epochs):
    """No epoch is better by `tol` than the first."""
    params = {"tol": 1e6, "n_iter_no_change": 2, "max_iter": 8, "deformation": deformation}
    mlp = OnlineMLPClassifier((5,), random_state=0, **params).fit(X, Y)
    assert mlp.n_iter_ == epochs
