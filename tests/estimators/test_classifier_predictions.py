"""What a fitted classifier says: labels, outputs, probabilities, weights."""

import numpy as np
import pytest
from scipy.special import softmax

from mlpcore import DeformationParameters
from mlpcore.network.activation import A, B
from small_classifiers import MODERN, SHAPE, X, Y, make_mlp, same


@pytest.mark.parametrize("settings", [{}, MODERN])
def test_weights_in_scikit_learns_orientation(settings):
    mlp = make_mlp(learning_rate_init=0.05, **settings).fit(X, Y)
    states = X.astype(np.float64)
    for weights, biases in zip(mlp.coefs_[:-1], mlp.intercepts_[:-1]):
        sums = states @ weights + biases
        states = np.maximum(sums, 0) if settings else A * np.tanh(B * sums)
    sums = states @ mlp.coefs_[-1] + mlp.intercepts_[-1]
    expected = softmax(sums, axis=1) if settings else A * np.tanh(B * sums)
    # Three layers of sums of up to 35 products in float32.
    np.testing.assert_allclose(mlp.decision_function(X), expected, atol=1e-5)
    assert np.array_equal(mlp.predict_proba(X), mlp.decision_function(X)) is bool(settings)
    assert mlp.score(X, Y) > 0.9
    mlp.coefs_[2][...] = 0
    mlp.intercepts_[2][...] = (0, 1, 0)
    assert set(mlp.predict(X)) == {1}


@pytest.mark.parametrize(
    "labels",
    [["seven", "nine", "one"], [-7, -1, 300], [0.0, 1.0, 2.0], [False, True]],
)
def test_any_labels(labels):
    labels = np.array(labels)
    y = labels[Y % len(labels)]
    mlp = make_mlp(max_iter=12).fit(X, y)
    assert mlp.classes_.tolist() == sorted(labels)
    guesses, scores, probabilities = mlp.predict(X), mlp.decision_function(X), mlp.predict_proba(X)
    assert guesses.dtype == labels.dtype
    assert mlp.score(X, y) == np.mean(guesses == y) > 0.9
    assert scores.shape == ((230,) if len(labels) == 2 else (230, 3))
    assert probabilities.shape == (230, len(labels))
    codes = scores > 0 if len(labels) == 2 else scores.argmax(axis=1)
    assert np.array_equal(mlp.classes_[codes.astype(int)], guesses)
    assert np.array_equal(mlp.classes_[probabilities.argmax(axis=1)], guesses)


@pytest.mark.parametrize("labels", [[-5, 0, 1], ["0", "05", "1"], ["a", "b", "c"]])
def test_similar_labels_are_those_of_y(labels):
    """The last label is number 2 for the network."""

    def fitted(y, similar):
        parameters = DeformationParameters(6.0, 4.0, 40.0, 5.0, tuple(similar))
        return make_mlp(deformation=parameters, image_shape=SHAPE, max_iter=1).fit(X, y)

    found = fitted(np.array(labels)[Y], ["c"] if labels[0] == "a" else [1, 7])
    assert same(found, fitted(Y, [2]))
    assert not same(found, fitted(Y, []))
