"""The settings that determine a training run.

The same `TrainingConfig` and the same data (`DataSummary` has their SHA-256) give the same
weights, bit for bit, with the same version of this library on the same machine. Neither the
number of threads nor interruptions change them. There is one exception: the backend
``reference`` computes in float64, and rounds once more when it stops within an epoch.

Backend and schedule are settings, because they determine the order of additions, and so the
rounding. Every random number follows from the seed (`mlpcore.philox`).
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mlpcore.checks import check_choice, check_rate, check_whole
from mlpcore.data.scaling import INPUT_RANGES, MAX_SIDE
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, INITS, LOSSES, check_target
from mlpcore.network.architecture import MAX_WIDTH, PRESETS, check_depth

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

MAX_EPOCHS = 1_000_000

DECAYS = ("factor", "linear")
"""How the learning rate falls: by a constant factor each epoch (paper), or all along to 0."""

MAX_WARM_UP = 10**12

CHOICES = {
    "activation": ACTIVATIONS,
    "loss": LOSSES,
    "init": INITS,
    "input_range": INPUT_RANGES,
    "decay": DECAYS,
}
"""The settings that are names, and which names there are."""


def default_learning_rate_end(learning_rate: float, epochs: int) -> float:
    """The rate after so many epochs, if it falls by `PAPER_DECADES` in `SCHEDULE_EPOCHS`."""
    part = min(1.0, (epochs - 1) / (SCHEDULE_EPOCHS - 1))
    return learning_rate * 10 ** (-PAPER_DECADES * part)


PAPER_LEARNING_RATE_END = default_learning_rate_end(PAPER_LEARNING_RATE, SCHEDULE_EPOCHS)


@dataclass(frozen=True)
class Schedule:
    """The schedule of the learning rate that held until `until` epochs of a run were done.

    `epochs` and `learning_rate_end` are as in `TrainingConfig`, and were the run's until then.
    """

    until: int
    epochs: int
    learning_rate_end: float | None


@dataclass(frozen=True)
class TrainingConfig:
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
    width
        The width in pixels to which the ink of each image is brought, before it is deformed
        (`mlpcore.data.width`). None leaves the images as they are.
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
        The schedules of before the number of epochs was changed, the first one first. Only
        `with_epochs` adds to them.

    Raises
    ------
    InputError
        When a value is not of the right type or out of range.
    """

    hidden_layers: tuple[int, ...] = PRESETS["net1"]
    epochs: int = 30
    learning_rate: float = PAPER_LEARNING_RATE
    learning_rate_end: float | None = None
    learning_rate_ratio: float = PAPER_RATIO
    target: float = USUAL_TARGET
    activation: str = "tanh"
    loss: str = "squared"
    init: str = "uniform"
    input_range: str = "signed"
    width: int | None = None
    decay: str = "factor"
    warm_up: int = 0
    deformation: DeformationParameters = field(default_factory=DeformationParameters)
    seed: int = 0
    backend: str = "auto"
    schedule: str | None = None
    earlier: tuple[Schedule, ...] = ()

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the instance is frozen
        put("hidden_layers", _widths(self.hidden_layers))
        put("epochs", _whole("epochs", self.epochs, 1, MAX_EPOCHS))
        put("seed", _whole("seed", self.seed, 0, 2**64 - 1))
        for name, choices in CHOICES.items():
            check_choice(name.replace("_", " "), getattr(self, name), choices)
        if self.width is not None:
            put("width", _whole("width", self.width, 1, MAX_SIDE + 1))
        put("warm_up", _whole("warm-up", self.warm_up, 0, MAX_WARM_UP))
        put("learning_rate", _rate("learning rate", self.learning_rate))
        put("learning_rate_end", self._end())
        put("learning_rate_ratio", _rate("learning rate ratio", self.learning_rate_ratio))
        check_target(self.target)
        put("target", float(self.target))
        put("deformation", _deformation(self.deformation))
        if not isinstance(self.backend, str):
            raise InputError(f"backend {reprlib.repr(self.backend)}: expected a name")
        if not isinstance(self.schedule, str | None):
            raise InputError(f"schedule {reprlib.repr(self.schedule)}: expected a name or none")
        self._check_earlier()
        for epoch in (0, self.epochs - 1):
            self.check_learning_rates(epoch + 0.5, 1)

    def _check_earlier(self) -> None:
        """Raises InputError unless `with_epochs` can have come to these schedules."""
        begin = 0
        for each in self.earlier:
            check_whole("earlier epochs", each.epochs, 1, MAX_EPOCHS)
            check_whole("end of an earlier schedule", each.until, begin + 1, each.epochs)
            if each.learning_rate_end is not None:
                check_rate("earlier final learning rate", each.learning_rate_end)
            if (each.learning_rate_end is None) == (self.decay == "factor"):
                raise InputError(
                    f"earlier final learning rate {each.learning_rate_end} with the decay "
                    f"{self.decay}: expected one with the decay factor, and only with it"
                )
            begin = each.until
        check_whole("epochs", self.epochs, max(1, begin), MAX_EPOCHS)

    def _end(self) -> float | None:
        """`learning_rate_end`, checked, or its default."""
        if self.decay == "factor":
            if self.learning_rate_end is None:
                return default_learning_rate_end(self.learning_rate, self.epochs)
            return _rate("final learning rate", self.learning_rate_end)
        if self.learning_rate_end is not None:
            raise InputError(
                f"final learning rate {reprlib.repr(self.learning_rate_end)} with the decay "
                f"{self.decay}, which ends at 0: expected none, or the decay factor"
            )
        return None

    def new_network(self, layer_sizes: Sequence[int]) -> Network:
        """The network of a run before its first sample."""
        return Network(layer_sizes, self.seed, self.activation, self.loss, self.init)

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

    def with_epochs(self, epochs: int, begun: int) -> TrainingConfig:
        """The settings of a run that is to end after another number of epochs than before.

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
        return dataclasses.replace(
            self, epochs=epochs, learning_rate_end=end, earlier=self.schedules_until(begun)
        )

    def schedules_until(self, epoch: int) -> tuple[Schedule, ...]:
        """The schedules of the epochs before this one, each until it ended or until here."""
        result: list[Schedule] = []
        for each in (*self.earlier, Schedule(self.epochs, self.epochs, self.learning_rate_end)):
            if not result or result[-1].until < epoch:
                result.append(dataclasses.replace(each, until=min(each.until, epoch)))
        return tuple(result) if epoch else ()

    def agrees_with(self, other: TrainingConfig, epoch: int) -> bool:
        """Whether both give the same weights in all epochs before this one."""
        return self._before(epoch) == other._before(epoch)

    def _before(self, epoch: int) -> dict[str, Any]:
        """What the epochs before this one depend on."""
        schedule = {"epochs": 0, "learning_rate_end": None, "earlier": self.schedules_until(epoch)}
        return dataclasses.asdict(self) | schedule

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


def _widths(value: Any) -> tuple[int, ...]:
    try:
        widths = tuple(value)
    except TypeError:
        shown = reprlib.repr(value)
        raise InputError(f"hidden layers {shown}: expected a list of widths") from None
    check_depth(len(widths))
    return tuple(_whole("hidden layer", width, 1, MAX_WIDTH) for width in widths)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    check_whole(name, value, low, high)
    return int(value)


def _rate(name: str, value: Any) -> float:
    check_rate(name, value)
    return float(value)


def _deformation(value: Any) -> DeformationParameters:
    if not isinstance(value, DeformationParameters):
        raise InputError(f"deformation {reprlib.repr(value)}: expected DeformationParameters")
    return dataclasses.replace(value, similar_labels=value.label_bytes())
