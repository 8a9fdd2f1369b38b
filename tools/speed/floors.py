"""The least time that a routine can take: the one place where floors are defined.

One sample or image has to move some bytes of weights, and to do some multiply-adds. A perfect
program does both at once, so the floor is the longer of the two:

    max( sum of bytes / bandwidth of where they are,  multiply-adds / the peak rate )

Weights are as near as they fit: what fits into the L1 caches costs nothing, the next part comes
at the bandwidth of the L2 caches, then L3, then DRAM. No order of access does better.

The images' background takes no multiply-adds in the first layer: its product with the weights
is one number times the sums of the weights. States, deltas, the activation, barriers, random
numbers and an interpolation's gathers are not counted; they can only raise the cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mlpcore.backends.arguments import GRID, IMAGES_PER_GRID, MARGIN, TAPS
from speed.limits import Limits


@dataclass(frozen=True)
class Traffic:
    """Bytes moved per sample, all over the same `resident` bytes."""

    moved: float
    resident: float
    copied: bool = False  #: read and written, not only read

    def seconds(self, limits: Limits) -> float:
        """Least time, each part of the bytes from the nearest level that has room for it."""
        seconds, held = 0.0, min(limits.private, self.resident)
        for level in limits.levels:
            room = math.inf if level.capacity is None else level.capacity
            part = max(0.0, min(room, self.resident) - held)
            held += part
            bandwidth = level.copy if self.copied else level.read
            seconds += self.moved * part / max(self.resident, 1) / bandwidth
        return seconds


@dataclass(frozen=True)
class Work:
    """What a sample or an image takes."""

    traffic: tuple[Traffic, ...] = ()
    multiply_adds: float = 0.0
    updates: float = 0.0  #: of weights and biases

    def __add__(self, other: Work) -> Work:
        traffic = self.traffic + other.traffic
        multiply_adds = self.multiply_adds + other.multiply_adds
        return Work(traffic, multiply_adds, self.updates + other.updates)

    @property
    def moved(self) -> float:
        """Bytes in all."""
        return sum(t.moved for t in self.traffic)

    def floor(self, limits: Limits) -> float:
        """Least time for the work."""
        memory = sum(t.seconds(limits) for t in self.traffic)
        return max(memory, self.multiply_adds / limits.multiply_adds)


# ---- the routines: per sample, over all layers of the architecture -----------------------


def parameters(layer_sizes: Sequence[int]) -> list[int]:
    """Weights and biases of each layer."""
    return [n_out * (n_in + 1) for n_in, n_out in pairwise(layer_sizes)]


def forward(layer_sizes: Sequence[int]) -> Work:
    """Reads the weights of every layer once; so does `backward`, but for the first layer."""
    counts = parameters(layer_sizes)
    return Work(tuple(Traffic(4 * n, 4 * n) for n in counts), sum(counts))


def update(layer_sizes: Sequence[int]) -> Work:
    """Reads and writes the weights of every layer once."""
    counts = parameters(layer_sizes)
    return Work(tuple(Traffic(8 * n, 4 * n, True) for n in counts), sum(counts), sum(counts))


def step(layer_sizes: Sequence[int], foreground: float, read: Sequence[float] | None) -> Work:
    """An on-line step: forward, backward, update, the updates put off for a block of samples.

    However long updates are put off, each sample reads the layers above the first on the way up
    and again on the way down. The first layer's products and all updates can be made for many
    samples at a time: their traffic shrinks as the block grows, so it is not counted.

    `foreground` is the share of the inputs that is not background. `read` are the bytes that
    each layer above the first takes where it is read, None for float32.
    """
    first, *upper = parameters(layer_sizes)
    resident = 4 * sum(upper) if read is None else sum(read)
    multiply_adds = 2 * foreground * first + 3 * sum(upper)
    return Work((Traffic(2 * resident, resident),), multiply_adds, first + sum(upper))


def immediate_step(layer_sizes: Sequence[int]) -> Work:
    """An on-line step that updates all weights after every sample, the background's too.

    The update reads and writes each weight once, and the first layer's next forward pass can be
    made meanwhile; the other layers are read once more on the way up.
    """
    first, *upper = parameters(layer_sizes)
    total = first + sum(upper)
    traffic = Traffic(4 * sum(upper), 4 * total), Traffic(8 * total, 4 * total, True)
    return Work(traffic, 2 * first + 3 * sum(upper), total)


@dataclass(frozen=True)
class Activity:
    """Inputs of each layer that are not 0: in a sample, and in any of a block of `samples`."""

    sample: Sequence[float]
    block: Sequence[float]
    samples: int


def sparse_step(layer_sizes: Sequence[int], activity: Activity) -> Work:
    """An on-line step that reads and writes the rows of active inputs only, whole.

    A row has an input's weights to all n_out neurons of a layer. Let a be the rows of a layer that
    a sample needs, and u those that a block of B samples needs, both with the bias's. Per sample
    there move

        above the first layer   2 * 4 a n_out       bytes, read on the way up and on the way down
        in every layer          2 * 4 u n_out / B   bytes, read and written by a block's updates

    The first layer's products with the next block are made while its rows are near for the
    updates. The corrections of samples within a block are not counted. The multiply-adds are
    3 a n_out, and 2 a n_out in the first layer.
    """

    def weights(counts: Sequence[float]) -> list[float]:
        return [(count + 1) * n_out for count, n_out in zip(counts, layer_sizes[1:])]

    first, *upper = weights(activity.sample)
    touched = weights(activity.block)
    total = first + sum(upper)
    passes = Traffic(2 * 4 * sum(upper), 4 * sum(touched[1:]))
    updates = Traffic(2 * 4 * sum(touched) / activity.samples, 4 * sum(touched), True)
    return Work((passes, updates), 2 * first + 3 * sum(upper), total)


def displacement_field(side: int) -> Work:
    """Per image, 1/100 of a field: two separable convolutions with 21 taps."""
    cells = GRID * side * (GRID * side + MARGIN) + (GRID * side) ** 2
    return Work(multiply_adds=2 * TAPS * cells / IMAGES_PER_GRID)


def deformation(side: int) -> Work:
    """A displacement field, and per pixel the affine map (4) and a bilinear lookup (3)."""
    return displacement_field(side) + Work(multiply_adds=7 * side**2)


def validation(layer_sizes: Sequence[int], foreground: float) -> Work:
    """Products of whole batches: multiply-adds alone."""
    first, *upper = parameters(layer_sizes)
    return Work(multiply_adds=foreground * first + sum(upper))
