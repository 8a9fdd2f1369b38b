"""The paper's Table 1 beside ours: a row for every run, means over seeds, committees."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from itertools import compress

from scipy.special import stdtrit

from mlpcore.data.dataset import kind_of_test
from mlpcore.evaluation.evaluation import CONFIDENCE, wilson_interval
from mlpcore.report.results import TABLE_1, is_the_papers
from mlpcore.report.tables import NONE, Rows, duration, weights_text
from mlpcore.training.state import EpochMetrics
from table1.records import CommitteeResult, ErrorCounts, Record, distinct_seeds, same_but_seed

HEADER = (
    "run", "weights", "epochs", "validation error", "test error at best validation", "paper's",
    "best test error", "paper's best", "second guess right", "time", "paper's time",
    "weight updates/s",
)  # fmt: skip

#: Columns that a page with more to say than this table does without.
DETAILS = ("weights", "best test error", "paper's best", "second guess right", "weight updates/s")


def table(
    records: Sequence[Record],
    committees: Sequence[CommitteeResult] = (),
    without: Sequence[str] = (),
) -> Rows:
    """A row for every run, in the given order; the mean over its seeds follows each group.

    The columns named in `without` are left out, and the paper's when it has no figures for any
    run. When it has some, runs on other data than the paper's name their data.
    """
    papers = has_papers_figures(records)
    rows: Rows = []
    groups: dict[object, list[Record]] = {}
    for record in records:
        groups.setdefault(same_but_seed(record), []).append(record)
    for group in groups.values():
        epochs, data = group[0].config.epochs, group[0].data
        held_out = f", {data.held_out:,} held out" if data.held_out else ""
        on = f", on {data.name}{held_out}" if papers and not is_the_papers(data) else ""
        for record in group:
            state = "" if record.finished else f" ({record.state})"
            rows.append(_row(record.name + on + state, f"{record.epoch:,}/{epochs:,}", [record]))
        finished = distinct_seeds(record for record in group if record.finished)
        if len(finished) > 1:
            name = f"{_stem(finished)}{on}, mean of {len(finished)} seeds"
            rows.append(_row(name, f"{epochs:,}", finished))
    for committee in committees:
        name, counts = committee_name(committee, records), committee.counts
        error = _error(counts.errors, counts.n)
        cells = {"run": name, HEADER[4]: error, HEADER[8]: _second_right([counts])}
        rows.append(tuple(cells.get(name, NONE) for name in HEADER))
    kept = [name not in without and (papers or "paper's" not in name) for name in HEADER]
    header = tuple(name.replace("test", kind_of_all(records)) for name in HEADER)
    return [tuple(compress(row, kept)) for row in [header, *rows]]


def _row(name: str, epochs: str, group: Sequence[Record]) -> tuple[str, ...]:
    """One run, or the mean over runs that have finished with different seeds."""
    best = [m for record in group if (m := record.best_metrics)]
    best_test = [m for record in group if (m := record.best_test_metrics)]
    tests = [record.test for record in group if record.test]
    rates = [
        record.n_parameters * sum(m.n_train for m in record.history) / seconds
        for record in group
        if (seconds := sum(m.training_seconds for m in record.history))
    ]
    papers = TABLE_1[group[0].network] if has_papers_figures(group) else None
    return (
        name,
        weights_text(group[0].n_parameters),
        epochs,
        f"{statistics.mean(m.validation_error for m in best):.2f} %" if best else NONE,
        _test_error(best),
        f"{papers[0]:.2f} %" if papers else NONE,
        _test_error(best_test),
        f"{papers[1]:.2f} %" if papers else NONE,
        _second_right(tests) if len(tests) == len(group) else NONE,
        duration(statistics.mean(record.seconds for record in group)) if best else NONE,
        f"{papers[2]:.1f} h" if papers else NONE,
        f"{statistics.mean(rates) / 1e9:.1f} G" if rates else NONE,
    )


def has_papers_figures(records: Iterable[Record]) -> bool:
    """Whether the paper's Table 1 has the network of any run, trained on the same data."""
    return any(record.network in TABLE_1 and is_the_papers(record.data) for record in records)


def committee_name(committee: CommitteeResult, records: Iterable[Record]) -> str:
    """How many members it has, and whether these are all finished runs."""
    finished = {record.name for record in records if record.finished}
    every = "all " if finished <= set(committee.members) else ""
    return f"committee of {every}{len(committee.members)} finished runs"


def kind_of_all(records: Iterable[Record]) -> str:
    """What the errors are of: "held-out" images when all runs are tested on such, else "test"."""
    return kind_of_test(min((record.data.held_out for record in records), default=0))


def _stem(group: Sequence[Record]) -> str:
    """The runs' names without their seeds, which names the recipe; else the network."""
    stems = {re.sub(r"-seed\d+$", "", record.name) for record in group}
    return stems.pop() if len(stems) == 1 else group[0].network


def _test_error(metrics: Sequence[EpochMetrics]) -> str:
    """The test error of one run, or the mean of several, with its 95 % confidence interval."""
    if not metrics or not all(m.n_test for m in metrics):
        return NONE
    if len(metrics) == 1:
        return _error(metrics[0].test_errors, metrics[0].n_test)
    errors = [m.test_error for m in metrics]
    mean, n = statistics.mean(errors), len(errors)
    half = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * statistics.stdev(errors) / math.sqrt(n)
    return f"{mean:.2f} % ({max(0.0, mean - half):.2f} to {min(mean + half, 100.0):.2f})"


def _error(errors: int, n: int) -> str:
    low, high = wilson_interval(errors, n)
    return f"{100 * errors / n:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def _second_right(tests: Sequence[ErrorCounts]) -> str:
    return f"{sum(t.second_right for t in tests):,} of {sum(t.errors for t in tests):,}"
