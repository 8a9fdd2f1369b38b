"""Limits and checks of what a backend is given. They raise an InputError of one line."""

from __future__ import annotations

import numpy as np

from mlpcore.checks import check_real, check_whole
from mlpcore.errors import InputError
from mlpcore.typing import (
    AnyArray,
    ArrayLike,
    BackendArray,
    DTypeLike,
    Float32Array,
    LoadedNetwork,
    UInt8Array,
)

GRID = 10
"""A displacement field serves a grid of 10 x 10 images (paper, Appendix)."""

IMAGES_PER_GRID = GRID * GRID

TAPS = 21
"""Cells that the Gaussian kernel spans (paper, Appendix)."""

MARGIN = TAPS - 1

#: The random numbers count epochs in 32 bits, and a training set has so many images at most.
MAX_EPOCH, MAX_IMAGES = 2**32 - 1, 2**31

MAX_LENGTH = 2**31 - 2**10
"""Length of an array along an axis: kernels count in 32 bits, and round up."""

MAX_ALPHA = 1e6
"""The backends cannot compute displacements of millions of pixels."""

MAX_SIDE = 2048
"""The largest side of an image that can be deformed, in pixels."""


def check_shape(
    name: str, array: BackendArray, shape: tuple[int | None, ...], dtype: DTypeLike
) -> None:
    """Raises InputError unless an array, wherever it is, has this shape and type.

    None in `shape` stands for any length.
    """
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape)
    )
    if not fits or array.dtype != dtype:
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        raise InputError(
            f"{name}: {array.dtype} of shape {array.shape}, "
            f"expected {np.dtype(dtype)} of shape ({expected})"
        )


def check_array(
    name: str, array: ArrayLike, shape: tuple[int | None, ...], dtype: DTypeLike = np.float32
) -> AnyArray:
    """The array, C-contiguous and aligned; None in `shape` stands for any length.

    Raises
    ------
    InputError
        When the shape or the type is another, or a length is beyond `MAX_LENGTH`.
    """
    array = np.asarray(array)
    check_shape(name, array, shape, dtype)
    if max(array.shape, default=0) > MAX_LENGTH:
        raise InputError(f"{name}: shape {array.shape}, expected at most {MAX_LENGTH:,} each way")
    return np.ascontiguousarray(array) if array.flags.aligned else array.copy()


def check_finite(
    name: str, array: ArrayLike, shape: tuple[int | None, ...], dtype: DTypeLike = np.float32
) -> AnyArray:
    """`check_array`, which also refuses NaN and infinities."""
    array = check_array(name, array, shape, dtype)
    if not np.isfinite(array).all():
        raise InputError(f"{name}: expected finite numbers")
    return array


def check_out(out: AnyArray, shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> None:
    """Raises InputError unless `out` can take a result of this shape and type."""
    check_array("out", out, shape, dtype)
    if not (isinstance(out, np.ndarray) and out.flags.carray):
        raise InputError("out: expected a C-contiguous array that is aligned and can be written to")


def apart(array: AnyArray, out: AnyArray) -> AnyArray:
    """The array, aligned; a copy where writing to `out` may change it."""
    if array.flags.aligned and not np.may_share_memory(array, out):
        return array
    return array.copy()


def check_range(name: str, values: AnyArray, end: int) -> None:
    """Raises InputError unless all whole numbers are from 0 to below `end`."""
    if len(values) and not 0 <= values.min() <= values.max() < end:
        expected = f"0 to {end - 1}" if end else "none"
        raise InputError(f"{name}: from {values.min()} to {values.max()}, expected {expected}")


def check_place(epoch: int, first: int, n: int) -> None:
    """Raises InputError unless random numbers exist for images first ... first + n - 1."""
    check_whole("epoch", epoch, 0, MAX_EPOCH)
    check_whole("first", first, 0, MAX_IMAGES - n)


def check_noise(epoch: int, grid: int, height: int, width: int) -> None:
    """Raises InputError unless a grid of images of this size can have noise."""
    check_whole("epoch", epoch, 0, MAX_EPOCH)
    check_whole("grid", grid, 0, MAX_IMAGES // IMAGES_PER_GRID)
    check_sides(height, width)


def check_indices(indices: ArrayLike, n: int | None = None) -> AnyArray:
    """A copy, which no other thread can change, of (n,) numbers of images of a training set."""
    indices = np.array(indices)
    check_shape("indices", indices, (n,), indices.dtype)
    if len(indices) == 0:  # whose type says nothing
        return indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise InputError(f"indices: {indices.dtype}, expected whole numbers")
    check_range("indices", indices, MAX_IMAGES)
    return indices


def check_taps(taps: ArrayLike) -> Float32Array:
    """The weights of a one-dimensional Gaussian, (21,) float32."""
    taps = check_array("taps", taps, (TAPS,))
    if not (abs(taps) <= 1).all():
        raise InputError("taps: expected numbers from -1 to 1")
    return taps


def check_scale(scale: float) -> None:
    """Raises InputError unless images scaled by 1 - scale to 1 + scale keep some extent."""
    check_real("scale", scale)
    if not 0 <= scale < 1:
        raise InputError(f"scale {scale:g}: expected 0 or more, and less than 1")


def check_alpha(alpha: float) -> None:
    """Raises InputError unless displacements of this scale can be computed in float32."""
    check_real("alpha", alpha)
    if not abs(alpha) <= MAX_ALPHA:
        raise InputError(f"alpha {alpha:g}: expected a number from -{MAX_ALPHA:g} to {MAX_ALPHA:g}")


def check_sides(height: int, width: int) -> None:
    """Raises InputError unless images of this size can be deformed."""
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE):
        raise InputError(f"images of {height} x {width}: expected sides of 1 to {MAX_SIDE} pixels")


def count_errors(outputs: AnyArray, labels: UInt8Array) -> int:
    """How many rows of (n, n_classes) have their first greatest output off the label."""
    return int(np.count_nonzero(outputs.argmax(axis=1) != labels))


def layer_shape(network: LoadedNetwork, layer: int) -> tuple[int, int]:
    """Inputs and neurons of a layer.

    Raises
    ------
    InputError
        When there is no such layer.
    """
    check_whole("layer", layer, 0, network.n_layers - 1)
    return network.layer_sizes[layer], network.layer_sizes[layer + 1]
