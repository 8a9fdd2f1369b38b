"""The angle by which a page is turned, and the page turned back."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.data.ink import reduced
from mlpcore.typing import Float64Array, UInt8Array

#: Angles in degrees that are tried, in coarse and then in fine steps, and the side at which.
MAX_ANGLE, STEP, FINE_STEP, SKEW_SIDE = 7.0, 0.5, 0.1, 700


def skew(ink: UInt8Array) -> float:
    """The angle in degrees by which `rotation` makes lines level, to a tenth of a degree.

    It is the angle at which the sums of the rows differ most from each to the next (projection
    profile: Postl, *Detection of linear oblique structures and skew scan in digitized documents*,
    1986).
    """
    small = reduced(ink, SKEW_SIDE).astype(np.float32)

    def sharpness(angle: float) -> float:
        turned = cv2.warpAffine(small, rotation(small.shape, angle)[:2], small.shape[::-1])
        return float(np.square(np.diff(turned.sum(axis=1))).sum())

    coarse = max(np.arange(-MAX_ANGLE, MAX_ANGLE + STEP, STEP), key=sharpness)
    fine = np.arange(-STEP + FINE_STEP, STEP, FINE_STEP)
    return float(max(coarse + fine, key=sharpness))


def rotation(shape: tuple[int, ...], angle: float) -> Float64Array:
    """The map (3, 3) that turns points (x, y, 1) of a page around its middle, counter-clockwise."""
    height, width = shape
    turned = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1)
    return np.vstack([turned, [0, 0, 1]])


def turned(ink: UInt8Array, angle: float) -> tuple[UInt8Array, Float64Array]:
    """Ink turned by an angle on a page that holds it all, and the map (3, 3) of its points."""
    height, width = ink.shape
    cos, sin = abs(np.cos(np.radians(angle))), abs(np.sin(np.radians(angle)))
    size = int(np.ceil(width * cos + height * sin)), int(np.ceil(width * sin + height * cos))
    shift = np.eye(3)
    shift[:2, 2] = (np.array(size) - (width, height)) / 2
    matrix = shift @ rotation(ink.shape, angle)
    return cv2.warpAffine(ink, matrix[:2], size), matrix
