"""Carries out a plan: each result is checked against the oracle, then all take turns in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from mlpcore import backends
from mlpcore.backends.cuda.backend import SCHEDULES as CUDA_SCHEDULES
from mlpcore.data.dataset import Dataset
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.store import provenance
from speed.machine import Limits, describe, measure_limits
from speed.peers.base import Peer, failure_text
from speed.problem import TOLERANCE, Problem, make_problem
from speed.results import BASE, Report, Row, utc_now
from speed.routines import ROUTINES
from speed.timing import Case, Settings, measure

#: Backends that are columns of the table, whether they can run here or not.
COLUMNS = (*backends.INSTRUCTION_SETS, "cuda")

#: A row without its time, and what to time.
Entry: TypeAlias = tuple[Row, Case | None]


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    data: Dataset
    architectures: tuple[tuple[int, ...], ...]
    routines: tuple[str, ...]
    backends: tuple[str, ...]
    threads: tuple[int, ...]  #: ascending, from 1
    settings: Settings
    peers: tuple[Peer, ...] = ()

    def backends_of(self, routine: str) -> list[tuple[str, int]]:
        """Those that run here and have the routine's schedule, with each number of threads.

        The base of ratios comes first, also where it was not asked for.
        """
        named = [n for n in COLUMNS if n in self.backends and not unavailable(n)]
        pairs = [(n, t) for n in named for t in ((1,) if n == "cuda" else self.threads)]
        schedule = ROUTINES[routine].schedule
        return [
            (name, threads)
            for name, threads in dict.fromkeys([BASE, *pairs])
            if schedule in (None, *(CUDA_SCHEDULES if name == "cuda" else backends.SCHEDULES))
        ]

    def peers_of(self, routine: str) -> list[tuple[Peer, int]]:
        """Those that can run here, with each number of threads that suits them."""
        some = [each for each in self.peers if each.routine == routine and not each.missing()]
        return [(each, n) for each in some for n in sorted(each.threads(self.threads[-1]))]

    def missing(self) -> dict[str, str]:
        """Backends and peers that were asked for and cannot run here, with the reason."""
        reasons = {name: unavailable(name) for name in self.backends}
        wanted = (peer for peer in self.peers if peer.routine in self.routines)
        reasons |= {peer.name: peer.missing() for peer in wanted}
        return {name: reason for name, reason in reasons.items() if reason}


def unavailable(name: str) -> str | None:
    """Why a backend cannot run here, also one that this build does not have."""
    return backends.available().get(name, "this build has no such backend")


def set_up(row: Row, problem: Problem, backend: Any, limits: Limits | None) -> Entry:
    """Checks a backend or a peer at a routine; the case is None for a wrong result."""
    routine = ROUTINES[row.routine]
    outcome, case = routine.enter(problem, backend)
    row = replace(row, error=problem.error(routine.enter, outcome))
    if routine.work:
        reads, updates = routine.work(problem, backend)
        floor = sum(map(limits.seconds, reads)) if limits else None
        row = replace(row, moved=sum(reads), updated=updates, floor=floor or None)
    if not row.wrong:
        return row, case
    return replace(row, reason=f"wrong: off the oracle by more than {TOLERANCE:.0e}"), None


def measure_routine(
    network: str, routine: str, problem: Problem, plan: Plan, limits: Mapping[int, Limits]
) -> list[Row]:
    """Times all backends and peers of a routine; `limits` are by the CPU's number of threads."""
    entries: list[Entry] = []
    for name, n in plan.backends_of(routine):
        backend = backends.get(name, n, ROUTINES[routine].schedule)
        row, here = Row(network, routine, name, n, peer=False), limits.get(n)
        row, case = set_up(row, problem, backend, None if name == "cuda" else here)
        # A network that does not fit into a GPU's multiprocessors streams, and this says why.
        notice = getattr(backend, "notice", None) or ""
        entries.append((replace(row, reason=row.reason or notice), case))
    for peer, n in plan.peers_of(routine):
        row, here = Row(network, routine, peer.name, n, peer=True), limits.get(n)
        try:
            entries.append(set_up(row, problem, peer.backend(n), None if peer.gpu else here))
        except Exception as failure:  # of another library: the others go on
            entries.append((replace(row, reason=failure_text(failure)), None))
    timings = iter(measure([case for _, case in entries if case], plan.settings))
    return [replace(row, timing=next(timings)) if case else row for row, case in entries]


def measure_plan(plan: Plan, progress: Callable[[str], object] = lambda title: None) -> Report:
    """The whole run; `progress` is told in a few words what comes next."""
    report = Report(
        date=utc_now(),
        revision=provenance.revision(),
        machine=describe(),
        settings=plan.settings,
        data=plan.data.name,
        limits=[],
        missing=plan.missing(),
        notes=[],
        rows=[],
    )
    for threads in plan.threads:
        progress(f"limits of the machine, threads: {threads}")
        report.limits.append(measure_limits(threads, plan.settings))
    limits = {each.threads: each for each in report.limits}
    for hidden in plan.architectures:
        network, problems = format_hidden_layers(hidden), dict[str, Problem]()
        for routine in filter(plan.backends_of, plan.routines):
            recipe = ROUTINES[routine].recipe
            progress(f"{network}: {routine}")
            if recipe not in problems:
                problem = problems[recipe] = make_problem(plan.data, hidden, recipe)
                active = ", ".join(f"{share:.0%}" for share in problem.active)
                report.notes.append(f"{network}, recipe {recipe}: active inputs {active}.")
            report.rows.extend(measure_routine(network, routine, problems[recipe], plan, limits))
    return report
