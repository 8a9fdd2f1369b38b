"""Which backends there are, which can run here, and the choice among them."""

from __future__ import annotations

import os

from mlpcore.backends.base import Backend, TrainingResult
from mlpcore.backends.cuda import driver as cuda_driver
from mlpcore.backends.cuda import emulated as cuda_emulated
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.reference import ReferenceBackend
from mlpcore.backends.simd import (
    INSTRUCTION_SETS,
    MAX_THREADS,
    SCHEDULES,
    SimdBackend,
    unavailable_reason,
)
from mlpcore.checks import check_whole
from mlpcore.errors import InputError

__all__ = [
    "INSTRUCTION_SETS",
    "SCHEDULES",
    "Backend",
    "TrainingResult",
    "available",
    "get",
    "names",
]

ENVIRONMENT_VARIABLE = "MLPCORE_BACKEND"
"""Chooses the backend when none is named."""


def names() -> tuple[str, ...]:
    """All backends, whether they can run here or not."""
    return ("reference", *INSTRUCTION_SETS, "cuda", "cuda-emulated")


def _reason(name: str) -> str | None:
    """Why a backend cannot run here, or None when it can."""
    if name == "cuda":
        return cuda_driver.unavailable_reason()
    if name == "cuda-emulated":
        return cuda_emulated.unavailable_reason()
    return None if name == "reference" else unavailable_reason(name)


def available() -> dict[str, str | None]:
    """Each backend's name, and why it cannot run here: None when it can.

    >>> available()["reference"] is None
    True
    """
    return {name: _reason(name) for name in names()}


def _widest() -> str:
    """The widest instruction set that runs here."""
    return next(isa for isa in reversed(INSTRUCTION_SETS) if _reason(isa) is None)


def _best() -> str:
    """A CUDA device where there is one, else the widest instruction set that runs here."""
    return "cuda" if _reason("cuda") is None else _widest()


def get(name: str = "auto", threads: int | None = None, schedule: str | None = None) -> Backend:
    """A backend by name.

    Parameters
    ----------
    name
        One of `names()`, or ``"auto"``: the backend that the environment variable
        ``MLPCORE_BACKEND`` names, else a CUDA device, else the widest instruction set that
        runs here. ``"cpu"`` is that instruction set even where there is a device.
        ``"cuda-emulated"`` is for tests and is never chosen by itself.
    threads
        1 to 1,024, by default the cores available to this process; CUDA has no use for them.
    schedule
        For the C backends: ``"packed"``, the default, ``"deferred"`` or ``"immediate"``, which
        `SimdBackend` explains. For CUDA:
        ``"resident"``, the default on a device, or ``"streaming"``.

    Raises
    ------
    InputError
        When there is no such backend, or it cannot run here; the message says why.

    Examples
    --------
    >>> get("scalar", threads=1).description
    'scalar: C, float32, 1 thread, deferred updates'
    >>> get("reference", schedule="immediate")
    Traceback (most recent call last):
    mlpcore.errors.InputError: schedule 'immediate': the reference backend has no schedules
    """
    if name == "auto":
        name = os.environ.get(ENVIRONMENT_VARIABLE) or "auto"
    if name == "auto":
        name = _best()
    if name == "cpu":
        name = _widest()
    if name not in names():
        raise InputError(f"backend {name!r}: expected auto, cpu, {', '.join(names())}")
    reason = _reason(name)
    if reason is not None:
        raise InputError(f"backend {name!r} cannot run: {reason}")
    if threads is not None:
        check_whole("threads", threads, 1, MAX_THREADS)
    if schedule is not None and name == "reference":
        raise InputError(f"schedule {schedule!r}: the {name} backend has no schedules")
    if name == "reference":
        return ReferenceBackend()
    if name == "cuda":
        return CudaBackend(cuda_driver.get_driver(), schedule=schedule)
    if name == "cuda-emulated":
        return CudaBackend(cuda_emulated.EmulatedDriver(), schedule=schedule)
    return SimdBackend(name, threads, schedule or SCHEDULES[0])
