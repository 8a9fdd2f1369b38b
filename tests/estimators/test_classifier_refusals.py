"""Both estimators refuse what they cannot use, in one line, and stay as they were."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mlpcore import DeformationParameters, ElasticDeformer
from mlpcore.training.trainer import Diverged, Observer
from small_classifiers import DEFORMATION, DEFORMED, SHORT, X, Y, make_mlp
from small_runs import same_weights

pytestmark = SHORT

IMAGES = np.random.default_rng(0).uniform(-1, 1, (12, 15, 13)).astype(np.float32)
COLOURS = np.zeros((12, 20, 26, 3), np.uint8)

CLASSIFIER = {
    "hidden_layer_sizes": [(5, 0), None, "net6"],
    "max_iter": [1.5],
    "learning_rate_init": [None],
    "alpha": [-1, float("inf"), "small"],
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

DEFORMER = {
    "sigma": [-1],
    "alpha": [float("nan")],
    "beta": [90],
    "gamma": [None],
    "similar_labels": [1, "17"],
    "image_shape": [(15, 14), (13, 15)],
    "background": ["black", np.float32("inf"), float("nan"), -(10**400)],
    "random_state": [1.5],
    "threads": [0],
    "channels": ["middle"],
}

#: What `ElasticDeformer.deform` of fitted `IMAGES` cannot take.
DEFORMED_IMAGES = {
    "X": [IMAGES[:, :9], IMAGES > 0, IMAGES.astype(np.uint8), IMAGES[:, 0], IMAGES[0, 0]],
    "y": [[1, 2]],
    "epoch": [-1, 2**32],
    "indices": [[1, 2], np.arange(12) / 2, np.arange(12) - 1, np.arange(12) + 2**31 - 11],
}

#: What a message looks like.
ONE_LINE = r"^[^\n]+\bexpected [^\n]+\Z"


def cases(values):
    return pytest.mark.parametrize(("name", "value"), [(n, v) for n in values for v in values[n]])


@cases(CLASSIFIER)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_parameters_of_the_classifier(name, value, method):
    mlp = make_mlp(**DEFORMED).set_params(**{name: value})
    with pytest.raises(ValueError, match=ONE_LINE):
        mlp.fit(X, Y) if method == "fit" else mlp.partial_fit(X, Y, classes=[0, 1, 2])
    assert not hasattr(mlp, "network_")


@cases(DEFORMER)
def test_parameters_of_the_deformer(name, value):
    deformer = ElasticDeformer(**{"random_state": 5, name: value})
    with pytest.raises(ValueError, match=ONE_LINE):
        deformer.fit_transform(IMAGES)


@cases(DEFORMED_IMAGES)
def test_images_that_cannot_be_deformed(name, value):
    deformer = ElasticDeformer(random_state=5).fit(IMAGES)
    with pytest.raises(ValueError, match=ONE_LINE):
        deformer.deform(**{"X": IMAGES, name: value})


def fit(*arguments, **settings):
    return lambda: make_mlp(**settings).fit(*arguments)


def part(X, y, classes=(0, 1, 2), weights=None, **settings):
    return lambda: make_mlp(**settings).partial_fit(X, y, classes, weights)


def again(X, y, **settings):
    """A fit that continues another one."""
    return lambda: make_mlp(warm_start=True).fit(*SOME).set_params(**settings).fit(X, y)


def deform(images, fitted=None, method="fit_transform", channels=None):
    deformer = ElasticDeformer(random_state=5, channels=channels)
    return lambda: getattr(deformer if fitted is None else deformer.fit(fitted), method)(images)


def overflow():
    """The sums of large parts overflow, and their difference is finite."""
    mlp = make_mlp().fit(*SOME)
    mlp.coefs_[0][...] = 1
    mlp.coefs_[0][::2] = -1
    mlp.predict(np.full((1, 35), 3e38, np.float32))


SOME = X[:40], Y[:40]
ALONE = np.eye(230)[0]  # the weight of one sample only
SHARE = {"early_stopping": True, "validation_fraction": 0.2}
MANY = np.arange(600)
MASKED_X, MASKED_Y = np.ma.masked_greater(X, 0), np.ma.masked_less(Y, 1)

#: Calls, and what their messages say.
CALLS = [
    (part(X, Y, None), "^classes None.*expected"),
    (part(X, Y, [1]), "^classes holds 1 class: expected"),
    (part(X, Y, [0, 1]), r"^y holds 2: expected one of \[0, 1\]"),
    (part(X, Y.astype(str)), "^y holds '0': expected"),
    (lambda: make_mlp().fit(X, Y).partial_fit(X, Y, [0, 1]), r"^classes \[0, 1\].*\[0, 1, 2\]$"),
    (fit(MANY[:, None] / 600, MANY % 257), "^y holds 257 classes"),
    (fit(X, np.zeros(230)), "^y holds 1 class: expected"),
    (part(X, Y, [1, "1", 2]), "^classes holds the label 1, which becomes '1'"),
    (fit(X[:4], [1, "1", 2, 2]), "^y holds the label 1, which becomes '1' beside the others"),
    *((fit(bad, Y), "^X is .*: expected an array") for bad in (None, "text", memoryview(X))),
    (fit(X, "text"), "^y is 'text': expected an array"),
    (lambda: make_mlp().fit(X, Y).predict(None), "^X is None: expected an array"),
    (deform("text"), "^X is 'text': expected an array"),
    (fit(X, MASKED_Y), "^y holds masked values: expected none"),
    (fit(MASKED_X, Y), "^X holds masked values"),
    (fit(X, Y, MASKED_Y), "^sample_weight holds masked values"),
    (lambda: make_mlp().fit(X, Y).predict(MASKED_X), "^X holds masked values"),
    (deform(np.ma.masked_less(IMAGES, 0)), "^X holds masked values"),
    (again(X, Y + 1), r"^y holds \[1, 2, 3\]: expected all of \[0, 1, 2\]"),
    (again(X, Y % 2), r"^y holds \[0, 1\]: expected all of"),
    (again(X[:, :10], Y), "features"),
    (again(X, Y, hidden_layer_sizes=4), r"\(35, 4, 3\)"),
    (fit(-254 * np.abs(X), Y, **DEFORMED), "^X holds -254: expected images in"),
    (overflow, r"^X holds 3e\+38.*expected"),
    (fit(X, Y, np.ones(229)), r"sample_weight.* \(229,\), expected \(230,\)"),
    (part(X, Y, weights=np.ones((230, 1))), "1D array"),
    (fit(X, Y, Y - 1.0), "Negative values in .*sample_weight"),
    (fit(X, Y, np.zeros(230)), "zero"),
    (fit(X, Y, class_weight={0: 0, 1: 0, 2: 0}), "class_weight: all weights are zero"),
    (fit(X, Y, class_weight={3: 1.0}), "not in class_weight"),
    (fit(X, Y, class_weight={0: -1}), "Negative values"),
    (fit(X, Y, class_weight={0: np.inf}), "infinity"),
    (fit(X, Y, class_weight="equal"), "'class_weight' parameter .* must be"),
    (fit(X[:4], Y[:4], **SHARE), "^validation_fraction of 0.2 of 4 samples: expected"),
    (fit(X, Y, ALONE, **SHARE), "^sample_weight: all are zero in a part"),
    (fit(X, Y, callbacks=3), "^callbacks 3: expected a list of functions"),
    (fit(X, Y, callbacks=[Observer]), "^callbacks.*expected functions or Observers$"),
    (lambda: make_mlp().set_params(deformation__alpha=1), "^deformation None: expected"),
    (
        lambda: make_mlp(deformation=DEFORMATION).set_params(deformation__delta=1),
        "^deformation parameter delta: expected sigma, alpha",
    ),
    (lambda: make_mlp().set_params(deformatio__alpha=1), "Invalid parameter 'deformatio'"),
    (lambda: ElasticDeformer().deform_masks(IMAGES), "not fitted"),
    (fit(X, Y, [10**400] * 230), "^sample_weight: int too large"),
    (deform(np.zeros((3, 10))), "^image_shape"),
    (deform(np.zeros((0, 9, 9))), r"^X has shape \(0, 9, 9\), expected"),
    (deform(np.zeros((2, 3, 4, 5))), "channels to be 'first' or 'last'"),
    (deform(np.full((2, 9, 9), np.nan)), "^X holds NaN"),
    (deform(np.diag([1e300] + 8 * [0])[None]), "expected a range that float32 holds"),
    (deform(np.zeros((1, 3000, 2))), "3000 x 2"),
    (deform(COLOURS[..., 0], COLOURS, "deform", "last"), "^X has shape"),
    (deform(COLOURS[..., :2], COLOURS, "deform", "last"), "^X holds 1040 values"),
    (deform(COLOURS[0, ..., 0], COLOURS, "deform_masks", "last"), "^masks have shape"),
    (deform(COLOURS[:, :9, :, 0], COLOURS, "deform_masks", "last"), "^masks have shape"),
    (deform(np.zeros((12, 1, 3)), COLOURS, "deform_keypoints", "last"), "^keypoints"),
    (deform(np.full((12, 1, 2), np.inf), COLOURS, "deform_keypoints", "last"), "^keypoints"),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[words for _, words in CALLS])
def test_calls_that_cannot_be(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("settings", [{"early_stopping": True}, {"class_weight": "balanced"}])
def test_what_needs_all_samples_has_no_partial_fit(settings):
    mlp = make_mlp().set_params(**settings)
    assert not hasattr(mlp, "partial_fit") and hasattr(make_mlp(), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        mlp.partial_fit(X, Y, [0, 1, 2])
    assert next(iter(settings)) in str(refused.value.__cause__)


def test_a_failed_fit_keeps_the_fit_before_and_a_failed_partial_fit_no_network():
    mlp = make_mlp().fit(X, Y)
    before = mlp.network_.copy()
    mlp.set_params(learning_rate_init=3e38, learning_rate_end=3e38)
    with np.errstate(all="ignore"):
        for warm_start in (False, True):
            with pytest.raises(Diverged):
                mlp.set_params(warm_start=warm_start).fit(X, Y)
        assert same_weights(mlp.network_, before) and mlp.n_iter_ == 3
        with pytest.raises(Diverged):
            mlp.partial_fit(X, Y)
    with pytest.raises(NotFittedError):
        mlp.predict(X)
    mlp.set_params(learning_rate_init=0.01).partial_fit(X, Y, classes=[0, 1, 2])
    assert np.isfinite(mlp.loss_)


def test_weights_that_float32_does_not_hold_are_refused_without_a_warning(recwarn):
    for weights, class_weight in ((1e39, None), (1e30, {0: 1e30, 1: 1, 2: 1})):
        with pytest.raises(ValueError, match="infinity or a value too large"):
            make_mlp(class_weight=class_weight).fit(X, Y, np.full(230, weights))
    assert not recwarn.list
