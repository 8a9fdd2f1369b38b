"""Keeps runs in the repository without their weights: a folder for each, and git's history.

``config.json`` holds a run's settings, ``metrics.jsonl`` a line for each epoch, ``result.json``
its `Evidence`, and ``misclassified.png`` the paper's Figure 1 if the run is finished. Beside these
folders, ``summary.json`` holds a `Summary` and ``README.md`` the table. No file holds a path.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from mlpcore.data.dataset import EMBEDDED, MNIST
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, make_folder, read_bounded
from mlpcore.store import run_folder
from mlpcore.store.history import history_lines
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS
from mlpcore.store.weights import weights_sha256
from table1.records import ErrorCounts, Measured, Record, Summary, first_difference, in_order
from table1.report import table_text

#: The repository's evidence of the paper's experiment.
FOLDER = Path("benchmarks", "results", "table1")

RESULT, SUMMARY, README, FIGURE = "result.json", "summary.json", "README.md", "misclassified.png"
MAX_BYTES = 2**24

#: The settings to keep. Others may be private, such as a note.
SETTINGS = ("library", "version", "architecture", "backend", "training", "data")

FOOTER = """\
Written by `tools/reproduce.py --evidence`. The weights are not here, but their SHA-256 is.
`tools/reproduce.py --rerun FOLDER` trains a run again and compares: to the bit with the revision
that its `result.json` names, on the same instruction set.
"""

T = TypeVar("T")


@dataclass(frozen=True)
class Weights:
    """A network that is not kept: its epoch, its SHA-256, and what computed it, "" if unknown."""

    epoch: int
    sha256: str
    version: str
    revision: str
    machine: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What has come of a run; `date` is that of the last epoch, `last` None if unfinished."""

    epochs: int
    date: str
    metrics_sha256: str
    best: Weights
    last: Weights | None
    test: ErrorCounts | None


def read_evidence(folder: Path) -> tuple[Record, Evidence]:
    """The evidence of a run, or an InputError."""
    config, data = run_folder.read_settings(folder)
    history = tuple(run_folder.read_history(folder))
    result = _read_json(folder / RESULT, Evidence)
    record = Record(folder, config, data, history, test=result.test)
    best = record.best_metrics
    expected = (record.epoch, _metrics_sha256(record), best.epoch if best else 0)
    if (result.epochs, result.metrics_sha256, result.best.epoch) != expected:
        raise InputError(f"{shown(folder / RESULT)} is damaged: it does not fit {METRICS}")
    return record, result


def read_collection(folder: Path) -> tuple[list[Record], Summary]:
    """All evidence in a folder, or an InputError."""
    runs = [path.parent for path in folder.glob(f"*/{CONFIG}")]
    return sorted((read_evidence(run)[0] for run in runs), key=in_order), _read_summary(folder)


def _read_summary(folder: Path) -> Summary:
    summary = _read_json(folder / SUMMARY, Summary)
    names = [*summary.missing, *(name for each in summary.committees for name in each.members)]
    if not all(name.isprintable() for name in names):
        raise InputError(f"{shown(folder / SUMMARY)} is damaged: expected printable names")
    return summary


def _read_json(path: Path, kind: type[T]) -> T:
    content = read_bounded(path, MAX_BYTES)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(f"{shown(path)} is damaged: {error}") from None


def _metrics_sha256(record: Record) -> str:
    return hashlib.sha256(b"".join(history_lines(record.history))).hexdigest()


def write_evidence(folder: Path, measured: Measured, unfinished: bool) -> list[str]:
    """Adds runs to the evidence in a folder, where evidence of others stays; returns their names.

    `measured` gets a note for a run that is left out: for an unfinished one unless `unfinished` is
    true, and for one that could not be tested or that another process is saving.

    Raises InputError when no run can be added, evidence of another run would be overwritten,
    evidence is damaged, or a file cannot be written. All checks come before all writing.
    """
    planned: list[tuple[Record, Evidence]] = []
    left_out = {name: "not readable" for name in measured.unreadable}
    for record in measured.records:
        try:
            result = _result(record, unfinished)
        except InputError as error:
            left_out[record.name] = f"{record.epoch:,} of {record.config.epochs:,} epochs"
            measured.notes.append(f"{record.name} is left out: {error}")
            continue
        if os.path.lexists(folder / record.name / CONFIG):
            _check_continues(folder / record.name, record, result)
        planned.append((record, result))
    if not planned:
        raise InputError("no run to keep evidence of: expected a finished one that can be tested")
    summary = _read_summary(folder) if os.path.lexists(folder / SUMMARY) else Summary()

    for record, result in planned:
        _write_run(folder / record.name, record, result)
    _write_json(folder / SUMMARY, asdict(_update(summary, folder, measured, left_out)))
    records, summary = read_collection(folder)
    text = table_text(records, summary)
    page = f"# Runs by this library: {folder.resolve().name}\n\n{text}\n\n{FOOTER}"
    atomic_write(folder / README, page.encode(errors="replace"))
    return [record.name for record, _ in planned]


def _result(record: Record, unfinished: bool) -> Evidence:
    """What evidence says of a run; an InputError when it is not to be kept."""
    if not record.finished and not (unfinished and record.history):
        raise InputError(f"{record.epoch:,} of {record.config.epochs:,} epochs, {record.state}")
    if record.test is None and record.data.n_test:
        raise InputError("it could not be tested")
    best, last = _weights(record, BEST), _weights(record, LAST)
    modified = datetime.datetime.fromtimestamp(os.stat(record.folder / METRICS).st_mtime)
    return Evidence(
        epochs=record.epoch,
        date=modified.date().isoformat(),
        metrics_sha256=_metrics_sha256(record),
        best=best,
        last=last if record.finished else None,
        test=record.test,
    )


def _weights(record: Record, file: str) -> Weights:
    """What there is to say of a network."""
    network, metadata = record.read_network(file)
    try:
        epoch = int(metadata["epoch"])
    except (KeyError, ValueError):
        raise InputError(f"{file} is damaged: expected its epoch") from None
    named = {name: metadata.get(name, "") for name in ("version", "revision", "machine")}
    return Weights(epoch, weights_sha256(network), **named)


def _check_continues(folder: Path, record: Record, result: Evidence) -> None:
    """Raises InputError when evidence is of another run than this, or of more of its epochs."""
    before, known = read_evidence(folder)
    if (
        (before.config, before.data.sha256) != (record.config, record.data.sha256)
        or first_difference(record.history, before.history)
        or (record.epoch == before.epoch and (result.best, result.last) != (known.best, known.last))
    ):
        raise InputError(
            f"{shown(folder)} is of another run than {shown(record.folder)}, or of more epochs: "
            "expected the same run, or another folder"
        )


def _write_run(folder: Path, record: Record, result: Evidence) -> None:
    """Writes the evidence of a run. Its settings are last, because with them it counts."""
    make_folder(folder)
    # The settings stay as the run's own revision wrote them, so that it can read them.
    found = json.loads(read_bounded(record.folder / CONFIG, MAX_BYTES))
    settings = {name: found[name] for name in SETTINGS if name in found}
    known = {MNIST: "the published files", EMBEDDED: "embedded in scikit-learn"}
    settings["data"]["source"] = known.get(record.data.name, "a folder of IDX files")
    (folder / "report.md").unlink(missing_ok=True)  # Older revisions wrote one, of then.
    figure = record.folder / "figures" / FIGURE
    if record.finished and figure.exists():
        atomic_write(folder / FIGURE, read_bounded(figure, MAX_BYTES))
    atomic_write(folder / METRICS, *history_lines(record.history))
    _write_json(folder / RESULT, asdict(result))
    _write_json(folder / CONFIG, settings)


def _update(old: Summary, folder: Path, measured: Measured, left_out: dict[str, str]) -> Summary:
    """Adds new committees, drops old ones that they contain, and says what is missing."""
    new = [set(committee.members) for committee in measured.committees]
    kept = [each for each in old.committees if not any(set(each.members) <= m for m in new)]
    missing = {line.removesuffix(")").rpartition(" (")[0] or line: line for line in old.missing}
    missing |= {name: f"{name} ({reason})" for name, reason in left_out.items()}
    lines = [missing[name] for name in sorted(missing) if not (folder / name / CONFIG).exists()]
    return Summary((*kept, *measured.committees), tuple(lines))


def _write_json(path: Path, content: object) -> None:
    atomic_write(path, json.dumps(content, indent=2).encode() + b"\n")
