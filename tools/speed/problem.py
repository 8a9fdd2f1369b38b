"""Images and a network of an architecture: the same for all that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from mlpcore import backends
from mlpcore.backends.arguments import IMAGES_PER_GRID
from mlpcore.backends.base import Backend
from mlpcore.data.dataset import BACKGROUND
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.network import Network
from mlpcore.network.architecture import count_parameters, format_hidden_layers
from mlpcore.typing import AnyArray, Float32Array, Int32Array, UInt8Array
from speed.timing import Case

SIDE, CLASSES = 29, 10

#: Images that the routines work on; an epoch is timed on some of them.
IMAGES = 10_000

#: Images show strokes of this half width in pixels, one after the other between random points at
#: least BORDER from the edge. 0.31 of their pixels are not background; 0.30 of those of MNIST's
#: deformed digits.
HALF_WIDTH, LINES, BORDER = 2.5, 6, 2.5

#: Samples after which trained weights are compared with the oracle's, and multiply-adds that the
#: oracle may spend on them: in float64 and beyond any cache, it does some 1e8 in a second.
CHECKED, ORACLE_BUDGET = 64, 5e8

#: Greatest relative error of a right result. Rounding stays below a tenth of it; a loss averaged
#: over the outputs, a batch of two samples or a missing bias are far beyond it.
TOLERANCE = 1e-3

#: Half a unit in the last place of float32.
EPSILON = 2.0**-24

#: Arrays, each with what it started from: weights before training, 0 for any other result.
#: Errors are relative to the greatest difference from the start.
Outcome: TypeAlias = list[tuple[AnyArray, AnyArray | float]]

#: What a backend makes of a few samples of a problem, and what is timed.
Enter: TypeAlias = Callable[[Any, Backend], tuple[Outcome, Case]]


def draw_strokes(rng: np.random.Generator, n: int) -> Float32Array:
    """Images (n, 29, 29) of a pen's strokes, 1, with soft edges, on a background of -1.

    They stand for digits, without a data set: a digit's cost depends on its share of background.
    """
    points = rng.uniform(BORDER, SIDE - 1 - BORDER, (LINES + 1, n, 2)).astype(np.float32)
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    distance = np.full((n, SIDE, SIDE), np.inf, np.float32)
    for begin, end in pairwise(points):
        (dy, dx), (y0, x0) = (v.T[:, :, None, None] for v in (end - begin, begin))
        along = ((y - y0) * dy + (x - x0) * dx) / np.maximum(dy * dy + dx * dx, 1e-6)
        along = np.clip(along, 0, 1)
        np.minimum(distance, np.hypot(y - y0 - along * dy, x - x0 - along * dx), out=distance)
    return np.clip(1 + 2 * (HALF_WIDTH - 1 - distance), BACKGROUND, 1)


class Steps:
    """What on-line steps are made with.

    A network; samples (n, inputs) with labels, and the outputs (n, classes) that they are trained
    to; an order and a rate.
    """

    def __init__(
        self,
        network: Network,
        flat_images: Float32Array,
        labels: UInt8Array,
        targets: Float32Array,
        order: Int32Array,
        rate: float,
    ):
        self.network, self.layer_sizes = network, network.layer_sizes
        self.flat_images, self.labels, self.targets = flat_images, labels, targets
        self.order, self.rate = order, rate
        affordable = ORACLE_BUDGET / count_parameters(self.layer_sizes) / 3
        self.checked = int(np.clip(affordable, 2, CHECKED))
        self._oracle: dict[object, Outcome] = {}

    def change(self, network: Network) -> Outcome:
        """A network's weights and biases with those that they started from."""
        start = self.network
        return list(zip([*network.weights, *network.biases], [*start.weights, *start.biases]))

    def error(self, routine: Enter, got: Outcome) -> float:
        """Greatest relative error of what a routine gave, beside the float64 oracle's results.

        A change of weights that is itself no more than the rounding of so many updates is not
        held against a result in float32.
        """
        if routine not in self._oracle:
            self._oracle[routine], _ = routine(self, backends.get("reference"))
        errors = []
        for (array, _), (want, start) in zip(got, self._oracle[routine], strict=True):
            scale = np.abs(want - start).max()
            if np.ndim(start):
                scale = max(scale, self.checked * EPSILON * np.abs(want).max() / TOLERANCE)
            errors.append(relative_error(array, want, scale))
        return max(errors)


class Problem(Steps):
    """Images, labels, an order and a network with these widths of the hidden layers.

    `training_seconds` bound the training that routines of a trained network need.
    """

    def __init__(self, hidden: Sequence[int], images: int = IMAGES, training_seconds: float = 30.0):
        rng = np.random.default_rng(0)
        self.name = format_hidden_layers(hidden)
        self.hidden, self.training_seconds = tuple(hidden), training_seconds
        sizes = (SIDE * SIDE, *hidden, CLASSES)
        labels = rng.integers(0, CLASSES, images).astype(np.uint8)
        targets = 2 * np.eye(CLASSES, dtype=np.float32)[labels] - 1
        self.images = draw_strokes(rng, images)
        self.foreground = float(np.mean(self.images != BACKGROUND))
        # A step changes a neuron's sum by about rate * width of its error; above 2 the sum would
        # grow, and rounding errors with it.
        rate = min(1e-3, 2 / max(sizes))
        order = rng.permutation(images).astype(np.int32)
        network, inputs = Network(sizes, seed=0), self.images.reshape(images, -1)
        super().__init__(network, inputs, labels, targets, order, rate)
        self.deformation = DeformationParameters()
        #: (rows, width) of every level from the inputs to the outputs, random. The number of
        #: samples is enough for the start of threads not to matter.
        rows = int(np.clip((16 << 20) // max(sizes), 16, 1024))
        self.activity = [rng.random((rows, n), np.float32) * 2 - 1 for n in sizes]
        #: Images whose displacement fields are used up.
        self.whole_grids = images // IMAGES_PER_GRID * IMAGES_PER_GRID


def relative_error(got: AnyArray, want: AnyArray, scale: float) -> float:
    """Greatest difference over `scale`; infinite for NaN and for another shape."""
    if np.shape(got) != np.shape(want):
        return float("inf")
    error = np.abs(np.asarray(got, np.float64) - want).max() / max(scale, 1e-30)
    return float(error) if np.isfinite(error) else float("inf")
