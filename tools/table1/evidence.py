"""Evidence of runs, small enough for the repository: all but the weights, and their SHA-256.

A folder for each run, and in it:

=====================  ==================================================================
``config.json``        the settings, from which the run can be computed again
``metrics.jsonl``      a line per epoch
``result.json``        SHA-256 of the weights, second guesses, what computed them and when
``report.md``          the run's report
``misclassified.png``  of a finished run: the paper's Figure 1
=====================  ==================================================================

``summary.json`` beside them has the committees, and the runs that were started but are left
out. Nothing in any of these files is a path.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mlpcore.checks import check_fields
from mlpcore.errors import InputError, shown
from mlpcore.files import read_bounded
from mlpcore.store.history import history_lines
from mlpcore.store.provenance import Revisions
from mlpcore.store.run_folder import (
    CONFIG,
    MAX_CONFIG_BYTES,
    METRICS,
    read_history,
    read_settings,
)
from table1.measure import Committee
from table1.records import ErrorCounts, Record, in_order

#: Where the repository has its own.
FOLDER = Path("benchmarks", "results", "table1")

RESULT, SUMMARY = "result.json", "summary.json"

#: What reading values from a damaged file can raise.
_MALFORMED = (KeyError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class Weights:
    """A network that is not there: after which epoch, and what computed it.

    `sha256` is that of `mlpcore.store.weights`; `revision` and `machine` are "" where
    the file of weights does not say.
    """

    epoch: int
    sha256: str
    version: str
    revision: str
    machine: str


@dataclass(frozen=True)
class Evidence:
    """A run as the repository keeps it.

    Attributes
    ----------
    backend, version
        What the run's settings say of the backend and the library that it began with.
    date
        Of the last epoch.
    best, last
        Of the lowest validation error, and of the last epoch if the run is finished.
    revisions
        All that computed the run; none in older evidence, where `best` and `last` have theirs.
    """

    record: Record
    backend: str
    version: str
    date: str
    best: Weights
    last: Weights | None
    revisions: Revisions = ()


@dataclass(frozen=True)
class Collection:
    """All evidence in a folder; `missing` are runs that were started and are not in it."""

    runs: tuple[Evidence, ...]
    committees: tuple[Committee, ...]
    missing: tuple[str, ...]


def read_evidence(folder: Path) -> Collection:
    """All evidence in a folder.

    Raises
    ------
    InputError
        When there is none, or something of it is damaged.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise InputError(f"cannot read {shown(folder)}: {error.strerror or error}") from None
    found = [
        read_run_evidence(folder / name)
        for name in names
        if os.path.lexists(folder / name / CONFIG)
    ]
    runs = sorted(found, key=lambda each: in_order(each.record))
    return Collection(tuple(runs), *read_summary(folder))


def read_summary(folder: Path) -> tuple[tuple[Committee, ...], tuple[str, ...]]:
    """The committees, and what runs are missing.

    Raises
    ------
    InputError
        When the file that says so is not there, or is damaged.
    """
    path = folder / SUMMARY
    summary = read_json(path)
    try:
        committees = tuple(
            Committee(tuple(map(shown, each["members"])), _counts(each["counts"]))
            for each in summary["committees"]
        )
        return committees, tuple(map(shown, summary["missing"]))
    except _MALFORMED:
        raise InputError(f"{shown(path)} is damaged: expected committees") from None


def read_run_evidence(folder: Path) -> Evidence:
    """The evidence of a run, in a folder of its own.

    Raises
    ------
    InputError
        When there is none, or it is damaged.
    """
    config, data = read_settings(folder)
    history = read_history(folder)
    origin = read_origin(folder)
    path = folder / RESULT
    result = read_json(path)
    try:
        test = _counts(result["test"]) if result["test"] else None
        best = _weights(result["best"])
        last = _weights(result["last"]) if result["last"] else None
        revisions = msgspec.convert(result.get("revisions", []), Revisions)
        date, epochs, metrics_sha256 = result["date"], result["epochs"], result["metrics_sha256"]
    except _MALFORMED:
        raise InputError(f"{shown(path)} is damaged: expected the result of a run") from None
    metrics = b"".join(history_lines(history))
    if epochs != len(history) or hashlib.sha256(metrics).hexdigest() != metrics_sha256:
        raise InputError(f"{shown(path)} does not fit {METRICS} beside it")
    record = Record(folder.name, config, data, tuple(history), counts=test)
    if record.best_metrics is None or record.best_metrics.epoch != best.epoch:
        raise InputError(f"{shown(path)} is damaged: its best epoch is {best.epoch}")
    return Evidence(record, *origin, str(date), best, last, revisions)


def read_origin(folder: Path) -> tuple[str, str]:
    """The line that describes the backend, and the library's version, in a run's settings."""
    content = read_json(folder / CONFIG)
    return shown(str(content.get("backend"))), shown(str(content.get("version")))


def read_json(path: Path) -> Any:
    """What a file of evidence or of settings has; an InputError when it is no JSON."""
    content = read_bounded(path, MAX_CONFIG_BYTES)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(f"{shown(path)} is damaged: expected JSON") from None


def _counts(values: object) -> ErrorCounts:
    values = check_fields("test", values, ErrorCounts)
    n, errors, right = (values[name] for name in ("n", "errors", "second_right"))
    if not all(type(value) is int for value in (n, errors, right)):
        raise ValueError
    if not (0 <= right <= errors <= n and n > 0):
        raise ValueError
    return ErrorCounts(n, errors, right)


def _weights(values: object) -> Weights:
    values = check_fields("weights", values, Weights)
    texts = [values[name] for name in ("sha256", "version", "revision", "machine")]
    if type(values["epoch"]) is not int or not all(isinstance(text, str) for text in texts):
        raise ValueError
    return Weights(**values)
