"""What each routine costs at least: the one place where floors are defined.

A routine's work for one sample or image is the bytes of weights that it has to move and the
multiply-adds that it has to do. The floor is the longer of the two:

    max( sum of bytes / bandwidth of where they are,  multiply-adds / the peak rate )

because a perfect program does both at once. Weights are where they fit: as much as fits into
the L1 caches costs nothing, the next part comes at the bandwidth of the L2 caches, then L3,
then DRAM. That is the best any order of access reaches, so no program beats it.

The images' background is left out of the first layer's multiply-adds: its products are those of one
number with the sums of the weights.

What is not counted can only raise the cost: states and deltas, the activation, barriers,
random numbers, the gathers of an interpolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mlpcore.backends.base import GRID, IMAGES_PER_GRID, MARGIN, TAPS
from speed.limits import Limits


@dataclass(frozen=True)
class Traffic:
    """Bytes moved per sample, all over the same `resident` bytes."""

    moved: float
    resident: float
    kind: str = "read"  #: or "copy": read and written


@dataclass(frozen=True)
class Work:
    """What a sample or an image takes.

    Works add up; `scale` is for an epoch of many images.
    """

    traffic: tuple[Traffic, ...] = ()
    multiply_adds: float = 0.0
    updates: float = 0.0  #: of weights and biases

    def __add__(self, other: Work) -> Work:
        return Work(
            self.traffic + other.traffic,
            self.multiply_adds + other.multiply_adds,
            self.updates + other.updates,
        )

    def scale(self, factor: float) -> Work:
        """The work of `factor` samples."""
        traffic = tuple(Traffic(factor * t.moved, t.resident, t.kind) for t in self.traffic)
        return Work(traffic, factor * self.multiply_adds, factor * self.updates)

    @property
    def moved(self) -> float:
        """Bytes in all."""
        return sum(t.moved for t in self.traffic)


def memory_seconds(traffic: Traffic, limits: Limits) -> float:
    """Least time to move the bytes, each part from the nearest level that has room for it."""
    if traffic.resident <= 0:
        return 0.0
    seconds, held = 0.0, min(limits.private, traffic.resident)
    for level in limits.levels:
        part = max(0.0, min(level.capacity, traffic.resident) - held)
        held += part
        bandwidth = level.read if traffic.kind == "read" else level.copy
        seconds += traffic.moved * part / traffic.resident / bandwidth
    return seconds


def floor_seconds(work: Work, limits: Limits) -> float:
    """Least time for the work."""
    memory = sum(memory_seconds(t, limits) for t in work.traffic)
    return max(memory, work.multiply_adds / limits.multiply_adds)


def bandwidth_limit(work: Work, limits: Limits) -> float | None:
    """Bytes per second at which the work's bytes could come; None without such bytes."""
    seconds = sum(memory_seconds(t, limits) for t in work.traffic)
    return work.moved / seconds if seconds else None


# ---- the routines: per sample, over all layers of the architecture -----------------------


def parameters(layer_sizes: Sequence[int]) -> list[int]:
    """Weights and biases of each layer."""
    return [n_out * (n_in + 1) for n_in, n_out in pairwise(layer_sizes)]


def forward(layer_sizes: Sequence[int]) -> Work:
    """Every layer's weights are read once."""
    counts = parameters(layer_sizes)
    return Work(tuple(Traffic(4 * n, 4 * n) for n in counts), sum(counts))


def backward(layer_sizes: Sequence[int]) -> Work:
    """Every layer's but the first's, below which there are no deltas, once."""
    return forward(layer_sizes[1:])


def update(layer_sizes: Sequence[int]) -> Work:
    """Every layer's weights are read and written once."""
    counts = parameters(layer_sizes)
    traffic = tuple(Traffic(8 * n, 4 * n, "copy") for n in counts)
    return Work(traffic, sum(counts), sum(counts))


def step(
    layer_sizes: Sequence[int],
    immediate: bool = False,
    foreground: float = 1.0,
    read: Sequence[float] | None = None,
) -> Work:
    """An on-line step: forward, backward, update.

    However updates are put off, the layers above the first are read on the way up, and again
    on the way down, for each sample; the first layer's products and all updates can be made
    for many samples at a time, and their traffic shrinks as the block grows, so it is not
    counted. An update after every sample has to write each weight once for each sample, and
    to read it then, the first layer's for the next sample's forward pass as well; the other
    layers are read once more, on the way up.

    Only the share `foreground` of the inputs is not background; an update after every sample
    has to change the weights of the others as well. `read` are the bytes that each layer above
    the first takes where it is read, if they are not float32.
    """
    counts = parameters(layer_sizes)
    total, upper = sum(counts), sum(counts[1:])
    first = (foreground + (1.0 if immediate else foreground)) * counts[0]
    resident = 4 * upper if read is None else sum(read)
    traffic: tuple[Traffic, ...] = (Traffic(2 * resident, resident),)
    if immediate:
        traffic = (Traffic(4 * upper, 4 * total), Traffic(8 * total, 4 * total, "copy"))
    return Work(traffic, first + 3 * upper, total)


def displacement_field(height: int, width: int) -> Work:
    """Per image, 1/100 of a field: two separable convolutions with 21 taps."""
    rows, columns = GRID * height, GRID * width
    cells = rows * (columns + MARGIN) + rows * columns
    return Work(multiply_adds=2 * TAPS * cells / IMAGES_PER_GRID)


def deformation(height: int, width: int) -> Work:
    """Its displacement field, the affine map (4) and a bilinear lookup (3) per pixel."""
    return displacement_field(height, width) + Work(multiply_adds=7 * height * width)


def validation(layer_sizes: Sequence[int], foreground: float = 1.0) -> Work:
    """Products of whole batches: their multiply-adds alone, of the share that is not background."""
    first, *upper = parameters(layer_sizes)
    return Work(multiply_adds=foreground * first + sum(upper))
