"""The options of `tools/speedup.py --to-error` and `--search`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mlpcore import backends
from mlpcore.commands.options import number, whole_number
from mlpcore.cpu import available_cores
from mlpcore.data import dataset
from mlpcore.errors import InputError
from mlpcore.files import check_replaceable
from mlpcore.network.architecture import parse_hidden_layers
from mlpcore.training.schedule import MAX_EPOCHS
from speed.lesson import Lesson
from speed.ours import OURS
from speed.peers import LEARNERS, settings
from speed.search import EPOCHS, search
from speed.to_error import BUDGETS, LIMIT, Contest

#: The options that go with `--search`, and with `--to-error`.
SEARCH_OPTIONS = ("arch", "threads", "peers", "epochs", "data", "dataset")
OPTIONS = (*SEARCH_OPTIONS, "repeats", "limit", "markdown", "json")

#: A week.
MAX_MINUTES = 7 * 24 * 60


class Named(Protocol):
    """Whatever has a name."""

    @property
    def name(self) -> str:
        """As users see it."""


Item = TypeVar("Item", bound=Named)


def chosen(parts: Sequence[str], known: Sequence[Item]) -> list[Item]:
    """Those with one of these parts in their names; an InputError for a part of none."""
    for part in parts:
        if not any(part.lower() in each.name.lower() for each in known):
            names = "; ".join(each.name for each in known)
            raise InputError(f"--peers: {part!r}, expected a part of {names}")
    return [each for each in known if any(part.lower() in each.name.lower() for part in parts)]


def percentages(text: str) -> tuple[float, ...]:
    """The type of `--to-error`: errors in percent, which become descending."""
    values = {number(part) for part in text.split(",")}
    for value in values:
        if not 0 < value < 100:
            raise ArgumentTypeError(f"{value:g}, expected percentages between 0 and 100")
    return tuple(sorted(values, reverse=True))


def count(text: str) -> int:
    """The type of an option: a whole number from 1."""
    if not 1 <= (value := whole_number(text)) <= MAX_EPOCHS:
        raise ArgumentTypeError(f"{value}, expected 1 to {MAX_EPOCHS:,}")
    return value


def counts(text: str) -> tuple[int, ...]:
    """The type of `--epochs`: whole numbers from 1, which become ascending."""
    return tuple(sorted({count(part) for part in text.split(",")}))


def minutes(text: str) -> float:
    """The type of an option: a time in minutes."""
    if not 0 < (value := number(text)) <= MAX_MINUTES:
        raise ArgumentTypeError(f"{value:g}, expected more than 0, at most {MAX_MINUTES:,}")
    return value


def _lesson(options: argparse.Namespace) -> Lesson:
    """What is learnt; an InputError for an option that cannot be met."""
    architectures, threads = options.arch or ["net1"], options.threads or [available_cores()]
    for name, values in (("arch", architectures), ("threads", threads)):
        if len(values) > 1:
            raise InputError(f"--{name} {', '.join(map(str, values))}: expected only one")
    hidden = parse_hidden_layers(architectures[0])
    backends.get("cpu", threads[0])  # refuses what no backend takes
    data = dataset.load(options.data, name=options.dataset)
    return Lesson(data, hidden, epochs=1, seed=1, threads=threads[0])


def make_contest(options: argparse.Namespace) -> Contest:
    """What `--to-error` measures."""
    peers = chosen(options.peers, LEARNERS)
    if options.json:
        check_replaceable(options.json)
    return Contest(
        _lesson(options),
        (*OURS, *peers),
        options.to_error,
        options.epochs or BUDGETS,
        options.repeats or 1,
        options.limit or LIMIT,
        tuple(settings.read(settings.SETTINGS)),
    )


def run_search(options: argparse.Namespace, progress: Callable[[str], object]) -> None:
    """What `--search` does: tries learning rates, and keeps the best for `--to-error`."""
    peers = chosen(options.peers or [""], LEARNERS)
    own = [each for each in peers if not each.missing() and not each.settings]
    if not own:
        raise InputError("--search: no peer with learning rates of its own is installed")
    epochs, lesson = options.epochs or EPOCHS, _lesson(options)
    check_replaceable(settings.SETTINGS)
    settings.write(settings.SETTINGS, search(options.search, lesson, epochs, own, progress))
