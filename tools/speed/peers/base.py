"""What a peer is: another library that does the work of a routine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mlpcore.typing import Int32Array
from speed import routines
from speed.problem import Outcome, Problem, Steps
from speed.timing import Case

#: The greatest relative error of what a peer computes, beside the oracle's; and what is timed.
Checked: TypeAlias = tuple[float, Case]


@dataclass(frozen=True)
class Peer:
    """Another library's way.

    `check` sets it up for a problem and a number of threads. `threads` are the numbers to try
    where so many are allowed. `gpu` says whether the library finds a GPU; it is None for a peer
    that computes on the CPU.
    """

    name: str
    routine: str  #: the key of the routine whose work it does
    module: str  #: has to be installed
    check: Callable[[Problem, int], Checked]
    threads: Callable[[int], set[int]]
    gpu: Callable[[], bool] | None = None

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        if importlib.util.find_spec(self.module) is None:
            return f"{self.module} is not installed"
        return None if self.gpu is None or self.gpu() else f"{self.module} finds no GPU"


def check_trainer(
    problem: Steps,
    train: Callable[[Int32Array], object],
    parameters: Callable[[], list[tuple[Any, Any]]],
    piece: int = 16,
) -> Checked:
    """Compares the weights after the first samples of the order; then any samples can be timed.

    `train` does an on-line step for each image of an order, a multiple of `piece` when timed, and
    returns when all are done. `parameters` are the weights (n_out, n_in) and biases by layer.
    """
    train(problem.order[: problem.checked])
    weights, biases = zip(*parameters())
    got: Outcome = [(np.asarray(array), 0) for array in (*weights, *biases)]
    most = len(problem.order) // piece * piece
    case = Case(lambda n: train(problem.order[:n]), piece, most)
    return problem.error(routines.step, got), case
