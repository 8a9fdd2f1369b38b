"""Images of any type: what is around them, what float32 keeps of them, and their deformation."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mlpcore.checks import check_real
from mlpcore.data.pixels import BACKGROUNDS
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array

Deform: TypeAlias = Callable[..., Float32Array]
"""Deforms images (n, channels, h, w), float32, as `deform_selected` does, with its keywords
`background` and `out`."""

#: The greatest background.
_GREATEST = float(np.finfo(np.float32).max)

#: Whole numbers of so many bytes are exact in float32, and so are all of at most this distance from
#: 0 or from the background, where they are computed.
_EXACT_BYTES = 2
EXACT_FROM_0, EXACT_FROM_BACKGROUND = 2**24, 2**23

#: The greatest distance of a pixel's value from the background's, in a `unit`.
GREATEST_SPAN = 2.0

#: Up to here float64 holds whole numbers, and their distances.
_EXACT = 2**52


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
    some = images[:: max(1, len(images) // 1000)]
    return float(border_values(some[None])[0])


def has_few_digits(dtype: np.dtype[Any]) -> bool:
    """Whether these are whole numbers, or truth values, that float32 keeps."""
    return dtype.kind != "f" and dtype.itemsize <= _EXACT_BYTES


@functools.cache
def limits_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the greatest of these whole numbers or truth values."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def check_background(background: Any, dtype: np.dtype[Any], name: str = "background") -> None:
    """Raises InputError unless the value can be around images of this type."""
    check_real(name, background)
    if dtype.kind == "f":
        if -_GREATEST <= background <= _GREATEST:
            return
        expected = "a finite number"
    else:
        least, most = limits_of(dtype)
        low, high = max(least, -_EXACT), min(most, _EXACT)
        if low <= background <= high and not background % 1:
            return
        expected = f"a whole number from {low} to {high:,} for images of {dtype}"
    raise InputError(f"{name} {reprlib.repr(background)}: expected {expected}")


def check_whole_numbers(
    name: str, images: AnyArray, around: list[float], origin: float, most: int
) -> None:
    """Raises InputError if float32 rounds whole numbers of images, or around them.

    It holds those of at most a distance from the origin.
    """
    if images.dtype.kind == "f" or has_few_digits(images.dtype):
        return
    values = int(images.min()), int(images.max()), *map(int, around)
    low, high = min(values), max(values)
    if max(high - origin, origin - low) > most:
        raise InputError(
            f"{name} of {images.dtype} holds {low} to {high}: expected whole numbers at most "
            f"{most:,} from {origin:,.0f}, because float32 rounds others"
        )


def deform_values(
    images: AnyArray, out: AnyArray, deform: Deform, around: list[float], unit: float | None = None
) -> None:
    """Deform images (n, channels, h, w) of any type into `out`, an array alike.

    Whole numbers are rounded to the nearest, and do not leave the range of their image and of what
    is around it.

    Parameters
    ----------
    around
        The value around the images, or those around each of their channels.
    unit
        Of values that float32 would round: they are computed in multiples of it from a background
        of -1, and real numbers do not leave their range either. None computes all values as they
        are, in float32.
    """
    few_digits = has_few_digits(images.dtype)
    if unit is None or images.dtype == np.float32 or (few_digits and len(around) > 1):
        background = np.array(around, np.float32) if len(around) > 1 else around[0]
        place = out if out.dtype == np.float32 else None
        values: AnyArray = deform(
            images.astype(np.float32, copy=False), background=background, out=place
        )
    else:
        if images.dtype.kind != "f":  # `unit` may be that of real numbers, of a larger range
            unit = min(unit, EXACT_FROM_BACKGROUND / GREATEST_SPAN)
        columns = np.array(around)[:, None, None]
        inside = np.subtract(images, columns, dtype=np.float32 if few_digits else np.float64)
        inside /= unit
        inside += BACKGROUNDS["signed"]
        shown = deform(inside.astype(np.float32, copy=False), background=BACKGROUNDS["signed"])
        values = np.subtract(shown, BACKGROUNDS["signed"], dtype=np.float64)
        values *= unit
        values += columns
    if few_digits:  # rounding errors are far below 1/2
        np.rint(values, out=out, casting="unsafe")
    elif unit is None and images.dtype.kind == "f":
        if values is not out:
            out[...] = values
    else:
        if images.dtype.kind != "f":
            np.rint(values, out=values)
        # Rounding may have left the range of an image and of what is around it.
        axes = (1, 2, 3)
        low = np.minimum(images.min(axis=axes, keepdims=True), min(around))
        high = np.maximum(images.max(axis=axes, keepdims=True), max(around))
        np.clip(values, low, high, out=out, casting="unsafe")
