"""The training loop on rows of a sparse matrix, of which none is made dense."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.training import trainer
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import TrainingState
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.typing import AnyArray, Float32Array, UInt8Array


class SparseTrainer(Trainer):
    """Trains a network as `Trainer` does, by a stepper on one thread.

    Parameters
    ----------
    rows
        A float32 matrix of SciPy in compressed sparse rows, (n, n_in), in canonical format.
    labels
        (n,) uint8.
    config, backend, observers, state, sample_weight, weight_decay
        As for `Trainer`. The deformation is the identity, and the range of inputs is that of the
        rows. Weights decay at the end of an epoch.
    """

    def __init__(
        self,
        config: TrainingConfig,
        rows: Any,
        labels: UInt8Array,
        backend: Backend,
        observers: Iterable[Observer],
        state: TrainingState,
        sample_weight: Float32Array | None = None,
        weight_decay: float = 0.0,
    ):
        self.config, self.backend, self.state = config, backend, state
        self.observers = tuple(observers)
        images = np.broadcast_to(np.float32(0), (len(labels), 1, 1))  # what is there is in `rows`
        n_classes = state.network.layer_sizes[-1]
        self.dataset = Dataset("X", images, labels, images[:0], labels[:0], n_classes, "given")
        for epoch, samples in ((0, 0), (config.epochs - 1, self.n_samples - 1)):
            config.check_learning_rates(self._middle(epoch, samples), self.n_samples)
        self._take_weights(sample_weight)
        self._stop, self._weight_decay = False, weight_decay
        self._network, self._stepper = state.network, backend.stepper(state.network)
        self._train_images, self._train_labels = rows, labels
        self._test_images, self._test_labels = rows[:0], labels[:0]

    def _deform(self) -> None:
        """There is nothing to deform."""

    def _train(self) -> None:
        n, state, config = self.n_samples, self.state, self.config
        decay = np.zeros(state.network.n_layers)
        order = self.backend.permutation(n, config.seed, state.epoch)
        while (begin := state.progress.samples) < n:
            self._report("training", begin, n)
            part = order[begin : (begin // trainer.SEGMENT + 1) * trainer.SEGMENT]
            weights = None if self._sample_weight is None else self._sample_weight[part]
            rates, labels = self._learning_rates(begin), self._train_labels[part]
            result = self._stepper.train(
                self._train_images[part], labels, rates, config.target, weights
            )
            self._on_samples(state.progress, result)
            if not math.isfinite(result.loss):
                raise self._diverged("the loss")
            decay += np.multiply(rates, self._weight_decay * len(part))
        if self._weight_decay:
            for weights, amount in zip(self._stepper.network.weights, decay):
                weights *= math.exp(-amount)
            self._stepper = self.backend.stepper(state.network)

    def _count_errors(self, images: Any, labels: AnyArray, done: int) -> int:
        outputs = self._stepper.predict(images)
        return int(np.count_nonzero(outputs.argmax(axis=1) != labels)) if len(labels) else 0

    def _collect(self) -> None:
        self.state.network = self._stepper.network
        super()._collect()
