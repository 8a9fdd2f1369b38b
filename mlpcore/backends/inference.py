"""Batched inference on a CPU: matrix products of the BLAS that NumPy brings."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from mlpcore.backends.base import Poll
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.typing import AnyArray, Float32Array

#: Images at a time: enough for BLAS to run at full speed, few enough to stay in the cache.
BATCH = 512


@functools.cache
def _blas() -> ThreadpoolController:
    """NumPy's BLAS; to find it takes a millisecond, as long as small data take an epoch."""
    return ThreadpoolController().select(user_api="blas")


def _batches(
    network: Network, images: Float32Array, dtype: type[np.floating[Any]]
) -> Iterator[AnyArray]:
    """Outputs of the network for batches of images, in order."""
    weights = [np.asarray(w, dtype).T for w in network.weights]
    biases = [np.asarray(b, dtype) for b in network.biases]
    for begin in range(0, len(images), BATCH):
        states = images[begin : begin + BATCH].astype(dtype, copy=False)
        for w, b in zip(weights, biases):
            states = states @ w
            states += b
            states *= dtype(B)
            np.tanh(states, out=states)
            states *= dtype(A)
        yield states


def predict(
    network: Network,
    images: Float32Array,
    threads: int,
    dtype: type[np.floating[Any]] = np.float32,
    poll: Poll | None = None,
) -> AnyArray:
    """Outputs (n, n_classes) for images (n, n_in), computed in `dtype`."""
    outputs = np.empty((len(images), network.layer_sizes[-1]), dtype)
    begin = 0
    with _blas().limit(limits=threads):
        for batch in _batches(network, images, dtype):
            outputs[begin : begin + len(batch)] = batch
            begin += len(batch)
            if poll is not None:
                poll()
    return outputs
