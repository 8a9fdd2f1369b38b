"""The training of one `fit`, and what it leaves in the classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.estimators.monitoring import EarlyStopping, warn_if_still_falling
from mlpcore.estimators.samples import Samples
from mlpcore.network.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import TrainingState
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.typing import AnyArray, Float32Array


class Fitting:
    """Trains a new network, or with a warm start that of the fit before.

    Parameters
    ----------
    config
        Its epochs include those of the fit before.
    layer_sizes
        Of a new network.
    classes
        The labels, sorted.
    before
        The fitted attributes that training continues from; empty for a new network.
    stopping
        Stops early, if given.
    """

    def __init__(
        self,
        config: TrainingConfig,
        layer_sizes: Sequence[int],
        classes: AnyArray,
        before: Mapping[str, Any],
        stopping: EarlyStopping | None,
    ):
        self.config, self.classes, self.before, self.stopping = config, classes, before, stopping
        new = not before
        network = config.new_network(layer_sizes) if new else before["network_"].copy()
        self.state = TrainingState(network, history=[] if new else list(before["_history"]))
        self._n_before = self.state.epoch

    @property
    def network(self) -> Network:
        """The network in training."""
        return self.state.network

    @property
    def losses(self) -> list[float]:
        """The mean loss of each epoch of this fit."""
        return [metrics.loss for metrics in self.state.history[self._n_before :]]

    def train(
        self,
        samples: Samples,
        images: Float32Array,
        backend: Backend,
        observers: Sequence[Observer],
    ) -> Network:
        """Trains on samples, whose inputs are these images; returns the network to keep."""
        codes, stopping, self._n_samples = samples.codes, self.stopping, len(samples.codes)
        n_classes = len(self.classes)
        data = Dataset("X", images, codes, images[:0], codes[:0], n_classes, source="given")
        observers = [stopping, *observers] if stopping else observers
        trainer = Trainer(
            self.config, data, backend, observers, self.state, sample_weight=samples.weights
        )
        if trainer.run():
            warn_if_still_falling(self.state.history, self._n_before)
        return stopping.best if stopping and stopping.best else self.network

    def attributes(self, network: Network) -> dict[str, Any]:
        """The fitted attributes of a classifier that gets this network."""
        before, stopping = self.before, self.stopping
        scores = before.get("validation_scores_")
        if stopping:
            scores = [*(scores or ()), *stopping.scores]
        return {
            "network_": network,
            "classes_": self.classes,
            "target_": self.config.target,
            "loss_curve_": [*before.get("loss_curve_", ()), *self.losses],
            "validation_scores_": scores,
            "best_validation_score_": stopping.best_score if stopping else None,
            "_n_samples": self._n_samples,
            "_seed": self.config.seed,
            "_history": list(self.state.history),
        }
