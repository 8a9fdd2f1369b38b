"""What a fitted classifier says: labels, outputs, probabilities, weights."""

import pickle

import numpy as np
import pytest

from mlpcore import DeformationParameters, InputError
from mlpcore.network.activation import A, B
from small_classifiers import MODERN, SHAPE, X, Y, make_mlp, same


def test_weights_in_scikit_learns_orientation():
    mlp = make_mlp().fit(X, Y)
    states = X.astype(np.float64)
    for weights, biases in zip(mlp.coefs_, mlp.intercepts_):
        states = A * np.tanh(B * (states @ weights + biases))
    # Three layers of sums of up to 35 products in float32.
    np.testing.assert_allclose(mlp.decision_function(X), states, atol=1e-5)
    mlp.coefs_[2][...] = 0
    mlp.intercepts_[2][...] = (0, 1, 0)
    assert set(mlp.predict(X)) == {1}


def test_softmax_outputs_are_the_probabilities():
    mlp = make_mlp(backend="reference", learning_rate_init=0.05, **MODERN).fit(X, Y)
    states = X.astype(np.float64)
    for weights, biases in zip(mlp.coefs_[:-1], mlp.intercepts_[:-1]):
        states = np.maximum(states @ weights + biases, 0)
    powers = np.exp(states @ mlp.coefs_[-1] + mlp.intercepts_[-1])
    expected = powers / powers.sum(axis=1, keepdims=True)
    # Three layers of sums of up to 35 products in float32.
    np.testing.assert_allclose(mlp.predict_proba(X), expected, atol=1e-5)
    assert np.array_equal(mlp.predict_proba(X), mlp.decision_function(X))
    assert mlp.score(X, Y) > 0.9
    twin = pickle.loads(pickle.dumps(mlp))
    assert np.array_equal(twin.predict_proba(X), mlp.predict_proba(X))
    before = mlp.loss_
    assert mlp.partial_fit(X, Y).loss_ < before


@pytest.mark.parametrize(
    "labels",
    [["seven", "nine", "one"], [-7, -1, 300], [0.0, 1.0, 2.0], [False, True], ["yes", "no"]],
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


def test_up_to_256_classes():
    x = np.random.default_rng(0).uniform(-1, 1, (600, 4))
    y = np.arange(600) % 257
    assert make_mlp(max_iter=1).fit(x, y % 256).predict_proba(x).shape == (600, 256)
    with pytest.raises(InputError):
        make_mlp(max_iter=1).fit(x, y)


@pytest.mark.parametrize("labels", [[-5, 0, 1], ["0", "05", "1"], ["a", "b", "c"]])
def test_similar_labels_are_those_of_y(labels):
    """The last label is number 2 for the network."""

    def fitted(y, similar):
        parameters = DeformationParameters(6.0, 4.0, 40.0, 5.0, tuple(similar))
        return make_mlp(deformation=parameters, image_shape=SHAPE, max_iter=1).fit(X, y)

    found = fitted(np.array(labels)[Y], ["c"] if labels[0] == "a" else [1, 7])
    assert same(found, fitted(Y, [2]))
    assert not same(found, fitted(Y, []))
