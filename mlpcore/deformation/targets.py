"""Masks, keypoints and boxes, which belong to an image and move along with it.

An image's displacement D, from `displacements`, says that pixel p of the deformed image shows the
point S(p) = p + D(p) of the image. Between pixels D is interpolated; outside it is that of the
nearest pixel. Coordinates are (x, y) in pixels; those of the first pixel's centre are (0, 0).
"""

from collections.abc import Sequence

import numpy as np

from mlpcore.data.pixels import batches
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: Points on each side of a box that are moved.
POINTS_PER_SIDE = 8


def move_masks(
    masks: AnyArray, displacement: Float32Array, background: float | Sequence[float]
) -> AnyArray:
    """Return masks in which each pixel has the value of the nearest pixel at its source.

    Masks are (n, channels, h, w) of any type, with any strides; `displacement` (n, 2, h, w) is that
    of their images, and `background` the value outside a mask, or outside each of its channels.
    """
    n, channels, height, width = masks.shape
    framed = np.empty((n, height + 1, width + 1, channels), masks.dtype)
    framed[...] = background  # in the last row and column, which are also number -1
    framed[:, :-1, :-1] = np.moveaxis(masks, 1, -1)
    y, x = np.ogrid[:height, :width]
    columns = np.clip(np.rint(displacement[:, 0] + x), -1, width).astype(np.intp)
    rows = np.clip(np.rint(displacement[:, 1] + y), -1, height).astype(np.intp)
    return np.moveaxis(framed[np.arange(n)[:, None, None], rows, columns], -1, 1)


def move_points(points: AnyArray, displacement: Float32Array) -> Float64Array:
    """Return where the deformed image shows points of the image: the p with S(p) = point.

    Where a strong deformation folds the image and shows a point several times, this is one of the
    places. Points are (k, 2), returned as float64, and may lie outside of the image, before and
    after; `displacement` (2, h, w) is that of the image.
    """
    wanted = np.asarray(points, np.float64)
    result = np.empty_like(wanted)
    for part in batches(len(wanted), displacement[0].size):
        result[part] = _invert(wanted[part], displacement)
    return result


def move_boxes(boxes: AnyArray, displacement: Float32Array) -> Float64Array:
    """Return the boxes, parallel to the axes, around what the deformed image shows of boxes.

    Boxes are (k, 4), returned as float64: left, top, right and bottom edge, where the edges of the
    first pixel are at 0 and 1. They may reach beyond the image, whose `displacement` is (2, h, w).
    """
    along = np.linspace(0, 1, POINTS_PER_SIDE + 1)[:, None]
    corners = np.asarray(boxes, np.float64)[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 1, 2)
    sides = corners + along * (np.roll(corners, -1, axis=1) - corners)
    sides = sides.reshape(len(boxes), 4 * len(along), 2) - 0.5
    moved = move_points(sides.reshape(-1, 2), displacement).reshape(sides.shape) + 0.5
    return np.concatenate([moved.min(axis=1), moved.max(axis=1)], axis=1)


def _invert(wanted: Float64Array, displacement: Float32Array) -> Float64Array:
    """`move_points` by the exact inverse of S, which is bilinear in each cell between four pixels.

    Around the image, where the displacement stays the same, long cells hold all other points.
    """
    field = np.pad(displacement.astype(np.float64), ((0, 0), (1, 1), (1, 1)), mode="edge")
    reach = np.abs(field).max() + np.abs(wanted).max(initial=0) + max(field.shape) + 1
    x, y = (np.r_[-reach, np.arange(n), n - 1 + reach] for n in displacement.shape[:0:-1])
    source = np.stack([field[0] + x, field[1] + y[:, None]])
    corners = source[:, :-1, :-1], source[:, :-1, 1:], source[:, 1:, :-1], source[:, 1:, 1:]
    least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
    q = wanted[:, :, None, None]
    point, row, column = np.nonzero(((least <= q) & (q <= most)).all(axis=1))
    u, v, off = _solve(wanted[point].T, *(corner[:, row, column] for corner in corners))
    first = np.lexsort((off, point))[np.searchsorted(point, np.arange(len(wanted)))]
    row, column = row[first], column[first]
    return np.stack([x[column], y[row]], axis=-1) + np.stack(
        [u[first] * (x[column + 1] - x[column]), v[first] * (y[row + 1] - y[row])], axis=-1
    )


def _solve(
    q: Float64Array, s00: Float64Array, s01: Float64Array, s10: Float64Array, s11: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the u and v in [0, 1] at which cells show what is nearest to q, and its distance.

    A cell shows s00 + u a + v b + u v c, all (2, m), where a leads to s01 and b to s10. Where it
    shows q, the cross product with a + v c leaves a quadratic equation for v.
    """
    a, b, c, h = s01 - s00, s10 - s00, s00 - s01 - s10 + s11, q - s00
    second, first, constant = -_cross(b, c), _cross(h, c) + _cross(a, b), _cross(h, a)
    root = np.sqrt(np.maximum(first**2 - 4 * second * constant, 0))
    mean = -(first + np.copysign(root, first)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        v = np.clip(np.nan_to_num([constant / mean, mean / second]), 0, 1)
        along, rest = a[:, None] + v * c[:, None], h[:, None] - v * b[:, None]
        u = np.clip(np.nan_to_num((rest * along).sum(0) / (along**2).sum(0)), 0, 1)
    off = np.hypot(*(rest - u * along))
    better = np.argmin(off, axis=0)[None]
    u, v, off = (np.take_along_axis(each, better, 0)[0] for each in (u, v, off))
    return u, v, off


def _cross(a: Float64Array, b: Float64Array) -> Float64Array:
    return a[0] * b[1] - a[1] * b[0]
