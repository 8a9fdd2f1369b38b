"""Collects the evidence of runs in the form that `evidence` describes."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

import mlpcore
from mlpcore.data.dataset import EMBEDDED, MNIST
from mlpcore.errors import InputError, shown
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, make_folder
from mlpcore.report import figures
from mlpcore.report.results import report
from mlpcore.store import provenance
from mlpcore.store.provenance import Revisions
from mlpcore.store.run_folder import (
    BEST,
    CONFIG,
    LAST,
    METRICS,
    history_lines,
    revisions_of,
)
from mlpcore.store.weights import read_network, weights_sha256
from table1.evidence import (
    RESULT,
    SUMMARY,
    Evidence,
    Weights,
    read_evidence,
    read_json,
    read_origin,
    read_run_evidence,
    read_summary,
)
from table1.measure import Committee, Measured
from table1.readme import full_table
from table1.records import Record, check_best, first_difference

#: What evidence has of a run's settings; a folder's name or a note may be nobody's business.
SETTINGS = ("library", "version", "architecture", "backend", "training", "data")

README, MISCLASSIFIED = "README.md", "misclassified"


def write_evidence(
    folder: Path,
    out: Path,
    measured: Measured,
    problems: Mapping[str, str],
    unfinished: bool = False,
) -> tuple[list[str], list[str]]:
    """Writes the evidence of the runs in a folder.

    What is there stays: evidence of other runs, and what it says of the same run where nothing
    new is known, as without the data. It is replaced by what has become of the run since. A
    committee stays until a new one has all its members, or a member is another network now.

    Parameters
    ----------
    folder
        Of the evidence.
    out
        Of the runs.
    problems
        By name, what is wrong with runs that are not among those measured.
    unfinished
        Whether to include runs that are not finished.

    Returns
    -------
    The names of the runs, and a line for each that is left out.

    Raises
    ------
    InputError
        When there is no such run, the evidence of one of the same name is of another run, of more
        epochs or damaged, as that of committees may be, or a file cannot be written.
    """
    chosen = [r for r in measured.records if r.history and (r.finished or unfinished)]
    if not chosen:
        kind = "run of at least one epoch" if unfinished else "finished run"
        raise InputError(f"{shown(out)} holds no {kind}: expected one to keep evidence of")
    earlier = {record.name: _earlier(folder / record.name, record) for record in chosen}
    committees, missing = _read_summary(folder)
    missing |= dict.fromkeys(problems, "damaged")
    collected: dict[str, Evidence] = {}
    left_out: list[str] = []
    for record in measured.records:
        name = record.name
        if name not in earlier:
            missing[name] = f"{record.epoch:,} of {record.config.epochs:,} epochs"
            left_out.append(f"{name} is left out: {missing[name]}, {record.state}")
            continue
        try:
            evidence = _collect(out / name, record)
        except InputError as error:
            missing[name] = "not readable"
            left_out.append(str(error))
            continue
        collected[name] = _with_counts(folder / name, evidence, earlier[name])
    for name, evidence in collected.items():
        left_out += _write(folder / name, out / name, evidence, earlier[name], measured)
    others = {name for name, each in collected.items() if not _is_same(each, earlier[name])}
    kept, dropped = _committees(committees, measured.committees, others)
    _write_summary(folder, kept, missing)
    return list(collected), left_out + dropped


def _committees(
    before: Sequence[Committee], new: Sequence[Committee], others: Set[str]
) -> tuple[list[Committee], list[str]]:
    """Those to keep, and a line for each that is dropped though no new one has its members.

    `others` are names of runs that may be other networks than before.
    """
    kept, dropped = [], []
    for committee in before:
        members = set(committee.members)
        if any(members <= set(each.members) for each in new):
            continue
        if members & others:
            names = ", ".join(sorted(members & others))
            dropped.append(f"a committee of {len(members)} is left out: {names} was another")
        else:
            kept.append(committee)
    return [*kept, *new], dropped


def _is_same(evidence: Evidence, before: Evidence | None) -> bool:
    """Whether it is known that the network that counts is that of before."""
    return before is not None and evidence.best.sha256 == before.best.sha256


def _with_counts(folder: Path, evidence: Evidence, before: Evidence | None) -> Evidence:
    """Evidence with the counts of before where it has none, and the network is the same.

    Raises
    ------
    InputError
        When as many epochs have led to other networks than before.
    """
    if before is None:
        return evidence
    record, same = evidence.record, _is_same(evidence, before)
    last = [each.last.sha256 if each.last else None for each in (evidence, before)]
    if record.epoch == before.record.epoch and not (same and last[0] == last[1]):
        raise InputError(f"{shown(folder)} has other weights than the run {record.name}: {ANOTHER}")
    if same and record.counts is None:
        record = dataclasses.replace(record, counts=before.record.counts)
    return dataclasses.replace(evidence, record=record)


def _write(
    folder: Path, run: Path, evidence: Evidence, before: Evidence | None, measured: Measured
) -> list[str]:
    """Writes the evidence of a run with figure and report; returns what could not be drawn."""
    record = evidence.record
    evaluation = measured.evaluations.get(record.name)
    if before and before.record.epoch == record.epoch and evaluation is None:
        return []  # there is no more to say, and without the data less than before
    drawn: list[str] = []
    left_out: list[str] = []
    try:
        drawn = draw(folder, record, measured)
    except Exception as error:  # whatever it is, there is the rest
        reason = " ".join(str(error).split())
        left_out.append(f"{record.name} has no figure: {type(error).__name__}: {reason}")
    _write_run(folder, _settings(run, record), evidence, evaluation, drawn)
    return left_out


def _read_summary(folder: Path) -> tuple[list[Committee], dict[str, str]]:
    """The committees that are there already, and by name how far other runs had come."""
    if not os.path.lexists(folder / SUMMARY):
        return [], {}
    committees, missing = read_summary(folder)
    parts = (line.removesuffix(")").rpartition(" (") for line in missing)
    return list(committees), {name or place: place * bool(name) for name, _, place in parts}


def _write_summary(
    folder: Path, committees: Sequence[Committee], missing: Mapping[str, str]
) -> None:
    """What there is beside the runs' own folders; runs that have one are not missing."""
    make_folder(folder)
    found = [dataclasses.asdict(committee) for committee in committees]
    names = [name for name in missing if not os.path.lexists(folder / name / CONFIG)]
    lines = [f"{name} ({missing[name]})" if missing[name] else name for name in sorted(names)]
    _write_json(folder / SUMMARY, {"committees": found, "missing": lines})
    held_out = all(each.record.data.held_out for each in read_evidence(folder).runs)
    text = [
        f"# {'Runs tested on held-out images' if held_out else 'Table 1'}, by this library",
        full_table(folder),
        "Written by `tools/reproduce.py --evidence`. The weights are not here, but their SHA-256 "
        "is; `tools/reproduce.py --rerun FOLDER` computes a run again and compares: to the bit "
        "with the revision that its `result.json` names, on the same instruction set.",
    ]
    atomic_write(folder / README, ("\n\n".join(text) + "\n").encode())


def _earlier(folder: Path, record: Record) -> Evidence | None:
    """The evidence of a run as it was before, None when there is none.

    Raises
    ------
    InputError
        When it is of another run, or of more epochs, or damaged.
    """
    if not os.path.lexists(folder / CONFIG):
        return None
    try:
        found = read_run_evidence(folder)
    except InputError as error:
        raise InputError(f"{error}; {shown(folder)} may be removed, to be written anew") from None
    theirs, differs = found.record, ""
    if (theirs.config, theirs.data.sha256) != (record.config, record.data.sha256):
        differs = "other settings or data than the run"
    elif record.epoch < theirs.epoch:
        differs = f"{theirs.epoch:,} epochs, {record.epoch:,} has the run"
    elif epoch := first_difference(record.history, theirs.history):
        differs = f"other errors after epoch {epoch:,} than the run"
    if differs:
        raise InputError(f"{shown(folder)} has {differs} {record.name}: {ANOTHER}")
    return found


#: What else to do about evidence that would be lost.
ANOTHER = "expected the same run, or its folder or that of the evidence under another name"


def _collect(folder: Path, record: Record) -> Evidence:
    best, _ = _read_weights(folder / BEST, record)
    check_best(folder / BEST, str(best.epoch), record)
    last, revisions = _read_weights(folder / LAST, record)
    modified = os.stat(folder / METRICS).st_mtime
    record = dataclasses.replace(
        record, data=dataclasses.replace(record.data, source=_source(record.data.name))
    )
    date = datetime.datetime.fromtimestamp(modified, datetime.timezone.utc).date().isoformat()
    origin, finished = read_origin(folder), record.finished
    return Evidence(record, *origin, date, best, last if finished else None, revisions)


def _source(name: str) -> str:
    """Where data come from, instead of a path, which is of no use on another machine."""
    known = {MNIST: "the published files", EMBEDDED: "embedded in scikit-learn"}
    return known.get(name, "a folder of IDX files")


def _read_weights(path: Path, record: Record) -> tuple[Weights, Revisions]:
    """What there is to know of a network, and what computed the run up to it."""
    network, metadata = read_network(path, record.layer_sizes)
    try:
        epoch, revisions = int(metadata["epoch"]), revisions_of(metadata)
    except (KeyError, ValueError, RecursionError):
        raise InputError(f"{shown(path)} is damaged: expected the place in a run") from None
    named = {name: metadata.get(name, "") for name in ("version", "revision", "machine")}
    return Weights(epoch, weights_sha256(network), **named), revisions


def draw(folder: Path, record: Record, measured: Measured) -> list[str]:
    """The misclassified images of a finished run; the names of the files."""
    if not record.finished or record.name not in measured.evaluations:
        return []
    images, evaluation = measured.images[record.name], measured.evaluations[record.name]
    figure = figures.misclassified(images, evaluation)
    return [path.name for path in figures.write_figures(folder, {MISCLASSIFIED: figure})]


def _settings(folder: Path, record: Record) -> dict[str, Any]:
    """Those of the run as it has them, for the revision that wrote them knows no later ones."""
    found = read_json(folder / CONFIG)
    settings = {name: found[name] for name in SETTINGS if name in found}
    settings["data"]["source"] = _source(record.data.name)
    return settings


def _write_run(
    folder: Path,
    settings: Mapping[str, Any],
    evidence: Evidence,
    evaluation: Evaluation | None,
    drawn: Sequence[str],
) -> None:
    record = evidence.record
    make_folder(folder)
    metrics = b"".join(history_lines(record.history))
    text = report(record.config, record.data, record, evidence.backend, evaluation, drawn)
    if not record.finished:
        text = f"**Not finished: {record.epoch:,} of {record.config.epochs:,} epochs.**\n\n{text}"
    result = {
        "epochs": record.epoch,
        "date": evidence.date,
        "metrics_sha256": hashlib.sha256(metrics).hexdigest(),
        "best": dataclasses.asdict(evidence.best),
        "last": dataclasses.asdict(evidence.last) if evidence.last else None,
        "revisions": evidence.revisions,
        "test": dataclasses.asdict(record.counts) if record.counts else None,
        "collected": {
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "version": mlpcore.__version__,
            "revision": provenance.revision(),
            "machine": provenance.machine(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    }
    atomic_write(folder / "report.md", text.encode(errors="replace"))
    atomic_write(folder / METRICS, metrics)
    _write_json(folder / RESULT, result)
    _write_json(folder / CONFIG, settings)  # last: with it, the folder counts as evidence


def _write_json(path: Path, content: object) -> None:
    atomic_write(path, json.dumps(content, indent=2).encode() + b"\n")
