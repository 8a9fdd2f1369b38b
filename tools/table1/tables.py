"""The paper's Table 1 beside ours: a row for every run, means over seeds, and pages with them."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from scipy.special import stdtrit

from mlpcore.errors import InputError, shown
from mlpcore.evaluation.evaluation import CONFIDENCE, wilson_interval
from mlpcore.files import atomic_write, read_bounded
from mlpcore.report.results import TABLE_1, is_the_papers
from mlpcore.report.tables import NONE, Rows, duration, markdown_table
from mlpcore.training.state import EpochMetrics
from table1.evidence import Evidence, arguments, recipe_of

#: The lines of a page between which `put_tables` puts both tables.
BEGIN, END = "<!-- table1 begin -->\n", "<!-- table1 end -->\n"

#: The line between its two tables.
ALL = "All runs:"

#: What the paper trained on.
PAPERS_MACHINE = "NVIDIA GTX 280"

#: The recipes of `overview`.
NAMED = "paper", "saturating", "modern"

ERRORS = "validation error", "test error", "last epoch", "best test error"
HEADER = "run", "epochs", *ERRORS, "time", "machine"

NOTES = """\
The test error is that of the network with the lowest validation error, the error on the undeformed
training images, and beside it is that of the last network so far. The best test error is the lowest
of all epochs, and so selected by the test images themselves. Brackets hold 95 % confidence
intervals: Wilson's for the errors of one network, and Student's t over the seeds for a mean."""


def table(runs: Sequence[Evidence]) -> Rows:
    """The paper's row of each network, one for every run, and the mean over seeds of each group."""
    rows: Rows = [HEADER]
    for network, of_network in groupby(runs, lambda run: run.network):
        ours = list(of_network)
        if network in TABLE_1 and any(is_the_papers(run.data) for run in ours):
            error, best, hours, _ = TABLE_1[network]
            cells = f"{error:.2f} %", NONE, f"{best:.2f} %", f"{hours} h", PAPERS_MACHINE
            rows.append((f"{network} in the paper", NONE, NONE, *cells))
        for (stem, _), of_stem in groupby(ours, _stem):
            group = list(of_stem)
            rows += [_row(run.name + _on(run), [run]) for run in group]
            finished = [run for run in group if run.finished]
            if len(finished) > 1:
                rows.append(_row(f"{stem}, mean of {len(finished)} seeds", finished))
    return rows


def overview(runs: Sequence[Evidence]) -> Rows:
    """A row for each of the paper's networks: the longest finished runs of each recipe there is."""
    rows: Rows = [
        ("network", "in the paper", *(f"`{name}`" for name in NAMED), "`modern`, deformed digits")
    ]
    for network, (error, _, hours, _) in TABLE_1.items():
        cells = [network, f"{error:.2f} % ({hours} h)"]
        for name in NAMED:
            group = longest([r for r in runs if r.network == network and recipe_of(r) == name])
            cells.append(_cell(group) if group else NONE)
        training = [run.last.training_error for run in group]
        rows.append((*cells, f"{statistics.mean(training):.2f} %" if group else NONE))
    return rows


def longest(runs: Sequence[Evidence]) -> list[Evidence]:
    """The finished runs, on the paper's data, of the greatest number of epochs."""
    finished = [run for run in runs if run.finished and is_the_papers(run.data)]
    most = max((run.last.epoch for run in finished), default=0)
    return [run for run in finished if run.last.epoch == most]


def _cell(group: Sequence[Evidence]) -> str:
    error = statistics.mean(run.last.test_error for run in group)
    time = duration(statistics.mean(run.seconds for run in group))
    return f"{error:.2f} % ({len(group)} x {group[0].last.epoch:,}, {time})"


def _stem(run: Evidence) -> tuple[str, int]:
    """What runs that differ in nothing but their seed have in common: name, data and epochs."""
    return re.sub(r"-seed\d+$", "", run.name) + _on(run), run.training.epochs


def _on(run: Evidence) -> str:
    """The data, if they are not the paper's."""
    held_out = f", {run.data.held_out:,} held out" if run.data.held_out else ""
    return "" if is_the_papers(run.data) else f", on {run.data.name}{held_out}"


def _row(name: str, group: Sequence[Evidence]) -> tuple[str, ...]:
    """One run, or the mean over runs that have finished with different seeds."""
    done = f"{group[0].last.epoch:,} of " if not group[0].finished else ""
    machines = {_machine(run) for run in group}
    return (
        name,
        f"{done}{group[0].training.epochs:,}",
        f"{statistics.mean(run.best.validation_error for run in group):.2f} %",
        _error([run.best for run in group]),
        f"{statistics.mean(run.last.test_error for run in group):.2f} %",
        f"{statistics.mean(run.best_test.test_error for run in group):.2f} %",
        duration(statistics.mean(run.seconds for run in group)),
        machines.pop() if len(machines) == 1 else NONE,
    )


def _machine(run: Evidence) -> str:
    device = run.backend.removeprefix("cuda: ")
    if device != run.backend:
        return device.partition(",")[0]
    name = run.weights[-1].machine.partition(",")[0].replace("(R)", "").replace(" Processor", "")
    threads = re.search(r"\d+ threads?", run.backend)
    return f"{name}, {threads[0]}" if threads else name


def _error(metrics: Sequence[EpochMetrics]) -> str:
    """The test error of one run, or the mean of several, with its 95 % confidence interval."""
    errors = [m.test_error for m in metrics]
    mean, n = statistics.mean(errors), len(errors)
    if n == 1:
        low, high = (
            100 * end for end in wilson_interval(metrics[0].test_errors, metrics[0].n_test)
        )
    else:
        half = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * statistics.stdev(errors) / math.sqrt(n)
        low, high = max(0.0, mean - half), min(mean + half, 100.0)
    return f"{mean:.2f} % ({low:.2f} to {high:.2f})"


def write_page(path: Path, runs: Sequence[Evidence]) -> None:
    """Writes a page with the table, and with what it takes to train each run again."""
    title = f"# Runs: {path.resolve().parent.name}"
    parts = [title, markdown_table(table(runs)), NOTES, *map(_again, runs)]
    atomic_write(path, ("\n\n".join(parts) + "\n").encode(errors="replace"))
    print(f"table: {shown(path)}")


def _again(run: Evidence) -> str:
    """The command of a run, and what its weights were."""
    words = [*arguments(run.training), "--backend", run.training.backend]
    if run.data.held_out:
        words += ["--hold-out", str(run.data.held_out)]
    weights = [
        f"- epoch {each.epoch:,}: SHA-256 `{each.sha256}`, revision {each.revision or 'unknown'}, "
        f"{each.machine}"
        for each in run.weights
    ]
    return "\n".join(
        [
            f"## {run.name}",
            "",
            f"`mlpcore train {' '.join(words)}`",
            "",
            f"- {run.backend}",
            *weights,
        ]
    )


def put_tables(page: Path, runs: Sequence[Evidence]) -> None:
    """Puts both tables between `BEGIN` and `END` of a page; an InputError without these lines."""
    before, found, rest = read_bounded(page, 2**20).decode().partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise InputError(f"{shown(page)}: expected the lines {BEGIN.strip()} and {END.strip()}")
    tables = f"{markdown_table(overview(runs))}\n\n{ALL}\n\n{markdown_table(table(runs))}"
    atomic_write(page, f"{before}{BEGIN}{tables}\n{END}{after}".encode())
    print(f"table: {shown(page)}")
