"""The launch table: which kernels each operation runs, on what grid, with what arguments.

Pure functions of sizes and device addresses, so that the PyCUDA driver and the emulation run
the same host logic. Shapes and the order of sums are told in ``cuda/*.cu``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mlpcore.backends.base import GRID, MARGIN, TAPS

# As in cuda/layout.cuh and cuda/displacement.cu; a test compares them.
PITCH = 32
FORWARD_THREADS = 256
FORWARD_ROWS = 32
SUM_THREADS = 32
TILE = 32
UPDATE_THREADS = 256
UPDATE_ROWS = 16
COPY_THREADS = 256
PRODUCT_TILE = 64
PRODUCT_SIDE = 16
RANK_THREADS = 256
NOISE_THREADS = 256
LISTING_ROWS = 10
COLUMNS_X, COLUMNS_Y, COLUMNS_ROWS = 32, 8, 32
ROWS_X, ROWS_Y = 64, 4

#: Every kernel's parameters in the letters of `struct`: P pointer, i int, I unsigned, f float,
#: d double.
KERNELS: dict[str, str] = {
    "forward_partial_kernel": "PiPiiP",
    "forward_sum_kernel": "PiiiP",
    "backward_partial_kernel": "PiPiiP",
    "backward_sum_kernel": "PiiPiP",
    "update_kernel": "PiPiPiP",
    "gather_kernel": "PPPiP",
    "output_deltas_kernel": "PiPPPP",
    "predict_layer_kernel": "PiiPiiP",
    "count_errors_kernel": "PiiPP",
    "order_keys_kernel": "IIIiP",
    "rank_kernel": "PiP",
    "check_order_kernel": "PiiP",
    "noise_kernel": "IIIIiiP",
    "displacement_field_kernel": "PiiPfP",
    "convolve_columns_kernel": "PiiPP",
    "convolve_rows_kernel": "PiiPfP",
    "affine_maps_kernel": "PiIPdIIIP",
    "deform_by_kernel": "PiiPPP",
    "deform_kernel": "PIiiPPP",
}

#: training_state of cuda/training_state.cuh.
STATE = np.dtype([("loss", "f8"), ("step", "i4"), ("errors", "i4"), ("target", "f4")], align=True)


class Launch(NamedTuple):
    """One kernel launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[float, ...]  #: numbers and addresses


def blocks(n: int, size: int) -> int:
    """How many blocks of `size` cover `n`."""
    return (n + size - 1) // size


def padded(n: int) -> int:
    """`n` rounded up to the pitch of rows and columns."""
    return blocks(n, PITCH) * PITCH


@dataclass(frozen=True)
class Layer:
    """A layer on the device: W[connection][neuron], connection 0 the bias."""

    n_in: int
    n_out: int
    weights: int  #: address

    @property
    def rows(self) -> int:
        """Connections, padded."""
        return padded(self.n_in + 1)

    @property
    def stride(self) -> int:
        """Floats from one connection to the next."""
        return padded(self.n_out)

    @property
    def n_strips(self) -> int:
        """Strips of connections that `forward` sums apart."""
        return blocks(self.n_in + 1, FORWARD_ROWS)

    @property
    def n_patches(self) -> int:
        """Patches of neurons that `backward` sums apart."""
        return self.stride // TILE

    @property
    def n_partials(self) -> int:
        """Floats of partial sums that `forward` and `backward` need."""
        return max(self.n_strips * self.stride, self.n_patches * self.rows)


# ---- one layer, one sample -----------------------------------------------------------------


def forward(layer: Layer, inputs: int, partials: int, outputs: int) -> list[Launch]:
    """Outputs (n_out) of inputs (n_in)."""
    return [
        Launch(
            "forward_partial_kernel",
            (blocks(layer.n_out, FORWARD_THREADS), layer.n_strips, 1),
            (FORWARD_THREADS, 1, 1),
            (inputs, layer.n_in, layer.weights, layer.n_out, layer.stride, partials),
        ),
        Launch(
            "forward_sum_kernel",
            (blocks(layer.n_out, SUM_THREADS), 1, 1),
            (SUM_THREADS, 1, 1),
            (partials, layer.n_strips, layer.n_out, layer.stride, outputs),
        ),
    ]


def backward(layer: Layer, deltas: int, states: int, partials: int, below: int) -> list[Launch]:
    """Deltas (n_in) of the layer below from deltas (n_out) and states (n_in)."""
    return [
        Launch(
            "backward_partial_kernel",
            (layer.n_patches, blocks(layer.n_in + 1, TILE), 1),
            (TILE, 1, 1),
            (deltas, layer.n_out, layer.weights, layer.stride, layer.rows, partials),
        ),
        Launch(
            "backward_sum_kernel",
            (blocks(layer.n_in, SUM_THREADS), 1, 1),
            (SUM_THREADS, 1, 1),
            (partials, layer.n_patches, layer.rows, states, layer.n_in, below),
        ),
    ]


def update(layer: Layer, inputs: int, deltas: int, rate: int) -> list[Launch]:
    """W -= eta x delta^T with the learning rate in device memory."""
    grid = blocks(layer.n_out, UPDATE_THREADS), blocks(layer.n_in + 1, UPDATE_ROWS), 1
    arguments = inputs, layer.n_in, deltas, layer.n_out, layer.weights, layer.stride, rate
    return [Launch("update_kernel", grid, (UPDATE_THREADS, 1, 1), arguments)]


# ---- a training step -----------------------------------------------------------------------


def gather(images: int, order: int, state: int, n_in: int, inputs: int) -> list[Launch]:
    """The inputs (n_in) of the state's step."""
    grid = blocks(n_in, COPY_THREADS), 1, 1
    arguments = images, order, state, n_in, inputs
    return [Launch("gather_kernel", grid, (COPY_THREADS, 1, 1), arguments)]


def output_deltas(
    outputs: int, n_out: int, labels: int, order: int, state: int, deltas: int
) -> list[Launch]:
    """Deltas (n_out) of the output layer; the state's loss and errors; on to the next step."""
    arguments = outputs, n_out, labels, order, state, deltas
    return [Launch("output_deltas_kernel", (1, 1, 1), (SUM_THREADS, 1, 1), arguments)]


# ---- many samples --------------------------------------------------------------------------


def predict_layer(layer: Layer, inputs: int, n: int, outputs: int) -> list[Launch]:
    """Outputs (n, n_out) of inputs (n, n_in)."""
    grid = blocks(layer.n_out, PRODUCT_TILE), blocks(n, PRODUCT_TILE), 1
    arguments = inputs, n, layer.n_in, layer.weights, layer.n_out, layer.stride, outputs
    return [Launch("predict_layer_kernel", grid, (PRODUCT_SIDE, PRODUCT_SIDE, 1), arguments)]


def count_errors(outputs: int, n: int, n_out: int, labels: int, errors: int) -> list[Launch]:
    """Adds to an int32 how many of n samples are misclassified."""
    grid = blocks(n, COPY_THREADS), 1, 1
    arguments = outputs, n, n_out, labels, errors
    return [Launch("count_errors_kernel", grid, (COPY_THREADS, 1, 1), arguments)]


# ---- the order of an epoch -----------------------------------------------------------------


def permutation(key: tuple[int, int], epoch: int, n: int, keys: int, order: int) -> list[Launch]:
    """The order (n) int32 of an epoch; `keys` is room for n sort keys of 8 bytes."""
    arguments = *key, epoch, n, keys
    return [
        Launch(
            "order_keys_kernel", (blocks(n, COPY_THREADS), 1, 1), (COPY_THREADS, 1, 1), arguments
        ),
        Launch(
            "rank_kernel", (blocks(n, RANK_THREADS), 1, 1), (RANK_THREADS, 1, 1), (keys, n, order)
        ),
    ]


def check_order(order: int, n: int, n_images: int, outside: int) -> list[Launch]:
    """Adds to an int32 how many of n numbers of an order are no image's."""
    grid = blocks(n, COPY_THREADS), 1, 1
    arguments = order, n, n_images, outside
    return [Launch("check_order_kernel", grid, (COPY_THREADS, 1, 1), arguments)]


# ---- deformation ---------------------------------------------------------------------------


def noise(
    key: tuple[int, int],
    epoch: int,
    first_grid: int,
    n_grids: int,
    shape: tuple[int, int],
    out: int,
) -> list[Launch]:
    """Noise (n_grids, 2, rows, columns) of grids `first_grid` and on."""
    rows, columns = shape
    grid = blocks(columns, NOISE_THREADS), blocks(rows, 4), 2 * n_grids
    arguments = *key, epoch, first_grid, rows, columns, out
    return [Launch("noise_kernel", grid, (NOISE_THREADS, 1, 1), arguments)]


def displacement_field(
    fields: int, shape: tuple[int, int], noise: int, taps: int, alpha: float, middle: int, out: int
) -> list[Launch]:
    """Fields (fields, rows - 20, columns - 20) of noise (fields, rows, columns), separably.

    `middle` is (fields, rows - 20, columns); `out` may be `noise`, which is no longer needed
    when it is written.
    """
    rows, columns = shape
    out_rows, out_columns = rows - MARGIN, columns - MARGIN
    return [
        Launch(
            "convolve_columns_kernel",
            (blocks(columns, COLUMNS_X), blocks(out_rows, COLUMNS_ROWS), fields),
            (COLUMNS_X, COLUMNS_Y, 1),
            (noise, rows, columns, taps, middle),
        ),
        Launch(
            "convolve_rows_kernel",
            (blocks(out_columns, ROWS_X), blocks(out_rows, ROWS_Y), fields),
            (ROWS_X, ROWS_Y, 1),
            (middle, out_rows, columns, taps, alpha, out),
        ),
    ]


def displacement_field_listing(
    fields: int, shape: tuple[int, int], noise: int, taps: int, alpha: float, out: int
) -> list[Launch]:
    """The same by the paper's kernel, all 441 products a cell; `out` is not `noise`."""
    rows, columns = shape
    grid = columns - MARGIN, blocks(rows - MARGIN, LISTING_ROWS), fields
    arguments = noise, rows, columns, taps, alpha, out
    return [Launch("displacement_field_kernel", grid, (TAPS, LISTING_ROWS, 1), arguments)]


def affine_maps(
    labels: int,
    n: int,
    first: int,
    angles: int,
    scale: float,
    key: tuple[int, int],
    epoch: int,
    maps: int,
) -> list[Launch]:
    """Random matrices (n, 2, 2) for images number `first` and on of these labels."""
    grid = blocks(n, COPY_THREADS), 1, 1
    arguments = labels, n, first, angles, scale, *key, epoch, maps
    return [Launch("affine_maps_kernel", grid, (COPY_THREADS, 1, 1), arguments)]


def deform_by(
    images: int, shape: tuple[int, int, int], affine: int, displacement: int, out: int
) -> list[Launch]:
    """Images (n, h, w) by displacements (n, 2, h, w)."""
    n, height, width = shape
    grid = n, blocks(height * width, COPY_THREADS), 1
    arguments = images, height, width, affine, displacement, out
    return [Launch("deform_by_kernel", grid, (COPY_THREADS, 1, 1), arguments)]


def deform(
    images: int, first: int, shape: tuple[int, int, int], affine: int, field: int, out: int
) -> list[Launch]:
    """Images (n, h, w), number `first` and on, by the fields from grid first // 100 on."""
    n, height, width = shape
    grid = n, blocks(height * width, COPY_THREADS), 1
    arguments = images, first, height, width, affine, field, out
    return [Launch("deform_kernel", grid, (COPY_THREADS, 1, 1), arguments)]


def noise_shape(height: int, width: int) -> tuple[int, int]:
    """Cells of a grid's noise: 10 images and 20 cells of margin a side."""
    return GRID * height + MARGIN, GRID * width + MARGIN
