"""What is timed on a backend: the rows of the table.

Only the public operations of `mlpcore.backends.base` are called; they return when their work is
done, on a GPU too. A layer's routine takes the layers in turn, each for many samples one after
the other, as the paper times its kernels: a layer that fits a cache stays there, which it would
not during training. The on-line step is timed as training runs it.

Each routine is a function of a problem and a backend. It returns what the backend computes for a
few samples, to be compared with the oracle's results at once, and what is timed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlpcore import backends
from mlpcore.backends.arguments import IMAGES_PER_GRID
from mlpcore.backends.base import Backend
from mlpcore.backends.simd import SimdBackend
from mlpcore.deformation.deform import deform, gaussian_taps
from speed import floors
from speed.floors import Work
from speed.problem import SIDE, Enter, Outcome, Problem, Steps
from speed.timing import Case
from speed.trained import Trained, trained

#: Images of an epoch, as MNIST has them.
EPOCH = 60_000

#: The routines that need a network of rectifiers. The first is compared with other steps.
SPARSE, DENSE = "step-sparse", "step-relu-dense"

#: Learning rates of the update: one too small to change what the weights are like, for timing,
#: and one large enough for a change that float32 shows, for the check.
SMALL_RATE, RATE = 1e-6, 0.1

#: Samples of a call of training. Shorter calls would show the start of threads.
STEP = 64

#: Samples or images of a check, of anything but training.
FEW = 3


@dataclass(frozen=True)
class Routine:
    """A row of the table.

    `work` is that of one sample or image, for the floor: on a backend, or with float32 weights
    (None). `schedule` is the backend's; None for the one that it chooses. Times are shown for
    `per` samples or images. `note` says what else a reader has to know of the problem.
    """

    key: str
    title: str
    unit: str
    enter: Enter
    work: Callable[[Problem, Backend | None], Work]
    schedule: str | None = None
    per: int = 1
    note: Callable[[Problem], str] | None = None


def layer_by_layer(levels: list[Any], operation: Callable[..., object], first: int = 0) -> Case:
    """`operation(layer, below, above)` on n samples for all layers from `first`.

    `below` and `above` are random states of the layer below and of the layer, or their deltas.
    """

    def run(n: int) -> None:
        for layer in range(first, len(levels) - 1):
            below, above = levels[layer : layer + 2]
            for begin in range(0, n, len(below)):
                m = min(len(below), n - begin)
                operation(layer, below[:m], above[:m])

    return Case(run, step=16)


def forward(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network, levels = backend.load(problem.network), list(map(backend.put, problem.activity))
    few: Outcome = [(backend.forward(network, i, x[:FEW]), 0) for i, x in enumerate(levels[:-1])]
    return few, layer_by_layer(levels, lambda i, x, _: backend.forward(network, i, x))


def backward(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network, levels = backend.load(problem.network), list(map(backend.put, problem.activity))
    few: Outcome = []
    for i in range(1, len(levels) - 1):
        few += [(backend.backward(network, i, levels[i + 1][:FEW], levels[i][:FEW]), 0)]
    return few, layer_by_layer(levels, lambda i, y, d: backend.backward(network, i, d, y), 1)


def update(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network, levels = problem.network.copy(), list(map(backend.put, problem.activity))
    loaded = backend.load(network)
    for i in range(network.n_layers):
        backend.update(loaded, i, levels[i][:FEW], levels[i + 1][:FEW], RATE)
    backend.store(loaded, network)
    case = layer_by_layer(levels, lambda i, x, d: backend.update(loaded, i, x, d, SMALL_RATE))
    return problem.change(network), case


def step(problem: Steps, backend: Backend) -> tuple[Outcome, Case]:
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


def rectifiers(problem: Problem) -> Trained:
    return trained(problem.hidden, problem.training_seconds)


def step_of_rectifiers(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    return step(rectifiers(problem), backend)


def field(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    noise = backend.put(backends.get("reference").noise(0, 0, 0, SIDE, SIDE))
    taps, alpha = backend.put(gaussian_taps(problem.deformation.sigma)), problem.deformation.alpha

    def run(n: int) -> None:
        for _ in range(n // IMAGES_PER_GRID):
            backend.displacement_field(noise, taps, alpha)

    return [(backend.displacement_field(noise, taps, alpha), 0)], Case(run, IMAGES_PER_GRID)


def deformation(problem: Problem, backend: Backend, few: int = FEW) -> tuple[Outcome, Case]:
    images, out = backend.put(problem.images), backend.put(np.zeros_like(problem.images))

    def run(n: int) -> None:
        deform(images[:n], problem.labels[:n], problem.deformation, 0, 1, backend, 0, out[:n])

    run(few)
    return [(np.asarray(out[:few]), 0)], Case(run, IMAGES_PER_GRID, problem.whole_grids)


def validation(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network, few = backend.load(problem.network), problem.flat_images[:FEW]
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)

    def run(n: int) -> int:
        return backend.count_errors(network, images[:n], labels[:n])

    outcome: Outcome = [(backend.predict(network, few), 0), (np.array([run(FEW)]), 0)]
    return outcome, Case(run, IMAGES_PER_GRID, len(images), length=8.0)


def epoch(problem: Problem, backend: Backend) -> tuple[Outcome, Case]:
    network = backend.load(problem.network.copy())
    images, labels = backend.put(problem.images), backend.put(problem.labels)
    flat, out = backend.put(problem.flat_images), backend.put(np.zeros_like(problem.images))

    def run(n: int) -> None:
        deform(images[:n], labels[:n], problem.deformation, 0, 1, backend, 0, out[:n])
        order, inputs = problem.order[problem.order < n], out.reshape(len(labels), -1)
        backend.train(network, inputs, labels, order, problem.rate)
        backend.count_errors(network, flat[:n], labels[:n])

    parts = deformation, step, validation
    outcome = [pair for part in parts for pair in part(problem, backend)[0]]
    return outcome, Case(run, IMAGES_PER_GRID, problem.whole_grids, length=8.0)


def step_work(problem: Problem, backend: Backend | None) -> Work:
    read = backend.pass_bytes(problem.network) if isinstance(backend, SimdBackend) else None
    return floors.step(problem.layer_sizes, problem.foreground, read)


def sparse_work(problem: Problem, _: Backend | None) -> Work:
    return floors.sparse_step(problem.layer_sizes, rectifiers(problem).activity)


def dense_work(problem: Problem, _: Backend | None) -> Work:
    return floors.step(problem.layer_sizes, rectifiers(problem).foreground, None)


def validation_work(problem: Problem, _: Backend | None) -> Work:
    return floors.validation(problem.layer_sizes, problem.foreground)


def epoch_work(problem: Problem, backend: Backend | None) -> Work:
    trained, validated = step_work(problem, backend), validation_work(problem, backend)
    return floors.deformation(SIDE) + trained + validated


_ROUTINES = (
    Routine("forward", "Forward", "sample", forward, lambda p, _: floors.forward(p.layer_sizes)),
    Routine("backward", "Backward of deltas", "sample", backward,
            lambda p, _: floors.forward(p.layer_sizes[1:])),
    Routine("update", "Weight update", "sample", update, lambda p, _: floors.update(p.layer_sizes)),
    Routine("step", "On-line step", "sample", step, step_work),
    Routine("step-deferred", "On-line step, weights in float32", "sample", step, step_work,
            "deferred"),
    Routine("step-immediate", "On-line step, immediate updates", "sample", step,
            lambda p, _: floors.immediate_step(p.layer_sizes), "immediate"),
    Routine(SPARSE, "On-line step, rectifiers, sparse", "sample", step_of_rectifiers, sparse_work,
            "sparse", note=lambda p: rectifiers(p).description()),
    Routine(DENSE, "On-line step, rectifiers, dense", "sample", step_of_rectifiers,
            dense_work, "deferred", note=lambda p: rectifiers(p).description()),
    Routine("field", "Elastic displacement field", "image", field,
            lambda *_: floors.displacement_field(SIDE)),
    Routine("deformation", "Whole deformation", "image", deformation,
            lambda *_: floors.deformation(SIDE)),
    Routine("validation", "Batched validation", "image", validation, validation_work),
    Routine("epoch", f"Epoch of {EPOCH:,} images", "epoch", epoch, epoch_work, per=EPOCH),
)  # fmt: skip
ROUTINES = {routine.key: routine for routine in _ROUTINES}
