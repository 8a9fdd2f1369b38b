"""What has come of a run: a file of JSON for each, without weights, but with their SHA-256."""

from __future__ import annotations

import datetime
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mlpcore.commands.options import DEFORMATION
from mlpcore.commands.train import SETTINGS, make_config
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import make_folder
from mlpcore.network.architecture import PRESETS, format_hidden_layers
from mlpcore.store.documents import read_document, write_document
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, Document, Run, read_run_network
from mlpcore.store.weights import weights_sha256
from mlpcore.terminal import say
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import RECIPES
from mlpcore.training.state import EpochMetrics


@dataclass(frozen=True)
class Weights:
    """A network that is not kept: its epoch, its SHA-256, and what computed it, "" if unknown."""

    epoch: int
    sha256: str
    revision: str
    machine: str


@dataclass(frozen=True)
class Evidence:
    """What has come of a run.

    Attributes
    ----------
    name, date
        Of the run's folder, and of its last epoch.
    backend, training, data
        As in `mlpcore.store.run_folder.Document`, but for the path of the data.
    seconds
        Spent on all epochs so far.
    best, best_test, last
        The first epochs with the lowest validation and test error, and the last one so far.
    weights
        Of the best epoch and, when the run is finished, of the last one.
    """

    name: str
    date: str
    backend: str
    training: TrainingConfig
    data: DataSummary
    seconds: float
    best: EpochMetrics
    best_test: EpochMetrics
    last: EpochMetrics
    weights: tuple[Weights, ...]

    @property
    def finished(self) -> bool:
        """Whether all epochs are completed."""
        return self.last.epoch == self.training.epochs

    @property
    def network(self) -> str:
        """net1 ... net5, or the widths of other hidden layers."""
        return format_hidden_layers(self.training.hidden_layers)


def arguments(config: TrainingConfig) -> list[str]:
    """The fewest options of `mlpcore train` that give these settings, but for the backend."""
    return min((_with_recipe(config, recipe) for recipe in RECIPES), key=len)


def _with_recipe(config: TrainingConfig, recipe: str) -> list[str]:
    """The recipe, and an option for each setting that is not the recipe's."""
    arch = format_hidden_layers(config.hidden_layers)
    given = {"arch": arch, "recipe": recipe, "epochs": config.epochs, "seed": config.seed}
    usual = make_config(given, config.backend, config.schedule)
    ours, theirs = (vars(each) | vars(each.deformation) for each in (config, usual))
    names = SETTINGS | {name: name for name in DEFORMATION}
    given |= {option: ours[name] for option, name in names.items() if ours[name] != theirs[name]}
    pairs = ((f"--{option.replace('_', '-')}", str(value)) for option, value in given.items())
    return [word for pair in pairs for word in pair]


def recipe_of(run: Evidence) -> str:
    """The recipe in the run's name, such as "modern"; "paper" if there is none."""
    found = re.search("-([a-z]+)-seed", run.name)
    return found[1] if found else "paper"


def gather(out: Path) -> list[Evidence]:
    """The evidence of all runs in a folder; a line on stderr for each that has none.

    Raises InputError when no run has any.
    """
    found = []
    for path in out.glob(f"*/{CONFIG}"):
        try:
            found.append(_evidence(path.parent))
        except InputError as error:
            say(printable(f"note: {path.parent.name} is left out: {error}"), sys.stderr)
    if not found:
        raise InputError(f"{shown(out)}: expected a folder with runs of at least one epoch")
    return sorted(found, key=_place)


def _evidence(folder: Path) -> Evidence:
    """The evidence of a run, which another process may be training."""
    run, document = Run.open(folder, to_train=False), read_document(folder / CONFIG, Document)
    state = run.load()
    best, best_test = state.best_metrics, state.best_test_metrics
    if best is None or best_test is None:
        raise InputError("no epoch is done")
    weights = [_weights(run, BEST, best.epoch)]
    if state.epoch == run.config.epochs:
        weights.append(_weights(run, LAST, state.epoch))
    modified = datetime.datetime.fromtimestamp(os.stat(folder / METRICS).st_mtime)
    return Evidence(
        name=folder.name,
        date=modified.date().isoformat(),
        backend=document.backend,
        training=document.training,
        data=msgspec.structs.replace(document.data, source=document.data.name),  # not a path
        seconds=round(state.seconds, 1),
        best=best,
        best_test=best_test,
        last=state.history[-1],
        weights=tuple(weights),
    )


def _weights(run: Run, file: str, epoch: int) -> Weights:
    """What there is to say of a network, which must be that of this epoch."""
    network, metadata = read_run_network(run.folder / file, run.config, run.data)
    if metadata["epoch"] != str(epoch):
        raise InputError(f"{file} is newer than {METRICS} beside it: expected the run resumed")
    return Weights(epoch, weights_sha256(network), metadata["revision"], metadata["machine"])


def _place(run: Evidence) -> tuple[object, ...]:
    """Sorts runs by network, in the paper's order, then by recipe, length and seed."""
    presets, hidden = list(PRESETS.values()), run.training.hidden_layers
    place = presets.index(hidden) if hidden in presets else len(presets)
    stem, _, _ = run.name.partition("-seed")
    return place, hidden, stem, -run.training.epochs, run.training.seed, run.name


def read_all(folder: Path) -> list[Evidence]:
    """All evidence in a folder; an InputError when there is none, or it is damaged."""
    found = [read_document(path, Evidence) for path in folder.glob("*.json")]
    if not found:
        raise InputError(f"{shown(folder)} holds no evidence: expected files of JSON")
    return sorted(found, key=_place)


def keep(folder: Path, runs: Sequence[Evidence]) -> None:
    """Adds runs to the evidence in a folder, where evidence of others stays.

    A run that was trained again is compared with its evidence, to the bit. Raises InputError, and
    writes nothing, when evidence of another run would be overwritten.
    """
    new: dict[Path, Evidence] = {}
    for run in runs:
        path = folder / f"{run.name}.json"
        before = read_document(path, Evidence) if os.path.lexists(path) else None
        if before and [each.sha256 for each in before.weights] == [w.sha256 for w in run.weights]:
            print(f"{run.name}: the same weights as in {shown(path)}, to the bit")
        elif before and (before.training != run.training or before.last.epoch >= run.last.epoch):
            raise InputError(
                f"{run.name} has other weights or settings than {shown(path)}: expected more "
                "epochs of the same run"
            )
        else:
            new[path] = run
    make_folder(folder)
    for path, run in new.items():
        write_document(path, run)
        print(f"{run.name}: {shown(path)}")
