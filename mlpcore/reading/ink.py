"""The ink of a page: how much darker it is than its ground, and by what angle it is turned."""

from __future__ import annotations

import numpy as np

from mlpcore.reading.opencv import cv2
from mlpcore.typing import AnyArray, Float64Array, UInt8Array

#: The ground is the median of a window of this share of the shorter side, in a picture of at most
#: so many pixels a side. The window is wider than strokes, and narrower than what light does.
GROUND_SHARE, GROUND_SIDE = 0.3, 512

#: Ground darker than this share of the lightest is a table or a shadow in which nothing is written.
DARKEST = 0.25

#: The least ink, of 255, and by how many standard deviations of the ground's noise it stands out.
MIN_INK, MIN_SIGNAL = 31, 4.0

#: Angles in degrees that are tried, in coarse and then in fine steps, and the side at which.
MAX_ANGLE, STEP, FINE_STEP, SKEW_SIDE = 7.0, 0.5, 0.1, 700


def page_ink(grey: AnyArray) -> UInt8Array:
    """The share of the ground's light that each pixel (h, w) lacks, from 0 to 255.

    Parameters
    ----------
    grey : ndarray (h, w)
        Brightness, 0 for black to 255 for white. If the ink is lighter than the ground, the
        picture is inverted, as in a negative.
    """
    grey = np.rint(grey).astype(np.uint8)
    small = _resized(grey, min(1.0, GROUND_SIDE / max(grey.shape)))
    window = max(3, round(GROUND_SHARE * min(small.shape))) | 1
    ground = cv2.medianBlur(small, window)
    # Noise deviates to both sides, so a high odd power tells on which side the ink is.
    if np.sum((small.astype(np.float64) - ground) ** 5) > 0:
        grey, ground = 255 - grey, 255 - ground
    ground = cv2.resize(ground, grey.shape[::-1], interpolation=cv2.INTER_LINEAR)
    light = np.maximum(ground, max(1, int(DARKEST * ground.max())))
    return cv2.divide(cv2.subtract(ground, grey), light, scale=255)


def least_ink(ink: UInt8Array) -> int:
    """The threshold of ink: what is below may be the ground's noise."""
    # Half of the noise is negative, and has become 0. Squared paper may have lines on a quarter.
    some = ink[::3, ::5]
    noise = min(np.percentile(some, 75) / 0.674, np.percentile(some, 62.5) / 0.319)
    return round(max(MIN_INK, MIN_SIGNAL * float(noise)))


def binary(ink: UInt8Array, threshold: int) -> UInt8Array:
    """A black and white image: 255 where ink is darker than a threshold, else 0."""
    return cv2.threshold(ink, threshold, 255, cv2.THRESH_BINARY)[1]


def skew(ink: UInt8Array) -> float:
    """The angle in degrees by which `rotation` makes lines level, to a tenth of a degree.

    It is the angle at which the sums of the rows differ most from each to the next (projection
    profile: Postl, *Detection of linear oblique structures and skew scan in digitized documents*,
    1986).
    """
    small = _resized(ink, min(1.0, SKEW_SIDE / max(ink.shape))).astype(np.float32)

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


def _resized(image: UInt8Array, scale: float) -> UInt8Array:
    return cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
