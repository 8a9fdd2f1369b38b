"""What a contest has found, as tables."""

from __future__ import annotations

from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.tables import NONE
from speed.tables import Table, machine_table, times
from speed.to_error import ErrorReport, Line, Reached, fastest
from speed.units import short_time


def _epochs(count: int) -> str:
    return f"{count} epoch{'s' * (count > 1)}"


def _cell(reached: Reached) -> str:
    """Time, budget and ratio; or that the error was not reached."""
    if reached.seconds is None or reached.epochs is None:
        return NONE
    return f"{short_time(reached.seconds)} ({_epochs(reached.epochs)}) {times(reached.ratio)}"


def _settings(line: Line) -> str:
    """The text of the settings with a peer's learning rates, in the order of the budgets."""
    rates = dict.fromkeys(f"{run.rate:g}" for run in line.runs)
    return f"{line.text}, rate {' then '.join(rates)}" if line.peer and rates else line.text


def _notes(report: ErrorReport) -> list[str]:
    """How the times were taken."""
    seeds = (
        "One seed: the error is that of the last epoch of one run, and another seed has another."
        if report.repeats == 1
        else f"The error is the mean over {report.repeats} seeds after the last epoch (smoothed), "
        "the time is their median."
    )
    peers = [f"Learning rates of peers: {how}." for how in report.searches] or [
        "Learning rates of peers are usual ones: no search has been made."
    ]
    return [
        "Time: deformation and training from the first sample on, without loading, imports, "
        "initial weights and the evaluations of the test error; the least over budgets of "
        f"{', '.join(map(str, report.budgets))} epochs, each a run of its own whose learning "
        f"rate falls to its end. Threads: {report.threads}. The ratio is to our fastest: more "
        "than 1 is slower.",
        seeds,
        *(peers if any(line.peer for line in report.lines) else []),
    ]


def verdicts(report: ErrorReport) -> list[str]:
    """For each error that a peer has reached, who was faster."""
    lines = []
    for i, error in enumerate(report.errors):
        ours, peer = (fastest(report.lines, i, peer=peer) for peer in (False, True))
        if peer is None:
            continue
        theirs = f"{peer.name} {_cell(peer.reached[i])}"
        if ours is None:
            lines.append(f"To {error:g} %: only peers reach it; the fastest is {theirs}.")
        elif (peer.reached[i].ratio or 1.0) < 1:
            lines.append(f"To {error:g} %: a peer is faster than ours: {theirs}.")
        else:
            lines.append(f"To {error:g} %: {ours.name} is fastest, then of the peers {theirs}.")
    return lines


def _runs_table(report: ErrorReport) -> Table:
    """Every run."""
    rows = [
        (
            line.name,
            str(run.epochs),
            str(run.seed),
            f"{run.rate:g}" if line.peer else NONE,
            short_time(run.seconds),
            f"{run.error:.2f} %",
        )
        for line in report.lines
        for run in line.runs
    ]
    notes = [f"{line.name} stopped: {line.stopped}." for line in report.lines]
    headers = ("Contestant", "Epochs", "Seed", "Rate", "Time", "Test error")
    return Table("Every run", headers, rows, notes)


def error_tables(report: ErrorReport) -> list[Table]:
    """In the order in which they are shown."""
    rows = [(line.name, _settings(line), *map(_cell, line.reached)) for line in report.lines]
    headers = ("Contestant", "Settings", *(f"to {error:g} %" for error in report.errors))
    title = (
        f"{report.data}, {format_layer_sizes(report.layer_sizes)}: time to a test error "
        f"({report.n_train:,} training and {report.n_test:,} test images)"
    )
    tables = [
        machine_table(report),
        Table(title, headers, rows, [*verdicts(report), *_notes(report)], left=2),
        _runs_table(report),
    ]
    if report.missing:
        tables.append(Table("Left out", ("What", "Why"), [*report.missing.items()], left=2))
    return tables
