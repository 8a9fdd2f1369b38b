"""A page turned until its lines are level."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.data.ink import reduced
from mlpcore.typing import Float64Array, UInt8Array

#: Angles in degrees that are tried, in coarse and then in fine steps, and the side at which.
MAX_ANGLE, STEP, FINE_STEP, SKEW_SIDE = 7.0, 0.5, 0.1, 700


def deskewed(ink: UInt8Array) -> tuple[UInt8Array, Float64Array]:
    """Ink (h, w) with level lines, on a page that holds it all, and the map (3, 3) of its points.

    The sums of the rows differ most from each to the next at the angle of the lines (projection
    profile: Postl, *Detection of linear oblique structures and skew scan in digitized documents*,
    1986), which is found to a tenth of a degree.
    """
    small = reduced(ink, SKEW_SIDE).astype(np.float32)

    def sharpness(angle: float) -> float:
        turned = cv2.warpAffine(small, _rotation(small.shape, angle), small.shape[::-1])
        return float(np.square(np.diff(turned.sum(axis=1))).sum())

    coarse = max(np.arange(-MAX_ANGLE, MAX_ANGLE + STEP, STEP), key=sharpness)
    angle = max(coarse + np.arange(-STEP + FINE_STEP, STEP, FINE_STEP), key=sharpness)
    matrix = np.vstack([_rotation(ink.shape, angle), [0, 0, 1]])
    cos, sin = np.abs(matrix[0, :2])
    height, width = ink.shape
    size = int(np.ceil(width * cos + height * sin)), int(np.ceil(width * sin + height * cos))
    matrix[:2, 2] += (np.array(size) - (width, height)) / 2
    return cv2.warpAffine(ink, matrix[:2], size), matrix


def _rotation(shape: tuple[int, ...], angle: float) -> Float64Array:
    """The map (2, 3) that turns points around the middle of an image, counter-clockwise."""
    height, width = shape
    return cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1)
