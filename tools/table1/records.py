"""Runs that were started: reads them from their folders, and tests their networks."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from mlpcore import backends
from mlpcore.data.dataset import EMBEDDED, MNIST, Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.data.width import to_inputs
from mlpcore.errors import InputError, shown
from mlpcore.evaluation.committee import mean_outputs
from mlpcore.evaluation.evaluation import Evaluation, outputs
from mlpcore.files import is_locked
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS, count_parameters, format_hidden_layers
from mlpcore.store.run_folder import BEST, Run, holds_run, read_run_network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import CompletedEpochs, EpochMetrics
from mlpcore.typing import AnyArray

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
    """A run that was started; its folder, or that of its evidence, names it.

    `test` is that of the network with the lowest validation error, None while it is not known.
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
        """A network of the run, and the metadata of its file, or an InputError.

        It is an error too when the best network is of a later epoch than the history. Another
        process may have saved it since, or was killed before it saved the rest.
        """
        path = self.folder / file
        network, metadata = read_run_network(path, self.config, self.data)
        best = self.best_metrics
        if file == BEST and (best is None or metadata.get("epoch") != str(best.epoch)):
            raise InputError(
                f"{shown(path)} is of another epoch: expected the run saved or resumed"
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
    """All runs in a folder, and why others are unreadable, by name; an InputError without any."""
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
    names = ("training_errors", "validation_errors", "test_errors")
    for ours, theirs in zip_longest(found[: len(expected)], expected):
        if ours is None or any(getattr(ours, name) != getattr(theirs, name) for name in names):
            return theirs.epoch
    return 0


@dataclass(frozen=True)
class CommitteeResult:
    """How runs, named by `members`, do on the test images when their outputs are averaged."""

    members: tuple[str, ...]
    counts: ErrorCounts


@dataclass(frozen=True)
class Summary:
    """Committees, and the names of runs that were started but are not there, with the reason."""

    committees: tuple[CommitteeResult, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass
class Measured:
    """The runs in a folder, tested; names of `unreadable` ones, and a line for all that failed.

    A committee is of all finished runs on the same data. None is selected.
    """

    records: list[Record]
    committees: list[CommitteeResult]
    unreadable: dict[str, str]
    notes: list[str]


def measure(out: Path, threads: int | None, data_folder: Path | None) -> Measured:
    """Tests all runs in a folder of runs on their data, which may be in another folder now."""
    records, unreadable = read_records(out)
    measured = Measured(records, [], unreadable, list(unreadable.values()))
    by_data: dict[str, list[Record]] = {}
    for record in records:
        if record.history and record.data.n_test:
            by_data.setdefault(record.data.sha256, []).append(record)
    for group in by_data.values():
        try:
            data = group[0].load_data(data_folder, download=False)
        except InputError as error:
            names = ", ".join(record.name for record in group)
            measured.notes.append(f"{names} without second guesses: {error}")
        else:
            _test(group, data, threads, measured)
    return measured


def _test(group: list[Record], data: Dataset, threads: int | None, measured: Measured) -> None:
    """Adds the results of runs on the same data."""
    found: dict[str, tuple[Network, AnyArray]] = {}
    for record in group:
        try:
            network, _ = record.read_network(BEST)
        except InputError as error:
            measured.notes.append(str(error))
            continue
        # The run's own backend counts the same errors again. Another may differ by one.
        name = record.config.backend
        usable = name in backends.names() and backends.available()[name] is None
        backend = backends.get(name if usable else "auto", threads)
        images = to_inputs(data.test_images, record.config.input_range, record.config.width)
        found[record.name] = network, outputs(network, images, backend)
        record.test = _count(found[record.name][1], data)
    finished = distinct_seeds(record for record in group if record.finished)
    members = tuple(record.name for record in finished if record.name in found)
    if len(members) > 1:
        counts = _count(mean_outputs(*zip(*(found[name] for name in members))), data)
        measured.committees.append(CommitteeResult(members, counts))


def _count(outputs: AnyArray, data: Dataset) -> ErrorCounts:
    result = Evaluation.of(outputs, data.test_labels)
    return ErrorCounts(result.n, result.errors, result.second_right)
