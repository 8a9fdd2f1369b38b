"""Weights of samples and classes: factors of the learning rate."""

import warnings

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from small_classifiers import SHORT, X, Y, make_mlp, same

pytestmark = SHORT

WEIGHTS = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], 230)


@pytest.mark.parametrize("class_weight", ["balanced", {"b": 3, "a": 0.5}])
def test_class_weights_are_weights_of_samples(class_weight):
    labels = np.array(["a", "b", "c"])[np.where(np.arange(230) < 40, Y, 1)]
    expected = compute_sample_weight(class_weight, labels).astype(np.float32)
    mlp = make_mlp(class_weight=class_weight).fit(X, labels)
    assert same(mlp, make_mlp().fit(X, labels, expected))
    assert not same(mlp, make_mlp().fit(X, labels))
    assert same(make_mlp(class_weight={}).fit(X, Y, np.ones(230, int)), make_mlp().fit(X, Y))
    parts = make_mlp(class_weight={1: 2}).partial_fit(X, Y, [0, 1, 2])
    assert same(parts, make_mlp().partial_fit(X, Y, [0, 1, 2], np.where(Y == 1, 2, 1)))
    both = make_mlp(class_weight=class_weight).fit(X, labels, 64 * WEIGHTS)
    assert same(both, make_mlp().fit(X, labels, WEIGHTS.astype(np.float32) * expected))


def test_only_ratios_of_weights_matter_in_fit():
    """A power of two changes no bit; weights times 1000, to the rounding of float32, no figure."""
    mlp, twin, far = (make_mlp().fit(X, Y, factor * WEIGHTS) for factor in (1, 64, 1000))
    assert same(mlp, twin)
    np.testing.assert_allclose(far.coefs_[0], mlp.coefs_[0], atol=1e-5)
    assert far.loss_ == pytest.approx(mlp.loss_, rel=1e-5)


@pytest.mark.parametrize(
    ("squares", "weight", "rate", "warns"),
    [(99, 3.9, 0.01, False), (99, 4.1, 0.01, True), (90, 4.1, 0.01, False), (99, 1, 0.1, False)],
)
def test_a_weight_that_makes_a_step_unstable(squares, weight, rate, warns):
    """Beyond eta w (1 + |x|^2) = 4, if not without the weight."""
    inputs, weights = np.zeros((5, 35)), np.ones(5)
    inputs[3], weights[3] = np.sqrt(squares / 35), weight
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_mlp(learning_rate_init=rate).partial_fit(inputs, Y[:5], [0, 1, 2], weights)
    assert [each.filename for each in caught] == [__file__] * warns
    assert all("sample 3" in str(each.message) for each in caught)
