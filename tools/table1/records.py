"""What has come of a run: its settings and the metrics of its epochs, from its folder."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.files import is_locked
from mlpcore.network.architecture import PRESETS, count_parameters, format_hidden_layers
from mlpcore.store.run_folder import Run, holds_run
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics

#: A run in progress is read anew, after a pause, when another process saved meanwhile.
TRIES = 5
PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class ErrorCounts:
    """What the outputs of a network, or of several averaged, say about n test images."""

    n: int
    errors: int
    second_right: int  #: errors whose second guess is right


@dataclass(frozen=True)
class Record:
    """A run that was started.

    Attributes
    ----------
    name
        That of its folder.
    history
        Of the epochs that are complete.
    running
        Whether a process is at it.
    counts
        Of the network with the best validation error, where they have been measured.
    """

    name: str
    config: TrainingConfig
    data: DataSummary
    history: tuple[EpochMetrics, ...] = ()
    running: bool = False
    counts: ErrorCounts | None = None

    @property
    def epoch(self) -> int:
        """Epochs completed."""
        return len(self.history)

    @property
    def finished(self) -> bool:
        """Whether all epochs are."""
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
    def layer_sizes(self) -> tuple[int, ...]:
        """Inputs, hidden layers, outputs."""
        return self.data.layer_sizes(self.config.hidden_layers)

    @property
    def n_parameters(self) -> int:
        """Weights and biases."""
        return count_parameters(self.layer_sizes)

    @property
    def best_metrics(self) -> EpochMetrics | None:
        """Of the first epoch with the lowest validation error: the one that counts."""
        return min(self.history, key=lambda m: m.validation_errors, default=None)

    @property
    def best_test_metrics(self) -> EpochMetrics | None:
        """Of the first epoch with the lowest test error, which nobody could have selected."""
        return min(self.history, key=lambda m: m.test_errors, default=None)

    @property
    def best_test_error(self) -> float:
        """The lowest of all epochs, in percent; NaN before the first has ended."""
        return self.best_test_metrics.test_error if self.best_test_metrics else math.nan

    @property
    def seconds(self) -> float:
        """Of all complete epochs, interruptions left out."""
        return sum(m.seconds for m in self.history)

    @property
    def updates_per_second(self) -> float | None:
        """Weights updated per second of training, deformation and evaluation left out."""
        seconds = sum(m.training_seconds for m in self.history)
        samples = sum(m.n_train for m in self.history)
        return samples * self.n_parameters / seconds if seconds else None


def read_record(folder: Path) -> Record:
    """The run in a folder, which may be in progress; its checkpoints are checked too.

    Raises
    ------
    InputError
        When there is none, or a file is damaged or does not fit the others.
    """
    for attempt in range(TRIES):
        try:
            run = Run.open(folder, to_train=False)
            history = tuple(run.load().history)
            return Record(folder.name, run.config, run.data, history, is_locked(folder))
        except InputError:
            if attempt == TRIES - 1 or not is_locked(folder):
                raise
            time.sleep(PAUSE_SECONDS)
    raise AssertionError


def check_best(path: Path, epoch: str, record: Record) -> None:
    """Raises InputError unless a network, of this epoch, is the one that counts of a run."""
    if record.best_metrics is None or epoch != str(record.best_metrics.epoch):
        raise InputError(
            f"{shown(path)} is of another epoch than the metrics: expected "
            "another try when it has been saved, or the run resumed after a kill"
        )


def read_records(out: Path) -> tuple[list[Record], dict[str, str]]:
    """All runs in the folders of a folder, and by name a line on each that cannot be read.

    Raises
    ------
    InputError
        When there is no such folder.
    """
    try:
        names = sorted(os.listdir(out))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot read {shown(out)}: {reason}; expected a folder of runs") from None
    records, problems = [], {}
    for name in names:
        if not holds_run(out / name):
            continue
        try:
            records.append(read_record(out / name))
        except InputError as error:
            problems[name] = str(error)
    return sorted(records, key=in_order), problems


def in_order(record: Record) -> tuple[int, tuple[int, ...], int, int, str]:
    """By network, as the paper lists them, then by length and seed."""
    presets = list(PRESETS.values())
    hidden = record.config.hidden_layers
    place = presets.index(hidden) if hidden in presets else len(presets)
    return place, hidden, -record.config.epochs, record.config.seed, record.name


def distinct_seeds(records: Iterable[Record]) -> list[Record]:
    """One run of each network, settings, data and seed: another would be the same once more."""
    kept: dict[object, Record] = {}
    for record in records:
        kept.setdefault((same_but_seed(record), record.config.seed), record)
    return list(kept.values())


def same_but_seed(record: Record) -> object:
    """Equal for runs that differ in nothing but the seed, and in the backend, which rounds."""
    config = dataclasses.replace(record.config, seed=0, backend="", schedule=None)
    return config, record.data.sha256


def first_difference(found: Sequence[EpochMetrics], expected: Sequence[EpochMetrics]) -> int | None:
    """The first epoch with other numbers of errors, None when there is no such."""
    for ours, theirs in zip(found, expected):
        if _errors(ours) != _errors(theirs):
            return theirs.epoch
    return len(found) + 1 if len(found) < len(expected) else None


def _errors(metrics: EpochMetrics) -> tuple[int, int, int]:
    return metrics.training_errors, metrics.validation_errors, metrics.test_errors
