"""Combs: fields with a base line and ticks that part it into places for digits."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np

from mlpcore.data.components import Box
from mlpcore.data.ink import Ink
from mlpcore.data.lines import find_lines
from mlpcore.typing import Float64Array, UInt8Array

#: A base line is at least so long, in pixels and as a share of the page's width, and flatter than
#: this share of its length.
LENGTH, SHARE, FLAT = 60, 0.12, 0.15

#: A tick reaches so many pixels beyond its line, and is no wider than the line is high by as many.
TICK = 7

#: Ticks part a line into so many places. They lie so near to even ones, as a share of a place; the
#: least share of places that have one, and of ticks that have a place.
FEWEST, MOST, EVEN, PLACED, EXPLAINED = 3, 40, 0.1, 0.75, 0.6

#: The height of a place as a share of its width.
HIGH = 1.3


def comb_boxes(ink: Ink) -> list[Box]:
    """The places of combs on a page whose lines are level, without ticks and base lines."""
    dark = ink.strokes
    height, width = dark.shape
    base = find_lines(dark, max(LENGTH, round(SHARE * width)), height + 1)
    boxes: list[Box] = []
    # An opening with a column is as high as the page, so these lines are level.
    for left, y, length, thick, _ in cv2.connectedComponentsWithStats(base)[2][1:].tolist():
        line = Box.of_size(left, y, length, thick)
        if thick > FLAT * length:
            continue
        views = (dark[:y][::-1], dark[line.bottom :]), (dark[line.bottom :], dark[:y][::-1])
        ticks = max((_ticks(*each, line) for each in views), key=len)
        if not len(ticks):
            continue
        above = [box.bottom for box in boxes if box.right > left and box.left < line.right]
        top = max([0, round(y - HIGH * (ticks[1] - ticks[0])), *(each + thick for each in above)])
        inset = thick // 2 + 2
        ends = np.rint(ticks).astype(int).tolist()
        boxes += [Box(a + inset, top, b - inset, y - 1) for a, b in pairwise(ends)]
    return [box for box in boxes if min(box.width, box.height) >= LENGTH // 6]


def _ticks(side: UInt8Array, other: UInt8Array, line: Box) -> Float64Array:
    """Where even ticks on a side of a line are, whose rows begin at it; none if they go on."""
    side, other = (each[1 : TICK + 1, line.left : line.right] for each in (side, other))
    if min(len(side), len(other)) < TICK:
        return np.zeros(0)
    runs = np.flatnonzero(np.diff(np.pad(side.all(axis=0), 1).astype(np.int8)))
    begins, ends = runs[::2], runs[1::2]
    at = ((begins + ends) / 2)[ends - begins <= line.height + TICK]
    best = np.zeros(0)
    for n in range(FEWEST, MOST + 1):
        if len(at) <= FEWEST or np.ptp(at) < n * LENGTH / 6:
            break
        place = (at - at[0]) / np.ptp(at) * n
        even = np.abs(place - np.rint(place)) < EVEN
        found = len(np.unique(np.rint(place[even])))
        if found >= max(PLACED * (n + 1), len(best)) and even.mean() > EXPLAINED:
            best = np.linspace(at[0], at[-1], n + 1)
    if not len(best) or max(best[0], line.width - best[-1]) > (best[1] - best[0]) / 2:
        return best[:0]  # of digits on a ruled line, which goes on
    near = np.rint(best).astype(int)[:, None] + np.arange(-3, 4)
    across = other[:, near.clip(0, line.width - 1)].any(axis=2).mean(axis=0) > PLACED
    return best + line.left if across.mean() < 0.5 else best[:0]
