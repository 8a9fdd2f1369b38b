"""SciPy's deformation, and mini-batches with scikit-learn."""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np
from scipy.ndimage import correlate1d, map_coordinates
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from mlpcore.backends.reference import ReferenceBackend
from mlpcore.typing import Float32Array
from speed.peers.base import Task

#: Calls of `partial_fit` in an epoch, each at a learning rate of its own.
PARTS = 10


class SciPyBackend(ReferenceBackend):
    """Deforms with SciPy. It keeps the noise, which the others draw anew: drawing is not timed."""

    def __init__(self, threads: int):
        self._noise = lru_cache(super()._noise)  # type: ignore[method-assign]

    def _displacement_field(
        self, noise: Float32Array, taps: Float32Array, alpha: float
    ) -> Float32Array:
        margin, taps = taps.shape[1] // 2, taps[0]
        inside = slice(margin, -margin)
        smooth = correlate1d(correlate1d(noise, taps, axis=1), taps, axis=2)
        return alpha * smooth[:, inside, inside]

    def _deform_by(
        self,
        images: Float32Array,
        affine: Float32Array,
        displacement: Float32Array,
        background: float,
    ) -> Float32Array:
        y, x = np.mgrid[: images.shape[1], : images.shape[2]].astype(np.float32)
        centre = np.array([x.max() / 2, y.max() / 2], np.float32)[:, None, None]
        source = np.einsum("nij,jyx->niyx", affine, np.stack([x, y]) - centre) + centre
        source += displacement
        out = np.empty_like(images)
        for image, (columns, rows), result in zip(images, source, out):
            at = np.stack([rows, columns])
            map_coordinates(image, at, result, order=1, mode="grid-constant", cval=background)
        return out


def train_scikit(task: Task, epochs: int, seed: int, rate: float) -> tuple[float, float]:
    """`MLPClassifier` by Adam in batches of 200, its defaults, with a rate that falls linearly."""
    labels, rng = task.data.train_labels, np.random.default_rng(seed)
    model = MLPClassifier(task.hidden, learning_rate_init=rate, random_state=seed)
    with threadpool_limits(task.threads):
        begin = time.perf_counter()
        for epoch in range(epochs):
            images = task.deformed(seed, epoch)
            for i, part in enumerate(np.array_split(rng.permutation(len(labels)), PARTS)):
                if epoch or i:  # the optimiser is there from the first call on
                    left = 1 - (epoch * PARTS + i) / (epochs * PARTS)
                    model._optimizer.learning_rate_init = rate * left
                model.partial_fit(
                    images[part], labels[part], classes=np.arange(task.data.n_classes)
                )
        seconds = time.perf_counter() - begin
    layers = [(w.T, b) for w, b in zip(model.coefs_, model.intercepts_)]
    return seconds, task.error_of(layers)
