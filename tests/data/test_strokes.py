"""Upstrokes, feet, bars and waves on ones and sevens: on which images they are, and where."""

import numpy as np

from mlpcore import dataset
from mlpcore.data.strokes import add_strokes

CLASSES = tuple(range(10))
DIGITS = dataset.load(name="digits")
IMAGES, LABELS = DIGITS.train_images, DIGITS.train_labels


def test_the_share_the_seed_and_the_label_decide():
    images, labels = IMAGES.repeat(3, axis=0), LABELS.repeat(3)
    result = add_strokes(images, labels, CLASSES, 0.3, 1)
    changed = (result != images).any(axis=(1, 2))
    for k in CLASSES:
        assert abs(changed[labels == k].mean() - 0.3 * (k in (1, 7))) < 0.08
    assert np.any(result != add_strokes(images, labels, CLASSES, 0.3, 2))
    first = add_strokes(images[:50], labels[:50], tuple(map(str, CLASSES)), 0.3, 1)
    np.testing.assert_array_equal(result[:50], first)  # whatever else is in the data


def test_any_image_keeps_its_centre_its_range_and_its_shape():
    images = np.concatenate([IMAGES, np.full((40, 29, 29), -1, np.float32)])
    labels = np.concatenate([LABELS, np.tile([1, 7], 20)]).astype(np.uint8)
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
