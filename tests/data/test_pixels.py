"""Resizing: bilinear, with aligned corners."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from mlpcore.data.pixels import PixelSpec


@pytest.mark.parametrize("shape", [(0, 3, 3), (4, 1, 12), (3, 12, 5), (5, 7, 7)])
@pytest.mark.parametrize("height, width", [(2, 14), (13, 3), (7, 7)])
def test_resize_is_bilinear_with_aligned_corners(shape, height, width, monkeypatch):
    images = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    monkeypatch.setattr("mlpcore.data.pixels._BATCH_PIXELS", 2 * height * width)  # several batches
    spec = PixelSpec((height, width), shape[1:], (-1, 1), whole=False)
    resized = spec.to_images(images)
    assert (resized.dtype, resized.shape) == (np.float32, (shape[0], height, width))
    sides = np.linspace(0, shape[1] - 1, height), np.linspace(0, shape[2] - 1, width)
    places = np.meshgrid(*sides, indexing="ij")
    for image, result in zip(images, resized):
        expected = map_coordinates(image.astype(float), places, order=1, mode="nearest")
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)
        assert image.min() <= result.min() and result.max() <= image.max()
        corners = np.ix_([0, -1], [0, -1])
        np.testing.assert_array_equal(result[corners], image[corners])
    flat = np.full(shape, 0.1, np.float32)
    assert np.all(spec.to_images(flat) == np.float32(0.1))
