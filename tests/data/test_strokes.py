"""Upstrokes, feet, bars and waves on ones and sevens: where they are, and on which images."""

import dataclasses

import numpy as np
import pytest

from mlpcore import Trainer, backends, dataset
from mlpcore.data.strokes import add_strokes
from mlpcore.errors import InputError
from small_runs import DATA, make_config

N, CLASSES = 400, tuple(range(10))

#: Where the stem of the images below is: an upright line three pixels wide.
STEM, TOP, BOTTOM = slice(13, 16), 4, 24


def digits(label, n=N):
    """Upright ones, or sevens, and their labels."""
    images = np.full((n, 29, 29), -1, np.float32)
    images[:, TOP : BOTTOM + 1, STEM] = 1
    if label == 7:
        images[:, TOP : TOP + 3, 6:16] = 1
    return images, np.full(n, label, np.uint8)


def test_the_share_the_seed_and_the_label_decide():
    ones, sevens = digits(1), digits(7)
    images, labels = (np.concatenate(pair) for pair in zip(ones, sevens, digits(4)))
    result = add_strokes(images, labels, CLASSES, 0.3, 1)
    changed = (result != images).any(axis=(1, 2)).reshape(3, N).mean(axis=1)
    assert np.all(np.abs(changed[:2] - 0.3) < 0.08) and changed[2] == 0
    np.testing.assert_array_equal(result, add_strokes(images, labels, CLASSES, 0.3, 1))
    assert np.any(result != add_strokes(images, labels, CLASSES, 0.3, 2))
    first = add_strokes(images[:50], labels[:50], CLASSES, 0.3, 1)
    np.testing.assert_array_equal(result[:50], first)  # whatever else is in the data
    named = add_strokes(images, labels, tuple(map(str, CLASSES)), 0.3, 1)
    np.testing.assert_array_equal(result, named)


def test_any_image_keeps_its_centre_its_range_and_its_shape():
    data = dataset.load(name="digits")
    images = np.concatenate([data.train_images, np.full((40, 29, 29), -1, np.float32)])
    labels = np.concatenate([data.train_labels, np.tile([1, 7], 20)]).astype(np.uint8)
    result = add_strokes(images, labels, CLASSES, 1.0, 3)
    assert result.dtype == np.float32 and result.shape == images.shape
    assert result.min() == -1 and result.max() <= 1
    at, grid = labels == 1, np.arange(29)
    at[-40:] = False  # no ink, no centre
    for axis in (1, 2):
        before, after = ((each[at] + 1).sum(axis=axis) for each in (images, result))
        moved = before @ grid / before.sum(axis=1) - after @ grid / after.sum(axis=1)
        assert np.abs(moved).max() <= 0.51
    assert add_strokes(images[:0], labels[:0], CLASSES, 1.0, 3).shape == (0, 29, 29)


@pytest.mark.parametrize("classes", [("a", "b", "c"), (0, 1, 2), tuple("078")])
def test_other_classes_are_refused(classes):
    data = dataclasses.replace(DATA, n_classes=len(classes), classes=classes)
    with pytest.raises(InputError, match=r"classes '.*': expected 1 and 7"):
        Trainer(make_config(ones_and_sevens=0.5), data, backends.get("scalar"))
