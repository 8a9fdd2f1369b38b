"""Drawn boxes on a page: what lines enclose, in a grid, a table, a row, or each by itself.

Their order is found here, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from mlpcore.data.components import Box
from mlpcore.data.lines import find_lines, without_lines
from mlpcore.typing import AnyArray, Int32Array, UInt8Array

#: The least side of a box in pixels, and the least share of its rectangle that it fills, with the
#: digits in it and without.
MIN_SIDE, MIN_FILLED, MIN_STRAIGHT = 10, 0.6, 0.85

#: Shares of a small box's side: a line is longer than the first. What is thicker than the second is
#: no line, so that the hole in a 0 is no box. A box whose side is below the third is a gap between
#: two lines.
LINE, THICK, SMALLEST = 0.9, 0.15, 0.5

#: Small boxes are those that cover this share of the area of all.
SMALL = 0.1

#: There may be so much print that looks like lines, as a share of the area of all boxes.
PRINT = 0.05

#: A box that the border of the page cuts is one if its sides are so alike to another's.
ALIKE = 0.8

#: A line is so near to the inside of its box, in pixels.
REACH = 4

#: Ink is in a box if it reaches beyond by less than this share of a side. That is found out where
#: sides have so many pixels.
OVER, SMALL_SIDE = 0.2, 24

#: What overlaps a line of boxes by this share of the lower of both belongs to it.
SAME_LINE = 0.5


def find_boxes(dark: UInt8Array, known: Sequence[Box] = ()) -> list[Box]:
    """The insides of the boxes on a page whose lines are level, in no order.

    The border of the page may be one side of a box that is like the others. A box that holds others
    is left out. There are none where most of the ink crosses their lines, which are those of
    squared paper.

    Parameters
    ----------
    dark : ndarray of uint8, shape (h, w)
        255 where there is ink, else 0.
    known : sequence of Box
        Boxes of a lattice, whose lines may be paler.
    """
    first = _enclosed(255 - dark, MIN_FILLED)
    if known:
        width, height = np.median([(box.width, box.height) for box in known], axis=0)
    elif len(first):
        width, height = (quantile(first[:, axis], first[:, 4], SMALL) for axis in (2, 3))
    else:
        return []
    side = min(width, height)
    drawn = find_lines(dark, round(LINE * width), round(LINE * height))
    block = np.ones([max(5, round(THICK * side))] * 2, np.uint8)
    thin = dark & ~cv2.morphologyEx(dark, cv2.MORPH_OPEN, block)
    lines = drawn & thin
    thin = cv2.copyMakeBorder(thin, *[REACH] * 4, cv2.BORDER_CONSTANT, value=255)
    found = _enclosed(255 - drawn, MIN_STRAIGHT)
    found = found[found[:, 2:4].min(axis=1) >= SMALLEST * side]
    boxes = _united(_with_sides(found[~_hold_others(found)], thin), known, dark.shape)
    cut = _with_sides(_enclosed(255 - drawn, MIN_STRAIGHT, n_open=1), thin)
    sides = np.reshape([(box.width, box.height) for box in boxes], (-1, 2))
    for box in cut:
        ratio = sides / (box.width, box.height)
        if np.all((ratio >= ALIKE) & (ratio <= 1 / ALIKE), axis=1).any():
            boxes.append(box)
    return [] if _are_crossed(boxes, lines, dark, side) else boxes


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


def quantile(values: AnyArray, weights: AnyArray, share: float) -> float:
    """The value (n,) at which those up to it have a share of the weights (n,)."""
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


def _enclosed(light: UInt8Array, filled: float, n_open: int = 0) -> AnyArray:
    """Areas that darkness, and the border at so many sides, enclose: (n, 5) left, top, w, h, area.

    It fills at least a share of its rectangle.
    """
    stats = cv2.connectedComponentsWithStats(light, connectivity=4)[2][1:]
    left, top, width, height, area = stats.T
    rows, columns = light.shape
    ends = [left == 0, top == 0, left + width == columns, top + height == rows]
    chosen = (np.sum(ends, axis=0) == n_open) & (np.minimum(width, height) >= MIN_SIDE)
    return stats[chosen & (area >= filled * width * height)]


def _hold_others(stats: AnyArray) -> AnyArray:
    """A mask (n,) of the rectangles (n, 5) that have the middle of another one inside."""
    left, top, width, height, _ = stats.T
    x, y = left + width / 2, top + height / 2
    inside = (left[:, None] < x) & (x < (left + width)[:, None])
    inside &= (top[:, None] < y) & (y < (top + height)[:, None])
    return inside.sum(axis=1) > 1


def _with_sides(stats: AnyArray, thin: UInt8Array) -> list[Box]:
    """The rectangles (n, 5) whose sides are thin lines, at least half of each.

    The image of thin lines has a margin of `REACH`.
    """
    boxes = []
    for left, top, width, height, _ in stats.tolist():
        rows, columns = (slice(a + REACH, a + REACH + n) for a, n in ((top, height), (left, width)))
        upright = [thin[rows, x : x + REACH] for x in (left, columns.stop)]
        level = [thin[y : y + REACH, columns].T for y in (top, rows.stop)]
        if min(side.any(axis=1).mean() for side in (*upright, *level)) >= 0.5:
            boxes.append(Box.of_size(left, top, width, height))
    return boxes


def _united(found: list[Box], known: Sequence[Box], shape: tuple[int, ...]) -> list[Box]:
    """The boxes found, but not those that hold several known ones, and known ones not found."""
    middles = [((box.top + box.bottom) // 2, (box.left + box.right) // 2) for box in known]
    at = tuple(np.reshape(middles, (-1, 2)).astype(int).T)
    n_held = np.bincount(painted(found, shape)[at], minlength=len(found) + 1)
    found = [box for number, box in enumerate(found, 1) if n_held[number] < 2]
    free = painted(found, shape)[at] == 0
    return found + [box for box, is_free in zip(known, free.tolist()) if is_free]


def painted(boxes: Sequence[Box], shape: tuple[int, ...]) -> Int32Array:
    """An image (h, w) of the numbers of boxes, from 1, and 0 elsewhere."""
    image = np.zeros(shape, np.int32)
    for number, box in enumerate(boxes, 1):
        image[box.slices] = number
    return image


def _are_crossed(boxes: Sequence[Box], drawn: UInt8Array, dark: UInt8Array, side: float) -> bool:
    """Whether most of the ink at lines is in no box."""
    scale = min(1.0, SMALL_SIDE / side)
    owner = painted(boxes, dark.shape)
    strokes = without_lines(dark, drawn)
    small = cv2.resize(strokes, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    stats = cv2.connectedComponentsWithStats((small > 64).astype(np.uint8))[2][1:]
    inside = across = elsewhere = 0
    for left, top, width, height, area in (stats / [*[scale] * 4, 1]).astype(int).tolist():
        number = owner[top + height // 2, left + width // 2]
        reach = Box.of_size(left, top, width, height)
        own = boxes[number - 1] if number else None
        if own and np.abs(np.subtract(reach.union(own), own)).max() < OVER * side:
            inside += area
        elif owner[reach.slices].any():
            across += area
        elif drawn[reach.slices].any():  # print, unless the boxes are holes in digits
            elsewhere += area
    room = scale**2 * sum(box.width * box.height for box in boxes)
    return max(across, across + elsewhere - PRINT * room) > inside
