"""On-line training with JAX: `jit` of `lax.scan`, one compiled loop over samples."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, TypeAlias

from mlpcore.cpu import available_cores
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.typing import AnyArray, Int32Array
from speed.peers.base import Layers
from speed.problem import CHECKED

#: An array of JAX, which need not be installed.
Array: TypeAlias = Any


def import_jax(threads: int) -> Any:
    """JAX, with so many threads if this is its first import."""
    # XLA makes its pool of threads as large as NPROC says, once for the process. By default JAX
    # takes three quarters of a GPU's memory at once; others need theirs.
    os.environ |= {"NPROC": str(threads), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    import jax

    jax.devices()
    return jax


def jax_gpu() -> bool:
    """Whether JAX finds a GPU."""
    try:
        return bool(import_jax(available_cores()).devices("gpu"))
    except RuntimeError:
        return False


def squared_loss(layers: Layers, y: Array, target: Array) -> Array:
    """1/2 |y - t|^2 of a sample, by the paper's tanh."""
    import jax.numpy as jnp

    for w, bias in layers:
        y = A * jnp.tanh(B * (w @ y + bias))
    return 0.5 * jnp.square(y - target).sum()


class OnLine:
    """On-line training. The weights are donated to each call, so that they stay in place."""

    def __init__(self, threads: int, device: str = "cpu"):
        jax = self.jax = import_jax(threads)
        self.device = jax.devices(device)[0]

        @partial(jax.jit, donate_argnums=0)
        def scan(
            layers: Layers, images: Array, targets: Array, order: Array, rate: float
        ) -> Layers:
            def step(layers: Layers, i: Array) -> tuple[Layers, None]:
                slopes = jax.grad(squared_loss)(layers, images[i], targets[i])
                return jax.tree.map(lambda w, slope: w - rate * slope, layers, slopes), None

            return jax.lax.scan(step, layers, order)[0]

        self.scan = scan

    def put(self, array: AnyArray) -> Array:
        return self.jax.device_put(array.copy(), self.device)

    def load(self, network: Network) -> list[Layers]:
        """In a list, because each call of training replaces the layers."""
        return [[(self.put(w), self.put(b)) for w, b in zip(network.weights, network.biases)]]

    def store(self, loaded: list[Layers], network: Network) -> None:
        for w, b, layer in zip(network.weights, network.biases, loaded[0]):
            w[...], b[...] = layer

    def train(
        self, loaded: list[Layers], images: Array, labels: Array, order: Int32Array, rate: float
    ) -> None:
        targets = 2 * self.jax.nn.one_hot(labels, len(loaded[0][-1][1])) - 1
        # In calls of one length, so that it is compiled once. By default a GPU would round the
        # factors of products to the 10 bits of TensorFloat-32.
        with self.jax.default_matmul_precision("float32"):
            for begin in range(0, len(order), CHECKED):
                part = order[begin : begin + CHECKED]
                loaded[0] = self.scan(loaded[0], images, targets, part, rate)
        self.jax.block_until_ready(loaded)
