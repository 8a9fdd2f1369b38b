"""Backends: who computes, and the choice among those that can run here.

Here belongs arithmetic: one contract in `base`, the NumPy oracle in `reference`, C kernels in
`simd`, a GPU in `cuda`. What an epoch does with it belongs in `mlpcore.training`.
"""

from __future__ import annotations

import os

from mlpcore.backends.base import Backend, TrainingResult
from mlpcore.backends.reference import ReferenceBackend
from mlpcore.backends.simd import (
    INSTRUCTION_SETS,
    MAX_THREADS,
    SCHEDULES,
    SimdBackend,
    unavailable_reason,
)
from mlpcore.checks import check_whole
from mlpcore.errors import InputError, brief

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
    return ("reference", *INSTRUCTION_SETS, "cuda")


def _reason(name: str) -> str | None:
    """Why a backend cannot run here, or None when it can."""
    if name == "reference":
        return None
    if name == "cuda":
        from mlpcore.backends.cuda import availability

        result = availability.driver_or_reason()
        return result if isinstance(result, str) else None
    return unavailable_reason(name)


def available() -> dict[str, str | None]:
    """Each backend's name, and why it cannot run here: None when it can.

    >>> available()["reference"] is None
    True
    """
    return {name: _reason(name) for name in names()}


def default_schedule(name: str) -> str | None:
    """The schedule of a backend for which none is named, also of one that cannot run here."""
    if name == "cuda":
        from mlpcore.backends.cuda.backend import SCHEDULES as CUDA_SCHEDULES

        return CUDA_SCHEDULES[0]
    return SCHEDULES[0] if name in INSTRUCTION_SETS else None


def _resolve(name: str) -> str:
    """The backend that ``"auto"`` or ``"cpu"`` stands for; any other name as it is."""
    if name == "auto":
        name = os.environ.get(ENVIRONMENT_VARIABLE) or "auto"
    if name == "auto" and _reason("cuda") is None:
        return "cuda"
    if name in ("auto", "cpu"):
        return next(each for each in reversed(INSTRUCTION_SETS) if _reason(each) is None)
    return name


def get(name: str = "auto", threads: int | None = None, schedule: str | None = None) -> Backend:
    """A backend by name.

    Parameters
    ----------
    name
        One of `names()`. ``"auto"`` is the backend that the environment variable
        ``MLPCORE_BACKEND`` names, else a CUDA device, else the widest instruction set that
        runs here. ``"cpu"`` is that instruction set even where there is a device.
    threads
        1 to 1,024, by default the cores available to this process. More are not used. CUDA ignores
        it.
    schedule
        For the C backends ``"sparse"`` (the default), ``"packed"`` or ``"deferred"``: see
        `SimdBackend`. For CUDA ``"resident"`` (the default) or ``"streaming"``: see
        `CudaBackend`.

    Raises
    ------
    InputError
        When there is no such backend, or it cannot run here; the message says why.

    Examples
    --------
    >>> get("scalar", threads=1).description
    'scalar: C, float32, 1 thread, deferred updates, sparse steps of rectifiers'
    """
    name = _resolve(name)
    if name not in names():
        raise InputError(f"backend {brief(name)}: expected auto, cpu, {', '.join(names())}")
    reason = _reason(name)
    if reason is not None:
        raise InputError(f"backend {brief(name)} cannot run: {reason}")
    if threads is not None:
        check_whole("threads", threads, 1, MAX_THREADS)
    if name == "reference":
        if schedule is not None:
            shown = brief(schedule)
            raise InputError(f"schedule {shown}: the reference backend has no schedules")
        return ReferenceBackend()
    if name == "cuda":
        from mlpcore.backends.cuda import availability
        from mlpcore.backends.cuda.backend import CudaBackend

        driver = availability.driver_or_reason()
        assert not isinstance(driver, str)
        return CudaBackend(driver, schedule)
    return SimdBackend(name, threads, schedule or SCHEDULES[0])
