"""The sheet of paper in a photograph of a desk, or in a scan with a dark frame."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.data.ink import reduced
from mlpcore.typing import Float32Array, UInt8Array

#: The side at which the sheet is looked for, and the least of a page that has ground around it.
SIDE, LEAST = 600, 100

#: The least share of the border that is ground, and that the sheet covers of the picture, of its
#: convex hull, and with light within the hull.
GROUND, COVERED, CONVEX, LIGHT = 0.15, 0.2, 0.85, 0.5

#: The ground has at most this share of the sheet's light, also close to so large a share of
#: its edge. Light that falls off slowly is no edge.
DARK, SHARP = 0.65, 0.5

#: So many thresholds of light are tried.
THRESHOLDS = 6


def find_sheet(grey: UInt8Array) -> UInt8Array | None:
    """A mask (h, w) that is 255 on the sheet, if one lies on dark ground in a picture (h, w).

    A shadow on it may be darker than Otsu's threshold. Of lower ones, too, the one that gives the
    sharpest edge is chosen.
    """
    if min(grey.shape) < LEAST:
        return None
    small = cv2.GaussianBlur(reduced(grey, SIDE), (3, 3), 0)
    lit = cv2.threshold(small, 0, 255, cv2.THRESH_OTSU)[0]
    shaded = cv2.threshold(small[small <= lit], 0, 255, cv2.THRESH_OTSU)[0]
    sheets = [_lighter(small, threshold) for threshold in np.linspace(lit, shaded, THRESHOLDS)]
    sharp, sheet = max(sheets, key=lambda found: found[0])
    if sheet is None or sharp < SHARP:
        return None
    sheet = cv2.erode(sheet, np.ones((5, 5), np.uint8))  # its edge is no ink
    return cv2.resize(sheet, grey.shape[::-1], interpolation=cv2.INTER_NEAREST)


def _lighter(small: UInt8Array, threshold: float) -> tuple[float, UInt8Array | None]:
    """The share of the edge that is sharp, and a mask, of a sheet lighter than a threshold."""
    light = cv2.threshold(small, threshold, 255, cv2.THRESH_BINARY)[1]
    border = np.concatenate([light[0], light[-1], light[:, 0], light[:, -1]])
    opened = cv2.morphologyEx(light, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(opened, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    contour = max(contours, key=cv2.contourArea, default=None)
    if np.mean(border == 0) < GROUND or contour is None:
        return 0.0, None
    hull = cv2.convexHull(contour)
    area = cv2.contourArea(hull)
    if area < COVERED * small.size or cv2.contourArea(contour) < CONVEX * area:
        return 0.0, None
    sheet = cv2.fillConvexPoly(np.zeros_like(small), hull, 255)
    edge = cv2.morphologyEx(sheet, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    if np.mean(light[sheet > 0] > 0) < LIGHT or not edge.any():
        return 0.0, None
    outside, inside = (_near(small, mask)[edge] for mask in (255 - sheet, sheet))
    return float(np.mean(outside <= DARK * inside)), sheet


def _near(grey: UInt8Array, mask: UInt8Array) -> Float32Array:
    """The mean light (h, w) of what is near, and in a mask."""
    sums = [cv2.boxFilter(np.float32(each), -1, (9, 9)) for each in (grey * (mask > 0), mask > 0)]
    return sums[0] / np.maximum(sums[1], 1e-3)
