"""Slanted digits are turned back."""

from dataclasses import replace

import numpy as np
import pytest

import mlpcore
from mlpcore import backends
from mlpcore.inference.slant import SHARES, turned_back

BACKEND = backends.get("cpu", 1)


def stroke(angle):
    """A straight stroke (1, 29, 29) that leans to the left by an angle."""
    y, x = np.mgrid[:29, :29] - 14
    across, along = (x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle))
    ink = np.clip(2.5 - np.abs(across), 0, 1) * np.clip(9.5 - np.abs(along), 0, 1)
    return (2 * ink - 1).astype(np.float32)[None]


@pytest.mark.parametrize("angle", [-0.7, 0, 0.4])
def test_a_digit_leans_half_as_much_and_is_upright(angle):
    for share, found in zip(SHARES, turned_back(stroke(angle), BACKEND), strict=True):
        assert np.abs(found - stroke((1 - share) * angle)).mean() < 0.03
        assert np.abs(found - stroke(angle)).mean() == pytest.approx(0, abs=1e-6) or angle


def test_an_empty_image_stays_empty():
    blank = np.full((1, 29, 29), -1, np.float32)
    assert all(np.array_equal(form, blank) for form in turned_back(blank, BACKEND))


def test_pictures_are_asked_about_three_times_and_arrays_once():
    net = mlpcore.load("pretrained", threads=1)
    images = stroke(-0.7)
    forms = [net.outputs(form) for form in (images, *turned_back(images, net.backend))]
    np.testing.assert_allclose(net.outputs_of_digits(images), np.mean(forms, axis=0))
    copies = mlpcore.load("pretrained", threads=1, copies=2)
    known = net.networks[0]
    of_letters = replace(known, metadata={"data": "letters"})
    for once in copies, mlpcore.TrainedClassifier([of_letters], net.backend):
        np.testing.assert_array_equal(once.outputs_of_digits(images), once.outputs(images))
