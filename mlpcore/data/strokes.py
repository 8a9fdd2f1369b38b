"""Upstrokes and feet for ones, bars for sevens: strokes that MNIST's writers seldom drew.

MNIST was written by Americans, whose 1 is mostly a single line and whose 7 has no bar. The strokes
are drawn onto a share of the training images, before these are deformed:

- **The stem** is the line of least squares through the ink, of a 7 through its lower part. It ends
  where the ink does, and is as wide as the mean row of ink across it.
- **An upstroke** goes from the upper end of a 1 down to the left, at 22 to 56 degrees to an upright
  stem, and no flatter than 27 degrees to the horizontal.
- **A foot** lies across the lower end of a 1. Half of the ones with an upstroke get one.
- **A bar** lies across the stem of a 7.

A stroke has round ends, and is as wide as the stem or up to two fifths thinner. Afterwards the
image is moved by whole pixels, so that its centre of mass stays where it was, as that of MNIST's
digits is: without that, an upstroke would move a 1 to the right.

Sums are of whole numbers in float64, and no function is called that a library may round otherwise,
so the result has the same bits on every processor.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlpcore import philox
from mlpcore.data.scaling import BACKGROUNDS, batches
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array, Float64Array, UInt8Array

#: Greatest ink of an image, and ink in whole numbers of 1 / UNIT.
FULL, UNIT = 2.0, 2.0**20

#: Where the stem of a 7 begins, as a share of the height of its ink.
STEM_OF_SEVEN = 0.4

#: Ranges from which strokes are drawn. Lengths and places are shares of the height of the ink.
UPSTROKE_SLOPE = 0.4, 1.5  # columns a row, beyond those of the stem
FLATTEST = -2.0  # 27 degrees to the horizontal
UPSTROKE = 0.3, 0.9
FOOT = 0.15, 0.5  # to either side
FOOT_SLOPE = -0.15, 0.15
BAR = 0.15, 0.4  # to either side
BAR_SLOPE = -0.3, 0.15
BAR_PLACE = 0.4, 0.75
STROKE_WIDTH = 0.6, 1.0  # as a share of the stem's
SHARE_WITH_FOOT = 0.5


def add_strokes(
    images: Float32Array, labels: UInt8Array, classes: Sequence[Any], share: float, seed: int
) -> Float32Array:
    """Draw strokes onto a share of the ones and of the sevens.

    Parameters
    ----------
    images : numpy.ndarray of float32, shape (n, h, w)
        In [-1, 1]; -1 is the background.
    labels : numpy.ndarray of uint8, shape (n,)
    classes : sequence
        What the labels stand for.
    share : float
        The probability of an image of a 1 or of a 7 to get strokes.
    seed : int
        Decides, with the index of an image, on its strokes.

    Returns
    -------
    numpy.ndarray of float32, shape (n, h, w)
        A copy.

    Raises
    ------
    InputError
        When the classes lack 1 or 7.
    """
    one, seven = label_of_one_and_seven(classes)
    result = images.copy()
    for label, draw in ((one, _draw_one), (seven, _draw_seven)):
        indices = np.flatnonzero(labels == label)
        drawn = _uniform(indices, seed)
        chosen = drawn[:, 0] < share
        indices, drawn = indices[chosen], drawn[chosen]
        for part in batches(len(indices), 8 * images.shape[1] * images.shape[2]):
            result[indices[part]] = draw(images[indices[part]], drawn[part])
    return result


def label_of_one_and_seven(classes: Sequence[Any]) -> tuple[int, int]:
    """The labels of the classes 1 and 7, numbers or strings; an InputError if one is missing."""
    names = list(map(str, classes))
    if not {"1", "7"} <= set(names):
        found = reprlib.repr(", ".join(names))
        raise InputError(f"strokes on ones and sevens of the classes {found}: expected 1 and 7")
    return names.index("1"), names.index("7")


def _uniform(indices: AnyArray, seed: int) -> Float64Array:
    """Random numbers (n, 8) in [0, 1) for images."""
    words = [
        philox.philox4x32(philox.counters(indices, block, 0, philox.STROKES), seed)
        for block in (0, 1)
    ]
    return np.concatenate(words, axis=1) / 2.0**32


def _between(ends: tuple[float, float], drawn: Float64Array) -> Float64Array:
    """Random numbers from one end to the other."""
    low, high = ends
    return low + (high - low) * drawn


class _Stem:
    """The stems of images, by their ink (n, h, w): place, columns a row, height and width.

    `begin` is where they begin, as a share of the height of the ink. Strokes of their width on
    their upper or lower ends reach as far as the ink.
    """

    def __init__(self, ink: Float64Array, begin: float):
        rows, columns = (np.arange(side, dtype=np.float64) for side in ink.shape[1:])
        has_ink = ink.max(axis=2) >= FULL * UNIT / 4
        top, bottom = has_ink.argmax(axis=1), len(rows) - 1 - has_ink[:, ::-1].argmax(axis=1)
        height = np.maximum(bottom - top, 1)
        is_stem = (rows >= (top + begin * height)[:, None]) & (rows <= bottom[:, None])
        mass, x = (np.where(is_stem, each, 0) for each in (ink.sum(axis=2), ink @ columns))
        total, sum_x = np.maximum(mass.sum(axis=1), 1), x.sum(axis=1)
        sum_y, sum_xy, sum_yy = mass @ rows, x @ rows, mass @ rows**2
        variance = np.maximum(sum_yy - sum_y * sum_y / total, 1)
        self.slope = (sum_xy - sum_x * sum_y / total) / variance
        self.start = (sum_x - self.slope * sum_y) / total
        across = FULL * UNIT * is_stem.sum(axis=1) * np.sqrt(1 + self.slope**2)
        self.width = np.maximum(total / across, 1)
        self.top, self.height = top + self.width / 2, np.maximum(height - self.width, 1)

    def at(self, share: Float64Array | float) -> tuple[Float64Array, Float64Array]:
        """The point (x, y) at a share of the height."""
        y = self.top + share * self.height
        return self.start + self.slope * y, y


def _draw_one(images: Float32Array, drawn: Float64Array) -> Float32Array:
    """Images of ones with upstrokes, and feet for some."""
    ink = _ink_of(images)
    stem = _Stem(ink, 0)
    x, y = stem.at(0.0)
    right = np.maximum(stem.slope - _between(UPSTROKE_SLOPE, drawn[:, 1]), FLATTEST)
    scale = _between(UPSTROKE, drawn[:, 2]) * stem.height / np.sqrt(right**2 + 1)
    width = stem.width * _between(STROKE_WIDTH, drawn[:, 7])
    upstroke = _segments(ink.shape, (x, y), (x + scale * right, y + scale), width)
    foot = _across(ink.shape, stem, stem.at(1.0), FOOT, FOOT_SLOPE, drawn[:, 3:])
    foot[drawn[:, 6] >= SHARE_WITH_FOOT] = 0
    return _with(ink, np.maximum(upstroke, foot))


def _draw_seven(images: Float32Array, drawn: Float64Array) -> Float32Array:
    """Images of sevens with bars."""
    ink = _ink_of(images)
    stem = _Stem(ink, STEM_OF_SEVEN)
    place = stem.at(_between(BAR_PLACE, drawn[:, 1]))
    return _with(ink, _across(ink.shape, stem, place, BAR, BAR_SLOPE, drawn[:, 3:]))


def _across(
    shape: tuple[int, ...],
    stem: _Stem,
    place: tuple[Float64Array, Float64Array],
    length: tuple[float, float],
    slope: tuple[float, float],
    drawn: Float64Array,
) -> Float64Array:
    """The ink of strokes across the stem, at a point of it."""
    x, y = place
    left, right = (_between(length, drawn[:, i]) * stem.height for i in (0, 1))
    rise = _between(slope, drawn[:, 2])
    width = stem.width * _between(STROKE_WIDTH, drawn[:, 4])
    return _segments(shape, (x - left, y - left * rise), (x + right, y + right * rise), width)


def _segments(
    shape: tuple[int, ...],
    begin: tuple[Float64Array, Float64Array],
    end: tuple[Float64Array, Float64Array],
    width: Float64Array,
) -> Float64Array:
    """Ink (n, h, w) of lines with round ends, of a width."""
    _, height, columns = shape
    x0, y0, x1, y1, width = (each[:, None, None] for each in (*begin, *end, width))
    y, x = np.mgrid[:height, :columns]
    along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2)
    np.clip(along, 0, 1, out=along)
    distance = np.sqrt((x - x0 - along * (x1 - x0)) ** 2 + (y - y0 - along * (y1 - y0)) ** 2)
    covered: Float64Array = np.rint(np.clip(width / 2 + 0.5 - distance, 0, 1) * (FULL * UNIT))
    return covered


def _ink_of(images: Float32Array) -> Float64Array:
    """Ink in whole numbers, 0 where there is none."""
    ink = np.subtract(images, BACKGROUNDS["signed"], dtype=np.float64)
    np.maximum(ink, 0, out=ink)
    ink *= UNIT
    return np.rint(ink, out=ink)


def _with(ink: Float64Array, strokes: Float64Array) -> Float32Array:
    """Images with strokes, their centres of mass where they were but for half a pixel."""
    result = np.maximum(ink, strokes)
    for i, (before, after) in enumerate(zip(ink, result)):
        shift = [_centre(before, axis) - _centre(after, axis) for axis in (0, 1)]
        result[i] = _moved(after, *np.rint(shift).astype(int))
    result /= UNIT
    result += BACKGROUNDS["signed"]
    return result.astype(np.float32)


def _centre(ink: Float64Array, axis: int) -> float:
    """The centre of mass of an image on an axis."""
    mass = ink.sum(axis=1 - axis)
    centre: float = (mass * np.arange(len(mass))).sum() / max(mass.sum(), 1)
    return centre


def _moved(ink: Float64Array, down: int, right: int) -> Float64Array:
    """Ink (h, w), moved by whole pixels; what leaves the image is lost."""
    height, width = ink.shape
    result = np.zeros_like(ink)
    result[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = ink[
        max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)
    ]
    return result
