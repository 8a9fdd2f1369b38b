"""What is no digit is in doubt, and digits are not."""

import os

import numpy as np
import pytest

import pictures
from mlpcore import backends, dataset
from mlpcore.data.digit import find_digit
from mlpcore.errors import InputError
from mlpcore.inference import rejector
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


def table(rng):
    """Four rows of cells."""
    cells = [pictures.framed(written(enlarged(DIGITS[k], 60))) for k in rng.integers(0, 300, 20)]
    return np.vstack([np.hstack(cells[k : k + 5]) for k in range(0, 20, 5)])


def test_noise_and_tables_are_in_doubt():
    rng = np.random.default_rng(0)
    assert share_in_doubt(list(rng.uniform(0, 255, (20, 120, 120)))) >= 0.9
    assert share_in_doubt([table(rng) for _ in range(10)]) >= 0.9


def test_digits_are_not():
    """Other writers' than MNIST's, also as photographs, and as crops of two values."""
    some = DIGITS[:60]
    assert share_in_doubt([written(enlarged(each)) for each in some]) <= 0.05
    assert share_in_doubt([pictures.tight(each) for each in some]) <= 0.1
    assert (
        share_in_doubt(list(pictures.photographs(some[3], np.random.default_rng(0)).values())) == 0
    )


@pytest.mark.skipif(not os.environ.get("MLPCORE_DATA"), reason="MLPCORE_DATA is not set")
def test_false_alarms_on_mnist():
    images = dataset.load(os.environ["MLPCORE_DATA"], name="mnist").test_images
    assert np.mean(rejector.doubtful(images, BACKEND)) <= 0.005
