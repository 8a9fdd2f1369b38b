"""What determines a training run: its settings, and which data it is trained on.

With the same `TrainingConfig` and the same arrays of data (`DataSummary` has their SHA-256), the
same version of this library gives, on the same machine, the same weights, bit for bit: whatever
the number of threads, and however often training was stopped and resumed, except that the backend
``reference`` rounds its float64 once more when stopped within an epoch. The backend and its
schedule are settings, because another one adds in another order and so rounds differently. Every
random number follows from the seed (`mlpcore.philox`).
"""

from __future__ import annotations

import dataclasses
import reprlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlpcore.checks import check_fields, check_list, check_rate, check_whole
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network.activation import check_target
from mlpcore.network.architecture import MAX_WIDTH, PRESETS

PAPER_LEARNING_RATE = 1e-3
"""From here, the paper goes to 1e-6 in an unstated number of epochs (paper, "Architectures")."""

PAPER_RATIO = 1.0

USUAL_TARGET = 1.0
"""The paper does not state its own."""

PAPER_DECADES = 3

SCHEDULE_EPOCHS = 2000
"""In which the rate goes all its way here. The paper does not state its number; what it says of
times and of errors after 20 to 30 epochs fits some 1,400 to 3,400."""

MAX_EPOCHS = 1_000_000


def default_learning_rate_end(learning_rate: float, epochs: int) -> float:
    """As far as the whole schedule, three decades in `SCHEDULE_EPOCHS`, gets in this many."""
    part = min(1.0, (epochs - 1) / (SCHEDULE_EPOCHS - 1))
    return learning_rate * 10 ** (-PAPER_DECADES * part)


PAPER_LEARNING_RATE_END = default_learning_rate_end(PAPER_LEARNING_RATE, SCHEDULE_EPOCHS)


@dataclass(frozen=True)
class TrainingConfig:
    """The settings of a run; with the same data they give the same weights, bit for bit.

    Parameters
    ----------
    hidden_layers
        Neurons of each hidden layer.
    epochs
        Passes over the training set, 1 to 1,000,000.
    learning_rate, learning_rate_end
        Of the first and of the last epoch; in between it changes by a constant factor. By
        default the end is where the paper's schedule would be after as many epochs.
    learning_rate_ratio
        Of each layer's learning rate to that of the layer above it; the geometric mean over the
        layers is the learning rate. The paper has the same for all, 1.
    target
        Of the output for the class; that for the others is its negative. The paper does not
        state it; 1 is where the scaled tanh bends most, and the usual choice. Below 1.7159.
    deformation
        How the training set is deformed anew for every epoch.
    seed
        Of all random numbers, 0 to 2**64 - 1.
    backend
        The name of the backend; another one rounds differently.
    schedule
        When the backend applies updates, if it has a choice; another one rounds differently.

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
    deformation: DeformationParameters = field(default_factory=DeformationParameters)
    seed: int = 0
    backend: str = "auto"
    schedule: str | None = None

    def __post_init__(self) -> None:
        try:
            widths = tuple(self.hidden_layers)
        except TypeError:
            shown = reprlib.repr(self.hidden_layers)
            raise InputError(f"hidden layers {shown}: expected a list of widths") from None
        for width in widths:
            check_whole("hidden layer", width, 1, MAX_WIDTH)
        check_whole("epochs", self.epochs, 1, MAX_EPOCHS)
        check_whole("seed", self.seed, 0, 2**64 - 1)
        check_rate("learning rate", self.learning_rate)
        end = self.learning_rate_end
        if end is None:
            end = default_learning_rate_end(self.learning_rate, self.epochs)
        check_rate("final learning rate", end)
        check_rate("learning rate ratio", self.learning_rate_ratio)
        check_target(self.target)
        if not isinstance(self.deformation, DeformationParameters):
            shown = reprlib.repr(self.deformation)
            raise InputError(f"deformation {shown}: expected DeformationParameters")
        labels = self.deformation.label_bytes()
        if not isinstance(self.backend, str):
            raise InputError(f"backend {reprlib.repr(self.backend)}: expected a name")
        if not (self.schedule is None or isinstance(self.schedule, str)):
            raise InputError(f"schedule {reprlib.repr(self.schedule)}: expected a name or none")
        plain = {  # numbers of NumPy's, too, which JSON does not know
            "hidden_layers": tuple(map(int, widths)),
            "epochs": int(self.epochs),
            "seed": int(self.seed),
            "learning_rate": float(self.learning_rate),
            "learning_rate_end": float(end),
            "learning_rate_ratio": float(self.learning_rate_ratio),
            "target": float(self.target),
            "deformation": dataclasses.replace(self.deformation, similar_labels=labels),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        for epoch in (0, self.epochs - 1):
            for rate in self.learning_rates_at(epoch):
                check_rate("learning rate of a layer", rate)

    def learning_rate_at(self, epoch: int) -> float:
        """eta of an epoch, counted from 0: eta_0 (eta_end / eta_0)^(epoch / (epochs - 1))."""
        if self.epochs == 1:
            return self.learning_rate
        assert self.learning_rate_end is not None  # since __post_init__
        ratio = self.learning_rate_end / self.learning_rate
        return self.learning_rate * ratio ** (epoch / (self.epochs - 1))

    def learning_rates_at(self, epoch: int) -> tuple[float, ...]:
        """That of each layer: eta ratio^((L - 1) / 2 - l) of layer l = 0 ... L - 1."""
        rate, last = self.learning_rate_at(epoch), len(self.hidden_layers)
        with np.errstate(over="ignore", under="ignore"):
            factors = np.float64(self.learning_rate_ratio) ** (last / 2 - np.arange(last + 1))
            return tuple((rate * factors).tolist())

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: object) -> TrainingConfig:
        """The inverse of `to_json`, for values from a file that may be damaged.

        Raises
        ------
        InputError
            When a setting is missing, unknown, of another type or out of range.
        """
        if isinstance(values, dict):  # runs from before these were settings
            values = {"learning_rate_ratio": PAPER_RATIO, "target": USUAL_TARGET} | values
        values = dict(check_fields("training", values, cls))
        deformation = dict(
            check_fields("deformation", values["deformation"], DeformationParameters)
        )
        deformation["similar_labels"] = tuple(
            check_list("similar_labels", deformation["similar_labels"])
        )
        values["deformation"] = DeformationParameters(**deformation)
        values["hidden_layers"] = tuple(check_list("hidden_layers", values["hidden_layers"]))
        return cls(**values)
