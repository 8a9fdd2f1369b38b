"""What the outputs of a network should be."""

from __future__ import annotations

import numpy as np

from mlpcore.backends.arguments import check_array
from mlpcore.errors import InputError
from mlpcore.typing import ArrayLike, Float32Array, LoadedNetwork

SUM_TOLERANCE = 1e-5
"""How far a sum of probabilities may be from 1: 256 of them, normalised in float32, stay within."""


def check_soft_targets(
    soft_targets: ArrayLike, n_images: int, network: LoadedNetwork
) -> Float32Array:
    """(n_images, n_classes) float32, C-contiguous: the wanted probabilities of the classes.

    Raises
    ------
    InputError
        When shape or type is another, or a row is no distribution.
    """
    shape = n_images, network.layer_sizes[-1]
    targets: Float32Array = check_array("soft_targets", soft_targets, shape)
    sums = np.einsum("ij->i", targets)
    fits = (np.abs(sums - 1) <= SUM_TOLERANCE) & (targets.min(axis=1) >= 0)  # False for NaN
    if not fits.all():
        bad = int(np.argmin(fits))
        raise InputError(
            f"soft_targets of sample {bad}, from {targets[bad].min():g}, sum {sums[bad]:g}: "
            "expected probabilities, with a sum of 1"
        )
    return targets
