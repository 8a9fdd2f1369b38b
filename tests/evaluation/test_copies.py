"""Predictions averaged over deformed copies: their mean, their maps, memory."""

from unittest.mock import Mock

import numpy as np
import pytest

import emulated
from mlpcore import DeformationParameters
from mlpcore.data import pixels
from mlpcore.data.pixels import BACKGROUNDS, to_range
from mlpcore.deformation import deform_selected
from mlpcore.deformation.values import border_values
from mlpcore.evaluation import Copies, evaluation
from oracle import random_network
from small_runs import DATA

IMAGES, NETWORK = DATA.test_images[:10], random_network((35, 8, 3), 1, loss="cross-entropy")

#: One of each kind of arithmetic: the oracle is plain, C the fastest, CUDA computes elsewhere.
BACKENDS = [name for name in emulated.BACKENDS if name in ("reference", "scalar", "cuda")]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("input_range", BACKGROUNDS)
def test_the_mean_of_copies_deformed_one_by_one(name, input_range):
    """Copy k has the map that a training with these parameters would give to image k."""
    backend = emulated.get_backend(name, 1, "streaming" if name == "cuda" else None)
    images = to_range(IMAGES, input_range)
    parameters = DeformationParameters(6.0, 9.0, 3.75, 3.75, similar_labels=())
    # Ones, which turn by half the angle in training.
    drawing = np.arange(5), np.ones(5, np.uint8), parameters, 3, 0, backend
    singly = []
    for image in images:
        around = float(border_values(image[None, None])[0])
        copies = deform_selected(np.repeat(image[None], 5, axis=0), *drawing, around)
        singly.append(evaluation.outputs(NETWORK, copies, backend).mean(axis=0))
    found = Copies(5, 0.25, seed=3).outputs(NETWORK, images, backend)
    # Displacements are rounded once more: by 1e-6 pixels of a slope of 2 at most, in 35 inputs.
    np.testing.assert_allclose(found, singly, rtol=0, atol=2e-5)
    plain = evaluation.outputs(NETWORK, images, backend)
    assert np.abs(found - plain).max() > 1e-3


def test_parts_are_small_and_change_nothing(reference, monkeypatch):
    """So neither the number of images nor that of copies decides the memory."""
    whole, deform = Copies(9).outputs(NETWORK, IMAGES, reference), Mock(wraps=reference.deform_by)
    monkeypatch.setattr(pixels, "_BATCH_PIXELS", 4 * 35)
    monkeypatch.setattr(reference, "deform_by", deform)
    found = Copies(9).outputs(NETWORK, IMAGES, reference)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-14)  # sums in another order
    sizes = [each.args[0].size for each in deform.call_args_list]
    assert max(sizes) <= 4 * 35 and sum(sizes) == 9 * IMAGES.size
