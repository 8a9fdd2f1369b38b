"""Masks, keypoints and boxes move along with their images."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from mlpcore import DeformationParameters, backends
from mlpcore.deformation import displacements
from mlpcore.deformation.targets import move_boxes, move_masks, move_points

BACKEND = backends.get("cpu", 1)


def field(n=1, height=48, width=64, seed=3, **settings):
    arguments = np.arange(n), np.zeros(n, np.uint8), DeformationParameters(**settings)
    return displacements((height, width), *arguments, seed, 0, BACKEND)


def source(points, displacement):
    """The points that the deformed image shows at points (k, 2), as SciPy computes them."""
    at = points[:, ::-1].T
    shift = [map_coordinates(d.astype(float), at, order=1, mode="nearest") for d in displacement]
    return points + np.stack(shift, axis=-1)


@pytest.mark.parametrize("alpha", [0, 36, 300])  # the last one folds the image everywhere
def test_points_are_where_the_deformed_image_shows_them(alpha):
    rng = np.random.default_rng(0)
    for displacement in field(20, alpha=alpha):
        points = rng.uniform(-5, [69, 53], (50, 2))
        off = source(move_points(points, displacement), displacement) - points
        # Float64 of cells up to 200 pixels long; the root of a quadratic keeps half of the digits.
        assert np.hypot(*off.T).max() <= 200 * 2**-26


def test_boxes_surround_what_they_held():
    """The box around a moved mask of the box, which misses less than a pixel of the edges."""
    boxes = np.array([[12, 10, 30, 22], [40, 20, 41, 40]])
    for displacement in field(10):
        for box, moved in zip(boxes, move_boxes(boxes, displacement)):
            left, top, right, bottom = box
            mask = np.zeros((1, 1, 48, 64), bool)
            mask[0, 0, top:bottom, left:right] = True
            rows, columns = np.nonzero(move_masks(mask, displacement[None], False)[0, 0])
            found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert np.abs(moved - found).max() < 1
