"""The classifier warns of inputs, labels and rates that cannot be meant, and says what to do."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


@pytest.mark.parametrize("scale, warns", [(9.9, False), (10.1, True)])
def test_the_limit(scale, warns):
    signs = np.where(np.arange(460).reshape(230, 2) % 3, 1.0, -1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_mlp(max_iter=1).fit(signs * [1.0, scale], Y)
    assert bool(caught) is warns


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_no_warning_by_default(load):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(StandardScaler(), OnlineMLPClassifier(random_state=0)).fit(
            *load(return_X_y=True)
        )


def test_the_loss_still_falls():
    with pytest.warns(ConvergenceWarning, match=r"still falls after 3 epochs.*max_iter") as caught:
        make_mlp().fit(X, Y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # none after a stop
        warnings.simplefilter("error")
        make_mlp(max_iter=4, callbacks=[lambda mlp, metrics: metrics.epoch == 3]).fit(X, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate_init": 10},
        {"learning_rate_init": 10, "activation": "tanh"},
        {"learning_rate_init": 100, "loss": "squared", "activation": "tanh"},
        {"learning_rate_init": 10, "early_stopping": True},
    ],
)
def test_a_rate_that_is_too_high_is_to_be_lowered(settings):
    mlp = OnlineMLPClassifier(max_iter=20, random_state=0, **settings)
    with pytest.warns(ConvergenceWarning) as caught:
        mlp.fit(*load_iris(return_X_y=True))
    assert [("Lower it" in str(each.message), each.filename) for each in caught] == [
        (True, __file__)
    ]


@pytest.mark.parametrize("settings", [{}, {"init": "uniform", "activation": "tanh"}])
@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_a_rate_that_is_too_low_is_not(settings, loss):
    low = {"loss": loss, "learning_rate_init": 1e-7, "max_iter": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlineMLPClassifier((9, 9), **low, **settings).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize(
    ("labels", "warns"),
    [
        (np.arange(230) % 100, True),
        (np.arange(230) % 100 / 1.0, True),
        ((np.arange(230) % 100).astype(str), False),
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
        ([1.0, 0.5, 0.5, 0.45], [1.0] * 4, 1.0, False),
        ([1.0, 0.9, 0.5, 0.45], [1.0] * 4, 1.0, True),
        ([1.0, 0.9, 0.5, 0.45], [0.1, 0.1, 1.0, 0.1], 1.0, False),
        ([0.1, 0.05], [1.0, 1.0], 1.0, False),
    ],
)
def test_when_it_still_falls(losses, rates, first, expected):
    assert still_falls(losses, rates, first) is expected
