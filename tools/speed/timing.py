"""Timing: sized by a pilot, repeated in turn, reported as medians with the spread."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The duration and the number of measurements.

    Each timing takes at least `seconds`; the clock's resolution and the start of a thread are
    below a thousandth of that. Each case is timed `repeats` times. Once that has taken `budget`
    seconds, as on a busy machine or with a large network, three times are enough.
    """

    seconds: float = 0.06
    repeats: int = 7
    budget: float = 20.0


QUICK = Settings(seconds=0.025, repeats=5, budget=2.5)


@dataclass(frozen=True)
class Case:
    """Something to time: `run` does n units of work, samples or images, and returns when done.

    n is a multiple of `step`, up to `most`. A timing takes at least `length` times the settings'
    `seconds`.
    """

    run: Callable[[int], object]
    step: int = 1
    most: int = 1 << 20
    length: float = 1.0

    def duration(self, units: int) -> float:
        """Seconds that so many units take."""
        begin = time.perf_counter()
        self.run(units)
        return time.perf_counter() - begin


@dataclass(frozen=True)
class Timing:
    """Seconds per unit: the median of the repeats, the fastest and the slowest."""

    seconds: float
    low: float
    high: float
    repeats: int


def pilot(case: Case, seconds: float) -> int:
    """Units that take `seconds` or more, in two tries of which one may be disturbed."""
    units = case.step
    case.run(units)  # warms up
    while units < case.most and min(case.duration(units) for _ in range(2)) < seconds:
        units = min(case.most, 2 * units)
    return units


def measure(cases: Sequence[Case], settings: Settings) -> list[Timing]:
    """Times of cases that are to be compared.

    The cases take turns, so that whatever slows the machine for a while slows all of them.
    Every repeat starts with another case. A short run of a case precedes each of its timings:
    the caches then hold its data, and other cases' threads have gone to sleep.
    """
    units = [pilot(case, case.length * settings.seconds) for case in cases]
    times: list[list[float]] = [[] for _ in cases]
    begin = time.perf_counter()
    for repeat in range(settings.repeats):
        if repeat >= 3 and time.perf_counter() - begin > settings.budget:
            break
        for i in range(len(cases)):
            i = (i + repeat) % len(cases)
            if units[i] > cases[i].step:
                cases[i].run(cases[i].step)
            times[i].append(cases[i].duration(units[i]) / units[i])
    return [Timing(statistics.median(t), min(t), max(t), len(t)) for t in times]
