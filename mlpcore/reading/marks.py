"""Points, commas and minus signs among digits, told by their size and place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mlpcore.data.components import Box

#: The name of ink that is no digit and no known mark.
UNKNOWN = "*"

#: Shares of the height of digits. What is higher is no mark.
HIGHEST = 0.7

#: A minus sign is so many times as wide as high, from so wide to so wide, and its middle is
#: between these heights, from the top.
FLAT, DASH_WIDTH, DASH_HEIGHT, DASH_MIDDLE = 1.5, (0.25, 1.5), 0.45, (0.25, 0.8)

#: Points are at most so high and wide, and commas so wide. Both begin so far below the top, and
#: commas go so far below the bottom.
POINT, COMMA_WIDTH, LOW, TAIL = 0.3, 0.45, 0.55, 0.05

#: Where a point begins that slanted digits reach over.
UNDER = 0.75

#: Other ink is dirt if it is smaller.
DIRT = 0.15

#: How many digits beside a mark tell the line of writing, how far they may be, in heights, and
#: how far the middle of a mark may be below them.
NEIGHBOURS, FAR, BELOW = 4, 3.0, 0.3


def mark_at(box: Box, top: float, bottom: float) -> str:
    """The mark that ink is, between a top and a bottom of digits; `UNKNOWN` for none."""
    height = bottom - top
    wide, high, begin = box.width / height, box.height / height, (box.top - top) / height
    if wide >= FLAT * high and high <= DASH_HEIGHT:
        level = DASH_MIDDLE[0] <= begin + high / 2 <= DASH_MIDDLE[1]
        if level and DASH_WIDTH[0] <= wide <= DASH_WIDTH[1]:
            return "-"
    if begin >= LOW:
        below = (box.bottom - bottom) / height
        if max(wide, high) <= min(POINT, 2 * min(wide, high)) and below >= -POINT / 2:
            return "."
        if wide <= COMMA_WIDTH and below >= TAIL:
            return ","
    return UNKNOWN


def marks_of_line(
    digits: Sequence[int], others: Iterable[int], boxes: Sequence[Box], height: float
) -> dict[int, str]:
    """The marks of a line, among components that may be its digits and among others, lower ones.

    Ink above or below a digit is a part of it. Other ink that is no dirt is `UNKNOWN`.
    """
    high = [k for k in digits if boxes[k].height >= HIGHEST * height]
    if not high:
        return {}
    left, top, right, bottom = np.array([boxes[k] for k in high]).T
    found = {}
    for k in (*(each for each in digits if each not in high), *others):
        box = boxes[k]
        apart = np.maximum(left - box.right, box.left - right)
        near = np.argsort(apart)[:NEIGHBOURS]
        upper, lower = np.median(top[near]), np.median(bottom[near])
        middle = (box.top + box.bottom) / 2
        if apart[near[0]] > FAR * height or not upper < middle < lower + BELOW * height:
            continue
        mark = mark_at(box, upper, lower)
        if mark == UNKNOWN and (k in digits or max(box.width, box.height) < DIRT * height):
            continue
        common = max((box.shared_width(boxes[each]) for each in digits if each != k), default=0)
        if common < 0.5 * box.width or (mark in ".," and box.top >= upper + UNDER * height):
            found[k] = mark
    return found
