"""Computes a run again from its evidence, and compares the bits."""

from __future__ import annotations

from pathlib import Path

from mlpcore import backends
from mlpcore.commands import runs
from mlpcore.errors import InputError, shown
from mlpcore.report.console import Console
from mlpcore.store import provenance
from mlpcore.store.run_folder import BEST, LAST, holds_run, read_history, read_settings
from mlpcore.store.weights import read_network, weights_sha256
from table1.data import find_data
from table1.evidence import Evidence, read_run_evidence
from table1.records import first_difference, read_record


def rerun(
    source: Path,
    out: Path,
    console: Console,
    command: str,
    threads: int | None,
    data_folder: str | None,
) -> int:
    """Trains the run of some evidence again, as far as that has come, or goes on with that.

    Parameters
    ----------
    source
        The evidence of a run.
    out
        The folder in which the run gets one of its name.
    command
        What to type to go on, said when it is stopped.

    Returns
    -------
    The exit status: 0 when all is the same, 1 when it is not, 128 + n when signal n stopped it.

    Raises
    ------
    InputError
        When the evidence or the folder cannot be used, or the data are others.
    """
    evidence = read_run_evidence(source)
    config, folder = evidence.record.config, out / evidence.record.name
    backend = backends.get(config.backend, threads, config.schedule)
    exists = holds_run(folder)
    if exists and read_settings(folder)[0] != config:
        raise InputError(f"{shown(folder)} has other settings than {shown(source)}")
    until = evidence.record.epoch
    if exists and (done := read_record(folder).epoch) > until:
        expected = f"expected the {until:,} of {shown(source)} at most, or another --out"
        raise InputError(f"{shown(folder)} has {done:,} epochs, {expected}")
    data = find_data(evidence.record.data, data_folder, shown(source), download=True)
    note = other_revisions(evidence)
    if note:
        console.print(note)
    if exists:
        status = runs.resume(folder, console, command, threads, data=data, until=until)
    else:
        status = runs.start(folder, config, data, backend, console, command, until)
    if status:
        return status
    differences = compare(folder, evidence)
    part = "" if evidence.record.finished else f" in its {until:,} epochs"
    same = f"the same as {shown(source)}{part}, to the bit"
    for line in differences or [same]:
        console.print(line)
    return 1 if differences else 0


def other_revisions(evidence: Evidence) -> str:
    """Why the bits may differ, said before hours are spent; "" where that is not known."""
    networks = [weights for weights in (evidence.best, evidence.last) if weights]
    named = [revision for _, revision in evidence.revisions]
    named += [weights.revision for weights in networks]
    ours, theirs = provenance.revision(), [*dict.fromkeys(shown(each) for each in named if each)]
    if len(theirs) < 2 and (not ours or theirs in ([], [ours])):
        return ""
    this = f", this is {ours}" if ours else ""
    return (
        f"note: computed by revision {', then by '.join(theirs)}{this}: "
        "the bits differ if a kernel has changed between them"
    )


def compare(folder: Path, evidence: Evidence) -> list[str]:
    """A line for every difference between a run of as many epochs and evidence, times left out."""
    record, differences = evidence.record, []
    epoch = first_difference(read_history(folder), record.history)
    if epoch:
        differences.append(f"the errors after epoch {epoch} are not those of the evidence")
    for name, expected in ((BEST, evidence.best), (LAST, evidence.last)):
        if expected is None:
            continue
        network, _ = read_network(folder / name, record.layer_sizes)
        found = weights_sha256(network)
        if found != expected.sha256:
            differences.append(f"{name}: weights of SHA-256 {found}, expected {expected.sha256}")
    return differences
