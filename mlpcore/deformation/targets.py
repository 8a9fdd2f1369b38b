"""What belongs to an image and moves along with it: masks, keypoints and boxes.

An image's displacement D, from `displacements`, says that pixel p of the deformed image shows the
point S(p) = p + D(p) of the image. Between pixels D is interpolated; outside it is that of the
nearest pixel. Coordinates are (x, y) in pixels; those of the first pixel's centre are (0, 0).
"""

from __future__ import annotations

import numpy as np

from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: A solution is found when it shows a point at most this far from the one that is asked for.
CLOSE = 1e-4  # pixels

#: Newton's steps, and how often one is halved.
STEPS, HALVINGS = 30, 6

#: Points on each side of a box that are moved.
POINTS_PER_SIDE = 8


def move_masks(masks: AnyArray, displacement: Float32Array, background: float) -> AnyArray:
    """Return masks in which each pixel has the value of the nearest pixel at its source.

    Parameters
    ----------
    masks
        (n, channels, h, w) of any type, with any strides.
    displacement
        (n, 2, h, w), of their images.
    background
        The value outside a mask.

    Returns
    -------
    (n, channels, h, w) of the same type.
    """
    n, channels, height, width = masks.shape
    y, x = np.ogrid[:height, :width]
    columns = np.rint(displacement[:, 0] + x).astype(np.intp)
    rows = np.rint(displacement[:, 1] + y).astype(np.intp)
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    np.clip(columns, 0, width - 1, out=columns)
    np.clip(rows, 0, height - 1, out=rows)
    result = np.empty_like(masks)
    for i in range(n):
        for channel in range(channels):
            result[i, channel] = masks[i, channel][rows[i], columns[i]]
            result[i, channel][~inside[i]] = background
    return result


def move_points(points: AnyArray, displacement: Float32Array) -> Float64Array:
    """Return where the deformed image shows points of the image: the p with S(p) = point.

    Where a strong deformation shows a point several times, this is one of the places.

    Parameters
    ----------
    points
        (k, 2).
    displacement
        (2, h, w), of the image.

    Returns
    -------
    (k, 2) float64. Points may lie outside of the image, before and after.
    """
    wanted = np.asarray(points, np.float64)
    place = _nearest_pixels(wanted, displacement)
    shown, slopes = _sources(place, displacement)
    off = wanted - shown
    for _ in range(STEPS):
        distance = np.hypot(*off.T)
        open_ = np.flatnonzero(distance > CLOSE)
        if not len(open_):
            break
        step = _solve(slopes[open_], off[open_])
        for _ in range(HALVINGS):  # until the points come closer
            trial = place[open_] + step
            shown, found = _sources(trial, displacement)
            rest = wanted[open_] - shown
            better = np.hypot(*rest.T) < distance[open_]
            here = open_[better]
            place[here], off[here], slopes[here] = trial[better], rest[better], found[better]
            open_, step = open_[~better], step[~better] / 2
            if not len(open_):
                break
    return place


def move_boxes(boxes: AnyArray, displacement: Float32Array) -> Float64Array:
    """Return the boxes, parallel to the axes, around what the deformed image shows of boxes.

    Parameters
    ----------
    boxes
        (k, 4): left, top, right and bottom edge. The edges of the first pixel are at 0 and 1.
    displacement
        (2, h, w), of the image.

    Returns
    -------
    (k, 4) float64. They may reach beyond the image.
    """
    along = np.linspace(0, 1, POINTS_PER_SIDE + 1)[:, None]
    corners = np.asarray(boxes, np.float64)[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 1, 2)
    sides = corners + along * (np.roll(corners, -1, axis=1) - corners)
    moved = move_points(sides.reshape(-1, 2) - 0.5, displacement).reshape(len(boxes), -1, 2) + 0.5
    return np.concatenate([moved.min(axis=1), moved.max(axis=1)], axis=1)


def _nearest_pixels(wanted: Float64Array, displacement: Float32Array) -> Float64Array:
    """Return the pixels (k, 2) whose sources are nearest to the wanted points."""
    height, width = displacement.shape[1:]
    y, x = np.ogrid[:height, :width]
    source_x, source_y = (displacement[0] + x).ravel(), (displacement[1] + y).ravel()
    best = [int(np.argmin((source_x - x) ** 2 + (source_y - y) ** 2)) for x, y in wanted]
    rows, columns = np.divmod(np.array(best, np.intp), width)
    return np.stack([columns, rows], axis=-1).astype(np.float64)


def _sources(place: Float64Array, displacement: Float32Array) -> tuple[Float64Array, Float64Array]:
    """Return S (k, 2) at places (k, 2), and its derivatives (k, 2, 2), by x and y last."""
    limits = np.array(displacement.shape[:0:-1]) - 1  # of x and y
    inside = np.clip(place, 0, limits)
    low = np.minimum(inside.astype(np.intp), np.maximum(limits - 1, 0))
    x, y = low.T
    x1, y1 = np.minimum(low + 1, limits).T
    fx, fy = (inside - low).T
    corners = (y, x), (y, x1), (y1, x), (y1, x1)
    d00, d01, d10, d11 = (displacement[:, row, column].astype(float) for row, column in corners)
    top, bottom = d00 + fx * (d01 - d00), d10 + fx * (d11 - d10)
    by_x = (d01 - d00) + fy * ((d11 - d10) - (d01 - d00))
    slopes = np.stack([by_x.T, (bottom - top).T], axis=-1) * (place == inside)[:, None]
    return place + (top + fy * (bottom - top)).T, slopes + np.eye(2)


def _solve(slopes: Float64Array, off: Float64Array) -> Float64Array:
    """Return Newton's steps (k, 2). Where the map folds, the step is that of the identity."""
    (a, b), (c, d) = slopes[:, 0].T, slopes[:, 1].T
    determinant = a * d - b * c
    folds = determinant < 1e-3
    determinant[folds] = 1
    step = np.stack([d * off[:, 0] - b * off[:, 1], a * off[:, 1] - c * off[:, 0]], axis=-1)
    return np.where(folds[:, None], off, step / determinant[:, None])
