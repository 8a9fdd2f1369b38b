"""The time until a test error is reached: contestants train anew with one budget after another."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from mlpcore.errors import InputError, shown
from mlpcore.files import read_bounded
from mlpcore.store import provenance
from speed.lesson import Contestant, Lesson
from speed.machine import Machine
from speed.peers.settings import Found, rate_of
from speed.results import MAX_BYTES, write_document

#: Budgets of epochs, from the shortest; a learning rate that falls fits its budget.
BUDGETS = (1, 2, 3, 5, 8, 12, 20, 40)

#: Minutes that a contestant may train.
LIMIT = 10.0


@dataclass(frozen=True)
class Contest:
    """What to measure. `lesson` has the data, the network and the threads."""

    lesson: Lesson
    contestants: tuple[Contestant, ...]
    errors: tuple[float, ...]  #: in percent, descending
    budgets: tuple[int, ...] = BUDGETS  #: epochs, ascending
    repeats: int = 1  #: with the seeds 1, 2, ...
    limit: float = LIMIT  #: minutes
    found: tuple[Found, ...] = ()  #: learning rates of peers

    def rate(self, contestant: Contestant, epochs: int) -> float:
        """The learning rate of a peer; 0 for ours, whose recipes have their own."""
        return rate_of(contestant, self.lesson.hidden, epochs, self.found)


@dataclass(frozen=True)
class Run:
    """A training of its own."""

    epochs: int
    seed: int
    seconds: float
    error: float  #: after the last epoch, in percent
    rate: float  #: the peak of a peer's learning rate; 0 for ours


@dataclass(frozen=True)
class Reached:
    """The least time to an error."""

    error: float
    seconds: float | None = None  #: None when it was not reached
    epochs: int | None = None  #: the budget
    ratio: float | None = None  #: to the time of our fastest


@dataclass(frozen=True)
class Line:
    """A contestant's runs, and what follows from them."""

    name: str
    text: str
    peer: bool
    runs: tuple[Run, ...]
    reached: tuple[Reached, ...]
    stopped: str  #: why it has stopped


@dataclass(frozen=True)
class ErrorReport:
    """Everything that a contest has found, in seconds and percent."""

    date: str
    revision: str
    machine: Machine
    threads: int
    data: str
    n_train: int
    n_test: int
    layer_sizes: tuple[int, ...]
    errors: tuple[float, ...]
    budgets: tuple[int, ...]
    repeats: int
    limit: float  #: minutes
    lines: tuple[Line, ...]
    missing: dict[str, str]
    searches: tuple[str, ...]  #: how the learning rates of peers were found

    def write(self, path: Path) -> None:
        """Writes the document, whole or not at all."""
        write_document(path, self)

    @classmethod
    def read(cls, path: Path) -> ErrorReport:
        """The report in a document; an InputError for any other file."""
        try:
            return msgspec.json.decode(read_bounded(path, MAX_BYTES), type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            message = f"{shown(path)}: expected what tools/speedup.py --to-error --json writes"
            raise InputError(message) from None


def budget_means(runs: Sequence[Run], repeats: int) -> dict[int, tuple[float, float]]:
    """Mean error and median seconds by budget, of the budgets with all their runs."""
    by_epochs: dict[int, list[Run]] = {}
    for run in runs:
        by_epochs.setdefault(run.epochs, []).append(run)
    return {
        epochs: (statistics.mean(r.error for r in some), statistics.median(r.seconds for r in some))
        for epochs, some in by_epochs.items()
        if len(some) == repeats
    }


def least_time(runs: Sequence[Run], error: float, repeats: int) -> Reached:
    """The budget that reaches an error in the least time."""
    means = budget_means(runs, repeats)
    times = [(seconds, epochs) for epochs, (mean, seconds) in means.items() if mean <= error]
    return Reached(error, *min(times)) if times else Reached(error)


@dataclass
class _Entry:
    """A contestant while the contest goes on."""

    contestant: Contestant
    runs: list[Run] = field(default_factory=list)
    stopped: str = ""

    def run(self, contest: Contest, epochs: int, seed: int) -> str:
        """Trains; says what came of it in a few words. If training fails, the contestant stops."""
        rate = contest.rate(self.contestant, epochs)
        lesson = replace(contest.lesson, epochs=epochs, seed=seed)
        try:
            if not self.runs:  # libraries import, compile and start threads when first used
                self.contestant.train(lesson.shortened(), rate)
            trained = self.contestant.train(lesson, rate)
            error = lesson.error_of(trained)
        except Exception as failure:
            text = " ".join(str(failure).split()) or type(failure).__name__
            self.stopped = f"failed: {text[:120]}"
            return self.stopped
        self.runs.append(Run(epochs, seed, trained.seconds, error, rate))
        return f"{error:.2f} % in {trained.seconds:.1f} s"

    def check_time(self, contest: Contest, epochs: int) -> None:
        """Stops before a budget that would take more than the limit."""
        if self.runs and not self.stopped:
            last = self.runs[-1]
            expected = contest.repeats * epochs * last.seconds / last.epochs
            if sum(run.seconds for run in self.runs) + expected > 60 * contest.limit:
                self.stopped = f"{epochs} epochs would exceed the limit of {contest.limit:g} min"

    def check_error(self, contest: Contest) -> None:
        """Stops after the lowest error."""
        if not self.stopped and least_time(self.runs, contest.errors[-1], contest.repeats).seconds:
            self.stopped = f"reached {contest.errors[-1]:g} %"

    def line(self, contest: Contest) -> Line:
        """What the contestant has reached, without ratios."""
        each, runs = self.contestant, tuple(self.runs)
        reached = tuple(least_time(runs, error, contest.repeats) for error in contest.errors)
        stopped = self.stopped or "no budget is left"
        return Line(each.name, each.text, each.is_peer, runs, reached, stopped)


def hold(
    contest: Contest, progress: Callable[[str], object] = lambda title: None
) -> tuple[Line, ...]:
    """The contest: all have run with a budget and a seed before the next begins.

    Every seed starts with another contestant.
    """
    entries = [_Entry(each) for each in contest.contestants if not each.missing()]
    for epochs in contest.budgets:
        for entry in entries:
            entry.check_time(contest, epochs)
        for seed in range(1, contest.repeats + 1):
            shift = (seed - 1) % max(1, len(entries))
            for entry in entries[shift:] + entries[:shift]:
                if not entry.stopped:
                    outcome = entry.run(contest, epochs, seed)
                    progress(f"epochs {epochs}, seed {seed}, {entry.contestant.name}: {outcome}")
        for entry in entries:
            entry.check_error(contest)
    return with_ratios([entry.line(contest) for entry in entries])


def fastest(lines: Sequence[Line], index: int, peer: bool) -> Line | None:
    """The fastest of ours or of the peers to an error, by the error's place."""
    some = [line for line in lines if line.peer == peer and line.reached[index].seconds]
    return min(some, key=lambda line: line.reached[index].seconds or 0.0, default=None)


def with_ratios(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Each time divided by the time of our fastest to the same error."""

    def ratio(index: int, reached: Reached) -> Reached:
        base = fastest(lines, index, peer=False)
        if base is None or reached.seconds is None:
            return reached
        return replace(reached, ratio=reached.seconds / (base.reached[index].seconds or 0.0))

    return tuple(
        replace(line, reached=tuple(ratio(i, each) for i, each in enumerate(line.reached)))
        for line in lines
    )


def measure_contest(
    contest: Contest, progress: Callable[[str], object] = lambda title: None
) -> ErrorReport:
    """The whole run; `progress` is told each result."""
    machine, lesson = Machine.here(), contest.lesson
    reasons = {each.name: each.missing() for each in contest.contestants}
    names = {each.settings or each.name for each in contest.contestants}
    return ErrorReport(
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        revision=provenance.revision(),
        machine=machine,
        threads=lesson.threads,
        data=lesson.data.name,
        n_train=len(lesson.data.train_labels),
        n_test=len(lesson.data.test_labels),
        layer_sizes=lesson.layer_sizes,
        errors=contest.errors,
        budgets=contest.budgets,
        repeats=contest.repeats,
        limit=contest.limit,
        lines=hold(contest, progress),
        missing={name: reason for name, reason in reasons.items() if reason},
        searches=tuple(dict.fromkeys(e.how for e in contest.found if e.name in names)),
    )
