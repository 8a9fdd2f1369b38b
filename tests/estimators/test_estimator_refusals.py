"""Calls that the estimators refuse, and words of the one line with which they do."""

import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

from mlpcore import DeformationParameters, ElasticDeformer, OnlineMLPRegressor, StreamMLPClassifier
from mlpcore.training.trainer import Diverged, Observer
from small_classifiers import DEFORMED, MODERN, SHORT, X, Y, make_mlp
from small_runs import same_weights

pytestmark = SHORT

IMAGES = np.random.default_rng(0).uniform(-1, 1, (12, 15, 13)).astype(np.float32)
COLOURS = np.zeros((12, 20, 26, 3), np.uint8)
SOME = X[:40], Y[:40]
SHARE = {"early_stopping": True, "validation_fraction": 0.2}
MANY = np.arange(600)
BOTH = np.column_stack([Y > 0, Y < 2]).astype(int)

#: Values of parameters: of the classifier that deforms, of the deformer, of its method `deform`
#: after a fit of `IMAGES`, and of the classifier for streams. `TrainingConfig` has its own tests.
PARAMETERS = {
    "classifier": {
        "hidden_layer_sizes": [(5, 0), None, "net6"],
        "max_iter": [1.5],
        "learning_rate_init": [None],
        "alpha": [-1, float("inf"), "AUTO"],
        "validation_fraction": [0, 1, None],
        "loss": ["huber"],
        "random_state": [-1, "x"],
        "deformation": [True, DeformationParameters(similar_labels=7)],
        "image_shape": [None, (5, 5), 35, (5, -7)],
        "threads": ["2"],
        "backend": ["mmx"],
    },
    "deformer": {
        "similar_labels": [1, "17"],
        "image_shape": [(15, 14), (13, 15)],
        "background": ["black", np.float32("inf"), float("nan"), -(10**400)],
        "random_state": [1.5],
        "channels": ["middle"],
    },
    "deform": {
        "X": [IMAGES[:, :9], IMAGES > 0, IMAGES.astype(np.uint8), IMAGES[:, 0], IMAGES[0, 0]],
        "y": [[1, 2]],
        "epoch": [-1, 2**32],
        "indices": [[1, 2], np.arange(12) / 2, np.arange(12) - 1, np.arange(12) + 2**31 - 11],
    },
    "stream": {
        "hidden_layer_sizes": [(0,), "wide"],
        "learning_rate": [0, "fast"],
        "classes": [3, "ab", {"a", "b"}, [[1]], range(257)],
        "class_weight": ["fair", np.eye(2), {1: -1.0}, {1: "2"}, {1: math.nan}],
        "max_features": [0],
        "seed": [-1],
    },
    "changed stream": {"max_features": ["few"], "class_weight": ["fair", {1: -1.0}]},
}


def changed(**value):
    """The first sample of a classifier for streams whose attribute has another value now."""
    model = StreamMLPClassifier(classes=np.arange(2))
    vars(model).update(value)
    model.learn_one([1.0], 1)


#: What uses the values.
USES = {
    "classifier": lambda **value: make_mlp(**DEFORMED).set_params(**value).fit(X, Y),
    "part": lambda **value: make_mlp(**DEFORMED).set_params(**value).partial_fit(X, Y, [0, 1, 2]),
    "deformer": lambda **value: ElasticDeformer(**value).fit_transform(IMAGES),
    "deform": lambda **value: ElasticDeformer().fit(IMAGES).deform(**{"X": IMAGES} | value),
    "stream": StreamMLPClassifier,
    "changed stream": changed,
}


@pytest.mark.parametrize("kind", USES)
def test_values_of_parameters(kind):
    for name, values in PARAMETERS["classifier" if kind == "part" else kind].items():
        for value in values:
            with pytest.raises(ValueError, match=r"^[^\n]+\b(expected|must be) [^\n]+\Z"):
                USES[kind](**{name: value})
                pytest.fail(f"{name} {value}")


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


def numbers(first, *more, method="partial_fit"):
    """A regressor that learns targets, and then others."""
    mlp = OnlineMLPRegressor((20,), max_iter=5, random_state=0)

    def call():
        getattr(mlp, method)(X[: len(first)], first)
        for each in more:
            mlp.partial_fit(X[: len(each)], each)

    return call


CALLS = [
    (part(X, Y, [1]), "^classes holds 1 class: expected"),
    (part(X, Y, [0, 1]), r"^y holds 2: expected one of \[0, 1\]"),
    (lambda: part(X[:1], Y[:1])().partial_fit(np.full((1, 35), np.nan), Y[:1]), "NaN"),
    (part(X[:20], Y[:20], learning_rate_init=3e38), "^training diverged"),
    (part(1e25 * X, Y, weights=np.arange(230)), "^training diverged"),
    (fit(MANY[:, None] / 600, MANY % 257), "^y holds 257 classes"),
    (fit(X, np.array(["a", *[1] * (len(X) - 1)], object)), "^y: .*; expected labels that can be"),
    (fit(X[:4], [1, "1", 2, 2]), "^y holds the label 1, which becomes '1' among the others"),
    *((fit(bad, Y), "^X is .*: expected an array") for bad in (None, "text", memoryview(X))),
    (fit(X, 1 + BOTH, **MODERN), "^y holds 2: expected 0 and 1"),
    (fit(X, BOTH.astype(str), **MODERN), "^y holds rows of texts: expected labels"),
    (part(X, BOTH, **MODERN), r"^classes \(0, 1, 2\): expected \[0, 1\]"),
    (fit(X, BOTH), "^loss 'squared' and class_weight None: expected 'cross-entropy' and None"),
    (part(X, BOTH, [0, 1], class_weight={0: 2}, **MODERN), "class_weight {0: 2}: expected"),
    (again(X, BOTH), r"^y has the shape \(230, 2\): expected labels \(n,\)"),
    (lambda: part(X, BOTH, [0, 1], **MODERN)().partial_fit(X, Y), "expected 2 columns, as before"),
    (fit(X, "text"), "^y is 'text': expected an array"),
    (deform(np.ma.masked_less(IMAGES, 0)), "^X holds masked values: expected none"),
    (again(X, Y + 1), r"^y holds 3: expected one of \[0, 1, 2\]"),
    (fit(-254 * np.abs(X), Y, **DEFORMED), "^X holds -254: expected images in"),
    (lambda: StreamMLPClassifier(classes=range(256)).learn_one([1.0], "one more"), "at most 256"),
    (lambda: StreamMLPClassifier().learn_many(X, Y), "^X is .*: expected a pandas.DataFrame"),
    (overflow, r"^X holds 3e\+38.*expected"),
    (fit(X, Y, class_weight={0: 0, 1: 0, 2: 0}), "class_weight: all weights are zero"),
    (fit(csr_matrix(X), Y, **DEFORMED), "^X is a sparse matrix: expected an array of images"),
    (fit(X, Y, np.full(230, 1e30), class_weight={0: 1e30}), "infinity or a value too large"),
    (fit(X[:4], Y[:4], **SHARE), "^validation_fraction of 0.2 of 4 samples: expected"),
    (fit(X, Y, np.eye(230)[0], **SHARE), "^sample_weight: all are zero in a part"),
    (fit(X, Y, callbacks=3), "^callbacks 3: expected a list of functions"),
    (fit(X, Y, callbacks=[Observer]), "^callbacks.*expected functions or Observers$"),
    (lambda: make_mlp().set_params(deformation__alpha=1), "^deformation None: expected"),
    (
        lambda: make_mlp(**DEFORMED).set_params(deformation__delta=1),
        "^deformation parameter delta:",
    ),
    (numbers(X[:, :2], X[:, 0], method="fit"), "^y holds 1 numbers per sample: expected 2"),
    (numbers(X[:5, :2], X[:5, 0]), "^y holds 1 numbers per sample: expected 2"),
    (
        numbers(1e200 * X[:, 0].astype(float), method="fit"),
        r"^y holds .*e\+.*: expected numbers up",
    ),
    (numbers([None] * 9, method="fit"), "^y holds nan: expected numbers up to"),
    (deform(np.zeros((3, 10))), "^image_shape"),
    (lambda: ElasticDeformer().transform(IMAGES), "not fitted"),
    (deform(np.zeros((0, 9, 9))), r"^X has shape \(0, 9, 9\): expected"),
    (deform(np.zeros((2, 3, 4, 5))), "channels to be 'first' or 'last'"),
    (deform(np.full((2, 9, 9), np.nan)), "^X holds NaN"),
    (deform(np.diag([1e300] + 8 * [0])[None]), "expected numbers that float32 holds"),
    (deform(np.zeros((1, 3000, 2))), "3000 x 2"),
    (deform(COLOURS[..., :2], COLOURS, "deform", "last"), "^X holds 1040 values"),
    (deform(COLOURS[:, :9, :, 0], COLOURS, "deform_masks", "last"), "^masks have shape"),
    (deform(np.zeros((12, 1, 3)), COLOURS, "deform_keypoints", "last"), "^keypoints"),
]


@pytest.mark.parametrize("call, words", CALLS, ids=[words for _, words in CALLS])
def test_calls(call, words, recwarn):
    with pytest.raises(ValueError, match=words):
        call()
    assert not any("encountered" in str(each.message) for each in recwarn.list)


def flagged():
    """A matrix whose indices SciPy found to ascend before they became others."""
    rows = csr_matrix(X)
    assert rows.has_canonical_format
    n = 10 * X.shape[1]
    rows.data, rows.indices = np.full(230 * n, 0.01, np.float32), np.zeros(230 * n, np.int32)
    rows.indptr = np.arange(0, 230 * n + 1, n, dtype=np.int32)
    return rows


def misplaced(kind, name, place, value):
    rows = csr_matrix(X.astype(np.float64)).asformat(kind)
    getattr(rows, name)[place] = value
    return rows


def overflowing(kind):
    """Row ends whose differences overflow; SciPy looks at these alone."""
    rows = csr_matrix(X)
    rows.indptr = np.array([0, np.iinfo(kind).max, np.iinfo(kind).min, *[5] * 228], kind)
    return rows


BROKEN = [flagged(), misplaced("csr", "indptr", 7, 2**30), misplaced("csr", "indptr", -1, 0)]
BROKEN += [misplaced("csc", "indices", 7, 2**30), misplaced("coo", "row", 7, 2**30)]
BROKEN += map(overflowing, (np.int8, np.uint8, np.int32, np.int64))


@pytest.mark.parametrize("rows", BROKEN, ids=range(len(BROKEN)))
def test_sparse_matrices_that_are_none(rows):
    """Before C code, SciPy's too, reads what they say."""
    mlp = make_mlp().fit(X, Y)
    for call in (mlp.predict, lambda rows: mlp.partial_fit(rows, Y), lambda rows: mlp.fit(rows, Y)):
        with pytest.raises(ValueError, match=r"(?i)ind(ex|ices|ptr)"):
            call(rows)


ROW = [1.0, -2.0, 0.5, 3.0, 1.0]
NAMED = {f"n{k}": value for k, value in enumerate(ROW)}


class NA:
    """As pandas.NA, of which nobody knows what it differs from."""

    def __ne__(self, other):
        raise TypeError("boolean value of NA is ambiguous")


NO_NUMBERS = 10**400, "1", [1], np.ma.masked, np.complex64(1), np.array(1j)
NO_WEIGHTS = -1, math.nan, math.inf, 1e39, "1", None, np.ones(1)
NO_ROWS = "12345", b"12345", {*ROW, 7.0}, [1, 2, 3, 4, "5"], np.ones(5) * 1j

#: Samples, labels and weights that a classifier for streams refuses, which learns such samples.
SAMPLES = [
    (NAMED, {"n1": -math.inf}, {}, "finite"),
    (NAMED, {"n1": 1e39}, {}, "finite"),
    (NAMED, {"new": 1, "n1": math.inf}, {"y": "new"}, "finite"),
    *((NAMED, {"n1": bad}, {}, "numbers") for bad in NO_NUMBERS),
    (NAMED, dict.fromkeys(range(4), 1), {}, "max_features"),
    (NAMED, ROW, {}, "dictionary"),
    (NAMED, None, {}, "dictionary"),
    (NAMED, NAMED, {"y": ["a"]}, "hashable"),
    *((NAMED, NAMED, {"y": missing}, "label") for missing in (None, math.nan, NA())),
    *((NAMED, NAMED, {"w": bad}, "w .*") for bad in NO_WEIGHTS),
    *((ROW, bad, {}, "of|array") for bad in ([1, 2], np.ones((1, 5)), np.ones(()), {"n0": 1})),
    *((ROW, bad, {}, "numbers") for bad in NO_ROWS),
    (ROW, np.ma.masked_less(ROW, 0), {}, "masked"),
]


@pytest.mark.parametrize("before, x, other, words", SAMPLES)
def test_a_refused_sample_of_a_stream_teaches_nothing(before, x, other, words):
    model = StreamMLPClassifier((4,), max_features=8)
    for k in range(9):
        model.learn_one(before, "abc"[k % 3])
    kept = pickle.dumps(model)
    if isinstance(x, dict) and before is NAMED:
        x = NAMED | x
    with pytest.raises(ValueError, match=rf"^[^\n]*{words}[^\n]*\Z"):
        model.learn_one(x, **{"y": "a"} | other)
    if not other and words != "max_features":  # names that are new are left out
        with pytest.raises(ValueError, match=words):
            model.predict_one(x)
    assert pickle.dumps(model) == kept


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
        with pytest.raises(ValueError, match="sample_weight"):
            mlp.set_params(warm_start=False).fit(X[:, :5], Y, [1])
        assert mlp.n_features_in_ == X.shape[1]
        assert same_weights(mlp.network_, before) and mlp.n_iter_ == 3
        with pytest.raises(Diverged):
            mlp.partial_fit(X, Y)
    with pytest.raises(NotFittedError):
        mlp.predict(X)
    mlp.set_params(learning_rate_init=0.01).partial_fit(X, Y, classes=[0, 1, 2])
    assert np.isfinite(mlp.loss_)
