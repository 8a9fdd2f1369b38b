"""A grid of known size, also where its lines are faint or broken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import cv2
import numpy as np

from mlpcore.data.components import Box
from mlpcore.data.lines import find_lines
from mlpcore.errors import InputError
from mlpcore.typing import UInt8Array

#: A line of the frame is at least so long, as a share of the page's shorter side.
FRAME = 0.25

#: A box that was found takes the place of the one that is expected if its sides are so alike.
SAME = 0.6


def grid_boxes(
    dark: UInt8Array, found: Sequence[Box], columns: int | None, rows: int | None, name: str
) -> list[Box]:
    """The boxes of the one grid on a page whose lines are level.

    They divide the grid's frame evenly, except where boxes were found. A number that is None is
    that of the boxes which were found.

    Raises
    ------
    InputError
        When there is no frame.
    """
    length = max(2, round(FRAME * min(dark.shape)))
    around = Box.of_size(*cv2.boundingRect(find_lines(dark, length, length)))
    ends = [*found, around] if around.width else found
    if not ends or (not found and None in (columns, rows)):
        raise InputError(f"{name} shows no lines: expected a grid of drawn boxes")
    frame = reduce(Box.union, ends)
    columns = columns or _count(frame.width, [(box.left, box.right) for box in found])
    rows = rows or _count(frame.height, [(box.top, box.bottom) for box in found])
    x = np.linspace(frame.left, frame.right, columns + 1).round().astype(int).tolist()
    y = np.linspace(frame.top, frame.bottom, rows + 1).round().astype(int).tolist()
    cells = {
        (i, k): Box(x[k], y[i], x[k + 1], y[i + 1]) for i in range(rows) for k in range(columns)
    }
    for box in found:
        k = int(np.searchsorted(x, (box.left + box.right) / 2)) - 1
        i = int(np.searchsorted(y, (box.top + box.bottom) / 2)) - 1
        if (i, k) in cells and box.is_alike(cells[i, k], SAME):
            cells[i, k] = box
    return list(cells.values())


def _count(length: int, sides: Sequence[tuple[int, int]]) -> int:
    """How many boxes with such sides, and lines between them, take a length."""
    begins, ends = np.array(sides).T
    apart = np.subtract.outer(begins, ends)
    line = np.min(apart, where=apart > 0, initial=length) % length  # 0 for one box
    return max(1, round(length / (float(np.median(ends - begins)) + line)))
