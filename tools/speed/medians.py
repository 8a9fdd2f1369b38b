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
from mlpcore.report.tables import NONE
from speed.results import Report, Result
from speed.tables import Table, column, share
from speed.units import short_time


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


def read_runs(paths: Sequence[Path]) -> list[Report]:
    """The documents of runs that can be compared.

    Raises
    ------
    InputError
        When one is no such document or a copy of another, or when it was measured on another
        machine than the first, in another way, or of other things.
    """
    runs = [Report.read(path) for path in paths]
    keys, first = [key for key, _ in _results(runs[0])], shown(paths[0])
    for i, (path, run) in enumerate(zip(paths, runs)):
        if run.conditions != runs[0].conditions:
            what = "machine, settings or revision"
            raise InputError(f"{shown(path)}: expected the {what} of {first}")
        if [key for key, _ in _results(run)] != keys:
            raise InputError(f"{shown(path)}: expected the networks, routines and lines of {first}")
        if not keys or len(set(keys)) < len(keys):
            raise InputError(f"{shown(path)}: expected results, each of them once")
        if run in runs[:i]:
            same = shown(paths[runs.index(run)])
            raise InputError(f"{shown(path)}: expected another run than {same}")
    return runs


def by_routine(runs: Sequence[Report], routines: Collection[str] = ()) -> list[Series]:
    """The results of each routine, or of some.

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
        {key: results for key, results in series.items() if key.routine == routine}
        for routine in known
        if not routines or routine in routines
    ]


def tables(runs: Sequence[Report], routines: Collection[str] = ()) -> list[Table]:
    """A table for each routine, or for some: a row for each network.

    Raises
    ------
    InputError
        When a routine has not been timed.
    """
    return [_table(runs, series) for series in by_routine(runs, routines)]


def fastest(series: Series, network: str) -> list[Result]:
    """The results of our fastest backend with its number of threads."""
    ours = (results for key, results in series.items() if key.network == network and not key.peer)
    return min(filter(None, ours), key=median, default=[])


def peers_of(series: Series, network: str) -> dict[str, list[Result]]:
    """The results of every peer by name: in each run those of its best number of threads."""
    variants: dict[str, list[list[Result]]] = {}
    for key, results in series.items():
        if key.peer and key.network == network:
            variants.setdefault(key.name, []).append(results)
    return {
        name: [min(each, key=lambda r: r.seconds) for each in zip(*filter(None, some))]
        for name, some in variants.items()
    }


def median(results: Sequence[Result]) -> float:
    """The median of the runs' seconds."""
    return statistics.median(result.seconds for result in results)


def _table(runs: Sequence[Report], series: Series) -> Table:
    ours = list(dict.fromkeys((key.name, key.threads) for key in series if not key.peer))
    peers = list(dict.fromkeys(key.name for key in series if key.peer))
    rows = []
    for network in dict.fromkeys(key.network for key in series):
        here = {key: results for key, results in series.items() if key.network == network}
        mine = {(k.name, k.threads): results for k, results in here.items() if not k.peer}
        best, theirs = fastest(series, network), peers_of(series, network)
        cells = [_time(mine.get(each, [])) for each in ours]
        cells += [_peer_cell(theirs.get(name, []), best) for name in peers]
        reached = [r.reached for r in best if r.reached is not None]
        rows.append((network, *cells, share(statistics.median(reached) if reached else None)))
    days = sorted(run.date[:10] for run in runs)
    many = f"medians of {len(runs)} runs" if len(runs) > 1 else "one run"
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    title = f"{next(iter(series)).label}: {many}, {when}"
    headers = ("Network", *(column(*each) for each in ours), *peers, "of the floor")
    machine = runs[0].machine
    place = (
        f"Measured on {machine.cpu}, {machine.cores} cores, GPU {machine.device.partition(' (')[0]}"
    )
    notes = [f"{place}, revision {runs[0].revision or 'not known'}.", *NOTES]
    return Table(title, headers, rows, notes)


NOTES = (
    "The header of a backend names its number of threads.",
    "A peer has the number of threads that suits it best. Its time comes with how many times as "
    "long it takes as our fastest: the median of the runs' ratios, the least and the greatest.",
    "of the floor: the least time that the machine's limits allow, over our fastest's.",
)


def _time(results: Sequence[Result]) -> str:
    return short_time(median(results)) if results else NONE


def _peer_cell(best: Sequence[Result], ours: Sequence[Result]) -> str:
    ratios = [peer.seconds / our.seconds for peer, our in zip(best, ours)]
    cell = _time(best)
    if ratios:
        cell += f" {statistics.median(ratios):.1f}x"
    return cell if len(ratios) < 2 else f"{cell} ({min(ratios):.1f} to {max(ratios):.1f})"
