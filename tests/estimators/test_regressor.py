"""The regressor: targets of any scale, one or several, and the same training as everywhere else."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from emulated import emulated_backend, needs_emulation
from mlpcore import InputError, OnlineMLPRegressor
from mlpcore.estimators import base
from mlpcore.estimators.moments import Moments
from mlpcore.training.trainer import Diverged
from small_runs import same_weights

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 6)).astype(np.float32)
X[RNG.random(X.shape) < 0.4] = 0
Y = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2], 40 - 9 * X[:, 3]]).astype(float)
WEIGHTS = RNG.integers(0, 4, 200)

pytestmark = pytest.mark.filterwarnings("ignore:The loss still falls")


def make_mlp(**params):
    return OnlineMLPRegressor((20,), **{"random_state": 0, "max_iter": 5} | params)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", [{}, {"activation": "tanh", "alpha": 0.2}, {"alpha": 0}])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_training_is_the_oracles(convert, kind, weights):
    """To 1e-5 of the targets' deviation: 1,200 steps, whose roundings of 1e-7 do not grow."""
    mlp, oracle = (
        make_mlp(backend=backend, **kind).fit(convert(X), Y, weights)
        for backend in ("cpu", "reference")
    )
    for each in (mlp, oracle):
        each.partial_fit(convert(X), Y, weights)
    got, expected = (each.predict(convert(X)) / Y.std(axis=0) for each in (mlp, oracle))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(mlp.loss_curve_, oracle.loss_curve_, rtol=1e-4)


@pytest.mark.parametrize("factor, summand", [(1e6, -3e8), (1e-9, 2e-8), (-1, 0)])
def test_units_of_targets_do_not_matter(factor, summand):
    mlp, other = make_mlp().fit(X, Y[:, 0]), make_mlp().fit(X, factor * Y[:, 0] + summand)
    if factor < 0:  # outputs of another sign, from the same initial weights, are others
        assert abs(other.score(X, -Y[:, 0]) - mlp.score(X, Y[:, 0])) < 0.2
    else:
        expected = factor * mlp.predict(X) + summand
        np.testing.assert_allclose(other.predict(X), expected, rtol=1e-5, atol=1e-5 * factor)


def test_one_target_or_several():
    column, flat = make_mlp().fit(X, Y[:, :1]), make_mlp().fit(X, Y[:, 0])
    assert column.predict(X).shape == (200, 1) and flat.predict(X).shape == (200,)
    assert same_weights(column.network_, flat.network_)
    both = make_mlp(max_iter=40).fit(X, Y)
    assert (both.n_outputs_, both.out_activation_, both.predict(X).shape) == (
        2,
        "identity",
        Y.shape,
    )
    assert both.score(X, Y) > 0.8


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_partial_fit_has_the_same_bits_however_samples_are_cut(convert):
    """Into calls of few samples, pickled in between; targets are standardised as they come."""
    whole, parts = make_mlp(), make_mlp()
    for begin in range(0, 200, 25):
        part = slice(begin, begin + 25)
        whole.partial_fit(convert(X[part]), Y[part], WEIGHTS[part] + 1)
        for ends in ((begin, begin + 1), (begin + 1, begin + 20), (begin + 20, begin + 25)):
            part = slice(*ends)
            parts.partial_fit(convert(X[part]), Y[part].tolist(), WEIGHTS[part] + 1)
        parts = pickle.loads(pickle.dumps(parts))
    assert same_weights(whole.network_, parts.network_)
    assert np.array_equal(whole.predict(X), parts.predict(X))
    for _ in range(20):
        whole.partial_fit(X, Y)
    assert whole.score(X, Y) > 0.8


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


def test_wrong_targets_do_little_harm():
    """One in twenty is off by twenty deviations."""
    wrong = Y.copy()
    wrong[::20] += 20 * Y.std(axis=0) * np.resize([1, -1], (10, 1))
    assert make_mlp(max_iter=40).fit(X, wrong).score(X, Y) > 0.6


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


def test_early_stopping_keeps_the_best_network(capsys):
    data, y = load_diabetes(return_X_y=True)
    mlp = make_mlp(early_stopping=True, max_iter=60, verbose=True).fit(scale(data)[:350], y[:350])
    assert mlp.best_validation_score_ == max(mlp.validation_scores_) > 0.3
    assert mlp.score(scale(data)[350:], y[350:]) > 0.3
    assert capsys.readouterr().out.count("loss") == mlp.n_iter_
    assert mlp.best_loss_ is None


def test_equal_targets_and_dead_networks():
    with pytest.warns(UserWarning, match=r"answers \[.*\] whatever the sample"):
        dead = make_mlp(init="uniform", learning_rate_init=500).fit(-np.abs(X), Y)
    assert np.ptp(dead.predict(-np.abs(X)), axis=0).max() == 0
    assert (make_mlp().fit(X, np.full(200, 7)).predict(X) == 7).all()
    assert make_mlp().partial_fit(X[:1], [1e-9]).predict(X[:1]) == 1e-9


REFUSED = [
    (
        lambda: make_mlp().fit(X, Y).partial_fit(X, Y[:, 0]),
        "y holds 1 numbers a sample: exp",
    ),
    (
        lambda: make_mlp().partial_fit(X[:5], Y[:5]).partial_fit(X[:5], Y[:5, 0]),
        "y holds 1 numbers",
    ),
    (lambda: make_mlp().partial_fit(X[:1], [1]).partial_fit(X[:1], [np.nan]), "y holds NaN"),
    (lambda: make_mlp().partial_fit(X[:1], [1]).partial_fit(X[:1], ["1"]), "y has the type"),
    (lambda: make_mlp().fit(X, 1e200 * Y), r"y holds .*e\+2.*: expected numbers up to 1e\+140"),
    (lambda: make_mlp().fit(X, [None] * len(X)), "^y holds nan: expected numbers up to"),
]


@pytest.mark.parametrize("call, words", REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


@needs_emulation
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_gpu_is_refused(monkeypatch, method):
    device = emulated_backend()
    monkeypatch.setattr(base.backends, "get", lambda *name: device)
    with pytest.raises(InputError, match=r"^regression: the backend cuda"):
        getattr(make_mlp(), method)(X, Y)
