"""Carries out a plan: each result is checked against the oracle, then all take turns in time."""

import datetime
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, TypeAlias

from mlpcore import __version__, backends
from mlpcore.backends.cuda.backend import SCHEDULES as CUDA_SCHEDULES
from mlpcore.data.dataset import Dataset
from mlpcore.network.architecture import count_parameters, format_hidden_layers
from mlpcore.store import provenance
from speed.peers.base import Peer, failure_text
from speed.problem import TOLERANCE, Problem, make_problem
from speed.routines import ROUTINES
from speed.timing import Case, Settings, Timing, measure

#: The standard processor, which ratios refer to: the backend with one thread.
BASE = "scalar", 1

#: Libraries whose versions decide the figures, where they are installed.
LIBRARIES = ("numpy", "torch", "jax", "pycuda")


@dataclass(frozen=True)
class Row:
    """A backend or a peer at a routine: the time of a sample or an image, or why there is none."""

    network: str
    routine: str
    name: str
    threads: int
    peer: bool
    timing: Timing | None = None
    reason: str = ""  #: why there is no time, or what else to know
    error: float | None = None  #: greatest relative error of what it computes

    @property
    def seconds(self) -> float:
        """Infinite without a time."""
        return self.timing.seconds if self.timing else float("inf")

    @property
    def wrong(self) -> bool:
        """Whether what it computes is too far from the oracle's."""
        return self.error is not None and not self.error <= TOLERANCE


@dataclass(frozen=True)
class Report:
    """Everything that a run has found, in SI units: the content of its JSON document."""

    machine: dict[str, str]
    settings: Settings
    data: str  #: the name of the data set
    parameters: dict[str, int]  #: weights and biases of each network
    rows: list[Row]


#: A row without its time, and what to time.
Entry: TypeAlias = tuple[Row, Case | None]


@dataclass(frozen=True)
class Plan:
    """The measurements to make, of those that can run here."""

    data: Dataset
    architectures: tuple[tuple[int, ...], ...]
    routines: tuple[str, ...]
    backends: tuple[str, ...]
    threads: tuple[int, ...]  #: ascending, from 1
    settings: Settings
    peers: tuple[Peer, ...] = ()

    def backends_of(self, routine: str) -> list[tuple[str, int]]:
        """Backends with the routine's schedule, for each number of threads; the base is first."""
        pairs = [(n, t) for n in self.backends for t in ((1,) if n == "cuda" else self.threads)]
        schedule = ROUTINES[routine].schedule
        return [
            (name, threads)
            for name, threads in dict.fromkeys([BASE, *pairs])
            if schedule in (None, *(CUDA_SCHEDULES if name == "cuda" else backends.SCHEDULES))
        ]


def describe() -> dict[str, str]:
    """The time, the source, the machine and the versions, for the head of tables and documents."""
    no_gpu = backends.available()["cuda"]
    versions = [f"mlpcore {__version__}", f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "revision": provenance.revision() or "not known",
        "CPU": f"{provenance.machine()} (load {os.getloadavg()[0]:.2f})",
        "GPU": f"none ({no_gpu})" if no_gpu else backends.get("cuda").description,
        "versions": ", ".join(versions),
    }


def set_up(row: Row, problem: Problem, backend: Any) -> Entry:
    """Checks a backend or a peer at a routine; the case is None for a wrong result."""
    enter = ROUTINES[row.routine].enter
    outcome, case = enter(problem, backend)
    # A network that does not fit into a GPU's multiprocessors streams, and its notice says why.
    notice = getattr(backend, "notice", None) or ""
    row = replace(row, error=problem.error(enter, outcome), reason=notice)
    if not row.wrong:
        return row, case
    return replace(row, reason=f"wrong: off the oracle by more than {TOLERANCE:.0e}"), None


def measure_routine(network: str, routine: str, problem: Problem, plan: Plan) -> list[Row]:
    """Times all backends and peers of a routine."""
    entries: list[Entry] = []
    for name, n in plan.backends_of(routine):
        backend = backends.get(name, n, ROUTINES[routine].schedule)
        entries.append(set_up(Row(network, routine, name, n, peer=False), problem, backend))
    peers = [peer for peer in plan.peers if peer.routine == routine]
    for peer, n in ((each, n) for each in peers for n in sorted(each.threads(plan.threads[-1]))):
        row = Row(network, routine, peer.name, n, peer=True)
        try:
            entries.append(set_up(row, problem, peer.backend(n)))
        except Exception as failure:  # of another library: the others go on
            entries.append((replace(row, reason=failure_text(failure)), None))
    timings = iter(measure([case for _, case in entries if case], plan.settings))
    return [replace(row, timing=next(timings)) if case else row for row, case in entries]


def measure_plan(plan: Plan, progress: Callable[[str], object] = lambda title: None) -> Report:
    """The whole run; `progress` is told in a few words what comes next."""
    parameters = {
        format_hidden_layers(hidden): count_parameters(
            (plan.data.n_inputs, *hidden, plan.data.n_classes)
        )
        for hidden in plan.architectures
    }
    report = Report(describe(), plan.settings, plan.data.name, parameters, [])
    for hidden, network in zip(plan.architectures, parameters):
        problems: dict[str, Problem] = {}
        for routine in filter(plan.backends_of, plan.routines):
            recipe = ROUTINES[routine].recipe
            progress(f"{network}: {routine}")
            if recipe not in problems:
                problems[recipe] = make_problem(plan.data, hidden, recipe)
            report.rows.extend(measure_routine(network, routine, problems[recipe], plan))
    return report
