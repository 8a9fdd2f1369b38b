"""Digits in pictures: what is none is in doubt, slanted ones are turned back; net1."""

import hashlib
import os
from dataclasses import replace

import numpy as np
import pytest

import mlpcore
import pictures
from mlpcore import InputError, backends, dataset
from mlpcore.data.digit import find_digit
from mlpcore.inference import rejector
from mlpcore.inference.classifier import PRETRAINED_FILE
from mlpcore.inference.slant import SHARES, turned_back
from pictures import DIGITS, enlarged, written

BACKEND = backends.get("cpu", 1)


def share_in_doubt(greys):
    """Of pictures; in one that is refused no digit is found either."""
    images, refused = [], 0
    for grey in greys:
        try:
            images.append(find_digit(grey).image)
        except InputError:
            refused += 1
    return (rejector.doubtful(np.stack(images), BACKEND).sum() + refused) / len(greys)


def test_noise_and_tables_are_in_doubt():
    rng = np.random.default_rng(0)
    assert share_in_doubt(list(rng.uniform(0, 255, (20, 120, 120)))) >= 0.9
    tables = []
    for _ in range(10):  # four rows of cells
        chosen = DIGITS[rng.integers(0, 300, 20)]
        cells = [pictures.framed(written(enlarged(each, 60))) for each in chosen]
        tables.append(np.vstack([np.hstack(cells[k : k + 5]) for k in range(0, 20, 5)]))
    assert share_in_doubt(tables) >= 0.9


def test_digits_are_not():
    """Other writers' than MNIST's, also as photographs, and as crops of two values."""
    some = DIGITS[:60]
    assert share_in_doubt([written(enlarged(each)) for each in some]) <= 0.05
    assert share_in_doubt([pictures.tight(each) for each in some]) <= 0.1
    assert share_in_doubt(pictures.photographs(some[3], np.random.default_rng(0)).values()) == 0


@pytest.mark.skipif(not os.environ.get("MLPCORE_DATA"), reason="MLPCORE_DATA is not set")
def test_mnist_is_rarely_in_doubt_and_net1_is_as_good_as_it_says():
    """Another backend may round one digit in 10,000 to another class."""
    net, data = mlpcore.load("pretrained"), dataset.load(os.environ["MLPCORE_DATA"], name="mnist")
    assert np.mean(net.doubtful(data.test_images)) <= 0.005
    errors = np.count_nonzero(net.predict_images(data.test_images) != data.test_labels)
    assert abs(errors - int(net.networks[0].metadata["test_errors"])) <= 1


def test_net1_is_what_was_made():
    content = PRETRAINED_FILE.read_bytes()
    sha256, name = PRETRAINED_FILE.with_suffix(".sha256").read_text().split()
    assert (hashlib.sha256(content).hexdigest(), name) == (sha256, PRETRAINED_FILE.name)
    assert len(content) < 3e6


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
    blank = np.full((1, 29, 29), -1, np.float32)  # stays empty
    assert all(np.array_equal(form, blank) for form in turned_back(blank, BACKEND))


def test_pictures_are_asked_about_three_times_and_arrays_once():
    net, images = mlpcore.load("pretrained", threads=1), stroke(-0.7)
    forms = [net.outputs(form) for form in (images, *turned_back(images, net.backend))]
    np.testing.assert_allclose(net.outputs_of_digits(images), np.mean(forms, axis=0))
    copies = mlpcore.load("pretrained", threads=1, copies=2)
    of_letters = replace(net.networks[0], metadata={"data": "letters"})
    for once in copies, mlpcore.TrainedClassifier([of_letters], net.backend):
        np.testing.assert_array_equal(once.outputs_of_digits(images), once.outputs(images))
