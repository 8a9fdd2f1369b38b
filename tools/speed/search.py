"""Learning rates of peers, tried on held-out training digits and kept for `--to-error`."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import msgspec

from mlpcore.network.architecture import format_hidden_layers
from mlpcore.store import provenance
from speed.peers.base import Learner, Task
from speed.results import write_document

#: Where searches are kept.
RATES = Path(__file__).parent / "peers" / "rates.json"

#: One of so many training images is held out: 10,000 of MNIST's.
HELD_OUT = 6

#: Numbers of epochs to search for, and the seed.
EPOCHS, SEED = (1, 3, 10), 1

#: Errors on held-out digits in percent, by the number of epochs and the learning rate.
Errors: TypeAlias = dict[int, dict[float, float]]


@dataclass(frozen=True)
class Search:
    """What has been found for an architecture."""

    how: str  #: the command, the machine and the data
    tried: dict[str, Errors]  #: by learner


def read(path: Path) -> dict[str, Search]:
    """All searches, by architecture."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Search])


def keep(path: Path, architecture: str, new: Search) -> None:
    """Adds a search to the file; learners that it has not tried keep what they have."""
    searches = read(path)
    if old := searches.get(architecture):
        new = replace(new, tried=old.tried | new.tried)
    write_document(path, searches | {architecture: new})


def best(errors: Mapping[float, float]) -> float:
    """The rate with the least error."""
    return min(errors, key=lambda rate: errors[rate])


def rate_of(
    learner: Learner, hidden: Sequence[int], epochs: int, searches: Mapping[str, Search]
) -> float:
    """The learning rate for a budget of epochs: that of the longest search within it.

    A search with another architecture is better than none, and a usual rate is the last resort.
    """
    own = searches.get(format_hidden_layers(hidden))
    for search in filter(None, (own, *searches.values())):
        if errors := search.tried.get(learner.name):
            return best(errors[max((n for n in errors if n <= epochs), default=min(errors))])
    return learner.start or 0.0


def next_rate(errors: Mapping[float, float]) -> float | None:
    """Twice or half the best of those tried, or None when both have been tried."""
    around = 2 * best(errors), best(errors) / 2
    return next((rate for rate in around if rate not in errors), None)


def search(
    minutes: float,
    task: Task,
    epochs: Sequence[int],
    learners: Sequence[Learner],
    progress: Callable[[str], object],
) -> Search:
    """Tries learning rates until all are found, or nothing more can be tried in time.

    For each number of epochs a learner climbs to the rate with the least error. Fewer epochs come
    first, and say where to begin with more.
    """
    data, end = task.data.hold_out(len(task.data.train_labels) // HELD_OUT), 60 * minutes
    held_out, tried = Task(data, task.hidden, task.threads), dict[str, Errors]()
    end += time.perf_counter()
    pace = {each.name: 0.0 for each in learners}  # seconds an epoch, evaluations and all
    for n in epochs:
        for learner in learners:
            own = tried.get(learner.name, {})
            rate: float | None = best(own[max(own)]) if own else learner.start
            while rate and time.perf_counter() + n * pace[learner.name] < end:
                begin, errors = time.perf_counter(), own.setdefault(n, {})
                _, errors[rate] = learner.train(held_out, n, SEED, rate)
                tried[learner.name], pace[learner.name] = own, (time.perf_counter() - begin) / n
                progress(f"epochs {n}: {learner.name}, {rate:g}: {errors[rate]:.2f} %")
                rate = next_rate(errors)
    how = (
        f"tools/speedup.py --search {minutes:g} on {provenance.machine()}, "
        f"{datetime.date.today()}; {data.name}, trained on {len(data.train_labels):,} images, "
        f"{len(data.test_labels):,} held out, revision {provenance.revision() or 'unknown'}"
    )
    return Search(how, tried)
