"""Which runs make up the experiment, and whether those that exist are the ones meant."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from mlpcore.data.summary import DataSummary
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.errors import InputError, shown
from mlpcore.network.architecture import PRESETS
from mlpcore.store.run_folder import holds_run
from mlpcore.training.config import PAPER_LEARNING_RATE, PAPER_LEARNING_RATE_END, TrainingConfig
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES
from table1.records import Record, read_record


@dataclass(frozen=True)
class Planned:
    """A run: one of the paper's networks with a seed, in a folder of the experiment's."""

    net: str
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        """That of its folder."""
        return self.folder.name

    def read(self) -> Record | None:
        """What there is of it; an InputError when that is damaged."""
        return read_record(self.folder) if holds_run(self.folder) else None


@dataclass(frozen=True)
class Experiment:
    """The paper's networks, trained with its settings.

    Parameters
    ----------
    epochs
        In which the learning rate goes all its way, however few they are.
    backend
        The name of the one asked for; None leaves each run with its own.
    recipe
        One of `RECIPES`, by which the paper's settings are changed or not.
    """

    nets: tuple[str, ...]
    seeds: tuple[int, ...]
    epochs: int
    out: Path
    backend: str | None = None
    recipe: str = DEFAULT_RECIPE

    @property
    def runs(self) -> list[Planned]:
        """In the order in which they are trained: all networks with the first seed first."""
        changed = "" if self.recipe == DEFAULT_RECIPE else f"-{self.recipe}"
        return [
            Planned(net, seed, self.out / f"{net}{changed}-seed{seed}")
            for seed in self.seeds
            for net in self.nets
        ]

    def config(
        self, run: Planned, similar_labels: tuple[int, ...], backend: str, schedule: str | None
    ) -> TrainingConfig:
        """The settings of a run: the paper's, as far as it states them, by the recipe."""
        recipe, hidden = RECIPES[self.recipe], PRESETS[run.net]
        return TrainingConfig(
            hidden_layers=hidden,
            epochs=self.epochs,
            learning_rate=PAPER_LEARNING_RATE,
            learning_rate_end=PAPER_LEARNING_RATE_END,
            learning_rate_ratio=recipe.learning_rate_ratio(len(hidden)),
            target=recipe.target,
            deformation=DeformationParameters(similar_labels=similar_labels),
            seed=run.seed,
            backend=backend,
            schedule=schedule,
        )

    def check(self, run: Planned, record: Record) -> None:
        """Checks that what there is has the settings asked for, whoever started it.

        Raises
        ------
        InputError
            When it has not; one line that names both.
        """
        theirs = record.config
        labels = theirs.deformation.similar_labels  # go with the data, see `check_data`
        ours = self.config(run, labels, self.backend or theirs.backend, theirs.schedule)
        for field in dataclasses.fields(TrainingConfig):
            found, wanted = getattr(theirs, field.name), getattr(ours, field.name)
            if found != wanted:
                name = field.name.replace("_", " ")
                raise InputError(
                    f"{shown(run.folder)} was started with {name} {_text(found)}, asked for "
                    f"{_text(wanted)}: expected the same, or another --out"
                )


def check_data(run: Planned, record: Record, data: DataSummary) -> None:
    """Raises InputError when a run was started with other data."""
    if record.data.sha256 != data.sha256:
        raise InputError(
            f"{shown(run.folder)} was started with other data than those in "
            f"{shown(data.source)}: expected {record.data.name} as it was in "
            f"{shown(record.data.source)}, or another --out"
        )


def _text(value: object) -> str:
    if isinstance(value, DeformationParameters):
        values = dataclasses.asdict(value)
        return ", ".join(f"{name} {values[name]:g}" for name in ("sigma", "alpha", "beta", "gamma"))
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)
