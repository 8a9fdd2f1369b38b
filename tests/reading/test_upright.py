"""Slanted digits are made upright."""

import numpy as np
import pytest

pytest.importorskip("cv2")

from mlpcore.reading.upright import SHARE, upright


def slant(image):
    """Columns a row that the ink leans to the left, by its moments."""
    y, x = (each - np.average(each, weights=image) for each in np.mgrid[:28, :28])
    return (image * x * y).sum() / (image * y * y).sum()


@pytest.mark.parametrize("slope", [-0.6, 0, 0.4])
def test_most_of_a_slant_is_taken_out_and_nothing_else_moves(slope):
    y, x = np.mgrid[:28, :28]
    stroke = np.clip(2.5 - np.abs(x - 13.5 - slope * (y - 13.5)), 0, 1) * 255
    image = np.where((y > 4) & (y < 23), stroke, 0).astype(np.uint8)
    (result,) = upright(image[None])
    assert slant(image) == pytest.approx(slope, abs=0.02)
    assert slant(result) == pytest.approx((1 - SHARE) * slope, abs=0.02)
    assert result.sum(axis=1) == pytest.approx(image.sum(axis=1, dtype=float), abs=8)
    assert np.average(x, weights=result) == pytest.approx(np.average(x, weights=image), abs=0.1)


def test_an_empty_image_stays_empty():
    assert not upright(np.zeros((1, 28, 28), np.uint8)).any()
