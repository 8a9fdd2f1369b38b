"""Upstrokes, feet, bars and waves on ones and sevens: where they are, and on which images."""

import dataclasses
import itertools

import numpy as np
import pytest

from mlpcore import Trainer, backends, dataset
from mlpcore.data import strokes
from mlpcore.data.strokes import FULL, add_strokes
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


def keep(monkeypatch, **constants):
    for name, value in constants.items():
        monkeypatch.setattr(strokes, name, value)


@pytest.fixture
def upright(monkeypatch):
    """Digits do not lean, and sevens have no waves."""
    keep(monkeypatch, LEAN_OF_ONE=(0, 0), LEAN_OF_SEVEN=(0, 0), SHARE_WITH_WAVE=0)


def added(label):
    """The ink of the strokes alone, (n, h, w), where the image would be that was not moved."""
    images, labels = digits(label)
    found = []
    for image in add_strokes(images, labels, CLASSES, 1.0, 1):
        moves = itertools.product(range(-3, 4), range(-5, 6))
        shifted = (np.roll(image, move, axis=(0, 1)) for move in moves)
        found.append(next(each for each in shifted if np.all(each >= images[0])) - images[0])
    return np.array(found)


def test_a_one_gets_an_upstroke_and_half_of_them_a_foot(upright, monkeypatch):
    keep(monkeypatch, UPSTROKE=(0.1, 0.6), UPSTROKE_LEFT=(0.2, 0.5))
    keep(monkeypatch, FOOT=(0.2, 0.5), FOOT_PLACE=(1, 1))
    ink = added(1)
    upper, lower = ink[:, : BOTTOM - 5], ink[:, BOTTOM - 5 :]
    assert np.all(upper[:, :, : STEM.start].sum(axis=(1, 2)) > FULL)  # left of the stem
    assert np.all(upper[:, :, STEM.stop :] == 0)  # and not right of it
    feet = lower.sum(axis=(1, 2)) > 4 * FULL
    assert 0.35 < feet.mean() < 0.65
    left, right = lower[feet][:, :, : STEM.start], lower[feet][:, :, STEM.stop :]
    assert left.max(axis=(1, 2)).min() > 0 and right.max(axis=(1, 2)).min() > 0


def test_a_seven_gets_a_bar_through_its_stem_nearly_as_wide(upright):
    ink = added(7)
    assert np.all(ink[:, :TOP] == 0) and np.all(ink[:, BOTTOM:] == 0)
    for beside in (STEM.start - 2, STEM.stop + 1):
        thickness = ink[:, :, beside].sum(axis=1) / FULL
        assert np.all((thickness > 0.5 * 3) & (thickness < 1.2 * 3))


@pytest.mark.parametrize("slope", [-0.6, 0.3])
def test_a_one_leans(monkeypatch, slope):
    keep(monkeypatch, UPSTROKE=(0, 0), UPSTROKE_LEFT=(0, 0), SHARE_WITH_FOOT=0)
    keep(monkeypatch, LEAN_OF_ONE=(slope, slope))
    image = add_strokes(*digits(1, 1), CLASSES, 1.0, 1)[0] + 1
    rows = np.arange(TOP + 3, BOTTOM - 2)
    places = image[rows] @ np.arange(29) / image[rows].sum(axis=1)
    np.testing.assert_allclose(np.polyfit(rows, places, 1)[0], slope, atol=0.02)


def test_a_wave_falls_to_the_left_and_rises_again(monkeypatch):
    keep(monkeypatch, SHARE_WITH_WAVE=1, SHARE_WITH_BAR=0, SHARE_WITH_TICK=0)
    keep(monkeypatch, LEAN_OF_SEVEN=(0, 0), TOP_WIDTH=(0.6, 0.6), TOP_DROP=(0, 0), DIP=(0.3, 0.3))
    for image in add_strokes(*digits(7), CLASSES, 1.0, 1):
        columns = np.flatnonzero((image > 0).any(axis=0))
        tops = (image[:, columns] > 0).argmax(axis=0)
        dip = tops[2:-2].argmax() + 2
        assert tops[dip] >= tops[: dip + 1].min() + 3 and tops[dip] >= tops[dip:].min() + 3


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
