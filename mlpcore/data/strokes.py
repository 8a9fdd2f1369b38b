"""Ones, sevens and zeros as MNIST's writers seldom wrote them, drawn onto those that they wrote.

MNIST was written by Americans, whose 1 is mostly a single line, whose 7 has no bar, and whose 0 is
closed. A share of the training images is changed, before these are deformed:

- **The stem** is the line of least squares through the ink, of a 7 through its lower part. It ends
  where the ink does, and is as wide as the mean row of ink across it. The rows of the image are
  moved so that the stem leans by up to 48 degrees to the right, that of a 7 by 6 to 42.
- **An upstroke** goes from the upper end of a 1 down to the left and leans with it. It may bend,
  and long ones are steeper, as the angle between the strokes is what tells a 1 from a 7 that has
  no bar. Half of them begin with a short hook.
- **A foot** lies across the lower end of a 1, or a little below it. Two fifths of the ones get one.
- **A bar** lies across the stem of a 7.
- **A wave** is the top of half of these sevens, which are drawn anew: it falls to the left and
  rises again, and may begin with a tick.
- **An open zero**, an ellipse that leans, takes the place of half as many zeros, whose own form is
  lost. Half of these begin at the lower left, mostly inside of their end and often with a hook,
  and the others are open anywhere: such an inside at the right would make a 6.

A stroke has round ends, and is as wide as the stem or up to two fifths thinner. Afterwards the
image is moved by whole pixels, so that its centre of mass stays where it was, as that of MNIST's
digits is: without that, an upstroke would move a 1 to the right.

Sums are of whole numbers in float64, and no function is called that a library may round otherwise,
so the result has the same bits on every processor.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mlpcore import philox
from mlpcore.data.pixels import BACKGROUNDS, batches
from mlpcore.errors import InputError, brief
from mlpcore.typing import AnyArray, Float32Array, Float64Array, UInt8Array

#: Greatest ink of an image, and ink in whole numbers of 1 / UNIT.
FULL, UNIT = 2.0, 2.0**20

#: Where the stem of a 7 begins, as a share of the height of its ink.
STEM_OF_SEVEN = 0.4

#: Ranges from which strokes are drawn. Lengths and places are shares of the height of the ink, and
#: slopes of stems and upstrokes are columns a row: a stem of -1 leans to the right by 45 degrees.
LEAN_OF_ONE, LEAN_OF_SEVEN = (-1.1, 0.1), (-0.9, -0.1)
MOST_LEANT = 0.7  # more or less than before, as the stem of a 7 with a loop is not found
UPSTROKE, UPSTROKE_LEFT = (0.1, 0.9), (0.15, 0.85)  # down, and left: longer ones are steeper
BEND = -0.15, 0.12  # of an upstroke, up, as a share of its length
FOOT = 0.0, 0.65  # to either side
FOOT_SLOPE = -0.15, 0.15
FOOT_PLACE = 0.95, 1.15
BAR = 0.15, 0.4  # to either side
BAR_SLOPE = -0.3, 0.15
BAR_PLACE = 0.4, 0.85
STROKE_WIDTH = 0.6, 1.0  # as a share of the stem's
SHARE_WITH_FOOT = 0.4
HOOK, HOOK_SLOPE = (0.03, 0.28), (-0.8, 1.5)  # where a stroke begins, to the right
SHARE_WITH_HOOK = 0.5

#: Ranges for sevens with a wave, in shares of their height, from the upper end of the stem to the
#: left and down. A tick slants by columns a row, beyond the stem.
TOP_WIDTH, TOP_DROP = (0.3, 0.8), (-0.05, 0.25)
DIP_PLACE, DIP = (0.2, 0.6), (0.0, 0.6)
TICK, TICK_SLANT = (0.1, 0.7), (-0.2, 1.0)
SHARE_WITH_WAVE, SHARE_WITH_TICK, SHARE_WITH_BAR = 0.5, 0.8, 0.9

#: Ranges for open zeros: places in turns, clockwise from the right, radii as shares of their mean.
LEAN_OF_ZERO, BREADTH = (-0.9, 0.05), (0.45, 0.9)
BEGINNING, GAP, MORE_RADIUS = (0.35, 0.62), (-0.06, 0.2), (-0.1, 0.5)
SHARE_OF_ZEROS, SHARE_ANYWHERE = 0.5, 0.5
RING = 2.6  # the length of a zero's line in heights

#: Points (2, TURN + 1) of a circle. Rounded, they are the same with any library's cosine.
TURN = 24
CIRCLE = (
    np.rint([f(np.arange(TURN + 1) * (2 * np.pi / TURN)) * UNIT for f in (np.cos, np.sin)]) / UNIT
)


def draw_strokes(
    images: Any, labels: UInt8Array, classes: Sequence[Any], share: float, seed: int
) -> tuple[AnyArray, Float32Array]:
    """Draws strokes on a share of the ones and sevens; returns indices (m,), images (m, h, w).

    `images` are (n, h, w) float32 in [-1, 1], or such as `Dataset.train_set`. Half as large a share
    of the zeros is open. `classes` says what the labels (n,) stand for; an InputError if they lack
    1 or 7. The seed and the index of an image decide on its strokes.
    """
    check_one_and_seven(classes)
    names, found = list(map(str, classes)), []
    for name, draw, of_these in (
        ("0", _draw_zero, SHARE_OF_ZEROS * share),
        ("1", _draw_one, share),
        ("7", _draw_seven, share),
    ):
        indices = np.flatnonzero(labels == (names.index(name) if name in names else -1))
        blocks = [philox.counters(indices, block, 0, philox.STROKES) for block in range(4)]
        words = [philox.philox4x32(block, seed) for block in blocks]
        drawn = np.concatenate(words, axis=1) / 2.0**32  # (n, 16) in [0, 1)
        chosen = drawn[:, 0] < of_these
        found.append((draw, indices[chosen], drawn[chosen]))
    numbers = np.concatenate([indices for _, indices, _ in found])
    result, end = np.empty((len(numbers), *images.shape[1:]), np.float32), 0
    for draw, indices, drawn in found:
        for part in batches(len(indices), 8 * images.shape[1] * images.shape[2]):
            begin, end = end, end + len(indices[part])
            result[begin:end] = draw(images[indices[part]], drawn[part])
    return numbers, result


def check_one_and_seven(classes: Sequence[Any]) -> None:
    """Raises an InputError if the classes 1 and 7, numbers or strings, are not among some."""
    names = list(map(str, classes))
    if not {"1", "7"} <= set(names):
        found = brief(", ".join(names))
        raise InputError(f"strokes on ones and sevens of the classes {found}: expected 1 and 7")


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

    def beside(self, left: Float64Array, share: Float64Array) -> tuple[Float64Array, Float64Array]:
        """The point (x, y) left of that at a share of the height, by a share of the height."""
        x, y = self.at(share)
        return x - left * self.height, y


def _draw_one(images: Float32Array, drawn: Float64Array) -> Float32Array:
    """Images of ones that lean, with upstrokes, and feet for some."""
    before = _ink_of(images)
    ink = _leaning(before, 0, _between(LEAN_OF_ONE, drawn[:, 8]))
    stem = _Stem(ink, 0)
    share = _between(UPSTROKE, drawn[:, 1])
    left = _between(UPSTROKE_LEFT, drawn[:, 2]) * np.sqrt(share)
    top, end = stem.at(0.0), stem.beside(left, share)
    bend = _between(BEND, drawn[:, 10])
    middle = (
        (top[0] + end[0]) / 2 - bend * (end[1] - top[1]),
        (top[1] + end[1]) / 2 - bend * (top[0] - end[0]),
    )
    width = stem.width * _between(STROKE_WIDTH, drawn[:, 7])
    hook = _hook(end, stem.height, drawn[:, 11:])
    upstroke = _polyline(ink.shape, (top, middle, end, hook), width)
    place = stem.at(_between(FOOT_PLACE, drawn[:, 9]))
    foot = _across(ink.shape, stem, place, FOOT, FOOT_SLOPE, drawn[:, 3:])
    foot[drawn[:, 6] >= SHARE_WITH_FOOT] = 0
    return _placed(np.maximum.reduce([ink, upstroke, foot]), before)


def _draw_zero(images: Float32Array, drawn: Float64Array) -> Float32Array:
    """Images of open zeros of the height and the place of closed ones."""
    before = _ink_of(images)
    both_sides = _Stem(before, 0)
    width = np.maximum(both_sides.width / RING, 1)
    height = both_sides.height + both_sides.width - width
    half, broad = height / 2, height / 2 * _between(BREADTH, drawn[:, 1])
    (x, y), lean = both_sides.at(0.5), _between(LEAN_OF_ZERO, drawn[:, 2])
    anywhere = drawn[:, 10] < SHARE_ANYWHERE
    begin = np.where(anywhere, drawn[:, 3], _between(BEGINNING, drawn[:, 3]))
    gap = _between(GAP, drawn[:, 4])
    more = np.where(anywhere, 0, _between(MORE_RADIUS, drawn[:, 5]))
    points = []
    for share in np.linspace(0, 1, TURN):
        place = (begin + share * (1 - gap)) % 1 * TURN
        last = place.astype(int)
        cosine, sine = CIRCLE[:, last] + (place - last) * (CIRCLE[:, last + 1] - CIRCLE[:, last])
        radius = 1 + more * (share - 0.5)
        down = half * radius * sine
        points.append((x + broad * radius * cosine + lean * down, y + down))
    points.insert(0, _hook(points[0], np.where(anywhere, 0, height), drawn[:, 6:]))
    pen = width * _between(STROKE_WIDTH, drawn[:, 9])
    return _placed(_polyline(before.shape, points, pen), before)


def _hook(
    point: tuple[Float64Array, Float64Array], height: Float64Array, drawn: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The point at which a stroke begins that goes to another one, the same without a hook."""
    right = height * _between(HOOK, drawn[:, 0]) * (drawn[:, 1] < SHARE_WITH_HOOK)
    return point[0] + right, point[1] + right * _between(HOOK_SLOPE, drawn[:, 2])


def _draw_seven(images: Float32Array, drawn: Float64Array) -> Float32Array:
    """Images of sevens that lean, with bars, and with waves in place of half of them."""
    before = _ink_of(images)
    ink = _leaning(before, STEM_OF_SEVEN, _between(LEAN_OF_SEVEN, drawn[:, 8]))
    stem = _Stem(ink, STEM_OF_SEVEN)
    waves = drawn[:, 9] < SHARE_WITH_WAVE
    ink[waves] = _waves(ink.shape, stem, drawn)[waves]
    bar = _across(
        ink.shape, stem, stem.at(_between(BAR_PLACE, drawn[:, 1])), BAR, BAR_SLOPE, drawn[:, 3:]
    )
    bar[waves & (drawn[:, 10] >= SHARE_WITH_BAR)] = 0
    return _placed(np.maximum(ink, bar), before)


def _waves(shape: tuple[int, ...], stem: _Stem, drawn: Float64Array) -> Float64Array:
    """The ink of sevens without bars, on stems, whose tops are waves."""
    width, drop = _between(TOP_WIDTH, drawn[:, 11]), _between(TOP_DROP, drawn[:, 12])
    share = _between(DIP_PLACE, drawn[:, 13])
    length = np.where(drawn[:, 2] < SHARE_WITH_TICK, _between(TICK, drawn[:, 6]), 0)
    points = (
        stem.at(1.0),
        stem.at(0.0),
        stem.beside(share * width, share * drop + _between(DIP, drawn[:, 14])),
        stem.beside(width, drop),
        stem.beside(width + length * _between(TICK_SLANT, drawn[:, 15]), drop + length),
    )
    return _polyline(shape, points, stem.width * _between(STROKE_WIDTH, drawn[:, 7]))


def _leaning(ink: Float64Array, begin: float, slope: Float64Array) -> Float64Array:
    """Ink (n, h, w) of which the stem has another slope, by moving its rows."""
    _, height, width = ink.shape
    more = np.clip(slope - _Stem(ink, begin).slope, -MOST_LEANT, MOST_LEANT)
    rows = np.arange(height) - _centres(ink)[0][:, None]
    x = np.arange(width) - (more[:, None] * rows)[:, :, None]
    left = np.floor(x)
    padded = np.pad(ink, ((0, 0), (0, 0), (1, 1)))
    at = [
        np.take_along_axis(padded, np.clip(left + k, 0, width + 1).astype(int), axis=2)
        for k in (1, 2)
    ]
    moved: Float64Array = np.rint(at[0] + (x - left) * (at[1] - at[0]))
    return moved


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


def _polyline(
    shape: tuple[int, ...], points: Sequence[tuple[Float64Array, Float64Array]], width: Float64Array
) -> Float64Array:
    """Ink (n, h, w) of lines from point to point."""
    ink = np.zeros(shape)
    for ends in pairwise(points):
        np.maximum(ink, _segments(shape, *ends, width), out=ink)
    return ink


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
    length = np.maximum((x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-9)  # of a point, too
    along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length
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


def _placed(ink: Float64Array, before: Float64Array) -> Float32Array:
    """Images of ink, its centre of mass where that of other ink was but for half a pixel.

    What leaves an image is lost.
    """
    _, height, width = ink.shape
    padded = np.pad(ink, ((0, 0), (height, height), (width, width)))
    result = np.empty_like(ink)
    moves = [np.rint(old - new) for old, new in zip(_centres(before), _centres(ink))]
    for i, (down, right) in enumerate(np.stack(moves, axis=1).astype(int)):
        result[i] = padded[i, height - down :, width - right :][:height, :width]
    result /= UNIT
    result += BACKGROUNDS["signed"]
    return result.astype(np.float32)


def _centres(ink: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The row (n,) and the column (n,) of the centre of mass of images (n, h, w)."""
    masses = ink.sum(axis=2), ink.sum(axis=1)
    row, column = (m @ np.arange(m.shape[1]) / np.maximum(m.sum(axis=1), 1) for m in masses)
    return row, column
