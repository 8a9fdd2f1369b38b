"""What a run has found, as its JSON document holds it: a list of rows."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, read_bounded
from speed.machine import Limits
from speed.problem import TOLERANCE
from speed.timing import Settings, Timing

#: The standard processor, which ratios refer to: the backend with one thread.
BASE = "scalar", 1

#: Greatest size of a document; a run of everything with all peers takes a tenth of that.
MAX_BYTES = 1 << 22

#: A network, a routine, a backend or a peer, its threads, and whether it is a peer.
Key: TypeAlias = tuple[str, str, str, int, bool]


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
    moved: float = 0.0  #: bytes of weights that have to be read
    updated: float = 0.0  #: weights and biases
    floor: Annotated[float, msgspec.Meta(gt=0)] | None = None  #: least seconds

    @property
    def key(self) -> Key:
        """What has been timed."""
        return self.network, self.routine, self.name, self.threads, self.peer

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
    """Everything that a run has found, in SI units."""

    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT")]
    revision: str
    machine: dict[str, str]
    settings: Settings
    data: str  #: the name of the data set
    limits: list[Limits]
    missing: dict[str, str]  #: backends and peers that cannot run here, and why
    notes: list[str]  #: on the networks
    rows: list[Row]

    @property
    def conditions(self) -> tuple[object, ...]:
        """What has to be the same in runs whose times are compared."""
        machine = [value.partition(" (")[0] for value in self.machine.values()]
        return machine, self.settings, self.revision, self.data, [row.key for row in self.rows]


def utc_now() -> str:
    """The date and the time for the head of a document."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def write_document(path: Path, content: object) -> None:
    """Writes JSON, whole or not at all. JSON knows no infinity: it becomes null."""
    atomic_write(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def read_runs(paths: Sequence[Path], routines: Collection[str] = ()) -> list[Report]:
    """The documents of runs that can be compared, with the rows of all routines or of some.

    Raises
    ------
    InputError
        When one is no such document or a copy of another, or when it was measured on another
        machine than the first, in another way, or of other things. When a routine is missing.
    """
    runs: list[Report] = []
    for path in paths:
        content = read_bounded(path, MAX_BYTES)
        try:
            run = msgspec.json.decode(content, type=Report)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            message = f"{shown(path)}: expected what tools/speedup.py --json writes"
            raise InputError(message) from None
        if runs and run.conditions != runs[0].conditions:
            what = "machine, settings, revision, data and rows"
            raise InputError(f"{shown(path)}: expected the {what} of {shown(paths[0])}")
        if run in runs:
            same = shown(paths[runs.index(run)])
            raise InputError(f"{shown(path)}: expected another run than {same}")
        runs.append(run)
    known = dict.fromkeys(row.routine for row in runs[0].rows)
    for routine in routines:
        if routine not in known:
            raise InputError(f"routine {routine!r}: the runs have {shown(', '.join(known))}")
    wanted = routines or known
    return [replace(run, rows=[r for r in run.rows if r.routine in wanted]) for run in runs]
