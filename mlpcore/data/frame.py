"""Pictures without the lines of a form, the edge of a table or a toolbar at their sides.

Somebody who cuts the cells out of a form cuts along its lines, and parts of them remain. A digit
has no straight line along a whole side of its picture, beyond which nothing of it lies.
"""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.data.components import find_components
from mlpcore.typing import AnyArray, BoolArray

#: A smaller picture shows no frame beside a digit.
MIN_FRAMED = 24

#: Lines are looked for in so large a share of the picture at each side.
DEPTH = 0.2

#: A line runs along so large a share of its side. Shorter ones may be strokes of the digit.
MIN_RUN = 0.9

#: So many lines across a picture are those of ruled paper.
MIN_RULES = 3

#: Ink that is nowhere further from the border than this share of a side is the rest of a line.
RIM = 1 / 24

#: So large a share of a row is a line's, next to the line itself: the blur of the line, or the rest
#: of one that is not quite parallel to the side.
MIN_REST = 0.25


def without_frame(image: AnyArray) -> AnyArray:
    """Return the part of an image (h, w), 0 to 255, that is inside lines along its sides.

    It is the image itself if there are none. The lines of ruled paper are taken out of it.
    """
    if min(image.shape) < MIN_FRAMED:
        return image
    dark = cv2.threshold(image, 0, 1, cv2.THRESH_BINARY_INV | cv2.THRESH_OTSU)[1] > 0
    height, width = image.shape
    rows, columns = (int(DEPTH * side) for side in image.shape)
    inner = dark[rows : height - rows, columns : width - columns]
    lines = dark if 2 * np.count_nonzero(inner) < inner.size else ~dark
    if 2 * np.count_nonzero(lines) >= lines.size:
        return image
    if max(lines.mean(axis=0).max(), lines.mean(axis=1).max()) < MIN_RUN:
        return image  # as most pictures; what follows takes longer
    if (rules := _rules(lines)).any():
        return _without_rows(image, rules)
    inside, found = lines, np.zeros(4, int)
    for _ in range(2):  # without the lines at two sides, those at the others may be whole
        depths = [_depth(view) for view in _views(inside)]
        found += depths
        box = (
            slice(depths[0], len(inside) - depths[1]),
            slice(depths[2], inside.shape[1] - depths[3]),
        )
        inside = inside[box]
    is_crossed = (_longest_run(inside) >= MIN_RUN * inside.shape[1]).any()
    if is_crossed or not (inside.any() or found.all()):
        return image
    components = find_components(inside.astype(np.uint8))
    inside = components.mask(components.inside(RIM))
    for k, view in enumerate(_views(inside)):
        beyond = view[-max(1, len(view) // 16) :]
        if found[k] and view[0].any() and beyond.any() and not found[k ^ 1]:
            return image  # a stroke along this side, as the bar of a 7
    top, bottom, left, right = found
    return image[top : height - bottom, left : width - right]


def _rules(lines: BoolArray) -> BoolArray:
    """Which rows (h,) of lines (h, w) are the rules of ruled paper, with their blur.

    They reach both sides of the picture, nothing else does, and no line is upright as in a table.
    """
    height, width = lines.shape
    across = (_longest_run(lines) >= MIN_RUN * width) & lines[:, [0, -1]].all(axis=1)
    rules = across | np.append(across[1:], False) | np.append(False, across[:-1])
    is_upright = (_longest_run(lines.T) >= MIN_RUN * height).any()
    n_rules = np.count_nonzero(np.diff(across, prepend=False) & across)
    if n_rules < MIN_RULES or is_upright or lines[~rules][:, [0, -1]].any():
        return np.zeros(height, bool)
    return rules


def _without_rows(image: AnyArray, rows: BoolArray) -> AnyArray:
    """An image whose rows are put between those above and below, so that strokes go on."""
    kept = np.flatnonzero(~rows)
    place = np.interp(np.arange(len(rows)), kept, np.arange(len(kept)))
    above, below = (image[kept[round_(place).astype(int)]] for round_ in (np.floor, np.ceil))
    return np.rint(above + (place % 1)[:, None] * (below.astype(float) - above)).astype(np.uint8)


def _views(image: AnyArray) -> tuple[AnyArray, ...]:
    """An image with its top, its bottom, its left and its right side first."""
    return image, image[::-1], image.T, image.T[::-1]


def _depth(lines: BoolArray) -> int:
    """How many rows at the top belong to lines along the width, in its first fifth."""
    height, width = lines.shape
    found = np.flatnonzero(_longest_run(lines[: int(DEPTH * height)]) >= MIN_RUN * width)
    if not len(found):
        return 0
    begin = int(found[-1]) + 1
    share = np.mean(lines[begin : begin + max(2, height // 32) + 1], axis=1)
    end = np.flatnonzero(share < MIN_REST)
    return begin + int(end[0]) + 1 if len(end) else 0


def _longest_run(rows: BoolArray) -> AnyArray:
    """The length (n,) of the longest run of True in each of n rows."""
    places = np.arange(1, rows.shape[1] + 1)
    last = np.maximum.accumulate(np.where(rows, 0, places), axis=1)
    return (places - last).max(axis=1, initial=0)
