"""What the networks of the runs say about the test images: second guesses, and a committee."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlpcore import backends
from mlpcore.backends import Backend
from mlpcore.data import dataset
from mlpcore.errors import InputError
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.evaluation.committee import mean_outputs
from mlpcore.network import Network
from mlpcore.store.run_folder import BEST
from mlpcore.store.weights import read_network
from table1.data import find_data
from table1.records import ErrorCounts, Record, check_best, distinct_seeds


@dataclass(frozen=True)
class Committee:
    """All finished runs of a folder on the same data, their outputs averaged; none is selected."""

    members: tuple[str, ...]
    counts: ErrorCounts


@dataclass
class Measured:
    """What could be measured of the runs in a folder.

    Attributes
    ----------
    records
        All of them, with their counts.
    evaluations
        By the names of the runs.
    images
        Of the test sets, (n, h, w), by the names of the runs; runs on the same data share one.
    committees
        One for all data on which at least two runs are finished.
    notes
        A line for whatever could not be measured.
    """

    records: list[Record]
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    images: dict[str, np.ndarray] = field(default_factory=dict)
    committees: list[Committee] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measure(
    out: Path, records: Sequence[Record], threads: int | None, data_folder: str | None
) -> Measured:
    """Evaluates the best network of each run on its test set, and committees.

    Parameters
    ----------
    out
        The folder with the folders of the runs.
    data_folder
        Where the data are now, if not where they were.
    """
    measured = Measured(list(records))
    by_data: dict[str, list[Record]] = {}
    for record in records:
        if record.history:
            by_data.setdefault(record.data.sha256, []).append(record)
    for group in by_data.values():
        try:
            data = find_data(group[0].data, data_folder, group[0].name)
        except InputError as error:
            names = ", ".join(record.name for record in group)
            measured.notes.append(f"{names} without second guesses: {error}")
            continue
        _measure_group(out, group, data, threads, measured)
    return measured


def _measure_group(
    out: Path,
    group: list[Record],
    data: dataset.Dataset,
    threads: int | None,
    measured: Measured,
) -> None:
    if not len(data.test_labels):
        return
    outputs: dict[str, np.ndarray] = {}
    for record in group:
        try:
            network = _best_network(out / record.name / BEST, record)
        except InputError as error:
            measured.notes.append(str(error))
            continue
        backend = _backend(record, threads)
        outputs[record.name] = evaluation.outputs(network, data.test_images, backend)
        result = Evaluation.of(outputs[record.name], data.test_labels)
        measured.evaluations[record.name] = result
        measured.images[record.name] = data.test_images
        place = measured.records.index(record)
        measured.records[place] = dataclasses.replace(record, counts=count(result))
    finished = distinct_seeds(record for record in group if record.finished)
    members = tuple(record.name for record in finished if record.name in outputs)
    if len(members) > 1:
        result = Evaluation.of(mean_outputs([outputs[name] for name in members]), data.test_labels)
        measured.committees.append(Committee(members, count(result)))


def _best_network(path: Path, record: Record) -> Network:
    """Of the epoch that the record says, and not of a later one."""
    network, metadata = read_network(path, record.layer_sizes)
    check_best(path, metadata.get("epoch", ""), record)
    return network


def count(result: Evaluation) -> ErrorCounts:
    """The numbers that the table has of an evaluation."""
    return ErrorCounts(result.n, result.errors, result.second_right)


def _backend(record: Record, threads: int | None) -> Backend:
    """That of the run, which then counts the same errors; any other where it cannot run."""
    if (
        record.config.backend in backends.names()
        and not backends.available()[record.config.backend]
    ):
        return backends.get(record.config.backend, threads)
    return backends.get(threads=threads)
