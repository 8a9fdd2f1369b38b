"""Data sets of arrays and of .npz files: what is accepted, how it is scaled, what is refused."""

import numpy as np
import pytest
from PIL import Image

from idx_files import small_set
from mlpcore import Dataset
from mlpcore.data.dataset import load
from mlpcore.data.pixels import normalise, resize
from mlpcore.data.summary import DataSummary
from mlpcore.store.documents import from_json, to_json

FOUR = tuple(small_set().values())
X, Y, X_TEST, Y_TEST = FOUR


def sets(data):
    return data.train_images, data.train_labels, data.test_images, data.test_labels


def assert_same(data, expected):
    for a, b in zip(sets(data), sets(expected), strict=True):
        assert a.dtype == b.dtype and a.flags.c_contiguous
        np.testing.assert_array_equal(a, b)


SHAPED = [np.asarray, np.asfortranarray, lambda x: x[..., None], lambda x: x[:, None]]
SHAPED += [lambda x: [Image.fromarray(each) for each in x]]


@pytest.mark.parametrize("shaped", SHAPED)
def test_bytes_in_any_shape(shaped):
    arrays = shaped(X), Y[:, None], shaped(X_TEST), Y_TEST.tolist()
    data = Dataset.from_arrays(*arrays, name="letters")
    assert_same(data, Dataset.from_arrays(*FOUR))
    assert (data.name, data.n_classes, data.classes) == ("letters", 3, (0, 1, 2))
    assert (data.pixels.pixel_shape, data.value_range) == ((4, 5), (0, 255))
    assert data.similar_labels == ()


CONVERTED = [
    (lambda x: x.astype(np.int64), (0, 255)),
    (lambda x: x.astype(np.uint16) * 257, (0, 65535)),
    (lambda x: x.astype(np.int16) - 100, (-100, 155)),
    (lambda x: x / 255, (0, 1)),
]


@pytest.mark.parametrize(("convert", "value_range"), CONVERTED)
def test_other_numbers_have_the_range_of_the_training_images(convert, value_range):
    x = X.copy()
    x[0, 0, :2] = 0, 255
    data = Dataset.from_arrays(convert(x), Y, convert(X_TEST), Y_TEST)
    assert data.value_range == value_range
    assert (data.train_images.min(), data.train_images.max()) == (-1, 1)
    as_bytes = Dataset.from_arrays(x, Y, X_TEST, Y_TEST)
    for a, b in zip(sets(data), sets(as_bytes)):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-7)  # two roundings near 1
    if value_range == (0, 255):  # the same bits
        assert_same(data, as_bytes)


def test_rows_and_a_range_that_is_given(tmp_path):
    rows, test_rows = (x[:, :, :4].reshape(len(x), 16) for x in (X, X_TEST))
    squares = Dataset.from_arrays(rows, Y, test_rows, Y_TEST)
    assert_same(squares, Dataset.from_arrays(X[:, :, :4], Y, X_TEST[:, :, :4], Y_TEST))
    data = Dataset.from_arrays(X // 16, Y, X_TEST // 16, Y_TEST, value_range=(0, 15))
    expected = resize(normalise(X // 16 * np.uint8(17)), 5, 5)
    np.testing.assert_allclose(data.train_images, expected, rtol=0, atol=2e-7)
    assert data.value_range == (0, 15)
    np.savez(tmp_path / "set.npz", X=X // 16, y=Y)
    data = load(tmp_path / "set.npz", value_range=(0, 20))
    assert data.value_range == (0, 20)  # by which a run finds the file again
    assert DataSummary.of(DataSummary.of(data).load()) == DataSummary.of(data)
    bright = Dataset.from_arrays(X.astype(int) // 2 + 100, Y, X_TEST, Y_TEST)
    assert bright.value_range[0] == 0  # the background, although no pixel is so dark
    beyond = Dataset.from_arrays(X.astype(int), Y, X_TEST.astype(int) * 2, Y_TEST)
    assert beyond.test_images.max() > 2  # not cut off, and no range of its own
    mask = Dataset.from_arrays(X > 99, Y, X_TEST > 99, Y_TEST)
    assert_same(mask, Dataset.from_arrays((X > 99) * 255, Y, (X_TEST > 99) * 255, Y_TEST))


NAMES = [["b", "a", "c"], [-1, 300, 10**12], np.array([5, 3, 4], object)]


@pytest.mark.parametrize("names", NAMES)
def test_labels_of_any_type(names):
    names = np.asarray(names)
    data = Dataset.from_arrays(X, names[Y], X_TEST, names[Y_TEST], similar_labels=[names[0]])
    assert data.classes == tuple(sorted(names.tolist()))
    assert [data.classes[k] for k in data.train_labels] == names[Y].tolist()
    assert [data.classes[k] for k in data.test_labels] == names[Y_TEST].tolist()
    assert data.similar_labels == (data.classes.index(names[0]),)
    record = from_json(to_json(DataSummary.of(data)), DataSummary)
    assert (record, record.classes) == (DataSummary.of(data), data.classes)


def test_a_drawn_test_set():
    """It has its share of each class, to the nearest; the rest is for training."""
    labels = np.repeat([0, 1, 3], [20, 9, 1])
    images = np.repeat(np.arange(30, dtype=np.uint8), 9).reshape(-1, 3, 3)
    data, again, other = (
        Dataset.from_arrays(images, labels, test_size=0.6, seed=seed) for seed in (4, 4, 5)
    )
    assert_same(again, data)
    assert np.any(other.test_images != data.test_images)
    train, test = (np.rint((x[:, 0, 0] + 1) * 127.5).astype(int) for x in sets(data)[::2])
    assert sorted([*train, *test]) == list(range(30))
    assert labels[test].tolist() == [data.classes[k] for k in data.test_labels]
    assert np.bincount(labels[test]).tolist() == [12, 5]  # round(0.6), but never all
