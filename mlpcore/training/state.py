"""The state of a training run: its network, what each epoch measured, how far it has come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlpcore.network import Network


@dataclass(frozen=True)
class EpochMetrics:
    """What is known after an epoch, the first being number 1; times are in seconds.

    Training errors and loss (the mean of 1/2 |y - t|^2) are those of the deformed images just
    before each update, validation errors those of the whole undeformed training set (paper,
    "Results").
    """

    epoch: int
    learning_rate: float
    n_train: int
    n_test: int
    training_errors: int
    loss: float
    validation_errors: int
    test_errors: int
    deformation_seconds: float
    training_seconds: float
    evaluation_seconds: float

    @property
    def training_error(self) -> float:
        """Percent of the deformed training images."""
        return 100 * self.training_errors / self.n_train

    @property
    def validation_error(self) -> float:
        """Percent of the undeformed training images."""
        return 100 * self.validation_errors / self.n_train

    @property
    def test_error(self) -> float:
        """Percent of the test images."""
        return 100 * self.test_errors / max(1, self.n_test)

    @property
    def seconds(self) -> float:
        """The whole epoch."""
        return self.deformation_seconds + self.training_seconds + self.evaluation_seconds


@dataclass
class EpochProgress:
    """How far an epoch has come: samples trained, with sums over them, and seconds spent."""

    samples: int = 0
    errors: int = 0
    loss: float = 0.0
    deformation_seconds: float = 0.0
    training_seconds: float = 0.0
    evaluation_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Spent on this epoch so far."""
        return self.deformation_seconds + self.training_seconds + self.evaluation_seconds


class CompletedEpochs:
    """What the completed epochs of a run, its `history`, say about it."""

    history: Sequence[EpochMetrics]

    @property
    def epoch(self) -> int:
        """Epochs completed; also the random numbers' counter of the epoch in progress."""
        return len(self.history)

    @property
    def best_metrics(self) -> EpochMetrics | None:
        """Of the first epoch with the lowest validation error."""
        return min(self.history, key=lambda m: m.validation_errors, default=None)

    @property
    def best_test_metrics(self) -> EpochMetrics | None:
        """Of the first epoch with the lowest test error."""
        return min(self.history, key=lambda m: m.test_errors, default=None)

    @property
    def best_test_error(self) -> float:
        """The lowest of all epochs, in percent; NaN before the first has ended."""
        return self.best_test_metrics.test_error if self.best_test_metrics else math.nan

    @property
    def seconds(self) -> float:
        """Spent on all completed epochs, interruptions left out."""
        return sum(m.seconds for m in self.history)


@dataclass
class TrainingState(CompletedEpochs):
    """Where a run is; all that a `Trainer` needs to go on.

    Attributes
    ----------
    network
        After the last sample, once `Trainer.run` has returned or an epoch has ended.
    best
        The network of the epoch with the lowest validation error, None before the first.
    history
        Of the epochs that are complete.
    progress
        Of the epoch that is not.
    """

    network: Network
    best: Network | None = None
    history: list[EpochMetrics] = field(default_factory=list)
    progress: EpochProgress = field(default_factory=EpochProgress)

    @property
    def seconds(self) -> float:
        """Spent so far, the epoch in progress included, interruptions left out."""
        return super().seconds + self.progress.seconds
