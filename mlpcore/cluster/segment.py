"""A task of a cluster: some epochs of a member, on a worker.

The whole of a task is its arguments and its result, so Dask may run it anywhere, and again.
"""

import copy
from typing import NamedTuple

from distributed import get_worker

from mlpcore import backends
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError
from mlpcore.store import provenance
from mlpcore.store.committee import Member
from mlpcore.training.state import TrainingState
from mlpcore.training.trainer import Trainer
from mlpcore.version import __version__

#: Dask's resource of a worker that trains on a GPU.
GPU = "GPU"


def source() -> str:
    """The source that computes in this process; others may compute other bits."""
    return f"mlpcore {__version__} of revision {provenance.revision() or 'unknown'}"


def as_given(data: Dataset) -> Dataset:
    """The task that brings the data to the workers: one gets them, the others ask that one."""
    return data


class Result(NamedTuple):
    """The state of a member, and what computed it."""

    state: TrainingState
    machine: str
    worker: str


def train_segment(
    expected: str, threads: int, member: Member, data: Dataset, state: TrainingState, until: int
) -> Result:
    """Trains a member from a state until so many epochs are done, if `source` is as expected.

    An InputError, when this worker may not train or training diverges, names the worker.
    """
    worker, config = get_worker().address, member.config
    try:
        if source() != expected:
            raise InputError(f"it has {source()}, expected {expected}")
        try:
            backend = backends.get(config.backend, threads, config.schedule)
        except InputError as error:
            raise InputError(f"{error}; expected another worker, or another --backend") from None
        state = copy.deepcopy(state)  # Dask may need that of the argument again
        Trainer(config, data, backend, state=state).run(until)
    except InputError as error:
        raise type(error)(f"worker {worker}, member {member.name}: {error}") from None
    return Result(state, f"{provenance.machine()}, {backend.name}", worker)
