"""One table from the JSON documents of several runs: medians over the runs.

A ratio compares two times of the same run, which took turns. The table has the median of the
runs' ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from mlpcore.errors import InputError, shown
from mlpcore.report.tables import NONE, short_time
from speed.results import Report, Result
from speed.tables import Table, column, share


class Key(NamedTuple):
    """What has been timed: a backend or a peer with so many threads at a routine."""

    network: str
    routine: str
    label: str  #: of the routine
    name: str
    threads: int
    peer: bool


#: The results of every run, in the order of the documents; none where a run has no time.
Series: TypeAlias = dict[Key, list[Result]]


def _results(report: Report) -> list[tuple[Key, Result]]:
    return [
        (Key(network.name, row.key, row.label, r.name, r.threads, r.peer), r)
        for network in report.architectures
        for row in network.routines
        for r in row.results
    ]


def _read(path: Path) -> Report:
    report = Report.read(path)
    keys = [key for key, _ in _results(report)]
    if not keys or len(set(keys)) < len(keys):
        raise InputError(f"{shown(path)}: expected results, each of them once")
    return report


def read_runs(paths: Sequence[Path]) -> list[Report]:
    """The documents of runs that can be compared.

    Raises
    ------
    InputError
        When one is no such document or a copy of another, or when it was measured on another
        machine than the first, in another way, or of other things.
    """
    runs = [_read(path) for path in paths]
    wanted, first = runs[0].conditions(), shown(paths[0])
    for i, (path, run) in enumerate(zip(paths, runs)):
        found = run.conditions()
        for name in {**wanted, **found}:
            here, there = (each.get(name, "not known") for each in (found, wanted))
            if here != there:
                what = f"{shown(path)}: {shown(name)} {shown(here)}"
                raise InputError(f"{what}, expected that of {first}: {shown(there)}")
        if [key for key, _ in _results(run)] != [key for key, _ in _results(runs[0])]:
            raise InputError(f"{shown(path)} has other networks, routines or lines than {first}")
        if run in runs[:i]:
            same = shown(paths[runs.index(run)])
            raise InputError(f"{shown(path)} is the same as {same}: expected another run")
    return runs


def tables(runs: Sequence[Report], routines: Collection[str] = ()) -> list[Table]:
    """A table for each routine, or each of some: a row for each network.

    Raises
    ------
    InputError
        When a routine has not been timed.
    """
    series: Series = {}
    for entries in zip(*map(_results, runs)):
        results = [result for _, result in entries]
        series[entries[0][0]] = results if all(r.timing for r in results) else []
    known = list(dict.fromkeys(key.routine for key in series))
    for routine in routines:
        if routine not in known:
            raise InputError(f"routine {routine!r}: the runs have {shown(', '.join(known))}")
    return [
        _table(runs, {key: results for key, results in series.items() if key.routine == routine})
        for routine in known
        if not routines or routine in routines
    ]


def _table(runs: Sequence[Report], series: Series) -> Table:
    ours = list(dict.fromkeys((key.name, key.threads) for key in series if not key.peer))
    peers = list(dict.fromkeys(key.name for key in series if key.peer))
    rows = []
    for network in dict.fromkeys(key.network for key in series):
        here = {key: results for key, results in series.items() if key.network == network}
        mine = {(k.name, k.threads): results for k, results in here.items() if not k.peer}
        fastest = min(filter(None, mine.values()), key=_median, default=[])
        cells = [_time(mine.get(column, [])) for column in ours]
        for name in peers:
            cells.append(
                _peer_cell([r for k, r in here.items() if k.peer and k.name == name], fastest)
            )
        reached = [r.reached for r in fastest if r.reached is not None]
        rows.append((network, *cells, share(statistics.median(reached) if reached else None)))
    many = f"medians of {len(runs)} runs" if len(runs) > 1 else "one run"
    days = sorted(run.date[:10] for run in runs)
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    headers = ("Network", *(column(*each) for each in ours), *peers, "of the floor")
    title = f"{next(iter(series)).label}: {many}, {when}"
    return Table(title, headers, rows, _notes(runs, bool(peers)))


def _notes(runs: Sequence[Report], peers: bool) -> list[str]:
    machine, revision = runs[0].machine, runs[0].revision
    place = f"Measured on {machine.cpu}, {machine.cores} cores"
    place += "" if machine.device.startswith("none") else f", {machine.device}"
    notes = [f"{place}, revision {revision}." if revision else f"{place}."]
    notes.append("The header of a backend names its number of threads.")
    if peers:
        ratio = "how many times as long it takes as our fastest"
        if len(runs) > 1:
            ratio += " (the median of the runs' ratios, in brackets the least and the greatest)"
        notes.append(
            f"A peer has the number of threads that suits it best. Its time comes with {ratio}."
        )
    notes.append("Last column: the least time that the machine's limits allow, over our fastest's.")
    return notes


def _median(results: Sequence[Result]) -> float:
    return statistics.median(result.seconds for result in results)


def _time(results: Sequence[Result]) -> str:
    return short_time(_median(results)) if results else NONE


def _peer_cell(variants: Sequence[list[Result]], ours: Sequence[Result]) -> str:
    """A peer's time and ratio to ours, each run with the number of threads that suits it best."""
    best = [min(each, key=lambda r: r.seconds) for each in zip(*filter(None, variants))]
    cell = _time(best)
    ratios = [peer.seconds / our.seconds for peer, our in zip(best, ours)]
    if ratios:
        cell += f" {statistics.median(ratios):.1f}x"
    if len(ratios) > 1:
        cell += f" ({min(ratios):.1f} to {max(ratios):.1f})"
    return cell
