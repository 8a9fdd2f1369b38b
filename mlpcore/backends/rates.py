"""What the steps of a training are multiplied with: rates of layers and weights of samples."""

from __future__ import annotations

import numpy as np

from mlpcore.backends.arguments import check_array
from mlpcore.backends.base import LearningRate
from mlpcore.checks import check_rate
from mlpcore.errors import InputError
from mlpcore.typing import ArrayLike, Float32Array, Float64Array, LoadedNetwork


def layer_rates(network: LoadedNetwork, learning_rate: LearningRate) -> Float64Array:
    """(n_layers,) float64: the learning rate of each layer.

    Raises
    ------
    InputError
        When their number is not that of the layers, or one is not a learning rate.
    """
    if isinstance(learning_rate, str) or np.ndim(learning_rate) == 0:
        check_rate("learning_rate", learning_rate)
        return np.full(network.n_layers, learning_rate, np.float64)
    learning_rate = list(learning_rate)  # type: ignore[arg-type]
    if len(learning_rate) != network.n_layers:
        n = len(learning_rate)
        raise InputError(f"learning rates of {n} layers, expected one or {network.n_layers}")
    for rate in learning_rate:
        check_rate("learning_rate", rate)
    return np.array(learning_rate, np.float64)


def check_sample_weight(sample_weight: ArrayLike, n_images: int) -> Float32Array:
    """(n_images,) float32, C-contiguous: the weight of each image.

    Raises
    ------
    InputError
        When shape or type is another, or a weight is negative or not finite.
    """
    weights: Float32Array = check_array("sample_weight", sample_weight, (n_images,))
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(bad):
        raise InputError(
            f"sample_weight {weights[bad[0]]:g} of sample {bad[0]}: expected 0 or more, and finite"
        )
    return weights
