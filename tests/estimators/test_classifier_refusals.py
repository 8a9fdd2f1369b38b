"""The classifier refuses what it cannot use, in one line, and stays as it was."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mlpcore import DeformationParameters, InputError
from mlpcore.training.trainer import Diverged
from small_classifiers import DEFORMED, X, Y, make_mlp
from small_runs import same_weights

#: What a message looks like.
ONE_LINE = r"^[^\n]+\bexpected [^\n]+\Z"

BAD = {
    "hidden_layer_sizes": [(5, 0), None, "net6"],
    "max_iter": [1.5],
    "learning_rate_init": [None],
    "learning_rate_end": [0],
    "learning_rate_ratio": [0],
    "target": [1.8],
    "activation": ["logistic"],
    "loss": ["hinge"],
    "init": [None],
    "decay": ["invscaling"],
    "warm_up": [-1],
    "validation_fraction": [0, 1, None],
    "n_iter_no_change": [0],
    "tol": ["small"],
    "random_state": [-1, "x"],
    "deformation": [True, DeformationParameters(similar_labels=7)],
    "image_shape": [None, (5, 5), 35, (5, -7)],
    "backend": ["mmx"],
    "threads": ["2"],
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name in BAD for v in BAD[name]])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_parameters_that_cannot_be(name, value, method):
    mlp = make_mlp(**DEFORMED).set_params(**{name: value})
    with pytest.raises(InputError, match=ONE_LINE):
        mlp.fit(X, Y) if method == "fit" else mlp.partial_fit(X, Y, classes=[0, 1, 2])
    assert not hasattr(mlp, "network_")


def test_images_for_a_deformation_lie_within_one():
    mlp = make_mlp(**DEFORMED)
    with pytest.raises(InputError, match="X holds -254"):
        mlp.fit(-254 * np.abs(X), Y)
    mlp.fit(np.nextafter(X, 2 * X), Y)


def test_values_whose_sums_overflow():
    mlp = make_mlp().fit(X, Y)
    mlp.coefs_[0][...] = 1
    mlp.coefs_[0][::2] = -1
    with pytest.raises(InputError, match=r"X holds 3e\+38"):
        mlp.predict(np.full((1, 35), 3e38, np.float32))


def test_a_failed_fit_keeps_the_fit_before():
    mlp = make_mlp().fit(X, Y)
    before = mlp.network_.copy()
    mlp.set_params(learning_rate_init=3e38, learning_rate_end=3e38)
    for warm_start in (False, True):
        with np.errstate(all="ignore"), pytest.raises(Diverged):
            mlp.set_params(warm_start=warm_start).fit(X, Y)
    mlp.set_params(learning_rate_init=0.01, learning_rate_end=None, warm_start=False)
    with pytest.raises(InputError):
        mlp.fit(X, np.zeros(len(X)))
    assert same_weights(mlp.network_, before)
    assert mlp.n_iter_ == 3
    assert len(mlp.predict(X)) == len(X)


def test_a_partial_fit_that_diverges_leaves_no_network():
    mlp = make_mlp().fit(X, Y).set_params(learning_rate_init=3e38)
    with np.errstate(all="ignore"), pytest.raises(Diverged):
        mlp.partial_fit(X, Y)
    with pytest.raises(NotFittedError):
        mlp.predict(X)
    mlp.set_params(learning_rate_init=0.01).partial_fit(X, Y, classes=[0, 1, 2])
    assert np.isfinite(mlp.loss_)


@pytest.mark.parametrize("name", ["coefs_", "intercepts_", "loss_", "n_iter_"])
def test_before_fit(name):
    assert not hasattr(make_mlp(), name)
