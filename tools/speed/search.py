"""Learning rates of peers, tried on held-out training digits."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mlpcore.data.dataset import Dataset
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.store import provenance
from speed.lesson import Contestant, Lesson
from speed.peers.settings import Found

#: The grid of learning rates has three in each power of ten, and these bounds.
STEPS, LOWEST, HIGHEST = (1, 2, 5), 1e-6, 10.0

#: One of so many training images is held out: 10,000 of MNIST's.
HELD_OUT = 6

#: Numbers of epochs to search for.
EPOCHS = (1, 3, 10)


def grid(index: int) -> float:
    """The learning rate with this number on the grid; number 0 is 1."""
    power, step = divmod(index, len(STEPS))
    return float(f"{STEPS[step]}e{power}")


def nearest(rate: float) -> int:
    """The number of the rate on the grid that is nearest by its logarithm."""
    around = range(3 * math.floor(math.log10(rate)), 3 * math.floor(math.log10(rate)) + 4)
    return min(around, key=lambda index: abs(math.log(grid(index) / rate)))


def next_index(tried: dict[int, float], start: int) -> int | None:
    """What to try next: a neighbour of the best, or None when both have been tried."""
    if not tried:
        return start
    best = min(tried, key=lambda index: tried[index])
    wanted = (best + 1, best - 1)
    open_ = [i for i in wanted if i not in tried and LOWEST <= grid(i) <= HIGHEST]
    return open_[0] if open_ else None


@dataclass
class _Climb:
    """A peer on its way to its best learning rate for each number of epochs."""

    contestant: Contestant
    start: int
    seconds: float = 0.0  #: of its last epoch, evaluations and all
    tried: dict[int, dict[int, float]] = field(default_factory=dict)

    def step(self, lesson: Lesson, left: float) -> str:
        """Tries a rate if `left` seconds may be enough; says what it has found, or nothing."""
        tried = self.tried.setdefault(lesson.epochs, {})
        index = next_index(tried, self.start)
        if index is None or self.seconds * lesson.epochs > left:
            return ""
        begin = time.perf_counter()
        trained = self.contestant.train(lesson, grid(index))
        tried[index] = lesson.error_of(trained)
        self.seconds = (time.perf_counter() - begin) / lesson.epochs
        return f"{self.contestant.name}, {grid(index):g}: {tried[index]:.2f} %"

    def end(self, epochs: int) -> None:
        """The next number of epochs begins where this one was best."""
        if tried := self.tried.get(epochs):
            self.start = min(tried, key=lambda index: tried[index])

    def found(self, architecture: str, how: str) -> Found:
        """The best rates."""
        by_epochs = {n: tried for n, tried in self.tried.items() if tried}
        rates = {n: grid(min(t, key=lambda index: t[index])) for n, t in by_epochs.items()}
        tried = {n: [(grid(i), t[i]) for i in sorted(t)] for n, t in by_epochs.items()}
        return Found(self.contestant.name, architecture, how, rates, tried)


def search(
    minutes: float,
    lesson: Lesson,
    epochs: Sequence[int],
    contestants: Sequence[Contestant],
    progress: Callable[[str], object],
) -> list[Found]:
    """Tries learning rates until all are found, or the time is over.

    The contestants take turns. Each climbs on a grid to the rate with the least held-out error.
    Fewer epochs come first, and say where to begin with more.
    """
    begin, revision = time.perf_counter(), provenance.revision()
    data = held_out(lesson.data)
    climbs = [_Climb(each, nearest(each.start)) for each in contestants if each.start]
    for n in epochs:
        active = climbs
        while active:
            going = []
            for climb in active:
                left = 60 * minutes - (time.perf_counter() - begin)
                if left > 0 and (line := climb.step(replace(lesson, data=data, epochs=n), left)):
                    progress(f"epochs {n}: {line}")
                    going.append(climb)
            active = going
        for climb in climbs:
            climb.end(n)
    spent = (time.perf_counter() - begin) / 60
    how = f"{_how(lesson, data, minutes, spent, len(climbs))}, revision {revision or 'unknown'}"
    climbs = [climb for climb in climbs if any(climb.tried.values())]
    return [climb.found(format_hidden_layers(lesson.hidden), how) for climb in climbs]


def held_out(data: Dataset) -> Dataset:
    """The data with the last training images in place of the test images."""
    return data.hold_out(len(data.train_labels) // HELD_OUT)


def _how(lesson: Lesson, data: Dataset, minutes: float, spent: float, peers: int) -> str:
    """How a search was made, in a line."""
    arch = format_hidden_layers(lesson.hidden)
    return (
        f"tools/speedup.py --search {minutes:g} --arch {arch} --threads {lesson.threads}: "
        f"{spent:.1f} minutes for {peers} peers on {provenance.machine()}, "
        f"{datetime.date.today()}; "
        f"{data.name}, trained on {len(data.train_labels):,} images, "
        f"{len(data.test_labels):,} held out, seed {lesson.seed}"
    )
