"""Limits and checks of what a backend is given. They raise an InputError of one line."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from mlpcore.checks import check_rate, check_real, check_whole
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, ArrayLike, BackendArray, DTypeLike, Float64Array, LoadedNetwork

GRID = 10
"""A displacement field serves a grid of 10 x 10 images (paper, Appendix)."""

IMAGES_PER_GRID = GRID * GRID

TAPS = 21
"""Pixels that the Gaussian kernel spans each way (paper, Appendix); larger ones span more."""

#: The random numbers count epochs in 32 bits, and a training set has so many images at most.
MAX_EPOCH, MAX_IMAGES = 2**32 - 1, 2**31

MAX_LENGTH = 2**31 - 2**10
"""Length of an array along an axis: kernels count in 32 bits, and round up."""

MAX_ALPHA = 1e6
"""The backends cannot compute displacements of millions of pixels."""

MAX_SIDE = 2048
"""The largest side of an image that can be deformed, in pixels."""

MAX_SIGMA = 512
"""The greatest standard deviation of the Gaussian, in pixels."""

MAX_TAPS = 64
"""The most cells that the Gaussian kernel spans each way."""

Shape: TypeAlias = tuple[int | None, ...]
"""Lengths of an array along its axes; None stands for any."""

LearningRate: TypeAlias = float | Sequence[float]
"""One for all layers, or one for each layer, from the first."""


def noise_shape(height: int, width: int, taps_shape: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of noise for a grid of images, with room for the Gaussian around it."""
    cell, n_taps = taps_shape
    rows, columns = (-(-GRID * side // cell) + n_taps - 1 for side in (height, width))
    return rows, columns


def check_shape(name: str, array: BackendArray, shape: Shape, dtype: DTypeLike) -> None:
    """Raises InputError unless an array, wherever it is, has this shape and type.

    None in `shape` stands for any length.
    """
    fits = array.shape == shape or (
        len(array.shape) == len(shape)
        and all(wanted in (None, length) for wanted, length in zip(shape, array.shape))
    )
    if not fits or array.dtype != dtype:
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        raise InputError(
            f"{name}: {array.dtype} of shape {array.shape}, "
            f"expected {np.dtype(dtype)} of shape ({expected})"
        )


def check_array(
    name: str, array: ArrayLike, shape: Shape, dtype: DTypeLike = np.float32
) -> AnyArray:
    """The array, C-contiguous and aligned; None in `shape` stands for any length.

    An InputError when the shape or the type is another, or a length is beyond `MAX_LENGTH`.
    """
    array = np.asarray(array)
    check_shape(name, array, shape, dtype)
    if max(array.shape, default=0) > MAX_LENGTH:
        raise InputError(f"{name}: shape {array.shape}, expected at most {MAX_LENGTH:,} each way")
    return np.ascontiguousarray(array) if array.flags.aligned else array.copy()


def check_finite(name: str, array: AnyArray) -> None:
    """Raises InputError if there is a NaN or an infinity."""
    if not np.isfinite(array).all():
        raise InputError(f"{name}: expected finite numbers")


def check_range(name: str, values: AnyArray, end: int) -> None:
    """Raises InputError unless all whole numbers are from 0 to below `end`."""
    if len(values) and not 0 <= values.min() <= values.max() < end:
        expected = f"0 to {end - 1}" if end else "none"
        raise InputError(f"{name}: from {values.min()} to {values.max()}, expected {expected}")


def check_place(epoch: int, first: int, n: int) -> None:
    """Raises InputError unless random numbers exist for images first ... first + n - 1."""
    check_whole("epoch", epoch, 0, MAX_EPOCH)
    check_whole("first", first, 0, MAX_IMAGES - n)


def check_indices(indices: ArrayLike, n: int | None = None) -> AnyArray:
    """A copy, which no other thread can change, of (n,) numbers of images of a training set."""
    indices = np.array(np.asarray(indices))  # a tensor knows no "copy"
    check_shape("indices", indices, (n,), indices.dtype)
    if len(indices) and indices.dtype.kind not in "iu":  # the type of none says nothing
        raise InputError(f"indices: {indices.dtype}, expected whole numbers")
    check_range("indices", indices, MAX_IMAGES)
    return indices.astype(np.int64)  # small integers would overflow


def check_sides(height: int, width: int) -> None:
    """Raises InputError unless images of this size can be deformed."""
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE):
        raise InputError(f"images of {height} x {width}: expected sides of 1 to {MAX_SIDE} pixels")


def layer_rates(network: LoadedNetwork, learning_rate: LearningRate) -> Float64Array:
    """(n_layers,) float64: the learning rate of each layer.

    An InputError when their number is not that of the layers, or one is not a learning rate.
    """
    if np.ndim(learning_rate) == 0:
        check_rate("learning_rate", learning_rate)
        return np.full(network.n_layers, learning_rate, np.float64)
    learning_rate = list(learning_rate)  # type: ignore[arg-type]
    if len(learning_rate) != network.n_layers:
        n = len(learning_rate)
        raise InputError(f"learning rates of {n} layers, expected one or {network.n_layers}")
    for rate in learning_rate:
        check_rate("learning_rate", rate)
    return np.array(learning_rate, np.float64)


def check_decay(weight_decay: float) -> None:
    """Raises InputError unless weights can decay so fast."""
    check_real("weight_decay", weight_decay)
    if not 0 <= weight_decay < math.inf:
        raise InputError(f"weight_decay {weight_decay:g}: expected 0 or more, and finite")


def check_weights(weights: AnyArray) -> None:
    """Raises InputError unless all weights of samples are finite and 0 or more."""
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(bad):
        found = f"sample_weight {weights[bad[0]]:g} of sample {bad[0]}"
        raise InputError(f"{found}: expected 0 or more, and finite")
