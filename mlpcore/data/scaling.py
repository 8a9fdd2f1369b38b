"""Pixel values and sizes: from the bytes of a file to the float32 images of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np

from mlpcore.checks import check_choice, check_whole
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, ArrayLike, Float32Array

InputRange: TypeAlias = Literal["signed", "unit"]
"""Of a network's inputs: [-1, 1], the paper's, or [0, 1]."""

INPUT_RANGES = get_args(InputRange)

#: The values of bytes, which become the two ends of a range.
BYTES = 0.0, 255.0

BACKGROUNDS = {"signed": -1.0, "unit": 0.0}
"""What a pixel of value 0 becomes in each range. White becomes 1."""

#: Longest side of an image. With larger ones the first layer of the paper's smallest network would
#: have more than 10^9 weights.
MAX_SIDE = 1024

_BATCH_PIXELS = 2**20  # about so many pixels are converted at a time


def normalise(pixels: ArrayLike) -> Float32Array:
    """Scale pixel values from 0 ... 255 to [-1, 1]: ``pixel / 127.5 - 1`` (paper, "Data").

    Parameters
    ----------
    pixels : array_like of real numbers from 0 to 255, any shape

    Returns
    -------
    numpy.ndarray of float32, same shape

    Raises
    ------
    InputError
        When the values are not real numbers in that range.
    """
    pixels = _real_array(pixels, "pixels")
    if pixels.dtype != np.uint8 and not np.all((pixels >= 0) & (pixels <= 255)):
        raise InputError("pixels lie outside 0 ... 255, the expected range of values")
    result = pixels.astype(np.float32)
    result /= np.float32(127.5)
    result -= np.float32(1)
    return result


def scale(values: AnyArray, low: float, high: float) -> Float32Array:
    """Scale values linearly, so that `low` becomes -1 and `high` becomes 1.

    Values beyond them end beyond -1 and 1. Those that are in [-1, 1] already keep their bits.

    Parameters
    ----------
    values : numpy.ndarray of real numbers, any shape

    Returns
    -------
    numpy.ndarray of float32, same shape
    """
    if (low, high) == (-1, 1):
        return values.astype(np.float32)
    if values.dtype == np.uint8 and (low, high) == (0, 255):
        return normalise(values)
    # In float64 up to here, which gives the bits of `normalise` for the same values.
    result = ((values - np.float64(low)) / ((high - low) / 2)).astype(np.float32)
    result -= np.float32(1)
    return result


def to_range(images: Float32Array, input_range: str) -> Float32Array:
    """Return images in [-1, 1] as a network's inputs, in one of `INPUT_RANGES`.

    Those in [0, 1] are (x + 1) / 2. A background of -1 becomes exactly 0.

    Parameters
    ----------
    images : numpy.ndarray of float32, any shape

    Returns
    -------
    numpy.ndarray of float32, same shape
        The images themselves if the range is "signed".

    Raises
    ------
    InputError
        When there is no such range.
    """
    check_choice("input range", input_range, INPUT_RANGES)
    if input_range == "signed":
        return images
    result = images + np.float32(1)
    result /= np.float32(2)
    return result


def resize(images: ArrayLike, height: int, width: int) -> Float32Array:
    """Resize images by bilinear interpolation with aligned corners.

    Pixel t of a side of n_out pixels shows the source at ``t * (n_in - 1) / (n_out - 1)``.
    Corners stay corners, and the centre stays the centre. Corners and flat areas keep their exact
    values. No value leaves the range of its neighbours.

    Parameters
    ----------
    images : array_like, shape (n, h, w)
    height, width : int
        The new sides in pixels, from 2 to `MAX_SIDE` + 1.

    Returns
    -------
    numpy.ndarray of float32, shape (n, height, width)
        A copy when the size stays.

    Raises
    ------
    InputError
        When the images are no such array, or a side is out of range.
    """
    images = _real_array(images, "images")
    if images.ndim != 3 or 0 in images.shape[1:]:
        raise InputError(f"images have shape {images.shape}, expected (n, height, width)")
    for side in (height, width):
        check_whole("side", side, 2, MAX_SIDE + 1)
    result = np.empty((len(images), height, width), np.float32)
    for batch in batches(len(images), max(height, images.shape[1]) * max(width, images.shape[2])):
        rows = _interpolate(images[batch].astype(np.float32, copy=False), 1, height)
        result[batch] = _interpolate(rows, 2, width)
    return result


def batches(n_images: int, pixels_per_image: int) -> Iterator[slice]:
    """Yield slices of `n_images`, each small enough for temporary copies."""
    step = max(1, _BATCH_PIXELS // pixels_per_image)
    for start in range(0, n_images, step):
        yield slice(start, start + step)


def _interpolate(images: Float32Array, axis: int, n_out: int) -> Float32Array:
    """Resize one axis of float32 images linearly; return `images` itself if the size stays."""
    n_in = images.shape[axis]
    if n_in == n_out:
        return images
    # Integers are exact, so that the last position is the last pixel and not beside it.
    low, rest = np.divmod(np.arange(n_out) * (n_in - 1), n_out - 1)
    fraction = (rest / (n_out - 1)).astype(np.float32)
    start = images.take(low, axis)
    result = images.take(np.minimum(low + 1, n_in - 1), axis)
    # Unlike a weighted sum, start + fraction * (end - start) keeps flat areas exactly.
    result -= start
    result *= fraction[:, None] if axis == 1 else fraction
    result += start
    return result


def _real_array(values: ArrayLike, name: str) -> AnyArray:
    """Return an array of real numbers, or raise InputError."""
    try:
        array = np.asarray(values)
    except ValueError:  # nested lists of different lengths
        raise InputError(f"{name} are no array, expected real numbers") from None
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} have type {array.dtype}, expected real numbers")
    return array
