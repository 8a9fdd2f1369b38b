"""Drawn boxes on a page: what lines enclose, in a grid, a table, a row, or each by itself.

Their order, and the digit in each, are found here, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from mlpcore.data.components import Box
from mlpcore.data.digit import Glyph, digit_inside
from mlpcore.data.ink import Ink
from mlpcore.typing import AnyArray, UInt8Array

#: The least side of a box in pixels, and the least share of its rectangle that it fills, with the
#: digits in it and without.
MIN_SIDE, MIN_FILLED, MIN_STRAIGHT = 10, 0.6, 0.85

#: Shares of a small box's side: a line is longer than the first, and its gaps are shorter than the
#: second. What is thicker than the third is no line, so that the hole in a 0 is no box. A box whose
#: side is below the fourth is a gap between two lines.
LINE, GAP, THICK, SMALLEST = 0.9, 0.15, 0.15, 0.5

#: Small boxes are those that cover this share of the area of all.
SMALL = 0.1

#: A box that the border of the page cuts is one if its sides are so alike to another's.
ALIKE = 0.8

#: A line is so near to the inside of its box, in pixels.
REACH = 4

#: Noise leaves fewer pixels out of a line than this share of its length, from 3 to 7.
HOLE = 1 / 12

#: Ink is in a box if it reaches beyond by less than this share of a side. That is found out where
#: sides have so many pixels.
OVER, SMALL_SIDE = 0.2, 24

#: Pixels that the inside of a box loses at each side, where a line's edge may be. Ink that stays
#: within the share of a side of the box is the line, or the neighbour's.
MARGIN, RIM = 1, 0.1

#: A digit is at least as high or as wide as this share of the box's height.
MIN_DIGIT = 0.15

#: What overlaps a line of boxes by this share of the lower of both belongs to it.
SAME_LINE = 0.5


def find_boxes(dark: UInt8Array) -> list[Box]:
    """The insides of the boxes on a page whose lines are level, in no order.

    The border of the page may be one side of a box that is like the others. A box that holds others
    is left out. There are none where most of the ink crosses their lines, which are those of
    squared paper.

    Parameters
    ----------
    dark : ndarray of uint8, shape (h, w)
        255 where there is ink, else 0.
    """
    first = _enclosed(255 - dark, MIN_FILLED)
    if not len(first):
        return []
    width, height = (quantile(first[:, axis], first[:, 4], SMALL) for axis in (2, 3))
    side = min(width, height)
    drawn = lines(dark, (round(LINE * width), round(LINE * height)), round(GAP * side))
    found = _enclosed(255 - drawn, MIN_STRAIGHT)
    found = found[found[:, 2:4].min(axis=1) >= SMALLEST * side]
    block = np.ones([max(5, round(THICK * side))] * 2, np.uint8)
    thin = dark & ~cv2.morphologyEx(dark, cv2.MORPH_OPEN, block)
    thin = cv2.copyMakeBorder(thin, *[REACH] * 4, cv2.BORDER_CONSTANT, value=255)
    boxes = [
        box for box in map(_box, found) if not _holds_one(box, found) and _has_sides(box, thin)
    ]
    cut = [box for box in map(_box, _enclosed(255 - drawn, MIN_STRAIGHT, 1)) if box not in boxes]
    boxes += [box for box in cut if _has_sides(box, thin) and any(_alike(box, b) for b in boxes)]
    return [] if _crossed(boxes, drawn, dark, side) else boxes


def digit_in_box(ink: Ink, box: Box) -> Glyph | None:
    """The digit in a box of a page, of which the lines have no part; None if the box is empty."""
    rows = slice(box.top + MARGIN, box.bottom - MARGIN)
    columns = slice(box.left + MARGIN, box.right - MARGIN)
    found = digit_inside(ink._replace(values=ink.values[rows, columns]), RIM)
    if found is None or max(found[0].box.width, found[0].box.height) < MIN_DIGIT * box.height:
        return None
    return found[0]


def in_lines(boxes: Sequence[Box]) -> list[list[int]]:
    """The numbers of boxes, in lines from the top to the bottom, each from left to right.

    A line is what all its boxes have in common, so a high box stands in the line of its top.
    """
    found: list[list[int]] = []
    top = bottom = 0
    for number in sorted(range(len(boxes)), key=lambda k: boxes[k].top):
        box = boxes[number]
        common = min(bottom, box.bottom) - max(top, box.top)
        if found and common >= SAME_LINE * min(bottom - top, box.height):
            found[-1].append(number)
            top, bottom = max(top, box.top), min(bottom, box.bottom)
        else:
            found.append([number])
            top, bottom = box.top, box.bottom
    return [sorted(line, key=lambda k: boxes[k].left) for line in found]


def lines(dark: UInt8Array, lengths: tuple[int, int], gap: int) -> UInt8Array:
    """The level and upright lines in a black and white image (h, w), 255 where one is.

    They have at least a length, that of level ones first, and gaps of at most `gap`.
    """
    found = np.zeros_like(dark)
    for axis, length in zip((1, 0), lengths):

        def along(n: int, axis: int = axis) -> UInt8Array:
            return np.ones((1, n) if axis else (n, 1), np.uint8)

        line = cv2.dilate(dark, along(3, 1 - axis))  # which is not quite level
        line = cv2.morphologyEx(line, cv2.MORPH_CLOSE, along(int(np.clip(HOLE * length, 3, 7))))
        line = cv2.morphologyEx(line, cv2.MORPH_OPEN, along(max(2, length)))
        found |= cv2.morphologyEx(line, cv2.MORPH_CLOSE, along(max(1, gap)))
    return found


def without_lines(dark: UInt8Array, drawn: UInt8Array) -> UInt8Array:
    """A black and white image (h, w) without lines, where strokes that cross them stay whole."""
    if not drawn.any():
        return dark
    half = cv2.distanceTransform(drawn, cv2.DIST_L1, 3)[drawn > 0]
    bridge = 2 * round(float(np.percentile(half, 90))) + 1
    rest = dark & ~drawn
    whole = cv2.morphologyEx(rest, cv2.MORPH_CLOSE, np.ones((bridge, bridge), np.uint8))
    return rest | (whole & dark)


def quantile(values: AnyArray, weights: AnyArray, share: float) -> float:
    """The value (n,) at which those up to it have a share of the weights (n,)."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, share * total[-1])])


def _enclosed(light: UInt8Array, filled: float, n_open: int = 0) -> AnyArray:
    """What darkness, and the border at so many sides, enclose: (n, 5) left, top, w, h, area.

    It fills at least a share of its rectangle.
    """
    stats = cv2.connectedComponentsWithStats(light, connectivity=4)[2][1:]
    left, top, width, height, area = stats.T
    rows, columns = light.shape
    ends = [left == 0, top == 0, left + width == columns, top + height == rows]
    inside = np.sum(ends, axis=0) <= n_open
    large = np.minimum(width, height) >= MIN_SIDE
    return stats[inside & large & (area >= filled * width * height)]


def _box(stats: AnyArray) -> Box:
    left, top, width, height, _ = stats.tolist()
    return Box(left, top, left + width, top + height)


def _alike(box: Box, other: Box) -> bool:
    """Whether two boxes have about the same size."""
    return all(
        ALIKE * b <= a <= b / ALIKE
        for a, b in ((box.width, other.width), (box.height, other.height))
    )


def _holds_one(box: Box, found: AnyArray) -> bool:
    """Whether the middle of another one is inside."""
    x, y = found[:, 0] + found[:, 2] / 2, found[:, 1] + found[:, 3] / 2
    inside = (box.left < x) & (x < box.right) & (box.top < y) & (y < box.bottom)
    return int(inside.sum()) > 1


def _has_sides(box: Box, thin: UInt8Array) -> bool:
    """Whether at least half of each side is a thin line, in an image with a margin of `REACH`."""
    left, top, right, bottom = box
    rows, columns = slice(top + REACH, bottom + REACH), slice(left + REACH, right + REACH)
    upright = [thin[rows, x : x + REACH] for x in (left, right + REACH)]
    level = [thin[y : y + REACH, columns] for y in (top, bottom + REACH)]
    shares = [side.any(axis=1).mean() for side in upright]
    shares += [side.any(axis=0).mean() for side in level]
    return min(shares) >= 0.5


def _crossed(boxes: Sequence[Box], drawn: UInt8Array, dark: UInt8Array, side: float) -> bool:
    """Whether most of the ink at lines is in no box."""
    scale = min(1.0, SMALL_SIDE / side)
    strokes, owner = without_lines(dark, drawn), np.zeros(dark.shape, np.int32)
    for number, box in enumerate(boxes, 1):
        owner[box.top : box.bottom, box.left : box.right] = number
    small = cv2.resize(strokes, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    stats = cv2.connectedComponentsWithStats((small > 64).astype(np.uint8))[2][1:]
    inside = outside = 0
    for left, top, width, height, area in (stats / [*[scale] * 4, 1]).astype(int).tolist():
        number = owner[top + height // 2, left + width // 2]
        reach = Box(left, top, left + width, top + height)
        if number and reach.beyond(boxes[number - 1]) < OVER * side:
            inside += area
        elif drawn[top : reach.bottom, left : reach.right].any():
            outside += area
    return outside > inside
