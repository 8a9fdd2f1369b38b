"""Weights of samples and classes: factors of the learning rate."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from mlpcore import InputError, backends
from mlpcore.network import Network
from small_classifiers import DEFORMED, MODERN, X, Y, make_mlp, same
from small_runs import C_BACKENDS

WEIGHTS = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], 230)


@pytest.mark.parametrize("settings", [{}, MODERN, DEFORMED])
@pytest.mark.parametrize("name", C_BACKENDS)
def test_weights_as_the_oracle_takes_them(name, settings):
    """To 1e-4: 460 steps, each rounding outputs of 1 some ten times."""
    settings = {**settings, "max_iter": 1}
    fitted = [
        make_mlp(backend=each, **settings).fit(X, Y, WEIGHTS).partial_fit(X, Y, None, WEIGHTS)
        for each in ("reference", name)
    ]
    expected, outputs = (mlp.decision_function(X) for mlp in fitted)
    np.testing.assert_allclose(outputs, expected, atol=1e-4)
    assert not np.allclose(outputs, make_mlp(**settings).fit(X, Y).decision_function(X), atol=1e-2)


def test_a_weight_is_a_factor_of_the_learning_rate():
    mlp, network = make_mlp(), Network((35, 9, 6, 3), 5)
    mlp.partial_fit(X, Y, [0, 1, 2], WEIGHTS)
    backend = backends.get("reference")
    loss = 0.0
    for sample in range(230):
        if WEIGHTS[sample]:
            order = np.array([sample], np.int32)
            result = backend.train(network, X, Y, order, 0.01 * WEIGHTS[sample])
            loss += WEIGHTS[sample] * result.loss
    for weights, expected in zip(mlp.coefs_, network.weights):
        # 230 steps in float32, whose weights are below 1.
        np.testing.assert_allclose(weights.T, expected, atol=1e-5)
    assert mlp.loss_ == pytest.approx(loss / WEIGHTS.sum(), rel=1e-5)


def test_weights_of_one_change_no_bit():
    assert same(make_mlp().fit(X, Y, np.ones(230, int)), make_mlp().fit(X, Y))
    assert same(make_mlp(class_weight={}).fit(X, Y), make_mlp().fit(X, Y))


@pytest.mark.parametrize("class_weight", ["balanced", {"b": 3, "a": 0.5}])
def test_class_weights_are_weights_of_samples(class_weight):
    labels = np.array(["a", "b", "c"])[np.where(np.arange(230) < 40, Y, 1)]
    expected = compute_sample_weight(class_weight, labels).astype(np.float32)
    mlp = make_mlp(class_weight=class_weight).fit(X, labels)
    assert same(mlp, make_mlp().fit(X, labels, expected))
    assert not same(mlp, make_mlp().fit(X, labels))
    both = make_mlp(class_weight=class_weight).fit(X, labels, WEIGHTS)
    assert same(both, make_mlp().fit(X, labels, WEIGHTS.astype(np.float32) * expected))


def test_class_weights_of_parts():
    whole = make_mlp(class_weight={1: 2}).partial_fit(X, Y, [0, 1, 2])
    assert same(whole, make_mlp().partial_fit(X, Y, [0, 1, 2], np.where(Y == 1, 2, 1)))
    with pytest.raises(InputError, match=r"^class_weight 'balanced': expected None or a dict"):
        make_mlp(class_weight="balanced").partial_fit(X, Y, [0, 1, 2])


def test_rare_samples_are_found():
    """One in 51 is of class 1; without weights few of these are found, balanced most."""
    rng = np.random.default_rng(0)
    y = (np.arange(2040) % 51 == 0).astype(int)
    x = rng.normal(size=(2040, 2)) + 1.5 * y[:, None]
    recalls = [
        (make_mlp((9,), **MODERN, class_weight=each).fit(x, y).predict(x)[y == 1] == 1).mean()
        for each in (None, "balanced")
    ]
    assert recalls[0] < 0.3
    assert recalls[1] > 0.6


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(229), r"sample_weight.* \(229,\), expected \(230,\)"),
        (np.ones((230, 1)), r"Expected .* a 1D array of length 230"),
        (-WEIGHTS, "Negative values in .*sample_weight"),
        (np.zeros(230), "zero"),
    ],
)
def test_weights_that_cannot_be(weights, words):
    for fit in (
        make_mlp().fit,
        lambda *args: make_mlp().partial_fit(*args[:2], [0, 1, 2], args[2]),
    ):
        with pytest.raises(ValueError, match=words):
            fit(X, Y, weights)


@pytest.mark.parametrize("value", ["equal", [1, 2, 3], {3: 1.0}, {0: -1}, {0: None}, {0: np.inf}])
def test_class_weights_that_cannot_be(value):
    with pytest.raises(ValueError, match=r"(class|sample)_weight"):
        make_mlp(class_weight=value).fit(X, Y)


def test_weights_are_zero_for_all_samples():
    with pytest.raises(InputError, match="class_weight: all weights are zero"):
        make_mlp(class_weight={0: 0, 1: 0, 2: 0}).fit(X, Y)
