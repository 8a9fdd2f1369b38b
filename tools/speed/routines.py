"""Routines that are timed on a backend: the rows of the table.

Only the public operations of `mlpcore.backends.base` are called; they return when their work is
done, on a GPU too. The on-line step is timed as training runs it.
"""

from dataclasses import dataclass

import numpy as np

from mlpcore.backends.arguments import IMAGES_PER_GRID
from mlpcore.backends.base import Backend
from mlpcore.deformation import DeformationParameters, deform
from speed.problem import Enter, Outcome, Problem
from speed.timing import Case

#: The paper's.
DEFORMATION = DeformationParameters()

#: Samples of a call of training. Shorter calls would show the start of threads.
STEP = 64

#: Samples or images of a check, of anything but training.
FEW = 3


@dataclass(frozen=True)
class Routine:
    """A row of the table.

    `enter` is a function of a problem and a backend. It returns what the backend computes for a
    few samples, to be compared with the oracle's results at once, and what is timed afterwards.
    `schedule` is for `backends.get`, where a backend is not to choose; backends without it are
    left out. `recipe` is the network's.
    """

    enter: Enter
    schedule: str | None = None
    recipe: str = "paper"


def step(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network = problem.network.copy()
    loaded = backend.load(network)
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)
    place = 0

    def run(n: int) -> None:
        nonlocal place  # the same samples again and again would change what neurons are active
        begin = place if place + n <= len(problem.order) else 0
        place = begin + n
        backend.train(loaded, images, labels, problem.order[begin:place], problem.rate)

    run(problem.checked)
    backend.store(loaded, network)
    # Training takes thousands of samples a call: the cost of a call by itself is not to show.
    return problem.change(network), Case(run, STEP, len(problem.order) // STEP * STEP, length=8.0)


def deformation(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    images, out = backend.put(problem.images), backend.put(np.zeros_like(problem.images))

    def run(n: int) -> None:
        deform(images[:n], problem.labels[:n], DEFORMATION, 0, 1, backend, 0, out[:n])

    run(FEW)
    return [(np.asarray(out[:FEW]), 0)], Case(run, IMAGES_PER_GRID, len(images))


def inference(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network, few = backend.load(problem.network), problem.flat_images[:FEW]
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)

    def run(n: int) -> int:
        return backend.count_errors(network, images[:n], labels[:n])

    outcome: Outcome = [(backend.predict(network, few), 0), (np.array([run(FEW)]), 0)]
    return outcome, Case(run, IMAGES_PER_GRID, len(images), length=8.0)


ROUTINES = {
    "step": Routine(step),
    "step-deferred": Routine(step, "deferred"),
    "step-streaming": Routine(step, "streaming"),
    "step-sparse": Routine(step, "sparse", "modern"),
    "deformation": Routine(deformation),
    "inference": Routine(inference),
}
