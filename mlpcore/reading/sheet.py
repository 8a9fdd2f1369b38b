"""The sheet of paper in a photograph of a desk, or in a scan with a dark frame."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.data.ink import reduced
from mlpcore.typing import UInt8Array

#: The side at which the sheet is looked for, and the least of a page that has ground around it.
SIDE, LEAST = 600, 100

#: The least share of the border that is ground, and that the sheet covers of the picture, of its
#: convex hull, and with light within the hull.
GROUND, COVERED, CONVEX, LIGHT = 0.15, 0.2, 0.85, 0.5

#: The ground has at most this share of the sheet's light, also close to its edge. Light that falls
#: off slowly is no edge.
DARK = 0.65


def find_sheet(grey: UInt8Array) -> UInt8Array | None:
    """A mask (h, w) that is 255 on the sheet, if one lies on dark ground in a picture (h, w)."""
    if min(grey.shape) < LEAST:
        return None
    small = cv2.GaussianBlur(reduced(grey, SIDE), (3, 3), 0)
    light = cv2.threshold(small, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)[1]
    border = np.concatenate([light[0], light[-1], light[:, 0], light[:, -1]])
    if np.mean(border == 0) < GROUND:
        return None
    opened = cv2.morphologyEx(light, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(opened, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    contour = max(contours, key=cv2.contourArea, default=None)
    if contour is None:
        return None
    hull = cv2.convexHull(contour)
    area = cv2.contourArea(hull)
    if area < COVERED * small.size or cv2.contourArea(contour) < CONVEX * area:
        return None
    sheet = cv2.fillConvexPoly(np.zeros_like(small), hull, 255)
    sheet = cv2.copyMakeBorder(sheet, 4, 4, 4, 4, cv2.BORDER_REPLICATE)
    block = np.ones((7, 7), np.uint8)
    rings = cv2.dilate(sheet, block) & ~sheet, sheet & ~cv2.erode(sheet, block)
    outside, inside = (np.median(small[ring[4:-4, 4:-4] > 0]) for ring in rings)
    if np.mean(light[sheet[4:-4, 4:-4] > 0] > 0) < LIGHT or outside > DARK * inside:
        return None
    sheet = cv2.erode(sheet, np.ones((5, 5), np.uint8))[4:-4, 4:-4]  # its edge is no ink
    return cv2.resize(sheet, grey.shape[::-1], interpolation=cv2.INTER_NEAREST)
