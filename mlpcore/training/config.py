"""The settings that determine a training run.

The same `TrainingConfig` and the same data (`DataSummary` has their SHA-256) give the same
weights, bit for bit, with the same version of this library on the same machine. Neither the
number of threads nor interruptions change them. There is one exception: the backend
``reference`` computes in float64, and rounds once more when it stops within an epoch.

Backend and schedule are settings, because they determine the order of additions, and so the
rounding. Every random number follows from the seed (`mlpcore.philox`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, get_args

import numpy as np
from msgspec import Meta, structs

from mlpcore.checks import Rate, Record, check_rate, check_whole, convert_fields
from mlpcore.data.pixels import InputRange
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import Activation, AnyLoss, Init, Loss, check_target
from mlpcore.network.architecture import MAX_LAYERS, MAX_WIDTH, PRESETS

MAX_EPOCHS = 1_000_000

Epochs: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_EPOCHS)]

Widths: TypeAlias = Annotated[
    tuple[Annotated[int, Meta(ge=1, le=MAX_WIDTH)], ...], Meta(max_length=MAX_LAYERS)
]

Decay: TypeAlias = Literal["factor", "linear"]
"""How the learning rate falls: by a constant factor each epoch (paper), or all along to 0."""

PAPER_LEARNING_RATE = 1e-3
"""The learning rate of the first epoch (paper, "Architectures")."""

PAPER_DECADES = 3
"""The learning rate falls to 1e-6 in the paper, which does not say in how many epochs."""

SCHEDULE_EPOCHS = 2000
"""Ours falls that far in this many. The paper's times and errors fit 1,400 to 3,400."""

PAPER_RATIO = 1.0
"""All layers of the paper's networks have the same learning rate."""

USUAL_TARGET = 1.0
"""The paper does not state its target."""

#: See `is_milestone`.
MILESTONES = 20

CHOICES = {
    "activation": get_args(Activation),
    "loss": get_args(Loss),
    "init": get_args(Init),
    "input_range": get_args(InputRange),
    "decay": get_args(Decay),
}
"""The settings that are names, and which names there are."""


def is_milestone(epoch: int, epochs: int) -> bool:
    """Whether an epoch is the first, the last, or one of about `MILESTONES` in between."""
    return epoch in (1, epochs) or epoch % math.ceil(epochs / MILESTONES) == 0


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


class TrainingConfig(Record, frozen=True):
    """The settings of a run. With the same data they give the same weights, bit for bit.

    This holds if `backend` and `schedule` name what computes; "auto" may differ between machines.

    NumPy's numbers become Python's, for JSON.

    Parameters
    ----------
    hidden_layers
        Neurons of each hidden layer.
    epochs
        Passes over the training set, 1 to 1,000,000.
    learning_rate, learning_rate_end
        Learning rates of the first and of the last epoch. In between the rate changes by a
        constant factor. The default end is that of `default_learning_rate_end`. With another
        `decay` the first is the rate before the first sample, and the end must be None.
    learning_rate_ratio
        The learning rate of each layer, divided by that of the next layer. The geometric mean
        over the layers is `learning_rate`. The paper uses the same rate for all layers: 1.
    target
        Target output for the class of a sample; the other classes have its negative. Less than
        1.7159, the limit of the scaled tanh. The paper does not state its target. The usual
        choice is 1, where the curvature of the scaled tanh is greatest. Without meaning for
        the loss "cross-entropy".
    activation, loss, init
        Hidden neurons, loss and initial weights: see `Network`.
    input_range
        The range of the network's inputs: "signed" is [-1, 1], "unit" is [0, 1].
    ones_and_sevens
        The share of the ones and sevens that lean and get upstrokes, feet, bars and waves before
        they are deformed, 0 to 1 (`mlpcore.data.strokes`); half of it is the share of open zeros.
        The classes must be digits. Such training images count in the validation error, too.
    decay
        "factor" is that of `learning_rate_end`. "linear" lets the rate fall with every segment of
        an epoch (`mlpcore.training.trainer`), and to 0 at the end of the run.
    warm_up
        Number of samples over which the rate rises from 0, linearly, to what it is without.
    deformation
        How the training set is deformed anew for every epoch.
    seed
        The seed of all random numbers, 0 to 2**64 - 1.
    backend
        Name of the backend. A different one rounds differently.
    schedule
        When the backend applies updates, if it has a choice. A different one rounds differently.
    earlier
        The schedules from before the number of epochs was changed, the first one first. Only
        `with_epochs` adds to them.

    Raises
    ------
    InputError
        When a value is not of the right type or out of range.
    """

    hidden_layers: Widths = PRESETS["net1"]
    epochs: Epochs = 30
    learning_rate: Rate = PAPER_LEARNING_RATE
    learning_rate_end: Rate | None = None
    learning_rate_ratio: Rate = PAPER_RATIO
    target: float = USUAL_TARGET
    activation: Activation = "tanh"
    loss: AnyLoss = "squared"
    init: Init = "uniform"
    input_range: InputRange = "signed"
    ones_and_sevens: Annotated[float, Meta(ge=0, le=1)] = 0.0
    decay: Decay = "factor"
    warm_up: Annotated[int, Meta(ge=0, le=10**12)] = 0
    deformation: DeformationParameters = DeformationParameters()
    seed: int = 0
    backend: str = "auto"
    schedule: str | None = None
    earlier: tuple[Schedule, ...] = ()

    def validates(self, epoch: int) -> bool:
        """Whether an epoch, the first being 1, is validated: all of them, or milestones.

        By the decay "linear" the rate falls to 0, so that the last networks of a run barely differ
        and its last one is as good as any: there milestones are enough.
        """
        return self.decay != "linear" or is_milestone(epoch, self.epochs)

    def __post_init__(self) -> None:
        convert_fields(self)
        similar = self.deformation.label_bytes()
        deformation = structs.replace(self.deformation, similar_labels=similar)
        structs.force_setattr(self, "deformation", deformation)  # the instance is frozen
        check_whole("seed", self.seed, 0, 2**64 - 1)
        check_target(self.target)
        if self.decay == "factor" and self.learning_rate_end is None:
            end = default_learning_rate_end(self.learning_rate, self.epochs)
            structs.force_setattr(self, "learning_rate_end", end)
        self._check_schedules()
        for epoch in (0, self.epochs - 1):
            self.learning_rates_after(epoch + 0.5, 1)

    def _check_schedules(self) -> None:
        """Raises InputError unless `with_epochs` can have come to `earlier`."""
        for each in self._schedules:
            if (each.learning_rate_end is None) == (self.decay == "factor"):
                raise InputError(
                    f"learning rate end {each.learning_rate_end} with the decay {self.decay}: "
                    "expected one with the decay factor, and only with it"
                )
        begin = 0
        for each in self.earlier:
            check_whole("end of an earlier schedule", each.until, begin + 1, each.epochs)
            begin = each.until
        check_whole("epochs", self.epochs, max(1, begin), MAX_EPOCHS)

    def new_network(self, layer_sizes: Sequence[int]) -> Network:
        """The network of a run before its first sample."""
        return Network(layer_sizes, self.seed, self.activation, self.loss, self.init)

    def with_epochs(self, epochs: int, begun: int) -> TrainingConfig:
        """The settings of the same run with another number of epochs.

        Epochs that have begun keep their learning rates. The following ones have those of a run
        that has so many epochs from the beginning and the other settings as they are. So
        "linear" rises to where such a run would be, and falls to 0 at the new end.
        "factor" reaches `learning_rate_end` at the new end, or falls by the same factor as
        before if the end was the default and the run has at most `SCHEDULE_EPOCHS`.

        Parameters
        ----------
        epochs
            The new number, of all epochs of the run.
        begun
            How many have begun: those that are done, and the one in progress.

        Raises
        ------
        InputError
            When `epochs` is less than `begun` or out of range.

        Examples
        --------
        >>> config = TrainingConfig(epochs=2, decay="linear", learning_rate=0.4)
        >>> longer = config.with_epochs(4, begun=2)
        >>> [round(longer.learning_rate_at(epoch), 2) for epoch in range(4)]
        [0.3, 0.1, 0.15, 0.05]
        """
        check_whole("epochs", epochs, 1, MAX_EPOCHS)
        if epochs < begun:
            raise InputError(f"epochs {epochs}: expected at least {begun}, as so many have begun")
        end = self.learning_rate_end
        if end == default_learning_rate_end(self.learning_rate, self.epochs):
            end = None  # and so the default again
        return structs.replace(
            self, epochs=epochs, learning_rate_end=end, earlier=self.schedules_until(begun)
        )

    @property
    def _schedules(self) -> tuple[Schedule, ...]:
        return *self.earlier, Schedule(self.epochs, self.epochs, self.learning_rate_end)

    def schedules_until(self, epoch: int) -> tuple[Schedule, ...]:
        """The schedules of the epochs before this one, each until it ended or until here."""
        begins = 0, *(each.until for each in self.earlier)
        return tuple(
            structs.replace(each, until=min(each.until, epoch))
            for begin, each in zip(begins, self._schedules)
            if begin < epoch
        )

    def learning_rate_at(self, epoch: int, part: float = 0.5) -> float:
        """The learning rate eta after a fraction, below 1, of an epoch; epochs count from 0.

        "factor" keeps eta_0 (eta_end / eta_0)^(epoch / (epochs - 1)) for the whole epoch. "linear"
        has eta_0 r, where r is the part of the run that is left. `warm_up` is not included. An
        epoch of an `earlier` schedule has the rate that this gave it.
        """
        held = next(each for each in self._schedules if epoch < each.until)
        if self.decay == "linear":
            return self.learning_rate * ((held.epochs - epoch - part) / held.epochs)
        if held.epochs == 1:
            return self.learning_rate
        assert held.learning_rate_end is not None  # see __post_init__
        fall = held.learning_rate_end / self.learning_rate
        return self.learning_rate * fall ** (epoch / (held.epochs - 1))

    def learning_rates_after(self, samples: float, n_samples: int) -> tuple[float, ...]:
        """eta of each layer after a number of samples of a run; an epoch has `n_samples`.

        `warm_up` is included. Raises InputError when one is 0 or infinite in float32.
        """
        epoch, rest = divmod(samples, n_samples)
        rate = self.learning_rate_at(int(epoch), rest / n_samples)
        rates = self.layer_rates(rate * min(1.0, samples / self.warm_up) if self.warm_up else rate)
        for each in rates:
            check_rate("learning rate of a layer", each)
        return rates

    def layer_rates(self, rate: float) -> tuple[float, ...]:
        """The rate of each layer l = 0 ... L - 1: eta ratio^((L - 1) / 2 - l)."""
        last = len(self.hidden_layers)
        with np.errstate(over="ignore", under="ignore"):
            factors = np.float64(self.learning_rate_ratio) ** (last / 2 - np.arange(last + 1))
            return tuple((rate * factors).tolist())

    def agrees_with(self, other: TrainingConfig, epoch: int) -> bool:
        """Whether both give the same weights in all epochs before this one."""
        epochs = max(1, epoch)
        return self.with_epochs(epochs, epoch) == other.with_epochs(epochs, epoch)
