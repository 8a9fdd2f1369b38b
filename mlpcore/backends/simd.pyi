from typing import Any

from mlpcore.backends.base import Backend

__all__ = [
    "DEFAULT_BLOCK",
    "INSTRUCTION_SETS",
    "MAX_BLOCK",
    "MAX_THREADS",
    "PACKED_FROM",
    "SCHEDULES",
    "SimdBackend",
    "unavailable_reason",
]

INSTRUCTION_SETS: tuple[str, ...]
SCHEDULES: tuple[str, ...]
DEFAULT_BLOCK: int
PACKED_FROM: int
MAX_BLOCK: int
MAX_THREADS: int

def unavailable_reason(name: str) -> str | None: ...

class SimdBackend(Backend):
    __doc__ = ""  # not that of Backend, which the reference would show

    def __init__(
        self,
        name: str,
        threads: int | None = None,
        schedule: str = "sparse",
        block: int = 32,
        packed_from: int = 1 << 20,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def schedule(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def packs(self) -> bool: ...
    # `Backend` has their types.
    _train: Any
    _predict: Any
    _deform: Any
