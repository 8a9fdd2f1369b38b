"""What a run has found, as its JSON document holds it: times, and ratios, rates and fractions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, read_bounded
from speed.floors import Work
from speed.limits import Limits
from speed.machine import Machine
from speed.timing import Settings, Timing

#: The standard processor, which ratios refer to.
BASE = "scalar"

#: Greatest size of a document; a run of everything with all peers takes a tenth of that.
MAX_BYTES = 1 << 22


def write_document(path: Path, content: object) -> None:
    """Writes JSON, whole or not at all. JSON knows no infinity: it becomes null."""
    atomic_write(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


@dataclass(frozen=True)
class Result:
    """A backend or a peer at a routine: a time and what follows from it, or why there is none."""

    name: str
    threads: int
    peer: bool
    on_device: bool = False  #: whether a GPU computes
    timing: Timing | None = None
    reason: str = ""  #: why there is no time
    error: float | None = None  #: greatest relative error of what it computes
    failed: bool = False  #: whether that was too much
    ratio: float | None = None  #: times as fast as `BASE` with one thread
    updates: float | None = None  #: of weights and biases per second
    bandwidth: float | None = None  #: bytes that have to be moved, per second
    floor: float | None = None  #: least seconds
    reached: Annotated[float, msgspec.Meta(gt=0)] | None = None  #: floor / time

    @property
    def seconds(self) -> float:
        """Per unit; infinite without a time."""
        return self.timing.seconds if self.timing else float("inf")

    def derive(self, work: Work, per: int, limits: Limits | None, base: float) -> Result:
        """The same with all that follows from the time.

        `work` is that of a sample, of which the time is for `per`. `limits` are those of as many
        threads, or of the GPU. `base` is the standard processor's time, or infinite.
        """
        if not self.timing:
            return self
        floor = per * work.floor(limits) if limits else None
        return replace(
            self,
            ratio=base / self.seconds if base < float("inf") else None,
            updates=per * work.updates / self.seconds or None,
            bandwidth=per * work.moved / self.seconds or None,
            floor=floor,
            reached=floor and floor / self.seconds,
        )


@dataclass(frozen=True)
class Row:
    """All results of a routine."""

    key: str
    title: str
    unit: str
    results: tuple[Result, ...]
    note: str = ""  #: what the routine was measured on, where that is not the same in every run

    @property
    def label(self) -> str:
        """The title, and the unit of the times."""
        return self.title if self.unit == "epoch" else f"{self.title}, per {self.unit}"

    def find(self, name: str, threads: int) -> Result | None:
        """Our backend's result with so many threads, if it has a time."""
        ours = (r for r in self.results if r.timing and not r.peer)
        return next((r for r in ours if (r.name, r.threads) == (name, threads)), None)

    def best(self) -> Result | None:
        """Our fastest."""
        ours = [r for r in self.results if r.timing and not r.peer]
        return min(ours, key=lambda r: r.seconds, default=None)


@dataclass(frozen=True)
class Claim:
    """A figure of the paper and ours, in words.

    `ratio` says how many times better ours is: faster, or more. For the gain of SSE and the share
    of an epoch it is simply ours over the paper's. It is None where ours was not measured.
    """

    what: str
    paper: str
    ours: str
    ratio: float | None


@dataclass(frozen=True)
class Architecture:
    """All rows of an architecture."""

    name: str
    layer_sizes: tuple[int, ...]
    parameters: int
    routines: tuple[Row, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Report:
    """Everything that a run has found, in SI units."""

    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT")]
    machine: Machine
    settings: Settings
    limits: tuple[Limits, ...]
    architectures: tuple[Architecture, ...]
    missing: dict[str, str]  #: backends and peers that cannot run here, and why
    revision: str = ""

    @property
    def failed(self) -> bool:
        """Whether a backend of ours had a wrong result."""
        rows = (row for architecture in self.architectures for row in architecture.routines)
        return any(r.failed and not r.peer for row in rows for r in row.results)

    @property
    def conditions(self) -> tuple[object, ...]:
        """What has to be the same in runs whose times are compared."""
        # A GPU's free memory, in brackets, changes from boot to boot, as load and memory do.
        device = self.machine.device.partition(" (")[0]
        machine = replace(self.machine, device=device, load=None, memory=0)
        return machine, self.settings, self.revision

    def write(self, path: Path) -> None:
        """Writes the document, whole or not at all."""
        write_document(path, self)

    @classmethod
    def read(cls, path: Path) -> Report:
        """The report in a document; an InputError for any other file."""
        content = read_bounded(path, MAX_BYTES)
        try:
            return msgspec.json.decode(content, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            message = f"{shown(path)}: expected what tools/speedup.py --json writes"
            raise InputError(message) from None
