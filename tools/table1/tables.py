"""The paper's Table 1 beside ours: a row for every run, means over seeds, committees."""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Sequence

from scipy.special import stdtrit

from mlpcore.data.dataset import MNIST, kind_of_test
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.evaluation.evaluation import CONFIDENCE, wilson_interval
from mlpcore.report.results import TABLE_1, is_the_papers
from mlpcore.report.tables import NONE, Rows, duration, weights_text
from mlpcore.training.config import (
    PAPER_LEARNING_RATE,
    PAPER_LEARNING_RATE_END,
    PAPER_RATIO,
    SCHEDULE_EPOCHS,
    USUAL_TARGET,
)
from mlpcore.training.state import EpochMetrics
from table1.measure import Committee
from table1.records import ErrorCounts, Record, distinct_seeds, same_but_seed

HEADER = (
    "run",
    "weights",
    "epochs",
    "validation error",
    "test error at best validation",
    "paper's",
    "best test error",
    "paper's best",
    "second guess right",
    "time",
    "paper's time",
    "weight updates/s",
)

#: The columns by which a run is judged, for a page that has more to say than this.
BRIEF = (
    "run",
    "epochs",
    "validation error",
    "test error at best validation",
    "paper's",
    "time",
    "paper's time",
)

#: The paper's deformation, for labels that are not known.
STANDARD = DeformationParameters(similar_labels=())


def notes(records: Sequence[Record]) -> list[str]:
    """What has to be said about the table, a paragraph each."""
    kind = test_kind(records)
    said = [
        "No run is selected. What counts of a run is the network with the lowest validation "
        f"error, that on the undeformed training images. Only the best {kind} error is selected by "
        f"the {kind} images, and is therefore lower than other digits would have it.",
        "In brackets: 95 % confidence intervals. That of one network is Wilson's for its number "
        f"of errors among the {kind} images, that of a mean is Student's t over the seeds, for "
        f"these {kind} images.",
    ]
    if not all(record.finished for record in records):
        said.append("Of an unfinished run the row shows what it has reached so far.")
    others: dict[str, list[str]] = {}
    for record in records:
        others.setdefault(other_settings(record), []).append(record.name)
    for settings, names in others.items():
        if settings:
            said.append(f"Settings of {', '.join(names)}: {settings}.")
    if _has_papers(records):
        said.append(
            "The paper does not give its number of epochs. The second guess of its net4 is right "
            "for 30 of 35 errors, and it trains with up to 5 G weight updates/s."
        )
    return said


def other_settings(record: Record) -> str:
    """What of a run is not as the paper has it, or as 2,000 epochs of it would be."""
    config, said = record.config, []
    rates = config.learning_rate, config.learning_rate_end
    if (config.epochs, *rates) != (SCHEDULE_EPOCHS, PAPER_LEARNING_RATE, PAPER_LEARNING_RATE_END):
        said.append("learning rate {:g} to {:g} in {:,} epochs".format(*rates, config.epochs))
    if config.learning_rate_ratio != PAPER_RATIO:
        said.append(f"{config.learning_rate_ratio:g} times as high in each layer as in the next")
    if config.target != USUAL_TARGET:
        said.append(f"targets of {config.target:g} and {-config.target:g}")
    if dataclasses.replace(config.deformation, similar_labels=()) != STANDARD:
        values = dataclasses.asdict(config.deformation)
        said += [f"{name} {values[name]:g}" for name in ("sigma", "alpha", "beta", "gamma")]
    if record.data.name != MNIST:
        said.append(f"data: {record.data.name}")
    if record.data.held_out:
        said.append(f"{record.data.held_out:,} training images held out and tested on")
    return ", ".join(said)


def table(
    records: Sequence[Record],
    committees: Sequence[Committee] = (),
    columns: Sequence[str] = HEADER,
) -> Rows:
    """All runs, in the given order, each group of seeds followed by its mean.

    Of the given columns of `HEADER`, the paper's are left out where none of its networks, data and
    figures is there. Where one is, runs on other data than the paper's say so.
    """
    rows: Rows = [HEADER]
    groups: dict[object, list[Record]] = {}
    for record in records:
        groups.setdefault(same_but_seed(record), []).append(record)
    papers = _has_papers(records)
    for group in groups.values():
        on = "" if is_the_papers(group[0].data) or not papers else f", on {_data(group[0])}"
        rows += [_row(record, on) for record in group]
        finished = distinct_seeds(record for record in group if record.finished)
        if len(finished) > 1:
            rows.append(_mean_row(finished, on))
    rows += [_committee_row(each, is_of_all(each, records)) for each in committees]
    kept = [HEADER.index(name) for name in columns if papers or not name.startswith("paper's")]
    rows = [tuple(row[i] for i in kept) for row in rows]
    rows[0] = tuple(name.replace("test", test_kind(records)) for name in rows[0])
    return rows


def is_of_all(committee: Committee, records: Sequence[Record]) -> bool:
    """Whether all finished runs are members."""
    return {record.name for record in records if record.finished} <= set(committee.members)


def test_kind(records: Sequence[Record]) -> str:
    """The images that the errors are of, as soon as all are of the same."""
    return kind_of_test(min((record.data.held_out for record in records), default=0))


def _data(record: Record) -> str:
    """What a run was trained and tested on, for those not on MNIST's own two sets."""
    held_out = record.data.held_out
    return f"{record.data.name}, {held_out:,} held out" if held_out else record.data.name


def _row(record: Record, on: str) -> tuple[str, ...]:
    best, best_test = record.best_metrics, record.best_test_metrics
    state = "" if record.finished else f" ({record.state})"
    return (
        record.name + on + state,
        weights_text(record.n_parameters),
        f"{record.epoch:,}/{record.config.epochs:,}",
        f"{best.validation_error:.2f} %" if best else NONE,
        _test_error(best),
        _paper(record, 0),
        _test_error(best_test),
        _paper(record, 1),
        _second(record.counts),
        duration(record.seconds) if record.history else NONE,
        _paper(record, 2),
        _rate(record.updates_per_second),
    )


def _mean_row(group: Sequence[Record], on: str) -> tuple[str, ...]:
    """The mean of finished runs with different seeds."""
    first = group[0]
    best = [m for record in group if (m := record.best_metrics)]
    best_test = [m for record in group if (m := record.best_test_metrics)]
    counts = [record.counts for record in group if record.counts]
    rates = [record.updates_per_second for record in group if record.updates_per_second]
    second = NONE
    if len(counts) == len(group):
        right, errors = sum(c.second_right for c in counts), sum(c.errors for c in counts)
        second = f"{right:,} of {errors:,}"
    return (
        f"{_group_name(group)}{on}, mean of {len(group)} seeds",
        weights_text(first.n_parameters),
        f"{first.config.epochs:,}",
        f"{statistics.mean(m.validation_error for m in best):.2f} %",
        _mean_test_error(best),
        _paper(first, 0),
        _mean_test_error(best_test),
        _paper(first, 1),
        second,
        duration(statistics.mean(record.seconds for record in group)),
        _paper(first, 2),
        _rate(statistics.mean(rates) if rates else None),
    )


def _group_name(group: Sequence[Record]) -> str:
    """What the runs' names have before their seeds, which tells recipes apart; else the network."""
    stems = {re.sub(r"-seed\d+$", "", record.name) for record in group}
    return stems.pop() if len(stems) == 1 else group[0].network


def _committee_row(committee: Committee, of_all: bool) -> tuple[str, ...]:
    counts = committee.counts
    row = dict.fromkeys(range(len(HEADER)), NONE)
    row[0] = f"committee of{' all' * of_all} {len(committee.members)} finished runs"
    row[HEADER.index("test error at best validation")] = _error(counts.errors, counts.n)
    row[HEADER.index("second guess right")] = _second(counts)
    return tuple(row.values())


def _test_error(metrics: EpochMetrics | None) -> str:
    if metrics is None or not metrics.n_test:
        return NONE
    return _error(metrics.test_errors, metrics.n_test)


def _error(errors: int, n: int) -> str:
    """An error rate and its interval."""
    low, high = wilson_interval(errors, n)
    return f"{100 * errors / n:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def _mean_test_error(metrics: Sequence[EpochMetrics]) -> str:
    if not all(m.n_test for m in metrics):
        return NONE
    errors = [m.test_error for m in metrics]
    low, high = t_interval(errors)
    return f"{statistics.mean(errors):.2f} % ({max(0.0, low):.2f} to {min(high, 100.0):.2f})"


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Student's interval of the mean of at least two independent normal values."""
    mean, n = statistics.mean(values), len(values)
    half = stdtrit(n - 1, (1 + confidence) / 2) * statistics.stdev(values) / math.sqrt(n)
    return float(mean - half), float(mean + half)


def _has_papers(records: Sequence[Record]) -> bool:
    """Whether the paper has figures for any of the runs."""
    return any(_paper(record, 0) != NONE for record in records)


def _paper(record: Record, column: int) -> str:
    """The paper's figure: test error for best validation, best test error, or hours."""
    if not is_the_papers(record.data) or record.network not in TABLE_1:
        return NONE
    value = TABLE_1[record.network][column]
    return f"{value:.1f} h" if column == 2 else f"{value:.2f} %"


def _second(counts: ErrorCounts | None) -> str:
    return f"{counts.second_right:,} of {counts.errors:,}" if counts else NONE


def _rate(updates_per_second: float | None) -> str:
    return f"{updates_per_second / 1e9:.1f} G" if updates_per_second else NONE
