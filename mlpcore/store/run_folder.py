"""A run on disk, in a folder that a killed process leaves fit to go on.

| file | what |
|---|---|
| ``config.json`` | everything needed to repeat the run |
| ``best.safetensors`` | the network of the epoch with the lowest validation error |
| ``metrics.jsonl`` | a line for each epoch |
| ``last.safetensors`` | the network where training goes on, with its place in the epoch |

Each file is replaced as a whole, in this order. So a run killed in between has files that are
ahead of ``last.safetensors``, which decides: surplus lines are dropped, and an epoch that is
trained again becomes the same one, to the bit. When a run is done, `tools/train.py` adds
``report.md``, which nothing reads.

``config.json`` is an object of ``library``, ``version``, ``architecture`` and ``backend``, which
are for whoever reads it, and of ``training`` and ``data``, which are the fields of
`mlpcore.training.TrainingConfig` and `mlpcore.data.summary.DataSummary`. A line of
 ``metrics.jsonl`` is
an object of the fields of `mlpcore.training.EpochMetrics` and of the errors in percent. The
weights are as in `mlpcore.store.weights`; to its metadata both files add ``epoch`` (epochs done),
``seed``, ``learning_rate``, ``dataset``, ``image_shape`` and ``pixel_shape`` (what the network
is given: `mlpcore.store.inputs`), and the ``revision`` of the source and the ``machine`` that
computed them; the best network adds its line as ``metrics``, the last one ``progress``
(`mlpcore.training.EpochProgress`), ``best_epoch``, ``training``, ``metrics_sha256``, that of the
lines so far, and ``revisions`` (`mlpcore.store.provenance.Revisions`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mlpcore.checks import check_fields, check_rate, check_real, check_whole
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import MAX_SAMPLES, DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.files import (
    atomic_write,
    check_replaceable,
    check_writable,
    lock,
    make_folder,
    read_bounded,
    remove_folders,
    remove_temporary,
)
from mlpcore.network import Network
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.store import provenance
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.weights import read_network, write_network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.version import __version__

CONFIG, METRICS = "config.json", "metrics.jsonl"
BEST, LAST = "best.safetensors", "last.safetensors"
RUN_FILES = (CONFIG, METRICS, BEST, LAST)

MAX_CONFIG_BYTES = 2**24
MAX_METRICS_BYTES = 2**30

#: What reading values from a file that is not ours can raise.
_MALFORMED = (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError)


class AlreadyThere(InputError):
    """A folder for a new run holds one."""


def check_output(folder: Path) -> None:
    """Checks, without leaving anything behind, that a run can be written to a folder.

    Raises
    ------
    InputError
        When it already holds a run, or cannot be created or written.
    """
    _check_new(folder)
    check_writable(folder)


def holds_run(folder: Path) -> bool:
    """Whether there is any file of a run in a folder."""
    return any(os.path.lexists(folder / name) for name in RUN_FILES)


def check_result_file(path: Path) -> None:
    """Checks that a file that a user names for a result can be written and is none of a run's.

    Raises
    ------
    InputError
        As `check_replaceable`, and when it is one that its run cannot go on without.
    """
    check_replaceable(path)
    # Some file systems do not tell a name in capital letters from another.
    if path.name.lower() in RUN_FILES and holds_run(path.parent):
        raise InputError(f"{shown(path)} belongs to a run: expected another file")


def _check_new(folder: Path) -> None:
    if holds_run(folder):
        raise AlreadyThere(f"{shown(folder)} already holds a run: expected a new folder")


def read_settings(folder: Path) -> tuple[TrainingConfig, DataSummary]:
    """Settings and data of the run in a folder, in which another process may be training.

    Raises
    ------
    InputError
        When there is no run, or its settings are damaged.
    """
    path = folder / CONFIG
    content = read_bounded(path, MAX_CONFIG_BYTES)
    try:
        content = json.loads(content)
        config = TrainingConfig.from_json(content["training"])
        return config, DataSummary.from_json(content["data"])
    except InputError as error:
        raise InputError(f"{shown(path)} is damaged: {error}") from None
    except _MALFORMED:
        raise InputError(f"{shown(path)} is damaged: expected the settings of a run") from None


def read_history(folder: Path) -> list[EpochMetrics]:
    """The metrics of each epoch of a run, in which another process may be training.

    Raises
    ------
    InputError
        When the file cannot be read or is damaged.
    """
    path = folder / METRICS
    return _parse_history(path, read_bounded(path, MAX_METRICS_BYTES).splitlines())


def weights_file(path: Path) -> Path:
    """The file of weights that a path stands for: of a run's folder, that of its best network.

    Raises
    ------
    InputError
        When the folder holds no such file.
    """
    if not os.path.isdir(path):
        return path
    if not os.path.lexists(path / BEST):
        raise InputError(f"{shown(path)} holds no {BEST}: expected a run of at least one epoch")
    return path / BEST


class Run(Observer):
    """A run's folder; as an observer of its `Trainer` it writes every epoch and every stop.

    Attributes
    ----------
    folder : Path
    config : TrainingConfig
    data : DataSummary
    """

    def __init__(self, folder: Path, config: TrainingConfig, data: DataSummary):
        self.folder, self.config, self.data = folder, config, data
        self._lock: int | None = None
        #: On disk: the epoch of the best network, and the number of epochs with metrics. A save
        #: that fails leaves them behind the state, and the next one catches up.
        self._best_epoch = self._epochs = 0
        #: What computed the run before, up to which epoch and sample.
        self._revisions: provenance.Revisions = ()
        self._begun = 0, 0

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Of the run's network."""
        return self.data.layer_sizes(self.config.hidden_layers)

    @classmethod
    def create(
        cls,
        folder: Path,
        config: TrainingConfig,
        dataset: Dataset,
        backend: str,
        state: TrainingState,
    ) -> Run:
        """A new folder with the settings and the network before its first sample.

        `backend` is the line that describes it; it is not needed to go on, but to know.

        Raises
        ------
        InputError
            As `check_output`, and when the disk is full; nothing new is left then.
        """
        check_output(folder)
        data = DataSummary.of(dataset)
        content = {
            "library": "mlpcore",
            "version": __version__,
            "architecture": format_hidden_layers(config.hidden_layers),
            "backend": backend,
            "training": config.to_json(),
            "data": dataclasses.asdict(data),
        }
        run = cls(folder, config, data)
        made = make_folder(folder)
        with contextlib.ExitStack() as undo:
            run._lock = lock(folder)  # if another process has it, that one needs the folder
            undo.callback(remove_folders, made)
            undo.callback(run.close)
            _check_new(folder)  # another process may have been faster
            undo.callback(run._discard)
            atomic_write(folder / CONFIG, json.dumps(content, indent=2).encode() + b"\n")
            run.save(state)
            undo.pop_all()
        return run

    def _discard(self) -> None:
        """Removes what `create` has written."""
        for name in RUN_FILES:
            (self.folder / name).unlink(missing_ok=True)

    @classmethod
    def open(cls, folder: Path, *, to_train: bool = True) -> Run:
        """The run in a folder.

        Parameters
        ----------
        to_train
            Whether to keep other processes from it. Without, it can only be loaded; `load` may
            then fail at the moment at which another process saves.

        Raises
        ------
        InUse
            When another process is at it.
        InputError
            When there is none, or its settings are damaged.
        """
        run = cls(folder, *read_settings(folder))
        if to_train:
            run._lock = lock(folder)
            remove_temporary(folder, RUN_FILES)
        return run

    def close(self) -> None:
        """Lets other processes at the run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check_data(self, dataset: Dataset) -> None:
        """Raises InputError when these are not the data that the run began with."""
        if DataSummary.of(dataset).sha256 != self.data.sha256:
            raise InputError(
                f"the data from {shown(dataset.source)} are not those that the run in "
                f"{shown(self.folder)} began with: expected {self.data.name} "
                f"as it was in {shown(self.data.source)}"
            )

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Writes the epoch."""
        self.save(trainer.state)

    def on_stop(self, trainer: Trainer) -> None:
        """Writes where to go on."""
        self.save(trainer.state)

    def save(self, state: TrainingState) -> None:
        """Writes a state: whatever of it is not on disk yet, and where training goes on.

        Raises
        ------
        InputError
            When a file cannot be written; all files are then still complete.
        """
        best = state.best_metrics
        if best is not None and best.epoch != self._best_epoch:
            assert state.best is not None
            metadata = self._metadata(best.epoch, best.learning_rate)
            metadata["metrics"] = _text(best)
            write_network(self.folder / BEST, state.best, metadata)
            self._best_epoch = best.epoch
        if state.epoch != self._epochs:
            atomic_write(self.folder / METRICS, *history_lines(state.history))
            self._epochs = state.epoch
        self._save_last(state)

    def _save_last(self, state: TrainingState) -> None:
        """Writes the network and where training goes on with it."""
        best = state.best_metrics
        learning_rate = self.config.learning_rate_at(min(state.epoch, self.config.epochs - 1))
        metadata = self._metadata(state.epoch, learning_rate) | {
            "progress": _text(state.progress),
            "best_epoch": str(best.epoch if best else 0),
            "training": _text(self.config),
            "metrics_sha256": hashlib.sha256(b"".join(history_lines(state.history))).hexdigest(),
            "revisions": json.dumps(self._computed_by(state)),
        }
        write_network(self.folder / LAST, state.network, metadata)

    def _computed_by(self, state: TrainingState) -> provenance.Revisions:
        """What computed a state: what did before, and this source, if it did anything."""
        if (state.epoch, state.progress.samples) == self._begun:
            return self._revisions
        now = provenance.revision()
        if self._revisions and self._revisions[-1][1] == now:
            return self._revisions
        return (*self._revisions, (self._begun[0] + 1, now))

    def _metadata(self, epoch: int, learning_rate: float) -> dict[str, str]:
        """What both files of weights say; `epoch`, the number done, counts the random numbers."""
        return {
            "epoch": str(epoch),
            "seed": str(self.config.seed),
            "learning_rate": repr(learning_rate),
            "revision": provenance.revision(),
            "machine": provenance.machine(),
        } | NetworkInput.of(self.data).to_metadata()

    def load(self) -> TrainingState:
        """The state that `save` wrote last.

        Raises
        ------
        InputError
            When a file is damaged, of another architecture, or does not fit the others.
        """
        last = self.folder / LAST
        if not os.path.lexists(last) and not os.path.lexists(self.folder / METRICS):
            return TrainingState(Network(self.layer_sizes, self.config.seed))  # killed at once
        network, metadata = read_network(last, self.layer_sizes)
        try:
            epoch, best_epoch = int(metadata["epoch"]), int(metadata["best_epoch"])
            progress = _read_progress(metadata["progress"], self.data.n_train)
            training = TrainingConfig.from_json(json.loads(metadata["training"]))
            metrics_sha256 = metadata["metrics_sha256"]
            revisions = revisions_of(metadata)
            if not 0 <= epoch <= self.config.epochs:
                raise ValueError
        except _MALFORMED:
            raise InputError(f"{shown(last)} is damaged: expected the place in a run") from None
        if training != self.config:
            raise InputError(f"{shown(last)} has other settings than {CONFIG} beside it")
        history = self._read_history(epoch, metrics_sha256)
        state = TrainingState(network, None, history, progress)
        best = state.best_metrics
        if best_epoch != (best.epoch if best else 0):
            raise InputError(f"{shown(last)} is damaged: its best epoch is {best_epoch}")
        if best:
            state.best = self._read_best(epoch, best)
            self._best_epoch = best.epoch
        self._epochs, self._begun = epoch, (epoch, progress.samples)
        self._revisions = revisions
        return state

    def _read_history(self, epoch: int, sha256: str) -> list[EpochMetrics]:
        """The metrics of the epochs that are complete; the next `save` drops surplus ones."""
        path = self.folder / METRICS
        if epoch == 0:
            return []
        lines = read_bounded(path, MAX_METRICS_BYTES).splitlines(keepends=True)[:epoch]
        if hashlib.sha256(b"".join(lines)).hexdigest() != sha256:
            raise InputError(
                f"{shown(path)} is damaged: its first {epoch} lines do not fit {LAST} beside it"
            )
        return _parse_history(path, lines)

    def _read_best(self, epoch: int, best: EpochMetrics) -> Network:
        """The best network, which may be that of an epoch to come: it will be there again."""
        path = self.folder / BEST
        network, metadata = read_network(path, self.layer_sizes)
        to_come = map(str, range(epoch + 1, self.config.epochs + 1))
        if metadata.get("metrics") != _text(best) and metadata.get("epoch", "") not in to_come:
            raise InputError(
                f"{shown(path)} does not fit {LAST} beside it: "
                f"expected the network of epoch {best.epoch}"
            )
        return network


def revisions_of(metadata: Mapping[str, str]) -> provenance.Revisions:
    """What computed a run, by the metadata of its last network; a ValueError if damaged.

    Older files tell the last one alone.
    """
    if "revisions" not in metadata:
        return ((1, metadata.get("revision", "")),)
    return provenance.read_revisions(json.loads(metadata["revisions"]))


def _text(values: TrainingConfig | EpochMetrics | EpochProgress) -> str:
    """A dataclass as JSON."""
    return json.dumps(dataclasses.asdict(values))


def history_lines(history: Iterable[EpochMetrics]) -> Iterator[bytes]:
    """The metrics as lines of JSON; percentages are there for whoever reads them."""
    for metrics in history:
        values = dataclasses.asdict(metrics)
        for name in ("training_error", "validation_error", "test_error"):
            values[name] = round(getattr(metrics, name), 4)
        yield json.dumps(values).encode() + b"\n"


def _parse_history(path: Path, lines: list[bytes]) -> list[EpochMetrics]:
    """The metrics in the lines of a file."""
    try:
        return [_read_metrics(line, epoch) for epoch, line in enumerate(lines, 1)]
    except _MALFORMED:
        raise InputError(f"{shown(path)} is damaged: expected metrics of epochs") from None


def _read_metrics(line: bytes, epoch: int) -> EpochMetrics:
    """The metrics of an epoch, without what is derived from them; else one of `_MALFORMED`."""
    values = json.loads(line)
    values = {field.name: values[field.name] for field in dataclasses.fields(EpochMetrics)}
    for name, value in values.items():
        check_real(name, value)
        if not math.isfinite(value):
            raise ValueError
    metrics = EpochMetrics(**values)
    check_whole("epoch", metrics.epoch, epoch, epoch)
    check_whole("n_train", metrics.n_train, 1, MAX_SAMPLES)
    check_whole("n_test", metrics.n_test, 0, MAX_SAMPLES)
    check_whole("training_errors", metrics.training_errors, 0, metrics.n_train)
    check_whole("validation_errors", metrics.validation_errors, 0, metrics.n_train)
    check_whole("test_errors", metrics.test_errors, 0, metrics.n_test)
    check_rate("learning_rate", metrics.learning_rate)
    return metrics


def _read_progress(text: str, n_train: int) -> EpochProgress:
    """The place in an epoch; else one of `_MALFORMED`."""
    values = check_fields("progress", json.loads(text), EpochProgress)
    for name, value in values.items():
        check_real(name, value)
    if type(values["samples"]) is not int or not 0 <= values["samples"] <= n_train:
        raise ValueError
    return EpochProgress(**values)
