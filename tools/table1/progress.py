"""How far the experiment is, and how long the rest will take."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlpcore.network.architecture import PRESETS, count_parameters
from mlpcore.report.tables import NONE, Rows, duration
from mlpcore.training.state import EpochMetrics
from table1.experiment import Experiment, Planned
from table1.records import Record

#: Epochs whose median says how long one takes now.
RECENT = 20


@dataclass(frozen=True)
class Left:
    """Seconds that a run still takes; `source` is the run that an estimate is made from.

    `source` is "" when the run's own epochs say it. `seconds` is None when nothing does.
    """

    seconds: float | None
    source: str = ""


def seconds_per_epoch(history: Sequence[EpochMetrics], scale: float = 1.0) -> float:
    """Median of the recent epochs.

    Parameters
    ----------
    scale
        How many times as many weights another network has: training and evaluation take as
        many times as long, deformation does not know about weights.
    """
    return statistics.median(
        m.deformation_seconds + scale * (m.training_seconds + m.evaluation_seconds)
        for m in history[-RECENT:]
    )


def time_left(run: Planned, epochs: int, record: Record | None, others: Sequence[Record]) -> Left:
    """From the run's own epochs, else from those of the network nearest in size."""
    if record and record.history:
        return Left((epochs - record.epoch) * seconds_per_epoch(record.history))
    measured = [other for other in others if other.history]
    if not measured:
        return Left(None)

    def scale(other: Record) -> float:
        inputs, outputs = other.layer_sizes[0], other.layer_sizes[-1]
        return count_parameters((inputs, *PRESETS[run.net], outputs)) / other.n_parameters

    nearest = min(measured, key=lambda other: abs(math.log(scale(other))))
    return Left(epochs * seconds_per_epoch(nearest.history, scale(nearest)), nearest.name)


def status(
    experiment: Experiment, records: Mapping[str, Record], problems: Mapping[str, str]
) -> tuple[Rows, str]:
    """A table of all runs, and a line on what is left for this process.

    Parameters
    ----------
    records, problems
        By the names of the runs: what there is of them, and what is wrong with others.
    """
    rows: Rows = [("run", "state", "epochs", "time left")]
    own, guessed, unknown, sources = 0.0, 0.0, 0, set()
    for run in experiment.runs:
        record = records.get(run.name)
        done = record.epoch if record else 0
        left = time_left(run, experiment.epochs, record, list(records.values()))
        state = record.state if record else "not started"
        if run.name in problems:
            state, left = "failed" if record else "damaged", Left(0.0)
        elif not (record and (record.finished or record.running)):
            unknown += left.seconds is None
            own += left.seconds or 0.0
            guessed += (left.seconds or 0.0) if left.source else 0.0
            sources.update({left.source} - {""})
        rows.append((run.name, state, f"{done:,}/{experiment.epochs:,}", _left_text(left)))
    return rows, _total(own, guessed, unknown, sorted(sources))


def _left_text(left: Left) -> str:
    if left.seconds is None:
        return "not known yet"
    text = duration(left.seconds) if left.seconds else NONE
    return f"{text} (estimate)" if left.source else text


def _total(own: float, guessed: float, unknown: int, sources: list[str]) -> str:
    if unknown:
        return "time left for this process: not known before the first epoch"
    text = f"time left for this process: {duration(own)}"
    if guessed:
        text += (
            f", of it {duration(guessed)} estimated by the number of weights "
            f"from the epochs of {', '.join(sources)}"
        )
    return text
