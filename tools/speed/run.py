"""Measures what was asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.driver import CudaDriver
from speed.claims import Claim, compare
from speed.limits import Limits, at_least, measure_limits
from speed.machine import Machine
from speed.peers.base import Peer, WrongResult
from speed.problem import TOLERANCE, Problem
from speed.results import BASE, Line, Row, derive_all
from speed.routines import Routine
from speed.timing import Case, Settings, measure

#: Backends that are columns of the table, whether they can run here or not.
COLUMNS = (*backends.INSTRUCTION_SETS, "cuda")

#: Called with what is done next, and the number of steps that it will report by `None`.
Progress: TypeAlias = Callable[[str | None, int], object]


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    architectures: tuple[tuple[int, ...], ...]
    routines: tuple[Routine, ...]
    backends: tuple[str, ...]
    threads: tuple[int, ...]  #: ascending, from 1
    settings: Settings
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class ArchitectureResults:
    """All rows of an architecture."""

    name: str
    layer_sizes: tuple[int, ...]
    parameters: int
    rows: tuple[Row, ...]
    claims: list[Claim] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """Everything that a run has found."""

    machine: Machine
    limits: dict[tuple[str, int], Limits]
    architectures: tuple[ArchitectureResults, ...]
    settings: Settings
    missing: dict[str, str]  #: backends and peers that cannot run here, and why

    @property
    def failed(self) -> bool:
        """Whether a backend of ours had a wrong result."""
        rows = (row for results in self.architectures for row in results.rows)
        return any(r.line.failed and not r.line.peer for row in rows for r in row.results)


def unavailable(name: str) -> str | None:
    """Why a backend cannot run here, also one that this build does not have."""
    return backends.available().get(name, "this build has no such backend")


def columns(plan: Plan) -> list[tuple[str, int]]:
    """Backends that run here, with each number of threads; the base of ratios comes first."""
    names = [n for n in COLUMNS if n in plan.backends and not unavailable(n)]
    result = [(BASE, 1)]
    for name in names:
        counts = (1,) if name == "cuda" else plan.threads
        result += [(name, n) for n in counts if (name, n) != (BASE, 1)]
    return result


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 120 else text[:117] + "..."


def _prepare_backend(
    routine: Routine, problem: Problem, name: str, threads: int
) -> tuple[Line, Case | None]:
    """A line without its time, and the case that is to be timed or None."""
    if routine.schedule is None:
        backend = backends.get(name, threads)
    elif name in backends.INSTRUCTION_SETS:
        backend = backends.get(name, threads, routine.schedule)
    else:
        return Line(name, threads, reason="has no such schedule"), None
    error = routine.check(problem, backend)
    if not error <= TOLERANCE:
        reason = f"wrong: off the oracle by {error:.1e}, more than {TOLERANCE:.0e}"
        return Line(name, threads, reason=reason, error=error, failed=True), None
    case = routine.prepare(problem, backend)
    if name == "cuda":
        driver = cast(CudaDriver, cast(CudaBackend, backend).driver)
        case = dataclasses.replace(case, clock=driver.time_call)
    work = routine.work(problem, backend).scale(routine.per)
    return Line(name, threads, error=error, work=work), case


def _prepare_peer(peer: Peer, problem: Problem, threads: int) -> tuple[Line, Case | None]:
    """As `_prepare_backend`. Whatever a peer fails with is its reason, and stops nothing."""
    try:
        ready = peer.ready(problem, threads)
    except WrongResult as error:
        return Line(peer.name, threads, reason=f"wrong: {error}", peer=True, failed=True), None
    except Exception as error:
        return Line(peer.name, threads, reason=f"failed: {_one_line(error)}", peer=True), None
    line = Line(peer.name, ready.threads, error=ready.error, other=peer.other, peer=True)
    return line, ready.case


def measure_row(
    routine: Routine,
    problem: Problem,
    plan: Plan,
    limits: dict[tuple[str, int], Limits],
    progress: Progress,
) -> Row:
    """Checks and times all backends and peers of a routine, in turn."""
    usable = [p for p in plan.peers if p.routine == routine.key and not p.missing()]
    peers = [(p, n) for p in usable for n in p.thread_counts(plan.threads[-1])]
    pairs = columns(plan)
    title = f"{problem.name}: {routine.title.lower()}"
    progress(title, (len(pairs) + len(peers)) * (plan.settings.repeats + 2))
    prepared: list[tuple[Line, Case | None]] = []
    for name, threads in pairs:
        prepared.append(_prepare_backend(routine, problem, name, threads))
        progress(None, 1)
    for peer, threads in peers:
        prepared.append(_prepare_peer(peer, problem, threads))
        progress(None, 1)
    cases = [case for _, case in prepared if case]
    timings = iter(measure(cases, plan.settings, lambda: progress(None, 1)))
    lines = []
    for line, case in prepared:
        timing = next(timings).times(routine.per) if case else None
        lines.append(Line(**{**vars(line), "timing": timing}))
    work = routine.work(problem, None).scale(routine.per)
    return Row(routine.key, routine.title, routine.unit, derive_all(lines, work, limits))


def measure_all_limits(
    plan: Plan, machine: Machine, progress: Progress
) -> dict[tuple[str, int], Limits]:
    """Limits of ("cpu" or "cuda", threads)."""
    limits: dict[tuple[str, int], Limits] = {}
    for i, threads in enumerate(plan.threads):
        progress(f"limits of the machine, threads: {threads}", 20 * (plan.settings.repeats + 1))
        limits["cpu", threads] = measure_limits(
            machine.caches, threads, machine.memory, plan.settings, lambda: progress(None, 1)
        )
        if i:
            fewer = limits["cpu", plan.threads[i - 1]]
            limits["cpu", threads] = at_least(limits["cpu", threads], fewer)
    if ("cuda", 1) in columns(plan):
        from speed.device_limits import measure_device_limits

        progress("limits of the device", 1)
        limits["cuda", 1] = measure_device_limits(cast(CudaBackend, backends.get("cuda")))
    return limits


def find_missing(plan: Plan, machine: Machine) -> dict[str, str]:
    """Backends and peers that were asked for and cannot run here, with the reason."""
    missing = {n: reason for n in plan.backends if (reason := unavailable(n))}
    keys = {routine.key for routine in plan.routines}
    for peer in plan.peers:
        reason = peer.missing()
        if reason and peer.routine in keys:
            missing[peer.name] = reason
    return missing


def measure_plan(plan: Plan, progress: Progress = lambda title, steps: None) -> Report:
    """The whole run."""
    machine = Machine.here()
    limits = measure_all_limits(plan, machine, progress)
    results: list[ArchitectureResults] = []
    for hidden in plan.architectures:
        problem = Problem(hidden)
        rows = tuple(measure_row(r, problem, plan, limits, progress) for r in plan.routines)
        name, sizes = problem.name, problem.layer_sizes
        n = problem.network.n_parameters
        results.append(ArchitectureResults(name, sizes, n, rows, compare(rows)))
    missing = find_missing(plan, machine)
    return Report(machine, limits, tuple(results), plan.settings, missing)
