"""Slanted digits made upright."""

from __future__ import annotations

import numpy as np

from mlpcore.reading.opencv import cv2
from mlpcore.typing import UInt8Array

#: What is taken out of the slant.
SHARE = 0.8


def upright(images: UInt8Array) -> UInt8Array:
    """Digits (n, h, w), bright on 0, that lean less: their rows are moved about the centre of mass.

    The slant is that of the moments of second order, as is usual for digits.
    """
    result = np.empty_like(images)
    for k, image in enumerate(images):
        moments = cv2.moments(image)
        slope = SHARE * moments["mu11"] / max(moments["mu02"], 1.0)
        centre = moments["m01"] / max(moments["m00"], 1.0)
        source = np.array([[1, slope, -slope * centre], [0, 1, 0]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        result[k] = cv2.warpAffine(image, source, image.shape[::-1], flags=flags)
    return result
