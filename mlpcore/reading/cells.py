"""The digit in a drawn box, of which the lines have no part."""

from __future__ import annotations

import numpy as np

from mlpcore.reading.boxes import Box
from mlpcore.reading.ink import binary
from mlpcore.reading.strokes import Glyph, find_pieces, glyph, without_dirt
from mlpcore.typing import UInt8Array

#: Pixels that the inside of a box loses at each side, where a line's edge may be.
MARGIN = 1

#: Ink that stays within this share of a side of the box is the line, or the neighbour's.
RIM = 0.1

#: A digit is at least as high or as wide as this share of the box's height.
MIN_DIGIT = 0.15


def read_cell(ink: UInt8Array, box: Box, threshold: int) -> Glyph | None:
    """The digit in a box of a page; None if the box is empty."""
    left, top = box.left + MARGIN, box.top + MARGIN
    inside = ink[top : box.bottom - MARGIN, left : box.right - MARGIN]
    pieces = find_pieces(inside, binary(inside, threshold), threshold)
    height, width = inside.shape
    x, y = RIM * width, RIM * height
    kept = [
        number
        for number, each in enumerate(pieces.boxes[1:], 1)
        if each.right > x and each.left < width - x and each.bottom > y and each.top < height - y
    ]
    kept = without_dirt(pieces, kept)
    found = glyph(inside, np.isin(pieces.labels, kept), threshold, (left, top))
    if found is None or max(found.box.width, found.box.height) < MIN_DIGIT * height:
        return None
    return found
