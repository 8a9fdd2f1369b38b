"""On-line training with JAX: `jit` of `lax.scan`, one compiled loop over the samples."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np

from mlpcore.cpu import available_cores
from mlpcore.network.activation import A, B
from mlpcore.typing import Int32Array
from speed.peers.base import Checked, check_trainer
from speed.problem import CHECKED, Problem

#: An array of JAX, which need not be installed.
Array: TypeAlias = Any

#: Weights and biases of each layer.
Layers: TypeAlias = list[tuple[Array, Array]]


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


def one_step(jax: Any, rate: float, layers: Layers, x: Array, target: Array) -> Layers:
    """The layers after one sample."""
    states = [x]
    for w, bias in layers:
        states.append(A * jax.numpy.tanh(B * (w @ states[-1] + bias)))
    error, changed = states[-1] - target, []
    for layer in range(len(layers) - 1, -1, -1):
        (w, bias), y = layers[layer], states[layer + 1]
        delta = error * (B / A * (A - y) * (A + y))
        error = delta @ w if layer else None
        change = rate * delta
        changed.append((w - change[:, None] * states[layer][None, :], bias - change))
    return changed[::-1]


def check_jax(problem: Problem, threads: int, device: str = "cpu") -> Checked:
    """The weights are donated to each call, so that they stay in place."""
    jax, network = import_jax(threads), problem.network

    def put(array: Any) -> Array:
        return jax.device_put(array.copy(), jax.devices(device)[0])

    layers = [(put(w), put(b)) for w, b in zip(network.weights, network.biases)]
    data = put(problem.flat_images), put(problem.targets)

    def scan(layers: Layers, order: Array, data: tuple[Array, Array]) -> Layers:
        def body(layers: Layers, i: Array) -> tuple[Layers, None]:
            return one_step(jax, problem.rate, layers, data[0][i], data[1][i]), None

        return jax.lax.scan(body, layers, order)[0]

    compiled = jax.jit(scan, donate_argnums=0)

    def train(order: Int32Array) -> None:
        nonlocal layers
        # In calls of one length, so that it is compiled once. By default a GPU would round the
        # factors of products to the 10 bits of TensorFloat-32.
        with jax.default_matmul_precision("float32"):
            for begin in range(0, len(order), CHECKED):
                layers = compiled(layers, order[begin : begin + CHECKED], data)
        jax.block_until_ready(layers)

    def parameters() -> Layers:
        return [(np.asarray(w), np.asarray(b)) for w, b in layers]

    return check_trainer(problem, train, parameters, CHECKED)
