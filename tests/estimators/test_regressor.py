"""The regressor: targets of any scale, one or several, and the same training as everywhere else."""

import warnings

import numpy as np
import pytest
from test_base import NUMBERS as Y
from test_base import RNG, X

from mlpcore import OnlineMLPRegressor
from mlpcore.estimators.moments import Moments
from mlpcore.training.trainer import Diverged
from small_runs import same_weights

pytestmark = pytest.mark.filterwarnings("ignore:The loss")


def make_mlp(**params):
    return OnlineMLPRegressor((20,), **{"random_state": 0, "max_iter": 5} | params)


@pytest.mark.parametrize("factor, summand", [(1e6, -3e8), (1e-9, 2e-8), (-1, 0)])
def test_units_of_targets_do_not_matter(factor, summand):
    mlp, other = make_mlp().fit(X, Y[:, 0]), make_mlp().fit(X, factor * Y[:, 0] + summand)
    if factor < 0:  # outputs of another sign, from the same initial weights, are others
        assert abs(other.score(X, -Y[:, 0]) - mlp.score(X, Y[:, 0])) < 0.2
    else:
        expected = factor * mlp.predict(X) + summand
        np.testing.assert_allclose(other.predict(X), expected, rtol=1e-5, atol=1e-5 * factor)


def test_one_target_or_several(capsys):
    column, flat = make_mlp().fit(X, Y[:, :1]), make_mlp().fit(X, Y[:, 0])
    assert column.predict(X).shape == (200, 1) and flat.predict(X).shape == (200,)
    assert same_weights(column.network_, flat.network_)
    both = make_mlp(max_iter=40, verbose=True).fit(X, Y)
    assert (both.n_outputs_, both.out_activation_) == (2, "identity")
    assert both.predict(X).shape == Y.shape
    assert capsys.readouterr().out.count("loss") == 40
    assert both.score(X, Y) > 0.8


def test_moments_are_those_of_all_targets_so_far():
    targets = RNG.normal([1e6, -3.0, 5.0], [1.0, 1e-3, 0.0], (50, 3))
    weights = RNG.integers(1, 4, 50)
    start = Moments(targets[0], np.zeros(7))
    standardised, after = start.after(targets, weights)
    repeated = np.repeat(targets, weights, axis=0)
    for moments in (after, Moments.of(targets, weights)):
        mean, deviation = moments.scale
        np.testing.assert_allclose(mean, repeated.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(deviation[:2], repeated[:, :2].std(axis=0), rtol=1e-6)
        assert deviation[2] == 0
    some = np.repeat(targets[:20], weights[:20], axis=0)
    expected = (targets[19, :2] - some[:, :2].mean(axis=0)) / some[:, :2].std(axis=0)
    np.testing.assert_allclose(standardised[19, :2], expected, rtol=1e-6)
    assert not standardised[0].any() and not standardised[:, 2].any()


def test_a_target_of_weight_0_counts_for_nothing():
    with_it, without = make_mlp(alpha=0), make_mlp(alpha=0).partial_fit(X, Y[:, 0])
    weights = np.append(0.0, np.ones(len(X)))
    with_it.partial_fit(np.vstack([X[:1], X]), np.append(1e9, Y[:, 0]), sample_weight=weights)
    # Sums round differently, as samples are at other places of a block of deferred updates.
    np.testing.assert_allclose(with_it.predict(X), without.predict(X), rtol=1e-5, atol=1e-6)


def test_far_samples_make_no_step_unstable():
    """One in a hundred is a thousand times as far: their steps are shortened."""
    far = X.copy()
    far[::100] *= 1000
    near = np.arange(200) % 100 > 0
    with pytest.warns(UserWarning, match=r"far outside.*OnlineMLPRegressor"):
        mlp = make_mlp(max_iter=40).fit(far, Y)
    assert mlp.score(far[near], Y[near]) > 0.5
    with warnings.catch_warnings():  # of steps that a weight would make unstable
        warnings.simplefilter("error")
        mlp = make_mlp().partial_fit(X[:9], Y[:9], np.full(9, 1e6))
        mlp.partial_fit(1e20 * X[:9], Y[:9])
    assert np.isfinite(mlp.predict(X)).all()


@pytest.mark.filterwarnings("ignore:X is far outside", "ignore:invalid value")
def test_a_stream_that_diverged_begins_anew():
    mlp = make_mlp().partial_fit(X, Y)
    with pytest.raises(Diverged):
        mlp.partial_fit(1e36 * X, Y)
    expected = make_mlp().partial_fit(X, Y[:, 0]).predict(X)
    assert np.array_equal(mlp.partial_fit(X, Y[:, 0]).predict(X), expected)


def test_equal_targets_and_dead_networks():
    with pytest.warns(UserWarning, match=r"answers \[.*\] whatever the sample"):
        dead = make_mlp(init="uniform", learning_rate_init=500).fit(-np.abs(X), Y)
    assert np.ptp(dead.predict(-np.abs(X)), axis=0).max() == 0
    with pytest.warns(UserWarning, match="because all rows of X are the same"):
        make_mlp().fit(np.ones((200, 2)), Y)
    assert (make_mlp().fit(X, np.full(200, 7)).predict(X) == 7).all()
    assert make_mlp().partial_fit(X[:1], [1e-9]).predict(X[:1]) == 1e-9
