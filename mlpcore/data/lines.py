"""The level and upright lines of a form or of ruled paper, and ink without them."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.typing import UInt8Array

#: Noise leaves fewer pixels out of a line than this share of its length, from 3 to 7.
HOLE = 1 / 12


def find_lines(dark: UInt8Array, width: int, height: int) -> UInt8Array:
    """The level and upright lines in a black and white image (h, w), 255 where one is.

    Level ones have at least a width, and upright ones a height.
    """
    found = np.zeros_like(dark)
    for length, shape in (width, (1, -1)), (height, (-1, 1)):

        def along(n: int, shape: tuple[int, int] = shape) -> UInt8Array:
            return np.ones(n, np.uint8).reshape(shape)

        line = cv2.dilate(dark, along(3).T)  # which is not quite straight
        line = cv2.morphologyEx(line, cv2.MORPH_CLOSE, along(int(np.clip(HOLE * length, 3, 7))))
        found |= cv2.morphologyEx(line, cv2.MORPH_OPEN, along(max(2, length)))
    return found


def without_lines(dark: UInt8Array, drawn: UInt8Array) -> UInt8Array:
    """A black and white image (h, w) without lines, where strokes that cross them stay whole."""
    if not drawn.any():
        return dark
    half = cv2.distanceTransform(drawn, cv2.DIST_L1, 3)[drawn > 0]
    bridge = 2 * round(min(float(np.percentile(half, 90)), *dark.shape)) + 1  # of ink alone: far
    rest = dark & ~drawn
    whole = cv2.morphologyEx(rest, cv2.MORPH_CLOSE, np.ones((bridge, bridge), np.uint8))
    return rest | (whole & dark)
