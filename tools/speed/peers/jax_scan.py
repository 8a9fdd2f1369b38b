"""Training with JAX: `jit` of `lax.scan`, one compiled loop over samples or mini-batches."""

import os
import time
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from mlpcore.cpu import available_cores
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.typing import AnyArray, Int32Array
from speed.peers.base import Layers, Task
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


def mean_cross_entropy(layers: Layers, images: Array, labels: Array) -> Array:
    """Of images (n, inputs), by rectifiers."""
    import jax
    import optax

    *hidden, (w, bias) = layers
    for weights, biases in hidden:
        images = jax.nn.relu(images @ weights + biases)
    return optax.softmax_cross_entropy_with_integer_labels(images @ w + bias, labels).mean()


def train_jax(task: Task, epochs: int, seed: int, rate: float, batch: int) -> tuple[float, float]:
    """SGD with momentum 0.9 and a one-cycle learning rate, whose peak is `rate`.

    An epoch is one compiled loop. The samples that fill no batch wait for the next epoch.
    """
    jax = import_jax(task.threads)
    import optax

    labels = task.data.train_labels.astype(np.int32)
    batch = min(batch, len(labels))
    n = len(labels) // batch
    cycle = optax.cosine_onecycle_schedule(epochs * n, rate)
    optimiser = optax.sgd(cycle, momentum=0.9)

    @partial(jax.jit, donate_argnums=0)
    def train_epoch(state: Any, images: Array, labels: Array, order: Array) -> Any:
        def step(state: Any, indices: Array) -> tuple[Any, None]:
            layers, memory = state
            slopes = jax.grad(mean_cross_entropy)(layers, images[indices], labels[indices])
            change, memory = optimiser.update(slopes, memory)
            return (optax.apply_updates(layers, change), memory), None

        return jax.lax.scan(step, state, order)[0]

    deformed, rng = task.deformed(seed, epochs), np.random.default_rng(seed)
    begin = time.perf_counter()
    keys = jax.random.split(jax.random.key(seed), len(task.layer_sizes) - 1)
    initial = jax.nn.initializers.he_normal()
    shapes = pairwise(task.layer_sizes)
    layers = [(initial(key, (i, o)), jax.numpy.zeros(o)) for key, (i, o) in zip(keys, shapes)]
    state = layers, optimiser.init(layers)
    for images in deformed:
        order = rng.permutation(len(labels))[: n * batch].reshape(n, batch)
        state = train_epoch(state, images, labels, order)
        jax.block_until_ready(state)  # the images' array changes with the next epoch
    seconds = time.perf_counter() - begin
    return seconds, task.error_of([(np.asarray(w).T, np.asarray(b)) for w, b in state[0]])
