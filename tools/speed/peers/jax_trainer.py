"""On-line training with JAX: one compiled loop over the samples."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any, TypeAlias

import numpy as np

from mlpcore.cpu import available_cores
from mlpcore.typing import Int32Array
from speed.peers.base import PaperTrainer, targets
from speed.problem import CHECKED, Parameters, Problem

#: JAX's, which need not be installed.
Array: TypeAlias = Any

#: Weights and biases of each layer.
Layers: TypeAlias = list[tuple[Array, Array]]

#: Of dot products: by default a GPU rounds their factors to the 10 bits of TensorFloat-32.
PRECISION = "float32"

#: XLA makes its pool of threads as large as this variable says, once for the process.
THREADS_VARIABLE = "NPROC"


def import_jax(threads: int) -> Any:
    """JAX, with so many threads if this is its first import."""
    # On a GPU it would take three quarters of the memory at once, and others need theirs.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    before = os.environ.get(THREADS_VARIABLE)
    os.environ[THREADS_VARIABLE] = str(threads)
    try:
        import jax

        jax.devices()
    finally:
        if before is None:
            del os.environ[THREADS_VARIABLE]
        else:
            os.environ[THREADS_VARIABLE] = before
    return jax


def no_gpu() -> str | None:
    """Why JAX cannot use a GPU here."""
    if importlib.util.find_spec("jax") is None:
        return "jax is not installed"
    jax = import_jax(available_cores())
    try:
        return None if jax.devices("gpu") else "JAX finds no GPU"
    except RuntimeError:
        return "JAX finds no GPU"


class JaxTrainer(PaperTrainer):
    """`jit` of `lax.scan` over the samples, the weights donated so that they stay in place."""

    platform = "cpu"

    def set_up(self, problem: Problem) -> None:
        self.jax = import_jax(self.threads)
        device = self.jax.devices(self.platform)[0]
        put = functools.partial(self.jax.device_put, device=device)
        self.layers = [
            (put(w.copy()), put(b.copy()))
            for w, b in zip(problem.network.weights, problem.network.biases)
        ]
        self.data = tuple(map(put, (problem.flat_images, problem.labels, targets(problem))))
        self.piece = CHECKED  # of one length when timed, whatever the network: compiled once
        self.scan = self.jax.jit(functools.partial(self._scan, self.jax), donate_argnums=0)

    def _step(self, jnp: Any, layers: Layers, x: Array, target: Array) -> Layers:
        a, b = self.variant.amplitude, self.variant.slope
        states = [x]
        for w, bias in layers:
            states.append(a * jnp.tanh(b * (w @ states[-1] + bias)))
        error, changed = states[-1] - target, []
        for layer in range(len(layers) - 1, -1, -1):
            (w, bias), y = layers[layer], states[layer + 1]
            delta = error * (b / a * (a - y) * (a + y))
            error = delta @ w if layer else None
            step = self.rate * delta
            changed.append((w - step[:, None] * states[layer][None, :], bias - step))
        return changed[::-1]

    def _scan(
        self, jax: Any, layers: Layers, order: Array, data: tuple[Array, Array, Array]
    ) -> Layers:
        images, labels, wanted = data

        def body(layers: Layers, i: Array) -> tuple[Layers, None]:
            return self._step(jax.numpy, layers, images[i], wanted[labels[i]]), None

        return jax.lax.scan(body, layers, order)[0]

    def train(self, order: Int32Array) -> None:
        with self.jax.default_matmul_precision(PRECISION):  # compiles for it, too
            for begin in range(0, len(order), self.piece):
                self.layers = self.scan(self.layers, order[begin : begin + self.piece], self.data)
        self.jax.block_until_ready(self.layers)

    def parameters(self) -> Parameters:
        return [(np.asarray(w), np.asarray(b)) for w, b in self.layers]


class GpuJaxTrainer(JaxTrainer):
    """The same on a GPU."""

    platform = "gpu"
