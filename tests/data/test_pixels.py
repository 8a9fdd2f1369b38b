"""Pixel values and sizes."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from mlpcore.data.pixels import normalise, resize, to_range


def test_normalise_and_ranges():
    values = normalise(np.arange(256, dtype=np.uint8))
    assert values.dtype == np.float32 and values[0] == -1 and values[255] == 1
    np.testing.assert_allclose(values, np.arange(256) / 127.5 - 1, rtol=0, atol=6e-8)
    assert to_range(values, "signed") is values
    unit = to_range(values, "unit")
    assert unit.dtype == np.float32 and unit[0] == 0 and unit[255] == 1
    # The values of `normalise` are off by up to 6e-8; half of that, and the rounding of the sum.
    np.testing.assert_allclose(unit, np.arange(256) / 255, rtol=0, atol=9e-8)


@pytest.mark.parametrize("shape", [(0, 3, 3), (4, 1, 12), (3, 12, 5), (5, 7, 7)])
@pytest.mark.parametrize("height, width", [(2, 14), (13, 3), (7, 7)])
def test_resize_is_bilinear_with_aligned_corners(shape, height, width, monkeypatch):
    images = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    monkeypatch.setattr("mlpcore.data.pixels._BATCH_PIXELS", 2 * height * width)  # several batches
    resized = resize(images, height, width)
    assert (resized.dtype, resized.shape) == (np.float32, (shape[0], height, width))
    sides = np.linspace(0, shape[1] - 1, height), np.linspace(0, shape[2] - 1, width)
    places = np.meshgrid(*sides, indexing="ij")
    for image, result in zip(images, resized):
        expected = map_coordinates(image.astype(float), places, order=1, mode="nearest")
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)
        assert image.min() <= result.min() and result.max() <= image.max()
        corners = np.ix_([0, -1], [0, -1])
        np.testing.assert_array_equal(result[corners], image[corners])
    assert not np.shares_memory(resized, images)
    assert np.all(resize(np.full(shape, 0.1, np.float32), height, width) == np.float32(0.1))
