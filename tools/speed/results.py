"""From times to what they mean: ratios, rates, floors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speed.floors import Work, bandwidth_limit, floor_seconds
from speed.limits import Limits
from speed.timing import Timing

#: A standard processor: what ratios are to.
BASE = "scalar"


@dataclass(frozen=True)
class Line:
    """A backend or a peer at a routine: a time, or the reason why there is none.

    Parameters
    ----------
    error
        Greatest relative error of its result; None where there was nothing to compare with.
    other
        How what it computes differs from the routine; empty when it does not.
    work
        Of the unit that its time is for; None for that of the routine.
    """

    name: str
    threads: int
    timing: Timing | None = None
    reason: str = ""
    error: float | None = None
    other: str = ""
    peer: bool = False
    failed: bool = False  #: its result was wrong
    work: Work | None = None

    @property
    def label(self) -> str:
        """Name, with a mark when it computes something else."""
        return f"{self.name} *" if self.other else self.name

    @property
    def seconds(self) -> float:
        """Per unit, of a line that has a time."""
        assert self.timing is not None
        return self.timing.seconds


@dataclass(frozen=True)
class Result:
    """A line and what follows from its time; None where nothing does."""

    line: Line
    ratio: float | None = None  #: times as fast as `BASE` with one thread
    updates: float | None = None  #: of weights and biases per second
    bandwidth: float | None = None  #: bytes that have to be moved, per second
    of_limit: float | None = None  #: of the machine's bandwidth for these bytes
    floor: float | None = None  #: least seconds
    reached: float | None = None  #: floor / time


@dataclass(frozen=True)
class Row:
    """All results of a routine."""

    key: str
    title: str
    unit: str
    results: tuple[Result, ...]

    def find(self, name: str, threads: int) -> Result | None:
        """Our backend's result with so many threads, if it has a time."""
        for result in self.results:
            line = result.line
            if (line.name, line.threads) == (name, threads) and line.timing and not line.peer:
                return result
        return None

    def best(self) -> Result | None:
        """Our fastest."""
        ours = [r for r in self.results if r.line.timing and not r.line.peer]
        return min(ours, key=lambda r: r.line.seconds, default=None)


def base_seconds(lines: Sequence[Line]) -> float | None:
    """The time of `BASE` with one thread, if it is there."""
    for line in lines:
        if (line.name, line.threads) == (BASE, 1) and line.timing and not line.peer:
            return line.timing.seconds
    return None


def derive(line: Line, work: Work, limits: Limits | None, base: float | None) -> Result:
    """What a line's time means.

    Parameters
    ----------
    work
        Of the unit that the time is for.
    limits
        Of as many threads, or of the device.
    base
        Seconds of the standard processor.
    """
    if line.timing is None:
        return Result(line)
    seconds = line.timing.seconds
    ratio = base / seconds if base else None
    updates = work.updates / seconds if work.updates else None
    bandwidth = work.moved / seconds if work.moved else None
    if limits is None:
        return Result(line, ratio, updates, bandwidth)
    limit, floor = bandwidth_limit(work, limits), floor_seconds(work, limits)
    of_limit = bandwidth / limit if bandwidth and limit else None
    return Result(line, ratio, updates, bandwidth, of_limit, floor, floor / seconds)


def derive_all(
    lines: Sequence[Line], work: Work, limits: dict[tuple[str, int], Limits]
) -> tuple[Result, ...]:
    """Results of a routine's lines; limits are those of ("cpu", threads) and ("cuda", 1)."""
    base = base_seconds(lines)
    results = []
    for line in lines:
        on_device = line.name == "cuda" or "GPU" in line.name or "CUDA" in line.name
        place = ("cuda", 1) if on_device else ("cpu", line.threads)
        results.append(derive(line, line.work or work, limits.get(place), base))
    return tuple(results)
