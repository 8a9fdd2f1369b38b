"""Trains a run again from its evidence, and compares the bits."""

from __future__ import annotations

from pathlib import Path

from mlpcore.errors import InputError, shown
from mlpcore.store import provenance
from mlpcore.store.run_folder import BEST, LAST, holds_run
from mlpcore.store.weights import weights_sha256
from table1.evidence import Evidence, read_evidence
from table1.experiment import train
from table1.records import Record, first_difference, read_record


def rerun(
    source: Path, out: Path, data_folder: Path | None, threads: int | None, command: str
) -> int:
    """Trains the run of some evidence again, up to its last epoch, in a folder of `out`.

    A rerun that was stopped goes on. The result is 0 when all is the same, 1 when it is not, and
    128 + n when signal n stopped the run. Evidence, folders and data of no use are InputErrors.
    """
    expected, result = read_evidence(source)
    folder = out / expected.folder.name
    if holds_run(folder):
        there = read_record(folder)
        if there.config != expected.config or there.epoch > expected.epoch:
            raise InputError(
                f"{shown(folder)} has other settings or more epochs than {shown(source)}: "
                "expected the same run, or another --out"
            )
    data = expected.load_data(data_folder, download=True)
    theirs, ours = shown(result.best.revision or "unknown"), provenance.revision() or "unknown"
    print(f"computed by revision {theirs}, this is {ours}: the bits differ if a kernel has changed")
    if stopped := train(folder, expected.config, data, threads, command, expected.epoch):
        return stopped
    differences = compare(read_record(folder), expected, result)
    part = "" if expected.finished else f" in its {expected.epoch:,} epochs"
    print("\n".join(differences) or f"the same as {shown(source)}{part}, to the bit")
    return 1 if differences else 0


def compare(record: Record, expected: Record, result: Evidence) -> list[str]:
    """A line for every difference from the evidence of as many epochs, but for times."""
    differences = []
    if epoch := first_difference(record.history, expected.history):
        differences.append(f"the errors after epoch {epoch} are not those of the evidence")
    for file, weights in ((BEST, result.best), (LAST, result.last)):
        if weights:
            found = weights_sha256(record.read_network(file)[0])
            if found != weights.sha256:
                differences.append(f"{file}: SHA-256 {found}, expected {weights.sha256}")
    return differences
