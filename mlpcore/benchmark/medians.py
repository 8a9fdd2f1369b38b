"""One table from the JSON documents of several runs: medians over the runs.

Ratios are of one run each, in which all lines took turns, before the median is taken of them.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlpcore.benchmark.tables import Table, column
from mlpcore.errors import InputError, shown
from mlpcore.files import read_bounded
from mlpcore.text_tables import NONE, seconds

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
    conditions
        What has to be the same for times to be comparable, by its name.
    titles
        Of the routines, by their keys.
    times
        In the order of the document; None where there was a reason for no time.
    """

    date: str
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
            if run.conditions[name] != wanted:
                raise InputError(
                    f"{shown(path)}: {name} {run.conditions[name]}, expected that of "
                    f"{shown(paths[0])}: {wanted}"
                )
        if run.times.keys() != first.times.keys():
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
        titles: dict[str, str] = {}
        times: dict[Key, Time | None] = {}
        for network in document["architectures"]:
            for routine in network["routines"]:
                key, title, unit = (_text(routine[name]) for name in ("key", "title", "unit"))
                titles[key] = title if unit == "epoch" else f"{title}, per {unit}"
                for line in routine["results"]:
                    what = _text(line["name"]), int(line["threads"]), bool(line["peer"])
                    times[Key(_text(network["name"]), key, *what)] = _time(line)
        if not times:
            raise ValueError
        date, conditions = _text(document["date"])[:10], _conditions(document)
        return Run(date, conditions, titles, times)
    except _MALFORMED:
        raise InputError(f"{shown(path)}: expected what tools/speedup.py --json writes") from None


def _conditions(document: dict[str, Any]) -> dict[str, str]:
    machine = document["machine"]
    place = f"{_text(machine['cpu'])}, {int(machine['cores'])} cores"
    device = _text(machine["device"])
    return {
        "machine": place if device.startswith("none") else f"{place}, {device}",
        "versions": _listed(machine["versions"]),
        "revision": _text(document.get("revision") or "not known"),
        "settings": _listed(document["settings"]),
    }


def _listed(values: dict[str, object]) -> str:
    return ", ".join(f"{shown(name)} {shown(str(value))}" for name, value in values.items())


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return shown(value)


def _time(line: dict[str, Any]) -> Time | None:
    if line["timing"] is None:
        return None
    value, reached = float(line["timing"]["seconds"]), line["reached"]
    reached = None if reached is None else float(reached)
    if not 0 < value < math.inf or not math.isfinite(reached or 0.0):
        raise ValueError
    return Time(value, reached)


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
        cells = [seconds(_median(times)) if times else NONE for times in lines]
        for name in peers:
            of_peer = (k for k in keys if (k.network, k.name, k.peer) == (network, name, True))
            variants = [times for key in of_peer if (times := _times(runs, key))]
            cells.append(_peer_cell([min(each, key=_seconds) for each in zip(*variants)], fastest))
        table.rows.append((network, *cells, _reached(fastest)))
    return table


def _notes(runs: Sequence[Run], peers: bool) -> tuple[str, ...]:
    said = [f"Measured on {runs[0].conditions['machine']}."]
    if peers:
        ratios = "how many times as long they take as our fastest"
        if len(runs) > 1:
            ratios += ", the median of the ratios of each run, in brackets the least and the most"
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
        return seconds(_median(times))
    cell = f"{seconds(_median(times))} {statistics.median(ratios):.1f}x"
    return cell if len(ratios) == 1 else f"{cell} ({min(ratios):.1f} to {max(ratios):.1f})"


def _reached(times: Sequence[Time]) -> str:
    reached = [time.reached for time in times if time.reached is not None]
    return f"{statistics.median(reached):.0%}" if reached else NONE
