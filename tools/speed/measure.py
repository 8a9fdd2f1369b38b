"""Carries out a plan: each result is checked against the oracle, then all take turns in time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.store import provenance
from speed.claims import compare
from speed.floors import Work
from speed.limits import Limits, measure_device_limits, measure_limits
from speed.machine import Machine
from speed.peers.base import Peer
from speed.problem import TOLERANCE, Problem
from speed.results import BASE, Architecture, Report, Result, Row
from speed.routines import Routine
from speed.timing import Case, Settings, measure

#: Backends that are columns of the table, whether they can run here or not.
COLUMNS = (*backends.INSTRUCTION_SETS, "cuda")

#: A result without its time, its work, and what to time: None when the result has a reason.
Entry: TypeAlias = tuple[Result, Work, Case | None]


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


def _checked(result: Result, error: float) -> Result:
    result = replace(result, error=error, failed=not error <= TOLERANCE)
    reason = f"wrong: off the oracle by {error:.1e}, more than {TOLERANCE:.0e}"
    return replace(result, reason=reason) if result.failed else result


def enter_backend(routine: Routine, problem: Problem, name: str, threads: int) -> Entry:
    """Checks a backend's result."""
    result = Result(name, threads, peer=False, on_device=name == "cuda")
    if routine.schedule and name not in backends.INSTRUCTION_SETS:
        return replace(result, reason="has no such schedule"), Work(), None
    schedule = (routine.schedule,) if routine.schedule else ()
    backend = backends.get(name, threads, *schedule)
    outcome, case = routine.enter(problem, backend)
    result = _checked(result, problem.error(routine.enter, outcome))
    return result, routine.work(problem, backend), None if result.failed else case


def enter_peer(routine: Routine, problem: Problem, peer: Peer, threads: int) -> Entry:
    """Checks a peer's result. If the peer fails, its result says why."""
    result = Result(peer.name, threads, peer=True, on_device=peer.gpu is not None)
    work = routine.work(problem, None)
    try:
        error, case = peer.check(problem, threads)
    except Exception as failure:
        text = " ".join(str(failure).split()) or type(failure).__name__
        return replace(result, reason=f"failed: {text[:120]}"), work, None
    result = _checked(result, error)
    return result, work, None if result.failed else case


def measure_row(
    routine: Routine, problem: Problem, plan: Plan, limits: Sequence[Limits] = ()
) -> Row:
    """Checks and times all backends and peers of a routine."""
    entries = [enter_backend(routine, problem, *column) for column in plan.columns()]
    for peer in plan.peers:
        if peer.routine == routine.key and not peer.missing():
            counts = sorted(peer.threads(plan.threads[-1]))
            entries += [enter_peer(routine, problem, peer, threads) for threads in counts]
    timings = iter(measure([case for *_, case in entries if case], plan.settings, routine.per))
    timed = [replace(r, timing=next(timings) if case else None) for r, _, case in entries]
    places = {(each.place, each.threads): each for each in limits}
    results = []
    for result, (_, work, _) in zip(timed, entries):
        place = ("cuda", 1) if result.on_device else ("cpu", result.threads)
        results.append(result.derive(work, routine.per, places.get(place), timed[0].seconds))
    note = routine.note(problem) if routine.note else ""
    return Row(routine.key, routine.title, routine.unit, tuple(results), note)


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
        problem, rows = Problem(hidden, training_seconds=plan.settings.training), []
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
