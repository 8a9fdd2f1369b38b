"""What is timed on a backend: the rows of the table.

Only the public operations of `mlpcore.backends.base` are called, so a stopwatch around the
same calls shows the same times. They return when their work is done, on a device too. A
layer's routine takes the layers in turn, each for many samples one after the other, as the
paper times its kernels: a layer that fits a cache stays there, which it would not during
training. The on-line step is timed as training runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlpcore.backends.base import IMAGES_PER_GRID, Backend
from mlpcore.backends.simd import SimdBackend
from mlpcore.deformation.deform import deform, gaussian_taps
from speed import checks, floors
from speed.floors import Work
from speed.problem import SIDE, Problem
from speed.timing import Case

#: Images of an epoch, as MNIST has them.
EPOCH = 60_000

#: Of the update routine: too small to change what the weights are like.
SMALL_RATE = 1e-6

#: Calls shorter than this many samples would show the start of threads.
STEP = 64


@dataclass(frozen=True)
class Routine:
    """A row of the table.

    Parameters
    ----------
    prepare
        Makes a `Case` of a problem and a backend, with everything in its place.
    check
        The greatest relative error of a result, against the oracle.
    work
        Of one sample or image, for the floor: of a backend, or of who reads float32 weights.
    schedule
        Of the backend; None for the one that it chooses.
    per
        Samples or images of the unit that is shown.
    """

    key: str
    title: str
    unit: str
    prepare: Callable[[Problem, Backend], Case]
    check: Callable[[Problem, Backend], float]
    work: Callable[[Problem, Backend | None], Work]
    schedule: str | None = None
    per: int = 1


def _pieces(n: int, rows: int) -> list[int]:
    """Lengths of at most `rows` that add up to n."""
    return [min(rows, n - begin) for begin in range(0, n, rows)]


def _layer_case(
    problem: Problem, backend: Backend, operation: Callable[..., object], first: int = 0
) -> Case:
    """`operation(network, layer, below, above)` on n samples for all layers from `first`.

    `below` and `above` are random inputs and outputs of the layer, or their deltas.
    """
    network = backend.load(problem.trainee)
    levels = [backend.put(level) for level in problem.activity]

    def run(n: int) -> None:
        for layer in range(first, len(levels) - 1):
            for m in _pieces(n, problem.rows):
                operation(network, layer, levels[layer][:m], levels[layer + 1][:m])

    return Case(run, step=16)


def prepare_forward(problem: Problem, backend: Backend) -> Case:
    """States of all layers."""
    return _layer_case(problem, backend, lambda net, i, x, _: backend.forward(net, i, x))


def prepare_backward(problem: Problem, backend: Backend) -> Case:
    """Deltas of all layers; there are none below the first."""
    return _layer_case(problem, backend, lambda net, i, y, d: backend.backward(net, i, d, y), 1)


def prepare_update(problem: Problem, backend: Backend) -> Case:
    """New weights of all layers, after each sample."""
    return _layer_case(
        problem, backend, lambda net, i, x, d: backend.update(net, i, x, d, SMALL_RATE)
    )


def prepare_step(problem: Problem, backend: Backend) -> Case:
    """On-line training."""
    network = backend.load(problem.trainee)
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)

    def run(n: int) -> None:
        result = backend.train(network, images, labels, problem.order[:n], problem.rate)
        if result.samples != n:
            raise RuntimeError(f"{backend.name}: trained {result.samples} samples of {n}")

    # Training takes thousands of samples a call: what a call costs by itself is not to show.
    return Case(run, STEP, len(problem.order) // STEP * STEP, length=8.0)


def prepare_field(problem: Problem, backend: Backend) -> Case:
    """Displacement fields, each for 100 images, of the same noise."""
    noise = backend.put(backend.noise(problem.seed, 0, 0, SIDE, SIDE))
    taps = backend.put(gaussian_taps(problem.parameters.sigma))

    def run(n: int) -> None:
        for _ in range(n // IMAGES_PER_GRID):
            backend.displacement_field(noise, taps, problem.parameters.alpha)

    return Case(run, IMAGES_PER_GRID)


def prepare_deformation(problem: Problem, backend: Backend) -> Case:
    """Random numbers, fields, affine maps and interpolation, as at an epoch's beginning."""
    images, out = backend.put(problem.images), backend.put(problem.deformed)

    def run(n: int) -> None:
        labels = problem.labels[:n]
        deform(images[:n], labels, problem.parameters, problem.seed, 1, backend, 0, out[:n])

    most = len(problem.images) // IMAGES_PER_GRID * IMAGES_PER_GRID
    return Case(run, IMAGES_PER_GRID, most)


def prepare_validation(problem: Problem, backend: Backend) -> Case:
    """Misclassified images, a batch at a time."""
    network = backend.load(problem.trained)
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)

    def run(n: int) -> None:
        backend.count_errors(network, images[:n], labels[:n])

    # Of few images a backend may look at some twice that of many it would not.
    return Case(run, IMAGES_PER_GRID, len(problem.images), length=8.0)


def prepare_epoch(problem: Problem, backend: Backend) -> Case:
    """An epoch of n images: deformed, trained on in a random order, and then validated."""
    network = backend.load(problem.trainee)
    images, labels = backend.put(problem.images), backend.put(problem.labels)
    flat, shown = backend.put(problem.flat_images), backend.put(problem.deformed)

    def run(n: int) -> None:
        deform(images[:n], labels[:n], problem.parameters, problem.seed, 1, backend, 0, shown[:n])
        order = problem.order[problem.order < n]
        inputs = shown.reshape(len(problem.images), -1)
        result = backend.train(network, inputs, labels, order, problem.rate)
        if result.samples != n:
            raise RuntimeError(f"{backend.name}: trained {result.samples} samples of {n}")
        backend.count_errors(network, flat[:n], labels[:n])

    most = len(problem.images) // IMAGES_PER_GRID * IMAGES_PER_GRID
    return Case(run, IMAGES_PER_GRID, most, length=8.0)


def _step_work(problem: Problem, backend: Backend | None) -> Work:
    read = backend.pass_bytes(problem.network) if isinstance(backend, SimdBackend) else None
    return floors.step(problem.layer_sizes, foreground=problem.foreground, read=read)


def _validation_work(problem: Problem, _: Backend | None) -> Work:
    return floors.validation(problem.layer_sizes, problem.foreground)


def _epoch_work(problem: Problem, backend: Backend | None) -> Work:
    each = (_step_work(problem, backend), _validation_work(problem, backend))
    return sum(each, floors.deformation(SIDE, SIDE))


ROUTINES = {
    routine.key: routine
    for routine in (
        Routine("forward", "Forward", "sample", prepare_forward, checks.forward,
                lambda p, _: floors.forward(p.layer_sizes)),
        Routine("backward", "Backward of deltas", "sample", prepare_backward, checks.backward,
                lambda p, _: floors.backward(p.layer_sizes)),
        Routine("update", "Weight update", "sample", prepare_update, checks.update,
                lambda p, _: floors.update(p.layer_sizes)),
        Routine("step", "On-line step", "sample", prepare_step, checks.step, _step_work),
        Routine("step-deferred", "On-line step, weights in float32", "sample", prepare_step,
                checks.step, _step_work, "deferred"),
        Routine("step-immediate", "On-line step, immediate updates", "sample", prepare_step,
                checks.step, lambda p, _: floors.step(p.layer_sizes, True), "immediate"),
        Routine("field", "Elastic displacement field", "image", prepare_field, checks.field,
                lambda p, _: floors.displacement_field(SIDE, SIDE)),
        Routine("deformation", "Whole deformation", "image", prepare_deformation,
                checks.deformation, lambda p, _: floors.deformation(SIDE, SIDE)),
        Routine("validation", "Batched validation", "image", prepare_validation,
                checks.validation, _validation_work),
        Routine("epoch", f"Epoch of {EPOCH:,} images", "epoch", prepare_epoch, checks.epoch,
                _epoch_work, per=EPOCH),
    )
}  # fmt: skip
