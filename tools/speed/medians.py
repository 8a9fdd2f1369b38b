"""One table from the JSON documents of several runs: medians over the runs.

Ratios are of one run each, in which all lines took turns, before the median is taken of them.
"""

from __future__ import annotations

import datetime
import json
import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mlpcore.errors import InputError, shown
from mlpcore.files import read_bounded
from mlpcore.report.tables import NONE, short_time
from speed.tables import Table, column

T = TypeVar("T")

#: Of one document; a run of everything with all peers is a tenth of that.
MAX_BYTES = 1 << 22

#: What reading values from something else than such a document can raise.
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Key:
    """What has been timed: a backend or a peer with so many threads at a routine."""

    network: str
    routine: str
    name: str
    threads: int
    peer: bool


@dataclass(frozen=True)
class Time:
    """Seconds per unit, and the part of them that the machine's floor is, if that is known."""

    seconds: float
    reached: float | None


@dataclass(frozen=True)
class Run:
    """One document.

    Attributes
    ----------
    place
        The machine, and the revision where that is known, in words.
    conditions
        What has to be the same for times to be comparable, by its name.
    titles
        Of the routines, by their keys.
    times
        In the order of the document; None where there was a reason for no time.
    """

    date: str
    place: str
    conditions: dict[str, str]
    titles: dict[str, str]
    times: dict[Key, Time | None]


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """The documents of runs that can be compared.

    Raises
    ------
    InputError
        When one is something else, or was measured on another machine than the first, in another
        way or of other things, or is another's copy.
    """
    runs = [_read(path) for path in paths]
    first = runs[0]
    for i, (path, run) in enumerate(zip(paths, runs)):
        for name, wanted in first.conditions.items():
            found = run.conditions.get(name, "not known")
            if found != wanted:
                expected = f"expected that of {shown(paths[0])}: {wanted}"
                raise InputError(f"{shown(path)}: {name} {found}, {expected}")
        if (run.titles, run.times.keys()) != (first.titles, first.times.keys()):
            raise InputError(
                f"{shown(path)} has other networks, routines or lines than {shown(paths[0])}"
            )
        if run in runs[:i]:
            same = shown(paths[runs.index(run)])
            raise InputError(f"{shown(path)} is the same as {same}: expected another run")
    return runs


def _read(path: Path) -> Run:
    content = read_bounded(path, MAX_BYTES)
    try:
        document = json.loads(content)
        date = datetime.datetime.fromisoformat(_typed(document["date"], str)).date()
        titles: dict[str, str] = {}
        times: dict[Key, Time | None] = {}
        for network in document["architectures"]:
            for routine in network["routines"]:
                key, title, unit = (_text(routine[name]) for name in ("key", "title", "unit"))
                titles[key] = title if unit == "epoch" else f"{title}, per {unit}"
                for line in routine["results"]:
                    name, threads = _text(line["name"]), _typed(line["threads"], int)
                    peer = _typed(line["peer"], bool)
                    what = Key(_text(network["name"]), key, name, threads, peer)
                    if what in times:
                        raise ValueError
                    times[what] = _time(line)
        if not times:
            raise ValueError
        return Run(date.isoformat(), _place(document), _conditions(document), titles, times)
    except _MALFORMED:
        raise InputError(f"{shown(path)}: expected what tools/speedup.py --json writes") from None


def _place(document: dict[str, Any]) -> str:
    machine, revision = document["machine"], document.get("revision")
    parts = [_text(machine["cpu"]), f"{_typed(machine['cores'], int)} cores"]
    device = _text(machine["device"])
    if not device.startswith("none"):
        parts.append(device)
    if revision:
        parts.append(f"revision {_text(revision)}")
    return ", ".join(parts)


def _conditions(document: dict[str, Any]) -> dict[str, str]:
    """All that is said of the machine but what changes from boot to boot, and of the source."""
    conditions = dict(document["machine"])
    for name in ("load", "memory"):
        conditions.pop(name, None)
    conditions["device"] = _text(conditions["device"]).partition(" (")[0]
    conditions["revision"] = document.get("revision") or "not known"
    conditions["settings"] = document["settings"]
    return {shown(name): _listed(value) for name, value in conditions.items()}


def _listed(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{shown(name)} {_listed(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_listed, value))
    return shown(str(value))


def _typed(value: object, kind: type[T]) -> T:
    if type(value) is not kind:
        raise TypeError
    return value


def _text(value: object) -> str:
    return shown(_typed(value, str))


def _time(line: dict[str, Any]) -> Time | None:
    if line["timing"] is None:
        return None
    values = line["timing"]["seconds"], line["reached"]
    for value in values:
        if value is not None and not 0 < _typed(value, float) < math.inf:
            raise ValueError
    return Time(_typed(values[0], float), values[1])


def tables(runs: Sequence[Run], routines: Collection[str] = ()) -> list[Table]:
    """A table for each routine, or each of some: a row for each network.

    Raises
    ------
    InputError
        When a routine has not been timed.
    """
    titles = runs[0].titles
    for routine in routines:
        if routine not in titles:
            raise InputError(f"routine {routine!r}: the runs have {', '.join(titles)}")
    return [_table(runs, key) for key in titles if not routines or key in routines]


def _table(runs: Sequence[Run], routine: str) -> Table:
    keys = [key for key in runs[0].times if key.routine == routine]
    ours = list(dict.fromkeys((key.name, key.threads) for key in keys if not key.peer))
    peers = list(dict.fromkeys(key.name for key in keys if key.peer))
    many = f"medians of {len(runs)} runs" if len(runs) > 1 else "one run"
    dates = sorted(run.date for run in runs)
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    table = Table(
        f"{runs[0].titles[routine]}: {many}, {when}",
        ("By, threads", *(column(*line) for line in ours), *peers, "of the floor"),
        notes=_notes(runs, bool(peers)),
    )
    for network in dict.fromkeys(key.network for key in keys):
        lines = [_times(runs, Key(network, routine, *line, peer=False)) for line in ours]
        fastest = min(filter(None, lines), key=_median, default=[])
        cells = [short_time(_median(times)) if times else NONE for times in lines]
        for name in peers:
            of_peer = (k for k in keys if (k.network, k.name, k.peer) == (network, name, True))
            variants = [times for key in of_peer if (times := _times(runs, key))]
            cells.append(_peer_cell([min(each, key=_seconds) for each in zip(*variants)], fastest))
        table.rows.append((network, *cells, _reached(fastest)))
    return table


def _notes(runs: Sequence[Run], peers: bool) -> tuple[str, ...]:
    said = [f"Measured on {runs[0].place}."]
    if peers:
        ratios = "how many times as long they take as our fastest"
        if len(runs) > 1:
            ratios += ", the median of the runs' ratios, in brackets the least and the greatest"
        said.append(f"Peers with the threads that suit them best, and {ratios}.")
    said.append("Of the floor: the floor over the time of our fastest.")
    return tuple(said)


def _times(runs: Sequence[Run], key: Key) -> list[Time]:
    """Of all runs; none when one of them has no time."""
    times = [run.times.get(key) for run in runs]
    return [time for time in times if time] if all(times) else []


def _seconds(time: Time) -> float:
    return time.seconds


def _median(times: Sequence[Time]) -> float:
    return statistics.median(map(_seconds, times))


def _peer_cell(times: Sequence[Time], ours: Sequence[Time]) -> str:
    if not times:
        return NONE
    ratios = [theirs.seconds / our.seconds for theirs, our in zip(times, ours)]
    if not ratios:
        return short_time(_median(times))
    cell = f"{short_time(_median(times))} {statistics.median(ratios):.1f}x"
    return cell if len(ratios) == 1 else f"{cell} ({min(ratios):.1f} to {max(ratios):.1f})"


def _reached(times: Sequence[Time]) -> str:
    reached = [time.reached for time in times if time.reached is not None]
    return f"{statistics.median(reached):.0%}" if reached else NONE
