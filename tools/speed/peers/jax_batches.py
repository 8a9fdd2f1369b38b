"""Mini-batches with JAX and Optax: rectifiers, cross-entropy, a one-cycle learning rate."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from speed.lesson import Lesson, Trained
from speed.peers.jax_scan import Array, Layers, import_jax


def loss_of(layers: Layers, images: Array, labels: Array) -> Array:
    """Mean cross-entropy of images (n, inputs)."""
    import jax
    import optax

    *hidden, (w, bias) = layers
    for weights, biases in hidden:
        images = jax.nn.relu(images @ weights + biases)
    return optax.softmax_cross_entropy_with_integer_labels(images @ w + bias, labels).mean()


def train_jax(lesson: Lesson, rate: float, batch: int) -> Trained:
    """Trains by SGD with momentum 0.9; an epoch is one compiled loop over its batches.

    `rate` is the peak of the cycle. The samples that fill no batch wait for the next epoch.
    """
    jax = import_jax(lesson.threads)
    import optax

    labels = lesson.data.train_labels.astype(np.int32)
    batch = min(batch, len(labels))
    n = len(labels) // batch
    cycle = optax.cosine_onecycle_schedule(lesson.epochs * n, rate)
    optimiser = optax.sgd(cycle, momentum=0.9)

    @partial(jax.jit, donate_argnums=0)
    def train_epoch(state: Any, images: Array, labels: Array, order: Array) -> Any:
        def step(state: Any, indices: Array) -> tuple[Any, None]:
            layers, memory = state
            slope = jax.grad(loss_of)(layers, images[indices], labels[indices])
            change, memory = optimiser.update(slope, memory)
            return (optax.apply_updates(layers, change), memory), None

        return jax.lax.scan(step, state, order)[0]

    begin, rng = time.perf_counter(), np.random.default_rng(lesson.seed)
    keys = jax.random.split(jax.random.key(lesson.seed), len(lesson.layer_sizes) - 1)
    initial = jax.nn.initializers.he_normal()
    shapes = pairwise(lesson.layer_sizes)
    layers = [(initial(key, (i, o)), jax.numpy.zeros(o)) for key, (i, o) in zip(keys, shapes)]
    state = layers, optimiser.init(layers)
    for epoch in range(lesson.epochs):
        order = rng.permutation(len(labels))[: n * batch].reshape(n, batch)
        state = train_epoch(state, lesson.deformed(epoch), labels, order)
        jax.block_until_ready(state)  # the images' array changes with the next epoch
    seconds = time.perf_counter() - begin
    network = lesson.network([(np.asarray(w).T, np.asarray(b)) for w, b in state[0]])
    return Trained(network, seconds)
