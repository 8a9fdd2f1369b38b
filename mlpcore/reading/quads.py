"""Quadrilaterals in a picture: what darkness encloses that has four straight sides."""

from __future__ import annotations

import cv2
import numpy as np

from mlpcore.typing import Float64Array, UInt8Array

#: The least side of a quadrilateral in pixels, and its largest share of the page.
MIN_SIDE, LARGEST = 10, 0.25

#: The least share of its hull that is light, of its hull that its corners span, and of the longer
#: of two opposite sides.
FILLED, STRAIGHT, OPPOSITE = 0.6, 0.85, 0.7


def find_quads(dark: UInt8Array) -> tuple[Float64Array, float]:
    """The corners (n, 4, 2) of quadrilaterals on a page turned by any angle, and that angle.

    They begin at the upper left of a page whose lines are level, and go on clockwise. The angle, in
    degrees from -45 to 45, is how far the page must turn counter-clockwise until they are.

    Parameters
    ----------
    dark : ndarray of uint8, shape (h, w)
        255 where there is ink, else 0.
    """
    light = 255 - cv2.dilate(dark, np.ones((3, 3), np.uint8))
    contours, tree = cv2.findContours(light, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    hulls, areas = [], []
    for contour, (_, _, _, parent) in zip(contours, [] if tree is None else tree[0]):
        _, _, *sides = cv2.boundingRect(contour)
        if parent >= 0 or min(sides) < MIN_SIDE or np.prod(sides) > LARGEST * dark.size:
            continue
        hull = cv2.convexHull(contour)
        areas.append(cv2.contourArea(hull))
        hulls.append(hull[:, 0])
        if cv2.contourArea(contour) < FILLED * areas[-1]:
            del areas[-1], hulls[-1]
    if not hulls:
        return np.zeros((0, 4, 2)), 0.0
    points = np.concatenate(hulls).astype(float)
    lengths = np.array([len(hull) for hull in hulls])
    ends = np.cumsum(lengths)
    follows = np.arange(1, len(points) + 1)
    follows[ends - 1] = ends - lengths
    # The fourth power of a side's direction is the same for all sides of a rectangle.
    x, y = (points[follows] - points).T
    angle = np.angle(np.sum((x + 1j * y) ** 4 / np.maximum(x**2 + y**2, 1) ** 1.5)) / 4
    level = points @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    hull_of = np.repeat(np.arange(len(hulls)), lengths)
    first, last = (
        [np.lexsort((key, hull_of))[at] for key in (level.sum(axis=1), level @ [1, -1])]
        for at in (ends - lengths, ends - 1)
    )
    quads = points[np.stack([first[0], last[1], last[0], first[1]], axis=1)]
    sides = np.linalg.norm(np.roll(quads, -1, axis=1) - quads, axis=2)
    (x, y), (u, v) = (quads[:, 2] - quads[:, 0]).T, (quads[:, 3] - quads[:, 1]).T
    alike = np.minimum(sides[:, :2], sides[:, 2:]) > OPPOSITE * np.maximum(
        sides[:, :2], sides[:, 2:]
    )
    chosen = alike.all(axis=1) & (sides.min(axis=1) >= MIN_SIDE)
    chosen &= (x * v - y * u) / 2 >= STRAIGHT * np.array(areas)
    return quads[chosen], float(np.degrees(angle))
