"""The classifier warns of inputs, labels and rates that cannot be meant, and says what to do."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from mlpcore import OnlineMLPClassifier
from mlpcore.estimators.fitting import still_falls
from small_classifiers import X, Y, make_mlp


def test_raw_measurements_get_the_remedy():
    raw, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match=r"^X is far outside \[-1, 1\].*StandardScaler") as caught:
        make_mlp(max_iter=1).fit(raw, y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="feature 23 has a root mean square of 1048"):
        make_mlp().partial_fit(raw, y, classes=[0, 1])


@pytest.mark.parametrize("greatest, warns", [(9.9, False), (10.1, True)])
def test_the_limit(greatest, warns):
    signs = np.where(np.arange(460).reshape(230, 2) % 3, 1.0, -1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_mlp(max_iter=1).fit(signs * [1.0, greatest], Y)
    assert bool(caught) is warns


def test_no_warning_by_default():
    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlineMLPClassifier(random_state=0).fit(scale(X), y)


def test_the_loss_still_falls():
    with pytest.warns(ConvergenceWarning, match=r"still falls after 3 epochs.*max_iter") as caught:
        make_mlp().fit(X, Y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # none after a stop
        warnings.simplefilter("error")
        make_mlp(max_iter=4, callbacks=[lambda mlp, metrics: metrics.epoch == 3]).fit(X, Y)


@pytest.mark.parametrize(
    ("rate", "settings"),
    [
        (10, {}),
        (100, {"loss": "squared", "activation": "tanh"}),
        (10, {"early_stopping": True}),
        (1e-7, {"max_iter": 2}),
        (1e-7, {"max_iter": 2, "loss": "squared", "init": "uniform", "activation": "tanh"}),
    ],
)
def test_a_rate_that_is_too_high_is_to_be_lowered(rate, settings):
    """Not one that is too low."""
    mlp = OnlineMLPClassifier(learning_rate_init=rate, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mlp.set_params(**{"max_iter": 20} | settings).fit(*load_iris(return_X_y=True))
    found = [("Lower it" in str(each.message), each.filename) for each in caught]
    assert found == [(True, __file__)] * (rate > 1)


@pytest.mark.parametrize(
    ("labels", "warns"),
    [
        (np.arange(230) % 100, True),
        (np.arange(230) % 100 / 1.0, True),
        (np.arange(230) % 57, False),
    ],
)
def test_a_target_of_a_regression(labels, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_mlp().fit(X, labels)
    texts = [str(each.message) for each in caught if each.filename == __file__]
    assert sum("regression" in text for text in texts) == warns


@pytest.mark.parametrize(
    ("losses", "rates", "first", "expected"),
    [
        ([1.0], [1.0], 1.0, False),
        ([1.0, 0.5], [1.0, 1.0], 1.0, True),
        ([1.0, 0.95], [1.0, 1.0], 1.0, False),
        ([1.0, 1.5], [1.0, 1.0], 1.0, False),
        ([1.0, 0.9, 0.5, 0.45], [1.0] * 4, 1.0, True),
        ([1.0, 0.9, 0.5, 0.45], [0.1, 0.1, 1.0, 0.1], 1.0, False),
        ([0.1, 0.05], [1.0, 1.0], 1.0, False),
    ],
)
def test_when_it_still_falls(losses, rates, first, expected):
    assert still_falls(losses, rates, first) is expected
