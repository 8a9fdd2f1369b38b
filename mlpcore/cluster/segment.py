"""A task of a cluster: some epochs of a member, on a worker.

The whole of a task is its arguments and its result, so Dask may run it anywhere, and again.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlpcore import backends
from mlpcore.backends import INSTRUCTION_SETS
from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.store import provenance
from mlpcore.training.config import TrainingConfig
from mlpcore.training.pace import seconds_per_epoch
from mlpcore.training.state import EpochMetrics, TrainingState
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.version import __version__

if TYPE_CHECKING:
    from distributed import Worker

#: Dask's resource of a worker that trains on a GPU.
GPU = "GPU"


@dataclass(frozen=True)
class Environment:
    """What decides the bits that a process computes."""

    version: str
    revision: str
    backends: tuple[str, ...]

    def refusal(self, worker: Environment, backend: str, mixed: bool) -> str:
        """Why a worker may not train for this process, in a few words; else "".

        `mixed` allows another instruction set than that of the settings, but not another kind of
        machine.
        """
        if worker.version != self.version:
            return f"has mlpcore {worker.version}, expected {self.version}"
        if worker.revision != self.revision:
            found, expected = (each or "unknown" for each in (worker.revision, self.revision))
            return f"has revision {found} of mlpcore, expected {expected}"
        if backend not in worker.backends and not (mixed and backend in INSTRUCTION_SETS):
            return (
                f"cannot run {backend}: expected a worker that can, or another --backend (it has "
                f"{', '.join(worker.backends)}), or --mixed"
            )
        return ""


def environment() -> Environment:
    """That of this process."""
    found = tuple(name for name, reason in backends.available().items() if reason is None)
    return Environment(__version__, provenance.revision(), found)


def described(dask_worker: Worker) -> tuple[Environment, bool]:
    """The environment of a worker, and whether it offers the resource `GPU`."""
    return environment(), dask_worker.state.total_resources.get(GPU, 0) > 0


def missing_data(summary: DataSummary) -> str:
    """Why this process cannot load the data of a summary; "" if it can."""
    try:
        load_data(summary)
    except InputError as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=1)
def load_data(summary: DataSummary) -> Dataset:
    """The data of a summary, loaded once in a process.

    Raises
    ------
    InputError
        When they are not where they were, or are others.
    """
    data = summary.load()
    if DataSummary.of(data).sha256 != summary.sha256:
        raise InputError(
            f"the data from {shown(data.source)} are others: expected {summary.name} with the "
            f"SHA-256 {summary.sha256[:12]}..."
        )
    return data


@dataclass(frozen=True)
class Job:
    """What all tasks of a committee have in common.

    Attributes
    ----------
    expected : Environment
        That of the process which collects the results.
    threads : int
    mixed : bool
        Whether a worker may compute by another instruction set than that of the settings.
    topic : str
        The topic of Dask's events to which every epoch is reported.
    """

    expected: Environment
    threads: int
    mixed: bool
    topic: str

    def backend(self, config: TrainingConfig) -> Backend:
        """What computes here; an InputError unless this worker may train."""
        reason = self.expected.refusal(environment(), config.backend, self.mixed)
        if reason:
            raise InputError(reason)
        name, schedule = config.backend, config.schedule
        if name not in environment().backends:
            name = "cpu"
        return backends.get(name, self.threads, schedule)


@dataclass(frozen=True)
class Result:
    """What comes home: the state of a member, and what computed it."""

    state: TrainingState
    machine: str
    worker: str


def measure(config: TrainingConfig, data: DataSummary | Dataset, job: Job) -> float:
    """Seconds of an epoch on this worker."""
    return seconds_per_epoch(config, _loaded(data), job.backend(config))


def train_segment(
    config: TrainingConfig,
    before: Result | TrainingState,
    until: int,
    data: DataSummary | Dataset,
    job: Job,
    name: str,
) -> Result:
    """Trains a member from a state to the end of an epoch; the bits do not depend on the cut.

    Parameters
    ----------
    data
        A summary is loaded on the worker, by its name or path.
    before
        The result of the task before. It stays as it is, because Dask may need it again.
    until
        The number of epochs that are done afterwards.
    name
        That of the member, for the events.

    Raises
    ------
    InputError
        When this worker may not train, lacks the data, or training diverges. It names the worker.
    """
    from distributed import get_worker

    worker = get_worker()
    try:
        backend = job.backend(config)
        state = _copy(before.state if isinstance(before, Result) else before)
        report = functools.partial(worker.log_event, job.topic)
        observer = _Reporter(name, until, worker.address, report)
        Trainer(config, _loaded(data), backend, [observer], state).run()
    except InputError as error:
        raise type(error)(f"worker {worker.address}, member {name}: {error}") from None
    return Result(state, f"{provenance.machine()}, {backend.name}", worker.address)


def _loaded(data: DataSummary | Dataset) -> Dataset:
    return load_data(data) if isinstance(data, DataSummary) else data


def _copy(state: TrainingState) -> TrainingState:
    """A state that a `Trainer` may change; it replaces the best network, and changes the other."""
    return dataclasses.replace(
        state,
        network=state.network.copy(),
        history=list(state.history),
        progress=dataclasses.replace(state.progress),
    )


class _Reporter(Observer):
    """Reports every epoch as an event of Dask, and stops after the last of a segment."""

    def __init__(self, name: str, until: int, worker: str, report: Any):
        self._name, self._until, self._worker, self._report = name, until, worker, report

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        self._report({"member": self._name, "epoch": metrics.epoch, "worker": self._worker})
        if metrics.epoch >= self._until:
            trainer.request_stop()
