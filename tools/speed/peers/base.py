"""Peers: other libraries that do the work of a routine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

#: Weights and biases of each layer, in arrays of a library.
Layers: TypeAlias = list[tuple[Any, Any]]


def failure_text(failure: Exception) -> str:
    """A line on the failure of another library."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    return f"failed: {text[:120]}"


@dataclass(frozen=True)
class Peer:
    """Another library's way to do the work of a routine.

    `backend` gives, for a number of threads, an object with those methods of a `Backend` that the
    routine calls. `threads` are the numbers to try where so many are allowed. `gpu` says whether
    the library finds a GPU; it is None for a peer that computes on the CPU.
    """

    name: str
    routine: str
    module: str  #: has to be installed
    backend: Callable[[int], Any]
    threads: Callable[[int], set[int]]
    gpu: Callable[[], bool] | None = None

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        if not find_spec(self.module):
            return f"{self.module} is not installed"
        return f"{self.module} finds no GPU" if self.gpu and not self.gpu() else None
