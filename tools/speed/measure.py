"""Carries out a plan: each result is checked against the oracle, then all take turns in time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.store import provenance
from speed.claims import compare
from speed.floors import Work
from speed.limits import Limits, measure_device_limits, measure_limits
from speed.machine import Machine
from speed.peers.base import Peer
from speed.problem import TOLERANCE, Problem
from speed.results import BASE, Architecture, Report, Result, Row, derive_all
from speed.routines import Routine
from speed.timing import Case, Settings, measure

#: Backends that are columns of the table, whether they can run here or not.
COLUMNS = (*backends.INSTRUCTION_SETS, "cuda")


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    architectures: tuple[tuple[int, ...], ...]
    routines: tuple[Routine, ...]
    backends: tuple[str, ...]
    threads: tuple[int, ...]  #: ascending, from 1
    settings: Settings
    peers: tuple[Peer, ...] = ()

    def columns(self) -> list[tuple[str, int]]:
        """Backends that run here, with each number of threads; the base of ratios comes first."""
        names = [n for n in COLUMNS if n in self.backends and not unavailable(n)]
        pairs = [(n, t) for n in names for t in ((1,) if n == "cuda" else self.threads)]
        return list(dict.fromkeys([(BASE, 1), *pairs]))

    def missing(self) -> dict[str, str]:
        """Backends and peers that were asked for and cannot run here, with the reason."""
        keys = {routine.key for routine in self.routines}
        reasons = {name: unavailable(name) for name in self.backends}
        reasons |= {peer.name: peer.missing() for peer in self.peers if peer.routine in keys}
        return {name: reason for name, reason in reasons.items() if reason}


def unavailable(name: str) -> str | None:
    """Why a backend cannot run here, also one that this build does not have."""
    return backends.available().get(name, "this build has no such backend")


@dataclass(frozen=True)
class Entry:
    """A result without its time, its work per unit of the row, and what to time, if anything."""

    result: Result
    work: Work
    case: Case | None = None

    def checked(self, error: float, prepare: Callable[[], Case]) -> Entry:
        """The same with what to time, unless the error is too great."""
        result = replace(self.result, error=error)
        if error <= TOLERANCE:
            return replace(self, result=result, case=prepare())
        reason = f"wrong: off the oracle by {error:.1e}, more than {TOLERANCE:.0e}"
        return replace(self, result=replace(result, reason=reason, failed=True))


def enter_backend(routine: Routine, problem: Problem, name: str, threads: int) -> Entry:
    """Checks a backend's result."""
    result = Result(name, threads, peer=False, on_device=name == "cuda")
    if routine.schedule and name not in backends.INSTRUCTION_SETS:
        return Entry(replace(result, reason="has no such schedule"), Work())
    schedule = (routine.schedule,) if routine.schedule else ()
    backend = backends.get(name, threads, *schedule)
    error = problem.error(routine.results, routine.results(problem, backend))
    entry = Entry(result, routine.work(problem, backend) * routine.per)
    return entry.checked(error, lambda: routine.prepare(problem, backend))


def enter_peer(routine: Routine, problem: Problem, peer: Peer, threads: int) -> Entry:
    """Checks a peer's result. If the peer fails, its result says why."""
    result = Result(peer.name, threads, peer=True, on_device=peer.gpu is not None)
    entry = Entry(result, routine.work(problem, None) * routine.per)
    try:
        error, case = peer.check(problem, threads)
    except Exception as failure:
        text = " ".join(str(failure).split()) or type(failure).__name__
        text = text if len(text) < 120 else text[:117] + "..."
        return replace(entry, result=replace(result, reason=f"failed: {text}"))
    return entry.checked(error, lambda: case)


def measure_row(
    routine: Routine, problem: Problem, plan: Plan, limits: Sequence[Limits] = ()
) -> Row:
    """Checks and times all backends and peers of a routine."""
    entries = [enter_backend(routine, problem, *column) for column in plan.columns()]
    for peer in plan.peers:
        if peer.routine == routine.key and not peer.missing():
            counts = [1] if peer.gpu else peer.threads(plan.threads[-1])
            entries += [enter_peer(routine, problem, peer, threads) for threads in counts]
    cases = [entry.case for entry in entries if entry.case]
    timings = iter(measure(cases, plan.settings, routine.per))
    timed = [replace(e.result, timing=next(timings) if e.case else None) for e in entries]
    results = derive_all(timed, [entry.work for entry in entries], limits)
    return Row(routine.key, routine.title, routine.unit, results)


def measure_plan(plan: Plan, progress: Callable[[str], object] = lambda title: None) -> Report:
    """The whole run; `progress` is told in a few words what comes next."""
    machine, limits = Machine.here(), []
    for threads in plan.threads:
        progress(f"limits of the machine, threads: {threads}")
        limits.append(measure_limits(machine, threads, plan.settings))
    if ("cuda", 1) in plan.columns():
        progress("limits of the GPU")
        limits.append(measure_device_limits(cast(CudaBackend, backends.get("cuda"))))
    architectures = []
    for hidden in plan.architectures:
        problem, rows = Problem(hidden), []
        for routine in plan.routines:
            progress(f"{problem.name}: {routine.title.lower()}")
            rows.append(measure_row(routine, problem, plan, limits))
        n, sizes = problem.network.n_parameters, problem.layer_sizes
        architectures.append(Architecture(problem.name, sizes, n, tuple(rows), compare(rows)))
    return Report(
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        revision=provenance.revision(),
        machine=machine,
        settings=plan.settings,
        limits=tuple(limits),
        architectures=tuple(architectures),
        missing=plan.missing(),
    )
