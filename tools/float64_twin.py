"""The float64 oracle's training once more, in PyTorch: on a GPU it takes the largest networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.typing import Float32Array, Float64Array, Int32Array, UInt8Array


def train_in_float64(
    network: Network,
    images: Float32Array,
    labels: UInt8Array,
    order: Int32Array,
    rates: Sequence[float],
    device: str,
    target: float = 1.0,
) -> list[Float64Array]:
    """The oracle's steps in float64: weights, then biases, of each layer as NumPy arrays.

    `mlpcore.backends.reference` in another library, because that is too slow for a thousand
    samples of the largest networks.
    """

    def float64(array: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(array), dtype=torch.float64, device=device)

    weights, biases = [float64(w) for w in network.weights], [float64(b) for b in network.biases]
    samples, targets = float64(images), float64(target * _signs(labels, len(biases[-1])))
    with torch.no_grad():
        for i in order.tolist():
            states = [samples[i]]
            for w, b in zip(weights, biases):
                states.append(A * torch.tanh(B * (w @ states[-1] + b)))
            delta = (states[-1] - targets[i]) * _slope(states[-1])
            for layer in range(len(weights) - 1, -1, -1):
                below = (weights[layer].T @ delta) * _slope(states[layer])
                weights[layer].addr_(delta, states[layer], alpha=-rates[layer])
                biases[layer].add_(delta, alpha=-rates[layer])
                delta = below
    return [array.cpu().numpy() for array in weights + biases]


def _slope(y: torch.Tensor) -> torch.Tensor:
    return B / A * (A - y) * (A + y)


def _signs(labels: UInt8Array, n_classes: int) -> Float64Array:
    """(n, n_classes): +1 for the class, -1 elsewhere."""
    return np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
