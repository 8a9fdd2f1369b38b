"""Tests the networks of the runs on their test images, each alone and all as a committee."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mlpcore import backends
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError
from mlpcore.evaluation.committee import mean_outputs
from mlpcore.evaluation.evaluation import Evaluation, outputs
from mlpcore.store.run_folder import BEST
from mlpcore.typing import AnyArray
from table1.records import ErrorCounts, Record, distinct_seeds, read_records


@dataclass(frozen=True)
class CommitteeResult:
    """How runs, named by `members`, do on the test images when their outputs are averaged."""

    members: tuple[str, ...]
    counts: ErrorCounts


@dataclass
class Measured:
    """The runs in a folder, tested.

    Attributes
    ----------
    records : list of Record
        All runs that can be read, with `Record.test` where it could be measured.
    unreadable : dict of str
        Why other runs cannot be read, by their names.
    notes : list of str
        A line for everything that could not be read or measured.
    committees : list of CommitteeResult
        Of all finished runs on the same data, where there are at least two; none is selected.
    """

    records: list[Record]
    unreadable: dict[str, str]
    notes: list[str]
    committees: list[CommitteeResult] = field(default_factory=list)


def measure(out: Path, threads: int | None, data_folder: Path | None) -> Measured:
    """Tests the runs in a folder, and committees; an InputError when there is no run.

    `data_folder` says where the data are now, if not where they were.
    """
    records, unreadable = read_records(out)
    measured = Measured(records, unreadable, list(unreadable.values()))
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
    found: dict[str, AnyArray] = {}
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
        found[record.name] = outputs(network, data.test_images, backend)
        record.test = _count(found[record.name], data)
    finished = distinct_seeds(record for record in group if record.finished)
    members = tuple(record.name for record in finished if record.name in found)
    if len(members) > 1:
        counts = _count(mean_outputs([found[name] for name in members]), data)
        measured.committees.append(CommitteeResult(members, counts))


def _count(outputs: AnyArray, data: Dataset) -> ErrorCounts:
    result = Evaluation.of(outputs, data.test_labels)
    return ErrorCounts(result.n, result.errors, result.second_right)
