"""Deformation as a transformer: any batch, labels, tensors, scikit-learn's conventions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mlpcore
from mlpcore import ElasticDeformer, InputError, OnlineMLPClassifier, backends
from mlpcore.deformation.deform import deform


def squares(n=120, height=15, width=13):
    """Images in [-1, 1]: noise within a background of -1."""
    noise = np.random.default_rng(0).uniform(-1, 1, (n, height - 6, width - 6))
    return np.pad(noise.astype("f4"), ((0, 0), (3, 3), (3, 3)), constant_values=-1)


IMAGES = squares()
FLAT = IMAGES.reshape(120, 195)
LABELS = (np.arange(120) % 10).astype(np.uint8)


def make_deformer(**changes):
    return ElasticDeformer(**{"random_state": 5} | changes)


def deformed_by_mlpcore(images, epoch=0, labels=None, **settings):
    labels = np.zeros(len(images), np.uint8) if labels is None else labels
    return deform(
        images, labels, mlpcore.DeformationParameters(**settings), 5, epoch, backends.get("cpu")
    )


@pytest.mark.parametrize("threads, epoch", [(1, 0), (2, 7), (5, 2**32 - 1)])
def test_it_deforms_as_the_training_in_any_parts_and_batches(threads, epoch, monkeypatch):
    monkeypatch.setattr("mlpcore.data.pixels._BATCH_PIXELS", 15 * 13 * 207)
    images, settings = squares(430), {"sigma": 3, "alpha": 9, "beta": 4, "gamma": 2}
    whole = make_deformer(threads=threads, **settings).deform(images, epoch=epoch)
    assert np.array_equal(whole, deformed_by_mlpcore(images, epoch, **settings))
    places = [429, 3, 3, 0, 101]
    deformer = make_deformer(**settings).fit(images)
    some = deformer.deform(images[places], epoch=epoch, indices=places)
    assert np.array_equal(some, whole[places])


def test_flattened_images_and_lists_are_deformed_alike():
    expected = deformed_by_mlpcore(IMAGES)
    deformer = make_deformer(image_shape=(15, 13)).fit(FLAT)
    assert np.array_equal(deformer.deform(FLAT), expected.reshape(120, 195))
    assert np.array_equal(deformer.deform(IMAGES), expected)
    deformer = make_deformer().fit(IMAGES.tolist())
    exact = deformer.deform(IMAGES.astype(np.float64))
    assert np.array_equal(deformer.deform(IMAGES.tolist()), exact)
    assert np.array_equal(deformer.transform(tuple(IMAGES)), IMAGES)
    assert deformer.deform(IMAGES[:0]).shape == (0, 15, 13)
    square = squares(20, 16, 16)
    flat = make_deformer().fit_transform(square.reshape(20, 256))
    assert np.array_equal(flat.reshape(square.shape), deformed_by_mlpcore(square))
    deformer.feature_names_in_ = ["of a table before"]
    assert not hasattr(deformer.fit(IMAGES), "feature_names_in_")


def test_channels_come_first_or_last_or_are_images():
    colours = np.stack([IMAGES, -IMAGES, IMAGES > 0], axis=1)
    deformed = make_deformer(channels="first").fit_transform(colours)
    last = make_deformer(channels="last").fit(np.moveaxis(colours, 1, -1))
    assert np.array_equal(last.deform(np.moveaxis(colours, 1, -1)), np.moveaxis(deformed, 1, -1))
    masks = last.deform_masks(IMAGES)
    assert np.array_equal(last.deform_masks(IMAGES[..., None]), masks[..., None])
    assert np.array_equal(make_deformer().fit(IMAGES).deform_masks(IMAGES), masks)
    for channel in range(3):
        alone = make_deformer().fit_transform(colours[:, channel])
        assert np.array_equal(deformed[:, channel], alone)
    paper = np.full((12, 20, 26, 3), [250, 240, 220], np.uint8)
    paper[:, :, :7] = 3  # a little ink at the border
    assert make_deformer(channels="last").fit(paper).background_.tolist() == [250, 240, 220]
    assert make_deformer().fit(paper[..., 0]).background_ == 250


@pytest.mark.parametrize("names", [range(10), list("0123456789"), list("abcdefghij")])
def test_similar_labels(names):
    similar = ("b", "h") if names[1] == "b" else (1, 7)
    expected = deformed_by_mlpcore(IMAGES, 0, LABELS)  # the digits 1 and 7 are similar
    deformer = make_deformer(similar_labels=similar).fit(IMAGES)
    labels = np.array(names)[LABELS]
    assert np.array_equal(deformer.deform(IMAGES, labels), expected)
    assert np.array_equal(deformer.deform(IMAGES, labels.tolist()), expected)
    alone = deformer.deform(IMAGES[7:8], labels[7:8], indices=[7])
    assert np.array_equal(alone, expected[7:8])
    changed = np.any(deformer.deform(IMAGES) != expected, axis=(1, 2))
    assert set(LABELS[changed]) == {1, 7}
    points, masks = np.full((120, 1, 2), 4.0), IMAGES > 0
    for call, targets in ((deformer.deform_keypoints, points), (deformer.deform_masks, masks)):
        assert not np.array_equal(call(targets, labels), call(targets))


def test_tensors_in_tensors_out():
    torch = pytest.importorskip("torch")
    images = torch.from_numpy(IMAGES)
    deformer = make_deformer().fit(images)
    labels, indices = torch.zeros(120, dtype=torch.int64), torch.arange(120).flip(0)
    result = deformer.deform(images, labels, epoch=3, indices=indices)
    assert isinstance(result, torch.Tensor) and result.dtype == torch.float32
    expected = deformer.deform(IMAGES, epoch=3, indices=indices.numpy())
    assert np.array_equal(result.numpy(), expected)
    assert torch.equal(deformer.transform(images), images)
    assert deformer.deform_masks(images > 0).dtype == torch.bool
    points = deformer.deform_keypoints(torch.zeros(120, 4, 2))
    assert points.dtype == torch.float32 and points.shape == (120, 4, 2)
    rows, y, mlp = images.reshape(120, 195), LABELS, OnlineMLPClassifier((3,), max_iter=1)
    calls = [deformer.fit, deformer.deform_keypoints, lambda X: mlp.fit(X, y)]
    calls += [lambda X: mlp.fit(FLAT, X), lambda X: mlpcore.Dataset.from_arrays(X, y, FLAT, y)]
    bad = rows.clone().requires_grad_(), (1j * rows).conj(), rows.bfloat16(), rows.to("meta")
    for tensor in bad:
        for call in calls:
            with pytest.raises(InputError, match="tensor"):
                call(tensor)


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
