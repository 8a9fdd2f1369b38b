"""How times are taken: sized by a pilot, repeated in turn, reported as medians with the spread."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How long and how often.

    Parameters
    ----------
    seconds
        Least duration of one timing. A clock's resolution and a thread's start are below a
        thousandth of the defaults.
    repeats
        Timings of each case, of which the median counts.
    budget
        Seconds after which cases that are compared are not repeated any more, if they have
        been three times. A busy machine, or a large network, takes that long.
    """

    seconds: float = 0.06
    repeats: int = 7
    budget: float = 20.0

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.repeats >= 1):
            raise ValueError(f"{self}: expected a positive duration and at least one repeat")


QUICK = Settings(seconds=0.025, repeats=5, budget=2.5)

#: Repeats that there are in any case, if so many are wanted.
LEAST_REPEATS = 3


def host_clock(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


@dataclass(frozen=True)
class Case:
    """Something to time.

    Parameters
    ----------
    run
        Does n units of work, samples or images, and returns when they are done.
    step
        n is a multiple of it: images of a displacement field, samples of a block.
    most
        n at most; a multiple of `step`.
    length
        Least duration of a timing, as a multiple of the settings': a part of an epoch needs
        more, for all that it consists of.
    clock
        Seconds that a call takes: by the host's clock, or by a device's events.
    """

    run: Callable[[int], object]
    step: int = 1
    most: int = 1 << 20
    length: float = 1.0
    clock: Callable[[Callable[[], object]], float] = host_clock


@dataclass(frozen=True)
class Timing:
    """Seconds per unit: the median of the repeats, the fastest and the slowest."""

    seconds: float
    low: float
    high: float
    units: int  #: in each repeat
    repeats: int

    @classmethod
    def of(cls, durations: Sequence[float], units: int) -> Timing:
        """From the durations of repeats of `units` each."""
        each = [duration / units for duration in durations]
        return cls(statistics.median(each), min(each), max(each), units, len(each))

    def times(self, factor: float) -> Timing:
        """Per `factor` units instead of per unit."""
        seconds, low, high = (factor * t for t in (self.seconds, self.low, self.high))
        return Timing(seconds, low, high, self.units, self.repeats)


def _duration(case: Case, units: int) -> float:
    return case.clock(lambda: case.run(units))


def pilot(case: Case, seconds: float) -> int:
    """Units that take `seconds` or more.

    The first run is not looked at: it warms up. A duration that is long enough has to be so
    again, lest a moment's disturbance make all repeats too short.
    """
    units = case.step
    case.run(units)
    while units < case.most:
        duration = _duration(case, units)
        if duration >= seconds:
            duration = min(duration, _duration(case, units))
        if duration >= seconds:
            break
        # A little more than enough, and not on the word of one much too short timing.
        growth = min(10.0, 1.2 * seconds / max(duration, 1e-9))
        units = min(case.most, case.step * math.ceil(units * growth / case.step))
    return units


def measure(
    cases: Sequence[Case], settings: Settings, progress: Callable[[], object] = lambda: None
) -> list[Timing]:
    """Times of cases that are to be compared.

    They take turns, so that what slows the machine down for a while slows all of them, and
    every repeat starts with another one. Each timing comes after a little of its own work:
    the caches hold what they would in a longer run, and the threads of others have gone to
    sleep. `progress` is called after the pilot and after each repeat of a case.
    """
    units = []
    for case in cases:
        units.append(pilot(case, case.length * settings.seconds))
        progress()
    durations: list[list[float]] = [[] for _ in cases]
    begin = time.perf_counter()
    for repeat in range(settings.repeats):
        if repeat >= LEAST_REPEATS and time.perf_counter() - begin > settings.budget:
            break
        for i in range(len(cases)):
            i = (i + repeat) % len(cases)
            if units[i] > cases[i].step:
                cases[i].run(cases[i].step)
            durations[i].append(_duration(cases[i], units[i]))
            progress()
    return [Timing.of(d, n) for d, n in zip(durations, units)]
