"""Images of any type: what is around them, what float32 keeps of them, and their deformation."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mlpcore.checks import check_real
from mlpcore.errors import InputError, brief
from mlpcore.typing import AnyArray, Float32Array

Deform: TypeAlias = Callable[..., Float32Array]
"""Deforms images (n, channels, h, w), float32, as `deform_selected` does, with its keywords
`background` and `out`."""

#: Float32 and float64 hold all whole numbers up to here.
EXACT, EXACT_OF_MASKS = 2**24, 2**53


def border_values(images: AnyArray) -> AnyArray:
    """Return the median of the pixels at the borders of images, (m,) for (m, n, h, w).

    Each is the value of a pixel.
    """
    sides = images[..., 0, :], images[..., -1, :], images[..., 0], images[..., -1]
    border = np.concatenate(sides, axis=2).reshape(len(images), -1)
    middle = border.shape[1] // 2
    border.partition(middle, axis=1)
    return border[:, middle]


def background_of(images: AnyArray) -> float:
    """Return what is around the images (n, h, w) of a training set: the median of their borders.

    A thousand of them tell.
    """
    sample = np.asarray(images[:: max(1, len(images) // 1000)])
    return float(border_values(sample[None])[0])


@functools.cache
def limits_of(dtype: np.dtype[Any], exact: int = EXACT) -> tuple[float, float]:
    """Return the least and the greatest value of images of this type that float32 holds.

    `exact` is another greatest whole number.
    """
    if dtype.kind == "f":
        greatest = float(min(np.finfo(dtype).max, np.finfo(np.float32).max))
        return -greatest, greatest
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return max(int(limits.min), -exact), min(int(limits.max), exact)


def check_background(
    background: Any, dtype: np.dtype[Any], name: str = "background", exact: int = EXACT
) -> None:
    """Raises InputError unless the value can be around images of this type."""
    check_real(name, background)
    low, high = limits_of(dtype, exact)
    if not low <= background <= high or (dtype.kind != "f" and background % 1):
        expected = f"a whole number from {low} to {high:,} for images of {dtype}"
        if dtype.kind == "f":
            expected = "a finite number"
        raise InputError(f"{name} {brief(background)}: expected {expected}")


def check_values(name: str, images: AnyArray) -> None:
    """Raises InputError if float32 cannot hold real numbers, or rounds whole ones."""
    if images.dtype.itemsize <= 2 or images.dtype == np.float32 or not images.size:
        return
    (low, high), least, most = limits_of(images.dtype), images.min(), images.max()
    if least < low or most > high:
        whole = f"whole numbers from {low:,} to {high:,}, because float32 rounds others"
        expected = "numbers that float32 holds" if images.dtype.kind == "f" else whole
        raise InputError(f"{name} of {images.dtype} holds {least} to {most}: expected {expected}")


def deform_values(images: AnyArray, out: AnyArray, deform: Deform, around: Sequence[float]) -> None:
    """Deform images (n, channels, h, w) of any real type into `out`, an array alike, in float32.

    Whole numbers are rounded to the nearest, and no value leaves the range of its image and of what
    is around it: `around` has the value around the images, or those around each channel.
    """
    background = np.full(images.shape[1], around, np.float32)
    place = out if out.dtype == np.float32 else None
    values = deform(images.astype(np.float32, copy=False), background=background, out=place)
    if images.dtype.kind != "f":
        np.rint(values, out=values)
    if images.dtype.itemsize > 2:  # of others, rounding errors are far below the last digit
        axes = (1, 2, 3)
        low = np.minimum(images.min(axis=axes, keepdims=True), min(around))
        high = np.maximum(images.max(axis=axes, keepdims=True), max(around))
        np.clip(values, low, high, out=out, casting="unsafe")
    else:
        out[...] = values
