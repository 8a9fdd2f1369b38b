"""The state of a training run: its network, the metrics of its epochs, its progress."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from mlpcore.network import Network

#: In files, too, none is negative.
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Sum: TypeAlias = Annotated[float, Meta(ge=0)]


class EpochMetrics(msgspec.Struct, frozen=True):
    """Measurements of an epoch. The first epoch is number 1; times are in seconds.

    Training errors and loss (the mean of the network's) are of the deformed images, each just
    before its update. Validation errors are of the undeformed training set (paper, "Results"), and
    None after an epoch without validation (`TrainingConfig.validates`). The learning rate is that
    of the middle of the epoch, without the warm-up.
    """

    epoch: int
    learning_rate: Sum
    n_train: Annotated[int, Meta(ge=1)]
    n_test: Count
    training_errors: Count
    loss: Sum
    validation_errors: Count | None
    test_errors: Count
    deformation_seconds: Sum
    training_seconds: Sum
    evaluation_seconds: Sum

    @property
    def training_error(self) -> float:
        """Training errors in percent."""
        return 100 * self.training_errors / self.n_train

    @property
    def validation_error(self) -> float:
        """Validation errors in percent; NaN after an epoch that was not validated."""
        errors = math.nan if self.validation_errors is None else self.validation_errors
        return 100 * errors / self.n_train

    @property
    def test_error(self) -> float:
        """Test errors in percent."""
        return 100 * self.test_errors / max(1, self.n_test)

    @property
    def seconds(self) -> float:
        """Duration of the epoch."""
        return self.deformation_seconds + self.training_seconds + self.evaluation_seconds


class EpochProgress(msgspec.Struct, forbid_unknown_fields=True):
    """The part of an epoch that is done: samples, sums over them, and seconds spent."""

    samples: Count = 0
    errors: Count = 0
    loss: Sum = 0.0
    deformation_seconds: Sum = 0.0
    training_seconds: Sum = 0.0
    evaluation_seconds: Sum = 0.0

    @property
    def seconds(self) -> float:
        """Time spent on this epoch so far."""
        return self.deformation_seconds + self.training_seconds + self.evaluation_seconds


def best_of(history: Iterable[EpochMetrics]) -> EpochMetrics | None:
    """The last epoch with the lowest validation error; None if no epoch was validated.

    Of two epochs that misread as many the later one has trained longer, by a lower rate.
    """
    validated = [each for each in history if each.validation_errors is not None]
    return min(reversed(validated), key=lambda each: each.validation_errors or 0, default=None)


@dataclass
class TrainingState:
    """All that a `Trainer` needs to continue a run.

    Attributes
    ----------
    network
        The current network. It is up to date when `Trainer.run` has returned or an epoch has
        ended.
    best
        The network of the epoch with the lowest validation error; None before the first epoch
        has ended.
    history
        The metrics of the completed epochs.
    progress
        The progress of the epoch after them.
    """

    network: Network
    best: Network | None = None
    history: list[EpochMetrics] = field(default_factory=list)
    progress: EpochProgress = field(default_factory=EpochProgress)

    @property
    def epoch(self) -> int:
        """The number of completed epochs, which counts the random numbers of the next one."""
        return len(self.history)

    @property
    def best_metrics(self) -> EpochMetrics | None:
        """The metrics of the last epoch with the lowest validation error."""
        return best_of(self.history)

    @property
    def best_test_metrics(self) -> EpochMetrics | None:
        """The metrics of the first epoch with the lowest test error."""
        return min(self.history, key=lambda m: m.test_errors, default=None)

    @property
    def begun(self) -> int:
        """The number of epochs that have begun: completed, or in progress."""
        return self.epoch + (self.progress.samples > 0)

    @property
    def seconds(self) -> float:
        """Time spent so far, without interruptions."""
        return sum(m.seconds for m in self.history) + self.progress.seconds
