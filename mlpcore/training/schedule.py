"""How the learning rate falls in a run, and differs between layers."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import numpy as np
from msgspec import Meta, structs

from mlpcore.checks import Rate, Record, check_rate, check_whole, convert_fields
from mlpcore.errors import InputError

PAPER_LEARNING_RATE = 1e-3
"""The learning rate of the first epoch (paper, "Architectures")."""

PAPER_DECADES = 3
"""The learning rate falls to 1e-6 in the paper, which does not say in how many epochs."""

SCHEDULE_EPOCHS = 2000
"""Ours falls that far in this many. The paper's times and errors fit 1,400 to 3,400."""

PAPER_RATIO = 1.0
"""All layers of the paper's networks have the same learning rate."""

MAX_EPOCHS = 1_000_000

Epochs: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_EPOCHS)]

Decay: TypeAlias = Literal["factor", "linear"]
"""How the learning rate falls: by a constant factor each epoch (paper), or all along to 0."""


def default_learning_rate_end(learning_rate: float, epochs: int) -> float:
    """The rate after so many epochs, if it falls by `PAPER_DECADES` in `SCHEDULE_EPOCHS`."""
    part = min(1.0, (epochs - 1) / (SCHEDULE_EPOCHS - 1))
    return learning_rate * 10 ** (-PAPER_DECADES * part)


class Schedule(Record, frozen=True):
    """The schedule of the learning rate that held until `until` epochs of a run were done.

    `epochs` and `learning_rate_end` are as in `TrainingConfig`, and were the run's until then.
    """

    until: Epochs
    epochs: Epochs
    learning_rate_end: Rate | None

    def __post_init__(self) -> None:
        convert_fields(self)
        check_whole("end of an earlier schedule", self.until, 1, self.epochs)


class LearningRates:
    """The learning rates of settings with these fields: see `TrainingConfig`."""

    hidden_layers: tuple[int, ...]
    epochs: int
    learning_rate: float
    learning_rate_end: float | None
    learning_rate_ratio: float
    decay: str
    warm_up: int
    earlier: tuple[Schedule, ...]

    def check_earlier(self) -> None:
        """Raises InputError unless `TrainingConfig.with_epochs` can have come to `earlier`."""
        begin = 0
        for each in self.earlier:
            if (each.learning_rate_end is None) == (self.decay == "factor"):
                raise InputError(
                    f"earlier final learning rate {each.learning_rate_end} with the decay "
                    f"{self.decay}: expected one with the decay factor, and only with it"
                )
            check_whole("end of an earlier schedule", each.until, begin + 1, each.epochs)
            begin = each.until
        check_whole("epochs", self.epochs, max(1, begin), MAX_EPOCHS)

    def schedules_until(self, epoch: int) -> tuple[Schedule, ...]:
        """The schedules of the epochs before this one, each until it ended or until here."""
        result: list[Schedule] = []
        if epoch == 0:
            return ()
        for each in (*self.earlier, Schedule(self.epochs, self.epochs, self.learning_rate_end)):
            if not result or result[-1].until < epoch:
                result.append(structs.replace(each, until=min(each.until, epoch)))
        return tuple(result)

    def learning_rate_at(self, epoch: int, part: float = 0.5) -> float:
        """eta when a part of an epoch, less than 1, is done; epochs count from 0.

        "factor" has eta_0 (eta_end / eta_0)^(epoch / (epochs - 1)) all over the epoch. "linear"
        has eta_0 r, where r is the part of the run that is left. `warm_up` is not included. An
        epoch of an `earlier` schedule has the rate that this gave it.
        """
        for each in self.earlier:
            if epoch < each.until:
                return self._rate_of(each.epochs, each.learning_rate_end, epoch, part)
        return self._rate_of(self.epochs, self.learning_rate_end, epoch, part)

    def _rate_of(self, epochs: int, end: float | None, epoch: int, part: float) -> float:
        """`learning_rate_at` in a run of so many epochs with this `learning_rate_end`."""
        if self.decay == "linear":
            return self.learning_rate * ((epochs - epoch - part) / epochs)
        if epochs == 1:
            return self.learning_rate
        assert end is not None  # see __post_init__
        return self.learning_rate * (end / self.learning_rate) ** (epoch / (epochs - 1))

    def learning_rates_after(self, samples: float, n_samples: int) -> tuple[float, ...]:
        """eta of each layer when so many samples of a run are done, `n_samples` being an epoch's.

        `warm_up` is included.
        """
        epoch, rest = divmod(samples, n_samples)
        rate = self.learning_rate_at(int(epoch), rest / n_samples)
        return self.layer_rates(rate * min(1.0, samples / self.warm_up) if self.warm_up else rate)

    def layer_rates(self, rate: float) -> tuple[float, ...]:
        """The rate of each layer l = 0 ... L - 1: eta ratio^((L - 1) / 2 - l)."""
        last = len(self.hidden_layers)
        with np.errstate(over="ignore", under="ignore"):
            factors = np.float64(self.learning_rate_ratio) ** (last / 2 - np.arange(last + 1))
            return tuple((rate * factors).tolist())

    def check_learning_rates(self, samples: float, n_samples: int) -> None:
        """Raises InputError unless `learning_rates_after` gives learning rates."""
        for rate in self.learning_rates_after(samples, n_samples):
            check_rate("learning rate of a layer", rate)
