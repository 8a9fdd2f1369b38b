"""Which backends there are, which can run here, and the choice among them."""

from __future__ import annotations

import os

from mlpcore.backends.base import Backend, TrainingResult
from mlpcore.backends.reference import ReferenceBackend
from mlpcore.backends.simd import (
    INSTRUCTION_SETS,
    SCHEDULES,
    SimdBackend,
    unavailable_reason,
)
from mlpcore.errors import InputError

__all__ = ["SCHEDULES", "Backend", "TrainingResult", "available", "get", "names"]

#: Chooses the backend when none is named.
ENVIRONMENT_VARIABLE = "MLPCORE_BACKEND"


def names() -> tuple[str, ...]:
    """All backends, whether they can run here or not."""
    return ("reference", *INSTRUCTION_SETS)


def available() -> dict[str, str | None]:
    """Each backend's name, and why it cannot run here: None when it can."""
    reasons: dict[str, str | None] = {"reference": None}
    for name in INSTRUCTION_SETS:
        reasons[name] = unavailable_reason(name)
    return reasons


def get(name: str = "auto", threads: int | None = None, schedule: str | None = None) -> Backend:
    """A backend by name.

    Parameters
    ----------
    name
        One of `names()`, or ``"auto"``: the backend that the environment variable
        ``MLPCORE_BACKEND`` names, else the widest instruction set that runs here.
    threads
        For the C backends; by default the cores available to this process.
    schedule
        For the C backends: ``"deferred"``, the default, or ``"immediate"``.

    Raises
    ------
    InputError
        When there is no such backend, or it cannot run here; the message says why.
    """
    if name == "auto":
        name = os.environ.get(ENVIRONMENT_VARIABLE) or "auto"
    reasons = available()
    if name == "auto":
        name = [isa for isa in INSTRUCTION_SETS if reasons[isa] is None][-1]
    if name not in reasons:
        raise InputError(f"backend {name!r}: expected auto, {', '.join(names())}")
    if reasons[name] is not None:
        raise InputError(f"backend {name!r} cannot run: {reasons[name]}")
    if name == "reference":
        if schedule is not None:
            raise InputError(f"schedule {schedule!r}: the reference backend has no schedules")
        return ReferenceBackend()
    return SimdBackend(name, threads, schedule or SCHEDULES[0])
