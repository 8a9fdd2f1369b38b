"""Deformation as a transformer: any range of values, any batch, scikit-learn's conventions."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from mlpcore import DeformationParameters, ElasticDeformer, backends
from mlpcore.deformation.deform import deform

BACKEND = backends.get("cpu")


def squares(n=120, height=15, width=13):
    """Images in [-1, 1]: noise within a background of -1."""
    images = np.full((n, height, width), -1, np.float32)
    inside = images[:, 3:-3, 3:-3]
    inside[...] = np.random.default_rng(0).uniform(-1, 1, inside.shape)
    return images


IMAGES = squares()
FLAT = IMAGES.reshape(120, 195)
LABELS = (np.arange(120) % 10).astype(np.uint8)


def make_deformer(**changes):
    return ElasticDeformer(**{"random_state": 5} | changes)


def deformed_by_mlpcore(images, epoch=0, labels=None, **settings):
    labels = np.zeros(len(images), np.uint8) if labels is None else labels
    return deform(images, labels, DeformationParameters(**settings), 5, epoch, BACKEND)


# What is computed


@pytest.mark.parametrize("epoch", [0, 7, 2**32 - 1])
@pytest.mark.parametrize("settings", [{}, {"sigma": 3, "alpha": 9, "beta": 4, "gamma": 2}])
def test_it_is_the_deformation_of_the_training_loop(epoch, settings):
    deformer = make_deformer(**settings).fit(IMAGES)
    assert deformer.background_ == -1
    assert deformer.image_shape_ == (15, 13)
    deformed = deformer.deform(IMAGES, epoch=epoch)
    assert np.array_equal(deformed, deformed_by_mlpcore(IMAGES, epoch, **settings))


@given(indices=st.lists(st.integers(0, 119), min_size=1, max_size=30), epoch=st.integers(0, 5))
@settings(max_examples=25)
def test_an_image_is_deformed_alike_in_any_batch(indices, epoch):
    deformer = make_deformer(similar_labels=(1, 7)).fit(IMAGES)
    whole = deformer.deform(IMAGES, LABELS, epoch=epoch)
    some = deformer.deform(IMAGES[indices], LABELS[indices], epoch=epoch, indices=indices)
    assert np.array_equal(some, whole[indices])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_images_in_parts_by_any_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr("mlpcore.data.scaling._BATCH_PIXELS", 15 * 13 * 207)
    images = squares(430)
    deformer = make_deformer(threads=threads).fit(images)
    assert np.array_equal(deformer.deform(images), deformed_by_mlpcore(images))


@pytest.mark.parametrize("name", ["reference", "scalar", "cpu"])
def test_other_backends(name):
    """Within the tolerance of the backends' tests: 64 roundings of 40 pixels, slope 2."""
    images = IMAGES[:5]
    result = make_deformer(backend=name).fit(images).deform(images)
    assert np.abs(result - deformed_by_mlpcore(images)).max() <= 64 * 2**-24 * 40 * 2


# Ranges and types


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.float32, 0, 1),
        (np.float64, 0, 255),
        (np.float64, 1e6, 1e6 + 1),
        (np.float64, 0, 1e-9),
        (np.float64, 0, 0.1),  # no sum of few powers of two: could come back as a little more
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


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint32])
def test_whole_numbers_are_rounded_to_the_nearest(dtype):
    pixels = np.rint((IMAGES + 1) * 127.5)
    exact = make_deformer().fit_transform(pixels)
    result = make_deformer().fit_transform(pixels.astype(dtype))
    assert result.dtype == dtype
    assert np.array_equal(result, np.rint(exact))
    assert np.abs(exact - result).max() > 0.4  # there was something to round


@pytest.mark.parametrize("background", [0, 77, 255])
def test_the_background_comes_in_from_outside(background):
    """A flat image turned by 80 degrees: its corners come from far outside."""
    deformer = make_deformer(alpha=0, beta=80, gamma=0, background=background, random_state=1)
    result = deformer.fit_transform(np.full((200, 21, 21), 100, np.uint8))
    assert {result.min(), result.max()} == {background, 100}
    assert np.mean(result[:, 0, 0] == background) > 0.3
    assert np.all(result[:, 10, 10] == 100)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_no_deformation_is_the_identity(dtype):
    images = np.rint((squares(30) + 1) * 127.5).astype(dtype)
    result = make_deformer(alpha=0, beta=0, gamma=0).fit_transform(images)
    assert result.dtype == dtype
    assert np.array_equal(result, images)
    constant = np.zeros((3, 9, 9), dtype)
    assert np.array_equal(make_deformer().fit_transform(constant), constant)


# Shapes and labels


def test_flattened_images_and_lists_are_deformed_alike():
    expected = deformed_by_mlpcore(IMAGES)
    deformer = make_deformer(image_shape=(15, 13)).fit(FLAT)
    assert np.array_equal(deformer.deform(FLAT), expected.reshape(120, 195))
    assert np.array_equal(deformer.deform(IMAGES), expected)
    view, places = np.asfortranarray(IMAGES)[::-1], np.arange(120)[::-1]
    assert np.array_equal(deformer.deform(view, indices=places), expected[::-1])
    deformer = make_deformer().fit(IMAGES.tolist())
    exact = deformer.deform(IMAGES.astype(np.float64))
    assert np.array_equal(deformer.deform(IMAGES.tolist()), exact)
    assert np.array_equal(deformer.transform(tuple(IMAGES)), IMAGES)
    square = squares(20, 16, 16)
    flat = make_deformer().fit_transform(square.reshape(20, 256))
    assert np.array_equal(flat.reshape(square.shape), deformed_by_mlpcore(square))


@pytest.mark.parametrize("names", [range(10), list("0123456789"), list("abcdefghij")])
def test_similar_labels(names):
    similar = ("b", "h") if names[1] == "b" else (1, 7)
    expected = deformed_by_mlpcore(IMAGES, 0, LABELS)  # the digits 1 and 7 are similar
    deformer = make_deformer(similar_labels=similar).fit(IMAGES)
    labels = np.array(names)[LABELS]
    assert np.array_equal(deformer.deform(IMAGES, labels), expected)
    assert np.array_equal(deformer.deform(IMAGES, labels.tolist()), expected)
    changed = np.any(deformer.deform(IMAGES) != expected, axis=(1, 2))
    assert set(LABELS[changed]) == {1, 7}


# scikit-learn's conventions

#: The other checks pass tables of any width, which are no images.
CHECKS = (
    "estimator_cloneable estimator_repr no_attributes_set_in_init get_params_invariance "
    "parameters_default_constructible do_not_raise_errors_in_init_or_set_params set_params "
    "mixin_order valid_tag_types transformers_unfitted"
)


@pytest.mark.parametrize("name", CHECKS.split())
def test_scikit_learns_checks(name):
    getattr(estimator_checks, f"check_{name}")("ElasticDeformer", ElasticDeformer())


def test_a_pipeline_deforms_what_it_fits_only_and_so_do_clones_and_pickles():
    deformer = make_deformer(random_state=None, image_shape=[15, 13], similar_labels=(1, 7))
    pipeline = make_pipeline(deformer, FunctionTransformer())
    deformed = pipeline.fit_transform(FLAT, LABELS)
    assert np.array_equal(pipeline.transform(FLAT), FLAT)
    twin = pickle.loads(pickle.dumps(deformer))
    for each in (deformer, twin):
        assert np.array_equal(each.deform(FLAT, LABELS), deformed)
    assert clone(deformer).get_params() == deformer.get_params()
    other = clone(deformer).fit(FLAT).deform(FLAT, LABELS)  # of another seed
    assert np.mean(other != deformed) > 0.1


def test_without_a_fit_the_images_are_those_of_the_training():
    deformer, fitted = make_deformer(), make_deformer().fit(IMAGES)
    assert np.array_equal(deformer.deform(IMAGES, epoch=2), fitted.deform(IMAGES, epoch=2))
    assert np.array_equal(deformer.deform(IMAGES[3:4], indices=[3]), fitted.deform(IMAGES)[3:4])


def test_names_of_features_are_those_of_the_last_fit():
    deformer = make_deformer()
    deformer.feature_names_in_ = ["of a table before"]
    assert not hasattr(deformer.fit(IMAGES), "feature_names_in_")
