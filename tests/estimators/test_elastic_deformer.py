"""Deformation as a transformer: any range of values, any batch, scikit-learn's conventions."""

import doctest
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from mlpcore import DeformationParameters, ElasticDeformer, InputError, backends
from mlpcore.deformation.deform import deform
from mlpcore.estimators import deformer as elastic_deformer

BACKEND = backends.get("cpu")
PAPER = DeformationParameters()


def squares(n=120, height=15, width=13, seed=0):
    """Images in [-1, 1]: noise within a background of -1."""
    images = np.full((n, height, width), -1, np.float32)
    inside = images[:, 3:-3, 3:-3]
    inside[...] = np.random.default_rng(seed).uniform(-1, 1, inside.shape)
    return images


IMAGES = squares()
LABELS = (np.arange(120) % 10).astype(np.uint8)


def make_deformer(**changes):
    return ElasticDeformer(**{"random_state": 5} | changes)


def deformed_by_mlpcore(images, epoch=0, labels=None, similar=()):
    labels = np.zeros(len(images), np.uint8) if labels is None else labels
    parameters = DeformationParameters(similar_labels=similar)
    return deform(images, labels, parameters, 5, epoch, BACKEND)


# What is computed


@pytest.mark.parametrize("epoch", [0, 7, 2**32 - 1])
def test_it_is_the_deformation_of_the_training_loop(epoch):
    deformer = make_deformer().fit(IMAGES)
    assert deformer.background_ == -1
    assert deformer.image_shape_ == (15, 13)
    assert deformer.n_features_in_ == 195
    deformed = deformer.deform(IMAGES, epoch=epoch)
    assert np.array_equal(deformed, deformed_by_mlpcore(IMAGES, epoch))


def test_the_defaults_are_the_papers():
    deformer = ElasticDeformer()
    assert (deformer.sigma, deformer.alpha) == (PAPER.sigma, PAPER.alpha)
    assert (deformer.beta, deformer.gamma) == (PAPER.beta, PAPER.gamma)


@given(
    indices=st.lists(st.integers(0, 119), min_size=1, max_size=30),
    epoch=st.integers(0, 5),
)
@settings(max_examples=25)
def test_an_image_is_deformed_alike_in_any_batch(indices, epoch):
    deformer = make_deformer(similar_labels=(1, 7)).fit(IMAGES)
    whole = deformer.deform(IMAGES, LABELS, epoch=epoch)
    some = deformer.deform(IMAGES[indices], LABELS[indices], epoch=epoch, indices=indices)
    assert np.array_equal(some, whole[indices])


def test_many_images_are_as_few(monkeypatch):
    """They are deformed in parts, which here are smaller than the images are many."""
    deformer = make_deformer().fit(IMAGES)
    expected = deformer.deform(IMAGES)
    monkeypatch.setattr("mlpcore.data.scaling._BATCH_PIXELS", 15 * 13 * 7)
    assert np.array_equal(deformer.deform(IMAGES), expected)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads):
    images = squares(430)
    deformer = make_deformer(threads=threads).fit(images)
    assert np.array_equal(deformer.deform(images), deformed_by_mlpcore(images))


@pytest.mark.parametrize("name", ["reference", "scalar", "cpu"])
def test_other_backends(name):
    """Within the tolerance of tests/test_deformation.py: 64 roundings of 40 pixels, slope 2."""
    images = IMAGES[:5]
    result = make_deformer(backend=name).fit(images).deform(images)
    assert np.abs(result - deformed_by_mlpcore(images)).max() <= 64 * 2**-24 * 40 * 2


def test_seeds_and_epochs_differ():
    first = make_deformer().fit(IMAGES)
    drawn = [
        first.deform(IMAGES),
        first.deform(IMAGES, epoch=1),
        make_deformer(random_state=6).fit(IMAGES).deform(IMAGES),
        make_deformer(random_state=None).fit(IMAGES).deform(IMAGES),
    ]
    for i, a in enumerate(drawn):
        for b in drawn[:i]:
            assert np.mean(a != b) > 0.1
    assert np.array_equal(drawn[0], make_deformer().fit(IMAGES).deform(IMAGES))


# Ranges and types


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.float32, 0, 1),
        (np.float64, 0, 1),
        (np.float64, 0, 255),
        (np.float64, 1e6, 1e6 + 1),
        (np.float64, 0, 1e-9),
        (np.float64, 0, 1e30),
        (np.float32, 1, 0),  # black on white, background given
    ],
)
def test_any_range_of_values(dtype, low, high):
    """Like [-1, 1]; float32 rounds values and results to 2^-24 of up to twice the range."""
    images = ((IMAGES.astype(np.float64) + 1) / 2 * (high - low) + low).astype(dtype)
    deformer = make_deformer(background=None if high > low else low).fit(images)
    assert deformer.background_ == low
    result = deformer.deform(images)
    assert result.dtype == dtype
    found = (result.astype(np.float64) - low) / (high - low) * 2 - 1
    # 1e6 + 1 has 2^-33 of rounding in float64, far less than float32's.
    assert np.abs(found - deformed_by_mlpcore(IMAGES)).max() <= 8 * 2**-24
    assert result.min() >= min(low, high)
    assert result.max() <= images.max()


def test_whole_numbers_are_rounded_to_the_nearest():
    pixels = np.rint((IMAGES + 1) * 127.5).astype(np.uint8)
    deformer = make_deformer().fit(pixels)
    assert deformer.background_ == 0
    exact = make_deformer().fit(pixels.astype(np.float64)).deform(pixels.astype(np.float64))
    for dtype in (np.uint8, np.int16, np.int64, np.uint32):
        result = make_deformer().fit(pixels.astype(dtype)).deform(pixels.astype(dtype))
        assert result.dtype == dtype
        assert np.array_equal(result, np.rint(exact))
    assert np.abs(exact - np.rint(exact)).max() > 0.4  # there was something to round


@pytest.mark.parametrize("background", [0, 77, 255])
def test_the_background_comes_in_from_outside(background):
    """A flat image turned by 80 degrees: its corners come from far outside."""
    deformer = make_deformer(alpha=0, beta=80, gamma=0, background=background, random_state=1)
    images = np.full((200, 21, 21), 100, np.uint8)
    result = deformer.fit(images).deform(images)
    low, high = min(background, 100), max(background, 100)
    assert (result.min(), result.max()) == (low, high)
    assert np.mean(result[:, 0, 0] == background) > 0.3
    assert np.all(result[:, 10, 10] == 100)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.float16])
def test_no_deformation_is_the_identity(dtype):
    images = (
        np.random.default_rng(0).integers(0, 256, (30, 9, 9)).astype(dtype)
        if dtype == np.uint8
        else squares(30).astype(dtype)
    )
    deformer = make_deformer(alpha=0, beta=0, gamma=0).fit(images)
    result = deformer.deform(images)
    assert result.dtype == dtype
    # float64 passes through float32.
    assert np.array_equal(result, images.astype(np.float32).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_value_leaves_the_range(dtype):
    """0.1 is no sum of few powers of two, and would come back as a little more or less."""
    images = np.where(IMAGES > -1, dtype(0.1), dtype(0)).astype(dtype)
    for background in (0, dtype(0.3)):
        result = make_deformer(background=background).fit(images).deform(images)
        assert result.min() >= 0
        assert result.max() <= max(dtype(0.1), background)


def test_a_constant_image_stays():
    images = np.zeros((3, 9, 9))
    assert np.array_equal(make_deformer().fit(images).deform(images), images)


@pytest.mark.parametrize("elastic", [True, False])
def test_parts_can_be_left_out(elastic):
    """Scaling and turning keep straight lines through the centre straight; elastic does not."""
    settings = {"beta": 0, "gamma": 0} if elastic else {"alpha": 0}
    line = np.zeros((50, 29, 29), np.float32)
    line[:, 14, :] = 1
    result = make_deformer(**settings).fit(line).deform(line)[:, :, 9:20]
    heights = (result * np.arange(29)[None, :, None]).sum(axis=1) / result.sum(axis=1)
    bend = np.abs(np.diff(heights, 2)).max(axis=1)
    # A tenth of a pixel: a slanted line one pixel thick is sampled by bilinear interpolation.
    assert np.median(bend) < 0.1 if not elastic else np.median(bend) > 0.1


# Shapes and labels


def test_flattened_images_are_deformed_alike():
    expected = make_deformer().fit(IMAGES).deform(IMAGES)
    flat = IMAGES.reshape(120, 195)
    deformer = make_deformer(image_shape=(15, 13)).fit(flat)
    assert np.array_equal(deformer.deform(flat), expected.reshape(120, 195))
    assert np.array_equal(deformer.deform(IMAGES), expected)
    square = squares(20, 16, 16)
    expected = make_deformer().fit(square).deform(square)
    flat = square.reshape(20, 256)
    assert np.array_equal(
        make_deformer().fit(flat).deform(flat.tolist()), expected.reshape(20, 256)
    )


@pytest.mark.parametrize(
    "names", [np.arange(10), np.arange(10).astype(str), np.array(list("abcdefghij"))]
)
def test_similar_labels(names):
    similar = (1, 7) if names[1] != "b" else ("b", "h")
    expected = deformed_by_mlpcore(IMAGES, 0, LABELS, (1, 7))
    deformer = make_deformer(similar_labels=similar).fit(IMAGES)
    assert np.array_equal(deformer.deform(IMAGES, names[LABELS]), expected)
    assert np.array_equal(deformer.deform(IMAGES, names[LABELS].tolist()), expected)
    plain = deformer.deform(IMAGES)
    changed = np.any(plain != expected, axis=(1, 2))
    assert set(LABELS[changed]) == {1, 7}
    assert np.array_equal(plain, deformed_by_mlpcore(IMAGES))


# scikit-learn's conventions


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_mixin_order,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_transformers_unfitted,
    ],
)
def test_scikit_learns_checks(check):
    """Those that do not fit tables of any width, which are no images."""
    check("ElasticDeformer", ElasticDeformer())


def test_a_pipeline_trains_on_deformed_images_and_predicts_from_others():
    seen = []

    class Recorder(BaseEstimator):
        """Any last step."""

        def fit(self, X, y):
            seen.append(X)
            self.fitted_ = True
            return self

        def predict(self, X):
            seen.append(X)
            return np.zeros(len(X))

    flat = IMAGES.reshape(120, 195)
    deformer = make_deformer(image_shape=(15, 13), similar_labels=(1, 7))
    make_pipeline(deformer, Recorder()).fit(flat, LABELS).predict(flat)
    assert np.array_equal(seen[0], deformer.deform(flat, LABELS))
    assert np.array_equal(seen[1], flat)


def test_a_failed_fit_does_not_count():
    deformer = make_deformer()
    with pytest.raises(InputError):
        deformer.fit(np.zeros((3, 10)))
    with pytest.raises(NotFittedError):
        deformer.deform(np.zeros((3, 10)))


def test_a_failed_fit_keeps_the_fit_before():
    flat = IMAGES.reshape(len(IMAGES), -1)
    deformer = make_deformer(image_shape=(15, 13)).fit(flat)
    deformer.feature_names_in_ = names = np.array([f"pixel {i}" for i in range(195)])  # pandas'
    with pytest.raises(InputError):
        deformer.fit(flat[:, :10])
    assert deformer.n_features_in_ == 195
    assert deformer.feature_names_in_ is names
    del deformer.feature_names_in_
    assert deformer.deform(flat).shape == flat.shape


def test_nested_lists_are_images_too():
    deformer = make_deformer().fit(IMAGES.tolist())
    assert deformer.image_shape_ == (15, 13)
    deformed = deformer.deform(IMAGES.tolist())
    assert np.array_equal(deformed, deformer.deform(IMAGES.astype(np.float64)))
    assert np.array_equal(deformer.transform(tuple(IMAGES)), IMAGES)
    assert np.array_equal(deformer.deform(list(deformed)), deformer.deform(deformed))


def test_clones_and_pickles():
    deformer = make_deformer(random_state=None, image_shape=[15, 13]).fit(IMAGES)
    twin = pickle.loads(pickle.dumps(deformer))
    assert np.array_equal(twin.deform(IMAGES), deformer.deform(IMAGES))
    assert clone(deformer).get_params() == deformer.get_params()


def test_the_docstring_is_right():
    tried = doctest.testmod(elastic_deformer)
    assert tried.attempted > 0
    assert tried.failed == 0


# Bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sigma": -1}, "sigma -1"),
        ({"alpha": float("nan")}, "alpha nan"),
        ({"alpha": "x"}, "alpha 'x'"),
        ({"beta": 90}, "beta 90"),
        ({"gamma": None}, "gamma None"),
        ({"similar_labels": 1}, "similar_labels 1"),
        ({"similar_labels": "17"}, "similar_labels '17'"),
        ({"image_shape": (15, 14)}, "image_shape 15 x 14: 210 pixels"),
        ({"image_shape": (13, 15)}, "X holds images of 15 x 13"),
        ({"background": "black"}, "background 'black'"),
        ({"background": float("inf")}, "background inf"),
        ({"background": np.float32("inf")}, "background "),
        ({"background": float("nan")}, "background nan"),
        ({"background": -(10**400)}, "background -1000"),
        ({"random_state": 1.5}, "random_state 1.5"),
    ],
)
def test_parameters_that_cannot_be(changes, words):
    with pytest.raises(InputError) as caught:
        make_deformer(**changes).fit(IMAGES)
    assert str(caught.value).startswith(words)
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X": IMAGES[:, :9]}, "X holds images of 9 x 13, expected 15 x 13"),
        ({"X": IMAGES > 0}, "X has type bool"),
        ({"X": IMAGES.astype(np.uint8)}, "background -1: expected a whole number from 0 to 255"),
        ({"X": IMAGES, "y": [1, 2]}, "y holds 2 labels, expected 120"),
        ({"X": IMAGES, "epoch": -1}, "epoch -1"),
        ({"X": IMAGES, "epoch": 2**32}, "epoch 4294967296"),
        ({"X": IMAGES, "indices": [1, 2]}, "indices: int64 of shape (2,)"),
        ({"X": IMAGES, "indices": LABELS / 2}, "indices: float64 of shape (120,)"),
        ({"X": IMAGES, "indices": LABELS.astype(int) - 1}, "indices: from -1 to 8"),
        ({"X": IMAGES[:1], "indices": [2**31]}, "indices: from 2147483648"),
    ],
)
def test_images_that_cannot_be(arguments, words):
    deformer = make_deformer().fit(IMAGES)
    with pytest.raises(InputError) as caught:
        deformer.deform(**arguments)
    assert str(caught.value).startswith(words)
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((3, 10)), "image_shape None: 10 features make no square"),
        (np.zeros((0, 9, 9)), "0 sample"),
        (np.zeros((2, 3, 4, 5)), r"expected \(n, h, w\)"),
        (np.full((2, 9, 9), np.nan), "NaN"),
        (np.diag([1e300] + 8 * [0])[None], "X holds 0 to 1e.300: expected a range"),
        (np.zeros((1, 3000, 2)), "3000 x 2"),
    ],
)
def test_images_that_cannot_be_fitted(images, words):
    with pytest.raises(ValueError, match=words) as caught:
        make_deformer().fit_transform(images)
    assert "\n" not in str(caught.value) or "NaN" in words
