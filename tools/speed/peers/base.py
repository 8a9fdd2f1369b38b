"""What a peer is: another library that does the same work, or something near it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from mlpcore.typing import Float32Array, Int32Array
from speed.problem import PAPER, TOLERANCE, Parameters, Problem, Variant
from speed.timing import Case, host_clock


class Trainer(Protocol):
    """On-line training by another library; made of a problem and a number of threads."""

    #: What its network computes.
    variant: ClassVar[Variant]

    #: Whether it starts from weights of its own, which the oracle then starts from.
    own_start: ClassVar[bool]

    #: That compute; fewer than asked for where the library has but one.
    threads: int

    #: Samples of a call are a multiple of it.
    piece: int

    def train(self, order: Int32Array) -> None:
        """A step for each image of the order; returns when all are done."""

    def parameters(self) -> Parameters:
        """Weights (n_out, n_in) and biases of each layer."""

    def clock(self, call: Callable[[], object]) -> float:
        """Seconds that a call takes, by the host or by the events of the device."""


@dataclass(frozen=True)
class Ready:
    """A peer that has been checked."""

    case: Case
    threads: int
    error: float | None  #: None where there is nothing to compare with


@dataclass(frozen=True)
class Peer:
    """Another library's way.

    Parameters
    ----------
    routine
        The row of the table that it belongs to.
    missing
        Why it cannot be used here, or None.
    ready
        Sets it up for a problem and a number of threads, and checks it.
    other
        How what it computes differs from ours; empty when it is the same.
    alone
        Whether one thread is tried too. With so little work at a time several may be slower,
        on a busy machine by far, and nobody would use them then.
    on_device
        Whether a GPU computes, whose limits are those of one thread.
    """

    name: str
    routine: str
    missing: Callable[[], str | None]
    ready: Callable[[Problem, int], Ready]
    other: str = ""
    alone: bool = False
    on_device: bool = False

    def thread_counts(self, threads: int) -> list[int]:
        """Numbers of threads to try, of so many."""
        if self.on_device:
            return [1]
        return sorted({1, threads}) if self.alone else [threads]


class WrongResult(Exception):
    """A peer's result is not what it should be; the message says by how much."""


def not_installed(*modules: str) -> Callable[[], str | None]:
    """For `Peer.missing`: which of the modules is not installed."""

    def missing() -> str | None:
        for module in modules:
            if importlib.util.find_spec(module) is None:
                return f"{module} is not installed"
        return None

    return missing


def ready_trainer(make: Callable[[Problem, int], Trainer]) -> Callable[[Problem, int], Ready]:
    """For `Peer.ready`: trains on the first samples and compares the weights.

    Raises
    ------
    WrongResult
        When the weights are not the float64 oracle's within `TOLERANCE`.
    """

    def ready(problem: Problem, threads: int) -> Ready:
        trainer = make(problem, threads)
        start = trainer.parameters() if trainer.own_start else None
        trainer.train(problem.order[: problem.checked])
        error = problem.training_error(trainer.parameters(), trainer.variant, start)
        if error > TOLERANCE:
            raise WrongResult(
                f"after {problem.checked} samples the weights are off by {error:.1e} of their "
                f"change, more than {TOLERANCE:.0e}"
            )
        most = len(problem.order) // trainer.piece * trainer.piece
        case = Case(
            lambda n: trainer.train(problem.order[:n]), trainer.piece, most, clock=trainer.clock
        )
        return Ready(case, trainer.threads, error)

    return ready


class PaperTrainer:
    """A trainer of the paper's network: what most of them share."""

    variant: ClassVar[Variant] = PAPER
    own_start: ClassVar[bool] = False
    piece = 16

    def __init__(self, problem: Problem, threads: int):
        self.threads = threads
        self.rate = problem.rate
        self.n_layers = problem.network.n_layers
        self.set_up(problem)

    def set_up(self, problem: Problem) -> None:
        """Copies data and weights to where the library wants them."""
        raise NotImplementedError

    def clock(self, call: Callable[[], object]) -> float:
        """Seconds that a call takes."""
        return host_clock(call)


def targets(problem: Problem) -> Float32Array:
    """(classes, classes): row c is +1 at c, -1 elsewhere."""
    n = problem.layer_sizes[-1]
    return (2 * np.eye(n) - 1).astype(np.float32)
