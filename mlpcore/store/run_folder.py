"""A run in a folder, from which training can continue even if its process was killed.

| file | content |
|---|---|
| ``config.json`` | everything needed to repeat the run |
| ``best.safetensors`` | the network of the epoch with the lowest validation error |
| ``metrics.jsonl`` | a line for each epoch |
| ``last.safetensors`` | the network with which training continues, and its place in the epoch |

Each file is replaced as a whole, in this order. The clock decides after which epochs, and the bits
do not depend on it. If a run is killed in between, other files may be newer than
``last.safetensors``. That file decides: surplus lines are dropped, and an epoch that is trained
again gives the same bits. `mlpcore.commands.train` adds ``report.md``, which nothing reads.

Only ``config.json`` changes when the number of epochs does. ``last.safetensors`` then still has the
settings of before, which must mean the same for the epochs that have begun.

``config.json`` has the fields of `Document`, and a line of ``metrics.jsonl`` those of
`mlpcore.training.EpochMetrics` and the errors in percent. Functions that read raise an InputError
when a file is not there, is damaged or does not match the others.

The weights are as in `mlpcore.store.weights`. To its metadata both files add

| name | content |
|---|---|
| ``epoch`` | how many epochs are done |
| ``seed`` | the seed of the run |
| ``learning_rate`` | of its epoch in ``best``, of the next epoch in ``last`` |
| ``ones_and_sevens`` | the share of them that got strokes, if any (`mlpcore.data.strokes`) |
| ``revision``, ``machine`` | the source and the computer that computed the weights |

``best`` also has ``metrics``, its line of ``metrics.jsonl`` without the percentages. ``last`` has
``checkpoint``, the fields of `Checkpoint`. Both are JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from mlpcore.checks import Record, check_whole
from mlpcore.data.dataset import Dataset
from mlpcore.data.pixels import PixelSpec
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.files import (
    Lock,
    atomic_write,
    check_replaceable,
    check_writable,
    is_hidden,
    make_folder,
    read_bounded,
    read_start,
    remove_temporary,
)
from mlpcore.network import Network
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.store import provenance
from mlpcore.store.documents import from_json, read_document, to_json, to_metadata, write_document
from mlpcore.store.weights import read_network, write_network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.typing import StrPath
from mlpcore.version import __version__

CONFIG, METRICS = "config.json", "metrics.jsonl"
BEST, LAST = "best.safetensors", "last.safetensors"
RUN_FILES = (CONFIG, METRICS, BEST, LAST)

#: A line of ``metrics.jsonl`` is shorter.
MAX_LINE = 2**10

#: The share of the time in which a run is saved, apart from stops.
SAVING_SHARE = 0.02


class Document(Record, frozen=True):
    """The content of ``config.json``. The first four are for human readers."""

    library: str
    version: str
    architecture: str
    backend: str
    training: TrainingConfig
    data: DataSummary


class Checkpoint(Record, frozen=True):
    """The place in a run at which its last network is."""

    epoch: int  #: how many are done
    progress: EpochProgress  #: of the next one
    training: TrainingConfig  #: as in ``config.json`` when this was saved
    metrics_sha256: str  #: of the lines of ``metrics.jsonl`` so far


def holds_run(folder: StrPath) -> bool:
    """Tell if a folder has any file of a run."""
    return any(os.path.lexists(Path(folder, name)) for name in RUN_FILES)


def _check_new(folder: StrPath) -> None:
    if holds_run(folder):
        raise InputError(f"{shown(folder)} already holds a run: expected a new folder")


def check_output(folder: StrPath) -> None:
    """Raise InputError unless a new run can be written to a folder of its own; leave nothing."""
    _check_new(folder)
    check_writable(folder)
    if Path(folder).is_dir():
        others = [each.name for each in Path(folder).iterdir() if not is_hidden(each.name)]
        if others:
            name = shown(min(others))
            raise InputError(f"{shown(folder)} holds {name}: expected a new or an empty folder")


def check_result_file(path: StrPath) -> None:
    """Raise InputError unless a file that a user named can be written and belongs to no run."""
    path = Path(path)
    check_replaceable(path)
    if path.name.lower() in RUN_FILES and holds_run(path.parent):  # the system may ignore case
        raise InputError(f"{shown(path)} belongs to a run: expected another file")


def read_settings(folder: StrPath) -> tuple[TrainingConfig, DataSummary]:
    """The settings and the data of a run, which another process may be training."""
    document = read_document(Path(folder, CONFIG), Document)
    return document.training, document.data


def read_history(folder: StrPath) -> list[EpochMetrics]:
    """The metrics of all epochs of a run, which another process may be training."""
    path, epochs = Path(folder, METRICS), read_settings(folder)[0].epochs
    # A killed process may have left a line that is not counted.
    return _parse_history(path, read_bounded(path, MAX_LINE * (epochs + 1)).splitlines())


def _line(metrics: EpochMetrics) -> bytes:
    """The line of JSON of an epoch. Human readers get percentages, too."""
    values = structs.asdict(metrics)
    for name in ("training_error", "validation_error", "test_error"):
        if values[f"{name}s"] is not None:
            values[name] = round(getattr(metrics, name), 4)
    return json.dumps(values).encode() + b"\n"


def _parse_history(path: Path, lines: Iterable[bytes]) -> list[EpochMetrics]:
    """The metrics in lines of a file, which may be damaged."""
    try:
        history = [from_json(line, EpochMetrics) for line in lines]
    except InputError as error:
        raise InputError(f"{shown(path)} is damaged: {error}") from None
    if [each.epoch for each in history] != list(range(1, len(history) + 1)):
        raise InputError(f"{shown(path)} is damaged: expected a line for each epoch")
    return history


def read_run_network(
    path: StrPath, config: TrainingConfig, data: DataSummary
) -> tuple[Network, dict[str, str]]:
    """A network of a run and the metadata of its file, which fit the run's settings and data."""
    network, metadata = read_network(path)
    expected = to_metadata(
        architecture=",".join(map(str, data.layer_sizes(config.hidden_layers))),
        activation=config.activation,
        loss=config.loss,
        pixels=_pixels(config, data),
    )
    for name, value in expected.items():
        if (found := metadata.get(name)) != value:
            raise InputError(
                f"{shown(path)} does not match {CONFIG}: {name} {found}, expected {value}"
            )
    return network, metadata


def _pixels(config: TrainingConfig, data: DataSummary) -> PixelSpec:
    """The conversion of pixels to the inputs of a run's network."""
    return structs.replace(data.pixels, input_range=config.input_range)


class Run(Observer):
    """The folder of a run. As an observer of its `Trainer` it writes what a kill must not lose.

    It saves when training stops or ends and, in between, after an epoch if saving takes at most
    `SAVING_SHARE` of the time. A kill costs the epochs since then, which are computed again, to the
    same bits.
    """

    def __init__(self, folder: StrPath, config: TrainingConfig, data: DataSummary):
        self.folder, self.config, self.data = Path(folder), config, data
        #: The computer that computes the weights, if it is another than this.
        self.machine: str | None = None
        self._lock: Lock | None = None
        #: Of the best network on disk. After a save that failed it is behind the state's.
        self._best_epoch = 0
        #: When the next save in between is due, by `time.monotonic`.
        self._due = 0.0

    @classmethod
    def create(cls, folder: StrPath, config: TrainingConfig, dataset: Dataset, backend: str) -> Run:
        """Start a run: write the settings and the network before its first sample.

        `backend` is the line that describes the backend, for human readers. If anything fails,
        no new file is left but that of the lock.
        """
        folder, data = Path(folder), DataSummary.of(dataset)
        architecture = format_hidden_layers(config.hidden_layers)
        document = Document("mlpcore", __version__, architecture, backend, config, data)
        run = cls(folder, config, data)
        make_folder(folder)
        with contextlib.ExitStack() as undo:
            run._lock = Lock(folder)  # if another process has the lock, it needs the folder
            undo.callback(run.close)
            _check_new(folder)
            for name in RUN_FILES:
                undo.callback((folder / name).unlink, missing_ok=True)
            write_document(folder / CONFIG, document, run._lock)
            run.save(run.load())
            undo.pop_all()
        return run

    @classmethod
    def open(cls, folder: StrPath) -> Run:
        """Lock the folder of a run and open it; InUse when another process has the lock.

        The constructor gives a run that can only be loaded. Its `load` may fail at the moment at
        which another process saves.
        """
        run = cls(folder, *read_settings(folder))
        run._lock = Lock(run.folder)
        remove_temporary(run.folder, RUN_FILES)
        return run

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def change_settings(self, config: TrainingConfig) -> None:
        """Record what `TrainingConfig.with_epochs` returned for the state that `load` read."""
        path = self.folder / CONFIG
        document = read_document(path, Document)
        write_document(path, structs.replace(document, training=config), self._lock)
        self.config = config

    def check_data(self, dataset: Dataset) -> None:
        """Raise InputError unless the run began with these data."""
        found = DataSummary.of(dataset)
        self.data.check_same(found, f"the run in {shown(self.folder)}")

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Save the epoch if it is the last one, or a save is due."""
        if trainer.state.epoch == trainer.config.epochs or time.monotonic() >= self._due:
            self.save(trainer.state)

    def on_stop(self, trainer: Trainer) -> None:
        """Save where to continue."""
        self.save(trainer.state)

    def save(self, state: TrainingState) -> None:
        """Write what is not on disk yet of a state; if that fails, all files are still complete."""
        started = time.monotonic()
        self._save(state)
        ended = time.monotonic()
        self._due = ended + (ended - started) / SAVING_SHARE

    def _save(self, state: TrainingState) -> None:
        best = state.best_metrics
        if best is not None and best.epoch != self._best_epoch:
            assert state.best is not None
            metadata = self._metadata(best.epoch, best.learning_rate) | {"metrics": to_json(best)}
            write_network(self.folder / BEST, state.best, metadata, locked=self._lock)
            self._best_epoch = best.epoch
        lines = b"".join(map(_line, state.history))
        if lines:
            atomic_write(self.folder / METRICS, lines, locked=self._lock)
        learning_rate = self.config.learning_rate_at(min(state.epoch, self.config.epochs - 1))
        sha256 = hashlib.sha256(lines).hexdigest()
        checkpoint = Checkpoint(state.epoch, state.progress, self.config, sha256)
        metadata = self._metadata(state.epoch, learning_rate) | {"checkpoint": to_json(checkpoint)}
        write_network(self.folder / LAST, state.network, metadata, locked=self._lock)

    def _metadata(self, epoch: int, learning_rate: float) -> dict[str, str]:
        """The metadata of both networks."""
        config, data = self.config, self.data
        strokes = {"ones_and_sevens": config.ones_and_sevens} if config.ones_and_sevens else {}
        return to_metadata(
            epoch=epoch,
            seed=config.seed,
            learning_rate=learning_rate,
            revision=provenance.revision(),
            machine=self.machine or provenance.machine(),
            data=data.name,
            pixels=_pixels(config, data),
            target=config.target,
            classes=data.classes or tuple(range(data.n_classes)),
            **strokes,
        )

    def load(self) -> TrainingState:
        """Read the state that `save` wrote last, from files that fit each other."""
        last = self.folder / LAST
        if not any(os.path.lexists(self.folder / name) for name in (LAST, METRICS, BEST)):
            sizes = self.data.layer_sizes(self.config.hidden_layers)
            return TrainingState(self.config.new_network(sizes))  # killed at once
        network, metadata = read_run_network(last, self.config, self.data)
        try:
            found = from_json(metadata.get("checkpoint", ""), Checkpoint)
            check_whole("epoch", found.epoch, 0, self.config.epochs)
            check_whole("samples", found.progress.samples, 0, self.data.n_train)
        except InputError as error:
            raise InputError(f"{shown(last)} is damaged: {error}") from None
        if not found.training.agrees_with(self.config, found.epoch + bool(found.progress.samples)):
            raise InputError(f"{shown(last)} has different settings than {CONFIG}")
        n, path = found.epoch, self.folder / METRICS
        content = read_start(path, MAX_LINE * n)[0] if n else b""
        lines = content.splitlines(keepends=True)[:n]  # the next `save` drops the others
        if hashlib.sha256(b"".join(lines)).hexdigest() != found.metrics_sha256:
            raise InputError(f"{shown(path)} is damaged: its first {n} lines do not match {LAST}")
        state = TrainingState(network, None, _parse_history(path, lines), found.progress)
        if best := state.best_metrics:
            path = self.folder / BEST
            state.best, metadata = read_run_network(path, self.config, self.data)
            # It may be ahead: training comes to the same one again.
            ahead = map(str, range(n + 1, self.config.epochs + 1))
            if metadata.get("metrics") != to_json(best) and metadata.get("epoch", "") not in ahead:
                raise InputError(
                    f"{shown(path)} does not match {LAST}: "
                    f"expected the network of epoch {best.epoch}"
                )
            self._best_epoch = best.epoch
        return state
