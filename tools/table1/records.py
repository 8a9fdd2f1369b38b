"""Runs that were started: their settings, the metrics of their epochs, and their data."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlpcore.data.dataset import EMBEDDED, MNIST, Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.files import is_locked
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS, count_parameters, format_hidden_layers
from mlpcore.store.run_folder import BEST, Run, holds_run
from mlpcore.store.weights import read_network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import CompletedEpochs, EpochMetrics

#: A run in progress is read again, after a pause, when its process was saving it meanwhile.
TRIES = 5
PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class ErrorCounts:
    """How a network does on n images; a ValueError when that is impossible."""

    n: int
    errors: int
    second_right: int  #: errors whose second guess is right

    def __post_init__(self) -> None:
        if not 0 <= self.second_right <= self.errors <= self.n or self.n == 0:
            raise ValueError(f"{self}: expected second_right <= errors <= n")


@dataclass(eq=False)
class Record(CompletedEpochs):
    """A run that was started; `folder` holds the run or its evidence.

    `running` says whether a process is training it. `test` says how the network with the lowest
    validation error does on the test images, None while that is not known.
    """

    folder: Path
    config: TrainingConfig
    data: DataSummary
    history: tuple[EpochMetrics, ...] = ()
    running: bool = False
    test: ErrorCounts | None = None

    @property
    def name(self) -> str:
        """The folder's name, printable."""
        return shown(self.folder.name)

    @property
    def finished(self) -> bool:
        """Whether all epochs are completed."""
        return self.epoch == self.config.epochs

    @property
    def state(self) -> str:
        """One word."""
        return "finished" if self.finished else "running" if self.running else "unfinished"

    @property
    def network(self) -> str:
        """net1 ... net5, or the widths of other hidden layers."""
        return format_hidden_layers(self.config.hidden_layers)

    @property
    def n_parameters(self) -> int:
        """Weights and biases."""
        return count_parameters(self.data.layer_sizes(self.config.hidden_layers))

    def check_data(self, data: DataSummary) -> None:
        """Raises InputError when these are not the data of the run."""
        if data.sha256 != self.data.sha256:
            raise InputError(
                f"the data in {shown(data.source)} are not those of {shown(self.folder)}: "
                f"expected {self.data.name} as it was in {shown(self.data.source)}"
            )

    def load_data(self, folder: Path | None, *, download: bool) -> Dataset:
        """The data of the run, from `folder` or where they were; an InputError without them."""
        known = self.data.name in (MNIST, EMBEDDED) or os.path.isabs(self.data.source)
        if not (folder or known):  # Evidence holds no paths.
            raise InputError(f"the data of {shown(self.folder)} are not MNIST: expected --data")
        data = self.data.load(folder, download=download)
        self.check_data(DataSummary.of(data))
        return data

    def read_network(self, file: str) -> tuple[Network, dict[str, str]]:
        """The network in a file of the run's folder, and the file's metadata.

        Raises InputError when the file is damaged, or the best network is not that of the
        history: its process may have saved it since, or may have been killed in between.
        """
        path = self.folder / file
        network, metadata = read_network(path, self.data.layer_sizes(self.config.hidden_layers))
        best = self.best_metrics
        if file == BEST and (best is None or metadata.get("epoch") != str(best.epoch)):
            raise InputError(
                f"{shown(path)} is of another epoch than the metrics: expected another try "
                "after the run has been saved, or resumed if it was killed"
            )
        return network, metadata


def read_record(folder: Path) -> Record:
    """The run in a folder, which another process may be training; an InputError if damaged."""
    tries = TRIES
    while True:
        try:
            run = Run.open(folder, to_train=False)
            history = tuple(run.load().history)
            return Record(folder, run.config, run.data, history, is_locked(folder))
        except InputError:
            tries -= 1
            if not tries or not is_locked(folder):
                raise
            time.sleep(PAUSE_SECONDS)


def read_records(out: Path) -> tuple[list[Record], dict[str, str]]:
    """All runs in a folder of runs, and why others are unreadable, by their names.

    Raises InputError when there is no such folder, or no run in it.
    """
    try:
        folders = sorted(out / name for name in os.listdir(out))
    except OSError as error:
        raise InputError(f"cannot read {shown(out)}: {error.strerror or error}") from None
    records, unreadable = [], {}
    for folder in filter(holds_run, folders):
        try:
            records.append(read_record(folder))
        except InputError as error:
            unreadable[shown(folder.name)] = str(error)
    if not records and not unreadable:
        raise InputError(f"{shown(out)} holds no runs: expected what this tool has trained")
    return sorted(records, key=in_order), unreadable


def in_order(record: Record) -> tuple[int, tuple[int, ...], int, int, str]:
    """Sorts runs by network, in the paper's order, then by length and seed."""
    presets, hidden = list(PRESETS.values()), record.config.hidden_layers
    place = presets.index(hidden) if hidden in presets else len(presets)
    return place, hidden, -record.config.epochs, record.config.seed, record.name


def same_but_seed(record: Record) -> object:
    """Equal for runs that differ in nothing but their seed and their backend."""
    config = dataclasses.replace(record.config, seed=0, backend="", schedule=None)
    return config, record.data.sha256


def distinct_seeds(records: Iterable[Record]) -> list[Record]:
    """One run of each network, settings, data and seed: a second one would be a copy."""
    kept: dict[object, Record] = {}
    for record in records:
        kept.setdefault((same_but_seed(record), record.config.seed), record)
    return list(kept.values())


def first_difference(found: Sequence[EpochMetrics], expected: Sequence[EpochMetrics]) -> int:
    """The first expected epoch that was not found with the same numbers of errors; 0 if none."""
    for epoch, theirs in enumerate(expected, 1):
        if epoch > len(found) or _errors(found[epoch - 1]) != _errors(theirs):
            return epoch
    return 0


def _errors(metrics: EpochMetrics) -> tuple[int, int, int]:
    return metrics.training_errors, metrics.validation_errors, metrics.test_errors
