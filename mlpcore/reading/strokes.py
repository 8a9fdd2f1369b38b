"""Connected pieces of ink, and what a network is given of some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlpcore.data.digit import EDGE, MIN_PIECE, from_ink
from mlpcore.data.ink import EDGE_SHARE
from mlpcore.reading.boxes import Box
from mlpcore.reading.opencv import cv2
from mlpcore.typing import AnyArray, UInt8Array


class Pieces(NamedTuple):
    """The connected pieces of ink in a part of a page.

    Attributes
    ----------
    ink : ndarray of uint8, shape (h, w)
    threshold : int
        What is darker is ink.
    labels : ndarray of int32, shape (h, w)
        The number of the piece that each pixel belongs to; the ground's is 0.
    boxes : list of Box
        That of each piece; the first is the ground's.
    areas : ndarray of int32
        Pixels of each piece; the first is the ground's.
    """

    ink: UInt8Array
    threshold: int
    labels: AnyArray
    boxes: list[Box]
    areas: AnyArray


def find_pieces(ink: UInt8Array, dark: UInt8Array, threshold: int) -> Pieces:
    """The connected pieces of ink (h, w), which is in a black and white image (h, w) as well."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(dark, connectivity=8)
    boxes = [Box(x, y, x + w, y + h) for x, y, w, h, _ in stats.tolist()]
    return Pieces(ink, threshold, labels, boxes, stats[:, 4])


class Glyph(NamedTuple):
    """Ink that may be a digit.

    Attributes
    ----------
    box : Box
        Around the ink, on the page.
    pixels : ndarray of uint8, shape (28, 28)
        In MNIST's format.
    """

    box: Box
    pixels: UInt8Array


def glyph(ink: UInt8Array, mask: AnyArray, threshold: int, corner: tuple[int, int]) -> Glyph | None:
    """The digit that the ink (h, w) in a mask (h, w) makes; None if there is none.

    Parameters
    ----------
    threshold
        What is paler is ground.
    corner
        Left and top of the ink on the page.
    """
    if not mask.any():
        return None
    # The pale edges of strokes are outside of the mask.
    near = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8))
    low = threshold / 2
    stroke = float(np.percentile(ink[mask], EDGE_SHARE))
    levels = np.clip((ink * near - low) / max(stroke - low, 1), 0, 1)
    rows, columns = ((levels > EDGE).any(axis=axis).nonzero()[0] for axis in (1, 0))
    if not len(rows):
        return None
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    box = Box(*(int(n) + corner[k % 2] for k, n in enumerate((left, top, right, bottom))))
    return Glyph(box, from_ink(levels[top:bottom, left:right]))


def without_dirt(pieces: Pieces, numbers: Sequence[int]) -> list[int]:
    """Those pieces that are no specks beside the largest."""
    most = max((int(pieces.areas[k]) for k in numbers), default=0)
    return [k for k in numbers if pieces.areas[k] >= MIN_PIECE * most]
