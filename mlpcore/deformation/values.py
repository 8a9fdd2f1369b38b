"""Values of pixels of any type: what is around an image, and what float32 keeps."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from mlpcore.checks import check_real
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray

#: The greatest background.
_GREATEST = float(np.finfo(np.float32).max)

#: Whole numbers of so many bytes are exact in float32, and so are all of at most this distance from
#: the background, where they are computed.
_EXACT_BYTES = 2
EXACT_DISTANCE = 2**23

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


def check_background(background: Any, dtype: np.dtype[Any], name: str = "background") -> None:
    """Raises InputError unless the value can be around images of this type."""
    check_real(name, background)
    if dtype.kind == "f":
        low, high = -_GREATEST, _GREATEST
    elif dtype.kind == "b":
        low, high = 0, 1
    else:
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -_EXACT), min(limits.max, _EXACT)
    if low <= background <= high and (dtype.kind == "f" or not background % 1):
        return
    whole = f"a whole number from {low} to {high:,} for images of {dtype}"
    expected = "a finite number" if dtype.kind == "f" else whole
    raise InputError(f"{name} {reprlib.repr(background)}: expected {expected}")


def check_whole_numbers(name: str, images: AnyArray, background: float) -> None:
    """Raises InputError if images hold whole numbers that float32 rounds, around a background."""
    if images.dtype.kind == "f" or has_few_digits(images.dtype):
        return
    low, high = int(images.min()), int(images.max())
    if max(high - background, background - low) > EXACT_DISTANCE:
        raise InputError(
            f"{name} holds {low} to {high}: expected whole numbers at most {EXACT_DISTANCE:,} from "
            f"the background, {background:g}, because float32 rounds others"
        )
