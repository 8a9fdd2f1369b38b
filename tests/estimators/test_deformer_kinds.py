"""The deformer of colour images, tensors, masks and keypoints."""

import numpy as np
import pytest

from mlpcore import Dataset, ElasticDeformer, InputError, OnlineMLPClassifier

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (12, 20, 26, 3)).astype(np.uint8)
CHOSEN = {"epoch": 3, "indices": [5, 205, 6, 0, 99, 7, 5, 8, 1, 2, 3, 4]}


def make_deformer(images=IMAGES, channels="last", **changes):
    return ElasticDeformer(random_state=1, channels=channels, **changes).fit(images)


def dots(points, height=40, width=44):
    """Images (n, h, w) float32 with a small bright dot each, its centre at a point (n, 2)."""
    y, x = np.mgrid[:height, :width]
    square = (x - points[:, :1, None]) ** 2 + (y - points[:, 1:, None]) ** 2
    return np.exp(-square / 2).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_all_channels_get_the_map_of_a_grey_image(dtype):
    images = IMAGES.astype(dtype)
    grey = make_deformer(images[..., 0], None, background=9)
    by_channel = np.moveaxis(images, -1, 1)
    last = make_deformer(images, background=9)
    first = make_deformer(by_channel, "first", background=9)
    result = last.deform(images, **CHOSEN)
    assert result.dtype == dtype and last.image_shape_ == first.image_shape_ == (20, 26)
    assert np.array_equal(first.deform(by_channel, **CHOSEN), np.moveaxis(result, -1, 1))
    for channel in range(3):
        alone = grey.deform(images[..., channel], **CHOSEN)
        assert np.array_equal(result[..., channel], alone)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_paper_stays_as_it_is(dtype):
    """Its colour comes in from outside, in each channel; a little ink at the border is no paper."""
    paper = np.full((12, 20, 26, 3), [250, 240, 220], dtype)
    deformer = make_deformer(paper, beta=60)
    assert deformer.background_.tolist() == [250, 240, 220]
    assert np.array_equal(deformer.deform(paper, **CHOSEN), paper)
    grey = paper[..., 0]
    grey[:, :7] = 3
    assert make_deformer(grey, None).background_ == 250


@pytest.mark.parametrize("offset", [0, 2**40])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_whole_numbers_keep_every_bit(dtype, offset):
    pixels = np.random.default_rng(1).integers(0, 2**23, (12, 20, 26))
    images = pixels.astype(dtype) + dtype(offset)
    images[0, 0, :2] = offset, offset + 2**23
    still = {"alpha": 0, "beta": 0, "gamma": 0}
    deformer = make_deformer(images, None, background=offset, **still)
    assert np.array_equal(deformer.deform(images), images)
    real = np.full(images.shape, 1e30)  # in a range of which these whole numbers are nothing
    deformer = make_deformer(real, None, background=offset, **still)
    assert np.array_equal(deformer.deform(images), images)


@pytest.mark.parametrize("value", [2**23 + 1, 2**31 - 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_that_float32_rounds_are_refused(value):
    images = np.zeros((3, 8, 8), np.int64)
    deformer = make_deformer(images, None)
    images[1, 3, 3] = value
    for call in (deformer.deform, deformer.fit):
        with pytest.raises(InputError, match="expected whole numbers at most 8,388,608 from"):
            call(images)


def test_masks_move_along():
    """A bright patch keeps most of its mask; both have soft edges of a pixel at most."""
    images = np.zeros((12, 20, 26, 3), np.float32)
    images[:, 6:14, 7:18] = 1
    masks = np.where(images[..., 0] > 0.5, 7, 3).astype(np.int16)
    deformer = make_deformer(images)
    shown = deformer.deform(images, **CHOSEN)[..., 0]
    moved = deformer.deform_masks(masks, **CHOSEN, background=3)
    assert moved.dtype == masks.dtype and set(np.unique(moved)) == {3, 7}
    sure = np.abs(shown - 0.5) > 0.49
    assert np.mean(sure) > 0.7
    assert np.array_equal(moved[sure] == 7, shown[sure] > 0.5)
    assert not np.array_equal(moved, masks)
    many = deformer.deform_masks(np.stack([masks, masks], axis=-1), **CHOSEN, background=3)
    assert np.array_equal(many, np.stack([moved, moved], axis=-1))
    truth = deformer.deform_masks(masks == 7, **CHOSEN)
    assert truth.dtype == bool and np.array_equal(truth, moved == 7)


def test_a_keypoint_stays_on_its_dot():
    """Where the map bends, the centre of a dot's brightness is off by a fraction of a pixel."""
    points = RNG.uniform([14, 14], [29, 25], (12, 2))
    images = dots(points)
    deformer = make_deformer(images, None, background=0)
    shown = deformer.deform(images, **CHOSEN).astype(float)
    y, x = np.mgrid[:40, :44]
    centres = [[np.average(x, weights=each), np.average(y, weights=each)] for each in shown]
    moved = deformer.deform_keypoints(points[:, None], **CHOSEN)[:, 0]
    assert moved.dtype == np.float64
    assert np.hypot(*(moved - centres).T).max() < 0.25
    assert np.hypot(*(moved - points).T).mean() > 1


def test_similar_labels_count_for_masks_and_keypoints():
    points = np.full((12, 1, 2), 4.0)
    deformer = make_deformer(alpha=0, gamma=0, similar_labels=("b",))
    turned, less = (deformer.deform_keypoints(points, [label] * 12) - [12.5, 9.5] for label in "ab")
    for strong, weak in zip(turned[:, 0], less[:, 0]):
        assert np.abs(weak - [-8.5, -5.5]).max() < np.abs(strong - [-8.5, -5.5]).max()


def test_tensors_in_tensors_out():
    torch = pytest.importorskip("torch")
    images = torch.from_numpy(np.moveaxis(IMAGES, -1, 1).astype(np.float32))
    deformer = make_deformer(images, "first")
    labels, indices = torch.zeros(12, dtype=torch.int64), torch.tensor(CHOSEN["indices"])
    result = deformer.deform(images, labels, epoch=3, indices=indices)
    assert isinstance(result, torch.Tensor) and result.dtype == torch.float32
    expected = deformer.deform(images.numpy(), **CHOSEN)
    assert np.array_equal(result.numpy(), expected)
    assert torch.equal(deformer.transform(images), images)
    masks = deformer.deform_masks(images[:, 0] > 99, **CHOSEN)
    assert masks.dtype == torch.bool
    points = deformer.deform_keypoints(torch.zeros(12, 4, 2), **CHOSEN)
    assert points.dtype == torch.float32 and points.shape == (12, 4, 2)


def test_tensors_that_numpy_cannot_take():
    torch = pytest.importorskip("torch")
    rows, labels = torch.rand(12, 9), np.arange(12) % 2
    deformer = ElasticDeformer().fit(rows)
    mlp = OnlineMLPClassifier(hidden_layer_sizes=(3,), max_iter=1).fit(rows, labels)
    complex_rows = 1j * rows
    bad = [rows.clone().requires_grad_(), complex_rows.conj(), complex_rows.conj().imag]
    bad += [rows.bfloat16(), rows.to_sparse(), rows.to_sparse_csr(), rows.to("meta")]
    calls = [deformer.fit, deformer.deform, deformer.deform_masks, mlp.predict]
    calls += [deformer.deform_keypoints, lambda X: mlp.fit(X, labels)]
    calls += [lambda X: mlp.fit(rows, X), lambda X: Dataset.from_arrays(X, labels, rows, labels)]
    for tensor in bad:
        for call in calls:
            with pytest.raises(InputError, match="tensor"):
                call(tensor)


def test_no_objects():
    deformer = make_deformer()
    assert deformer.deform_keypoints(np.zeros((12, 0, 2)), **CHOSEN).shape == (12, 0, 2)
    assert deformer.deform_keypoints(np.zeros((0, 3, 2))).shape == (0, 3, 2)
    assert deformer.deform_masks(np.zeros((0, 20, 26), bool)).shape == (0, 20, 26)
