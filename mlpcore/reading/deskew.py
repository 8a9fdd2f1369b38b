"""The angle at which the lines of a page are level."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.data.ink import reduced
from mlpcore.typing import UInt8Array

#: Angles in degrees that are tried, in coarse and then in fine steps, and the side at which.
MAX_ANGLE, STEP, FINE_STEP, SKEW_SIDE = 7.0, 0.5, 0.1, 700


def skew(ink: UInt8Array) -> float:
    """The angle in degrees, counter-clockwise, by which ink (h, w) must turn for level lines.

    The sums of the rows differ most from each to the next at the angle of the lines (projection
    profile: Postl, *Detection of linear oblique structures and skew scan in digitized documents*,
    1986), which is found to a tenth of a degree.
    """
    small = reduced(ink, SKEW_SIDE).astype(np.float32)
    height, width = small.shape

    def sharpness(angle: float) -> float:
        matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1)
        turned = cv2.warpAffine(small, matrix, (width, height))
        return float(np.square(np.diff(turned.sum(axis=1))).sum())

    coarse = max(np.arange(-MAX_ANGLE, MAX_ANGLE + STEP, STEP), key=sharpness)
    return float(max(coarse + np.arange(-STEP + FINE_STEP, STEP, FINE_STEP), key=sharpness))
