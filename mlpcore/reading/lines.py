"""The order in which boxes and digits are read: lines from the top, each from the left."""

from __future__ import annotations

from collections.abc import Sequence

from mlpcore.reading.boxes import Box

#: What overlaps a line by this share of the lower of both belongs to it.
SAME_LINE = 0.5


def in_lines(boxes: Sequence[Box]) -> list[list[int]]:
    """The numbers of boxes, in lines from the top to the bottom, each from left to right.

    A line is what all its boxes have in common, so a high box stands in the line of its top.
    """
    lines: list[list[int]] = []
    top = bottom = 0
    for number in sorted(range(len(boxes)), key=lambda k: boxes[k].top):
        box = boxes[number]
        common = min(bottom, box.bottom) - max(top, box.top)
        if lines and common >= SAME_LINE * min(bottom - top, box.height):
            lines[-1].append(number)
            top, bottom = max(top, box.top), min(bottom, box.bottom)
        else:
            lines.append([number])
            top, bottom = box.top, box.bottom
    return [sorted(line, key=lambda k: boxes[k].left) for line in lines]
