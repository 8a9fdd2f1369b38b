"""Images and a network of an architecture, and what the float64 oracle makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from mlpcore import backends
from mlpcore.data.dataset import BACKGROUND
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.network.architecture import count_parameters, format_hidden_layers
from mlpcore.typing import AnyArray, Float32Array, Int32Array, UInt8Array

SIDE, CLASSES = 29, 10

#: Images that the routines work on; an epoch is timed on some of them.
IMAGES = 10_000

#: Drawn strokes: lines of this half width, in pixels, one after the other between points at least
#: so far from the border. On average 0.30 of an image is not background, as of MNIST's deformed
#: digits; where they are deformed, 0.36.
HALF_WIDTH, LINES, BORDER = 2.5, 6, 2.5

#: How far the points of an image are from those of its class, in pixels: the standard deviation.
#: Networks learn to tell classes as fast as digits, and are as often in doubt.
JITTER = 2.0

#: Samples that make of a network one that is sure of most images, as networks in training are.
TRAINED = 2000

#: Samples of one call of a layer's routine: enough for the start of threads not to matter.
ROWS = 1024

#: Bytes of Python, its libraries and what the machine's limits are measured with.
FIXED_MEMORY = 1 << 29

#: Samples after which a result is compared with the oracle's, and multiply-adds that it may
#: spend on them: in float64 and beyond any cache, a second is good for some hundred million.
CHECKED = 64
ORACLE_BUDGET = 5e8

#: Greatest error of a result, relative to what it is of: the outputs, or the greatest change
#: that training has made to a layer. Rounding stays below a tenth of it; a mean over the
#: outputs, a batch of two samples or a missing bias are beyond it by far.
TOLERANCE = 1e-3

#: Half a unit in the last place of float32.
EPSILON = 2.0**-24


@dataclass(frozen=True)
class Variant:
    """What a network computes: y = amplitude tanh(slope a), trained on 1/2 |y - t|^2.

    Parameters
    ----------
    amplitude, slope
        Of the activation.
    clip
        |y| that the derivative takes y not to exceed.
    softmax
        Outputs are a softmax, and the loss is the cross-entropy.
    """

    amplitude: float = A
    slope: float = B
    clip: float = np.inf
    softmax: bool = False

    def activation(self, a: AnyArray) -> AnyArray:
        """y(a)."""
        return self.amplitude * np.tanh(self.slope * a)

    def derivative(self, y: AnyArray) -> AnyArray:
        """y'(a) from y."""
        y = np.clip(y, -self.clip, self.clip)
        return self.slope / self.amplitude * (self.amplitude - y) * (self.amplitude + y)

    def output_delta(self, a: AnyArray, label: int) -> AnyArray:
        """dE/da at the output layer, of its sums a."""
        if self.softmax:
            p = np.exp(a - a.max())
            p /= p.sum()
            p[label] -= 1
            return p
        y = self.activation(a)
        target = np.full(len(y), -1.0)
        target[label] = 1.0
        return (y - target) * self.derivative(y)


#: The paper's network.
PAPER = Variant()

#: Weights and biases of each layer.
Parameters: TypeAlias = list[tuple[AnyArray, AnyArray]]


def train_oracle(
    start: Parameters,
    images: Float32Array,
    labels: UInt8Array,
    order: Int32Array,
    rate: float,
    variant: Variant,
) -> Parameters:
    """Parameters after on-line back-propagation in float64.

    For the paper's variant it does what the reference backend does, which a test verifies.
    """
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in start]
    for i in order:
        states = [images[i].astype(np.float64)]
        for w, b in layers:
            a = w @ states[-1] + b
            states.append(variant.activation(a))
        delta = variant.output_delta(a, labels[i])
        for layer in range(len(layers) - 1, -1, -1):
            w, b = layers[layer]
            below = w.T @ delta * variant.derivative(states[layer])
            w -= rate * np.outer(delta, states[layer])
            b -= rate * delta
            delta = below
    return layers


def draw_strokes(rng: np.random.Generator, labels: UInt8Array) -> Float32Array:
    """Images (n, 29, 29) of a pen's strokes, 1, with soft edges, on a background of -1.

    What a digit costs depends on how much of it is background, and in validation on how sure of
    it a network is that has learned to tell it; this needs no data set.
    """
    border = BORDER, SIDE - 1 - BORDER
    classes = rng.uniform(*border, (LINES + 1, CLASSES, 2))
    points = classes[:, labels] + rng.normal(0, JITTER, (LINES + 1, len(labels), 2))
    points = np.clip(points, *border).astype(np.float32)
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    distance = np.full((len(labels), SIDE, SIDE), np.inf, np.float32)
    for begin, end in pairwise(points):
        (dy, dx), (y0, x0) = (v.T[:, :, None, None] for v in (end - begin, begin))
        along = ((y - y0) * dy + (x - x0) * dx) / np.maximum(dy * dy + dx * dx, 1e-6)
        along = np.clip(along, 0, 1)
        np.minimum(distance, np.hypot(y - y0 - along * dy, x - x0 - along * dx), out=distance)
    return np.clip(1 + 2 * (HALF_WIDTH - 1 - distance), BACKGROUND, 1)


class Problem:
    """Images, labels, an order and a network: the same for all that are compared.

    Parameters
    ----------
    hidden
        Widths of the hidden layers.
    images
        Number of images.
    """

    def __init__(self, hidden: Sequence[int], images: int = IMAGES, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.hidden = tuple(hidden)
        self.name = format_hidden_layers(hidden)
        self.layer_sizes = (SIDE * SIDE, *hidden, CLASSES)
        self.seed = seed
        self.labels = rng.integers(0, CLASSES, images).astype(np.uint8)
        self.images = draw_strokes(rng, self.labels)
        self.order = rng.permutation(images).astype(np.int32)
        self.network = Network(self.layer_sizes, seed=seed)
        self.parameters = DeformationParameters()
        # A step changes a neuron's sum by about rate * width of its error; above 2 it would
        # grow, and rounding errors with it.
        self.rate = min(1e-3, 2 / max(self.layer_sizes))
        n = count_parameters(self.layer_sizes)
        self.checked = int(np.clip(ORACLE_BUDGET / n / 3, 2, CHECKED))
        self._oracles: dict[Variant, Parameters] = {}

    @property
    def flat_images(self) -> Float32Array:
        """(n, 841)."""
        return self.images.reshape(len(self.images), -1)

    @cached_property
    def foreground(self) -> float:
        """The share of the inputs that are not background."""
        return float(np.mean(self.images != BACKGROUND))

    @cached_property
    def trainee(self) -> Network:
        """The network whose weights routines change; CPU backends share it, one at a time."""
        return self.network.copy()

    @cached_property
    def trained(self) -> Network:
        """The network after some training, for validation."""
        network, backend = self.network.copy(), backends.get("cpu")
        order = np.resize(self.order, TRAINED)
        backend.train(network, self.flat_images, self.labels, order, self.rate)
        return network

    @cached_property
    def deformed(self) -> Float32Array:
        """Where deformed images go; CPU backends share it."""
        return np.zeros_like(self.images)

    @cached_property
    def rows(self) -> int:
        """Samples in the inputs and deltas of a layer."""
        return int(np.clip((16 << 20) // max(self.layer_sizes), 16, ROWS))

    @cached_property
    def activity(self) -> list[Float32Array]:
        """(rows, width) of every level from the inputs to the outputs, random."""
        rng = np.random.default_rng(self.seed + 1)
        return [rng.random((self.rows, n), np.float32) * 2 - 1 for n in self.layer_sizes]

    @property
    def start(self) -> Parameters:
        """The initial weights and biases."""
        return list(zip(self.network.weights, self.network.biases))

    def oracle(self, variant: Variant = PAPER, start: Parameters | None = None) -> Parameters:
        """Weights and biases after training on the first `checked` samples of the order."""
        if start is None and variant in self._oracles:
            return self._oracles[variant]
        order = self.order[: self.checked]
        result = train_oracle(
            start or self.start, self.flat_images, self.labels, order, self.rate, variant
        )
        if start is None:
            self._oracles[variant] = result
        return result

    def training_error(
        self, result: Parameters, variant: Variant = PAPER, start: Parameters | None = None
    ) -> float:
        """Greatest error of the weights and biases after that training.

        Relative to the greatest change of each layer's weights, and of its biases. A change
        that is itself no more than the rounding of so many updates is not held against a
        result in float32. `start` are initial weights other than the problem's.
        """
        errors = []
        for got, want, begin in zip(result, self.oracle(variant, start), start or self.start):
            for g, w, b in zip(got, want, begin):
                rounding = self.checked * EPSILON * np.abs(w).max() / TOLERANCE
                change = max(np.abs(w - b).max(), rounding)
                errors.append(relative_error(g, w, change))
        return max(errors)


def relative_error(got: AnyArray, want: AnyArray, scale: float | None = None) -> float:
    """Greatest difference over `scale`, by default the greatest |want|; infinite for NaN."""
    if np.shape(got) != np.shape(want):
        return float("inf")
    scale = np.abs(want).max() if scale is None else scale
    error = np.abs(np.asarray(got, np.float64) - want).max() / max(scale, 1e-30)
    return float(error) if np.isfinite(error) else float("inf")


def memory_needed(hidden: Sequence[int], images: int = IMAGES, peers: bool = False) -> int:
    """Bytes for an architecture, roughly: networks, the oracle's float64, data, buffers."""
    sizes = (SIDE * SIDE, *hidden, CLASSES)
    # The oracle's weights, those it works on and an outer product are in float64; of float32
    # there are three or four networks. All peers of the on-line step are there at a time.
    per_parameter = 3 * 8 + 4 * 4 + (120 if peers else 0)
    rows = 4 * 4 * ROWS * sum(min(n, (16 << 20) // ROWS) for n in sizes)
    data = (8 if peers else 4) * 4 * images * SIDE * SIDE
    return per_parameter * count_parameters(sizes) + rows + data + FIXED_MEMORY


def check_memory(architectures: Iterable[Sequence[int]], available: int, peers: bool) -> None:
    """Raises an InputError for the first architecture that would not fit."""
    for hidden in architectures:
        needed = memory_needed(hidden, peers=peers)
        if needed > available:
            raise InputError(
                f"architecture {format_hidden_layers(hidden)}: needs about "
                f"{needed / 2**30:,.1f} GiB, {available / 2**30:,.1f} GiB are available"
            )
