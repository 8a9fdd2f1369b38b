"""The learning rates of peers, found on held-out digits by `tools/speedup.py --search`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mlpcore.errors import InputError, shown
from mlpcore.files import read_bounded
from mlpcore.network.architecture import format_hidden_layers
from speed.lesson import Contestant
from speed.results import write_document

#: Where searches are kept.
SETTINGS = Path(__file__).with_name("settings.json")

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Found:
    """What a search has found for a peer."""

    name: str
    architecture: str
    how: str  #: the command, the time that it took, the machine
    rates: dict[int, float]  #: the best by the number of epochs
    tried: dict[int, list[tuple[float, float]]]  #: rates, and errors on held-out digits in percent


def read(path: Path) -> list[Found]:
    """All that searches have found; nothing before the first search."""
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(read_bounded(path, MAX_BYTES), type=list[Found])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise InputError(f"{shown(path)}: expected what tools/speedup.py --search writes") from None


def write(path: Path, found: Sequence[Found]) -> None:
    """Writes these, and keeps what the file has of other peers and architectures."""
    keys = {(each.name, each.architecture) for each in found}
    kept = [each for each in read(path) if (each.name, each.architecture) not in keys]
    document = sorted([*kept, *found], key=lambda each: (each.architecture, each.name))
    write_document(path, document)


def rate_of(
    contestant: Contestant, hidden: Sequence[int], epochs: int, found: Sequence[Found]
) -> float:
    """The learning rate for a budget of epochs: that of the longest search within it.

    A search with another architecture is better than none, and a usual rate is the last resort.
    """
    name, arch = contestant.settings or contestant.name, format_hidden_layers(hidden)
    own = [each for each in found if each.name == name and each.rates]
    if not own:
        return contestant.start or 0.0
    rates = max(own, key=lambda each: each.architecture == arch).rates
    return rates[max((n for n in rates if n <= epochs), default=min(rates))]
