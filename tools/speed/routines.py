"""What is timed on a backend: the rows of the table.

Only the public operations of `mlpcore.backends.base` are called; they return when their work is
done, on a GPU too. A layer's routine takes the layers in turn, each for many samples one after
the other, as the paper times its kernels: a layer that fits a cache stays there, which it would
not during training. The on-line step is timed as training runs it.

Each routine has two functions of a problem and a backend. One makes the `Case` to time; the other
returns what the backend computes for a few samples, which is compared with the oracle's results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import IMAGES_PER_GRID, Backend
from mlpcore.backends.simd import SimdBackend
from mlpcore.deformation.deform import deform, gaussian_taps
from speed import floors
from speed.floors import Work
from speed.problem import SIDE, Outcome, Problem
from speed.timing import Case

#: Images of an epoch, as MNIST has them.
EPOCH = 60_000

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
    `per` samples or images.
    """

    key: str
    title: str
    unit: str
    prepare: Callable[[Problem, Backend], Case]
    results: Callable[[Problem, Backend], Outcome]
    work: Callable[[Problem, Backend | None], Work]
    schedule: str | None = None
    per: int = 1


def layer_case(
    problem: Problem, backend: Backend, operation: Callable[..., object], first: int = 0
) -> Case:
    """`operation(network, layer, below, above)` on n samples for all layers from `first`.

    `below` and `above` are random states of the layer below and of the layer, or their deltas.
    """
    network = backend.load(problem.network.copy())
    levels = [backend.put(level) for level in problem.activity]
    rows = len(problem.activity[0])

    def run(n: int) -> None:
        for layer in range(first, len(levels) - 1):
            for begin in range(0, n, rows):
                m = min(rows, n - begin)
                operation(network, layer, levels[layer][:m], levels[layer + 1][:m])

    return Case(run, step=16)


def prepare_forward(problem: Problem, backend: Backend) -> Case:
    return layer_case(problem, backend, lambda net, i, x, _: backend.forward(net, i, x))


def forward(problem: Problem, backend: Backend) -> Outcome:
    network, few = backend.load(problem.network), [level[:FEW] for level in problem.activity]
    return [(backend.forward(network, i, x), 0) for i, x in enumerate(few[:-1])]


def prepare_backward(problem: Problem, backend: Backend) -> Case:
    return layer_case(problem, backend, lambda net, i, y, d: backend.backward(net, i, d, y), 1)


def backward(problem: Problem, backend: Backend) -> Outcome:
    network, few = backend.load(problem.network), [level[:FEW] for level in problem.activity]
    layers = range(1, len(few) - 1)
    return [(backend.backward(network, i, few[i + 1], few[i]), 0) for i in layers]


def prepare_update(problem: Problem, backend: Backend) -> Case:
    def change(network: object, i: int, x: object, d: object) -> None:
        backend.update(network, i, x, d, SMALL_RATE)

    return layer_case(problem, backend, change)


def update(problem: Problem, backend: Backend) -> Outcome:
    network, few = problem.network.copy(), [level[:FEW] for level in problem.activity]
    loaded = backend.load(network)
    for i in range(network.n_layers):
        backend.update(loaded, i, few[i], few[i + 1], RATE)
    backend.store(loaded, network)
    return problem.change(network)


def prepare_step(problem: Problem, backend: Backend) -> Case:
    network = backend.load(problem.network.copy())
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)

    def run(n: int) -> None:
        backend.train(network, images, labels, problem.order[:n], problem.rate)

    # Training takes thousands of samples a call: the cost of a call by itself is not to show.
    return Case(run, STEP, len(problem.order) // STEP * STEP, length=8.0)


def step(problem: Problem, backend: Backend) -> Outcome:
    network = problem.network.copy()
    loaded = backend.load(network)
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)
    backend.train(loaded, images, labels, problem.order[: problem.checked], problem.rate)
    backend.store(loaded, network)
    return problem.change(network)


def prepare_field(problem: Problem, backend: Backend) -> Case:
    noise = backend.put(backend.noise(0, 0, 0, SIDE, SIDE))
    taps = backend.put(gaussian_taps(problem.deformation.sigma))

    def run(n: int) -> None:
        for _ in range(n // IMAGES_PER_GRID):
            backend.displacement_field(noise, taps, problem.deformation.alpha)

    return Case(run, IMAGES_PER_GRID)


def field(problem: Problem, backend: Backend) -> Outcome:
    noise = backends.get("reference").noise(0, 0, 0, SIDE, SIDE)
    taps = gaussian_taps(problem.deformation.sigma)
    return [(backend.displacement_field(noise, taps, problem.deformation.alpha), 0)]


def prepare_deformation(problem: Problem, backend: Backend) -> Case:
    images, out = backend.put(problem.images), backend.put(np.zeros_like(problem.images))

    def run(n: int) -> None:
        deform(images[:n], problem.labels[:n], problem.deformation, 0, 1, backend, 0, out[:n])

    return Case(run, IMAGES_PER_GRID, len(problem.images) // IMAGES_PER_GRID * IMAGES_PER_GRID)


def deformation(problem: Problem, backend: Backend, n: int = FEW) -> Outcome:
    images, labels = backend.put(problem.images[:n]), problem.labels[:n]
    return [(np.asarray(deform(images, labels, problem.deformation, 0, 1, backend)), 0)]


def prepare_validation(problem: Problem, backend: Backend) -> Case:
    network = backend.load(problem.network)
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)

    def run(n: int) -> None:
        backend.count_errors(network, images[:n], labels[:n])

    return Case(run, IMAGES_PER_GRID, len(problem.images), length=8.0)


def validation(problem: Problem, backend: Backend) -> Outcome:
    network, images = backend.load(problem.network), backend.put(problem.flat_images[:FEW])
    errors = backend.count_errors(network, images, backend.put(problem.labels[:FEW]))
    return [(backend.predict(network, images), 0), (np.array([errors]), 0)]


def prepare_epoch(problem: Problem, backend: Backend) -> Case:
    network = backend.load(problem.network.copy())
    images, labels = backend.put(problem.images), backend.put(problem.labels)
    flat, out = backend.put(problem.flat_images), backend.put(np.zeros_like(problem.images))

    def run(n: int) -> None:
        deform(images[:n], labels[:n], problem.deformation, 0, 1, backend, 0, out[:n])
        order, inputs = problem.order[problem.order < n], out.reshape(len(problem.images), -1)
        backend.train(network, inputs, labels, order, problem.rate)
        backend.count_errors(network, flat[:n], labels[:n])

    most = len(problem.images) // IMAGES_PER_GRID * IMAGES_PER_GRID
    return Case(run, IMAGES_PER_GRID, most, length=8.0)


def epoch(problem: Problem, backend: Backend) -> Outcome:
    parts = deformation, step, validation
    return [pair for part in parts for pair in part(problem, backend)]


def step_work(problem: Problem, backend: Backend | None) -> Work:
    read = backend.pass_bytes(problem.network) if isinstance(backend, SimdBackend) else None
    return floors.step(problem.layer_sizes, problem.foreground, read)


def validation_work(problem: Problem, _: Backend | None) -> Work:
    return floors.validation(problem.layer_sizes, problem.foreground)


def epoch_work(problem: Problem, backend: Backend | None) -> Work:
    trained, validated = step_work(problem, backend), validation_work(problem, backend)
    return floors.deformation(SIDE) + trained + validated


ROUTINES = {
    routine.key: routine
    for routine in (
        Routine("forward", "Forward", "sample", prepare_forward, forward,
                lambda p, _: floors.forward(p.layer_sizes)),
        Routine("backward", "Backward of deltas", "sample", prepare_backward, backward,
                lambda p, _: floors.forward(p.layer_sizes[1:])),
        Routine("update", "Weight update", "sample", prepare_update, update,
                lambda p, _: floors.update(p.layer_sizes)),
        Routine("step", "On-line step", "sample", prepare_step, step, step_work),
        Routine("step-deferred", "On-line step, weights in float32", "sample", prepare_step,
                step, step_work, "deferred"),
        Routine("step-immediate", "On-line step, immediate updates", "sample", prepare_step,
                step, lambda p, _: floors.immediate_step(p.layer_sizes), "immediate"),
        Routine("field", "Elastic displacement field", "image", prepare_field, field,
                lambda p, _: floors.displacement_field(SIDE)),
        Routine("deformation", "Whole deformation", "image", prepare_deformation, deformation,
                lambda p, _: floors.deformation(SIDE)),
        Routine("validation", "Batched validation", "image", prepare_validation, validation,
                validation_work),
        Routine("epoch", f"Epoch of {EPOCH:,} images", "epoch", prepare_epoch, epoch,
                epoch_work, per=EPOCH),
    )
}  # fmt: skip
