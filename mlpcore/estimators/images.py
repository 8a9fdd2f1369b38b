"""Images as users have them: arrays or tensors, their shapes, and any range of values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.checks import tensor_values
from mlpcore.data.dataset import BACKGROUND
from mlpcore.deformation.deform import deform_selected
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.deformation.values import EXACT_DISTANCE, has_few_digits
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, UInt8Array

#: Those of `deform_selected`, from the indices to the backend.
Arguments: TypeAlias = tuple[AnyArray, UInt8Array, DeformationParameters, int, int, Backend]

#: The value around an image, or around each of its channels.
Background: TypeAlias = float | AnyArray

#: What `channels` may be, and the shapes that it stands for.
SHAPES = {
    None: "(n, h, w) or (n, n_features), or channels to be 'first' or 'last'",
    "first": "(n, channels, h, w)",
    "last": "(n, h, w, channels)",
}

#: The greatest distance of a pixel's value from the background's that `_unit` leaves.
GREATEST_SPAN = 2.0


def from_tensor(X: Any) -> tuple[Any, Callable[[AnyArray], Any]]:
    """A tensor's values as an array, which shares its memory on a CPU, and what goes back.

    What goes back makes an array a tensor on the same device, or leaves it as it is where X is no
    tensor.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.Tensor):
        return X, lambda result: result
    device = X.device
    return tensor_values("X", X), lambda result: torch.from_numpy(result).to(device)


def check_sides(found: tuple[int, int] | None, expected: tuple[int, int]) -> None:
    """Raises InputError if X holds images of other sides; None stands for flat ones."""
    if found not in (None, expected):
        sides = [f"{height} x {width}" for height, width in (found or expected, expected)]
        raise InputError(f"X holds images of {sides[0]}, expected {sides[1]}")


def deform_values(
    images: AnyArray, out: AnyArray, arguments: Arguments, background: Background, unit: float
) -> None:
    """Deforms images (n, channels, h, w) of any type into `out`, an array alike.

    Types other than float32 are computed in multiples of `unit` from a background of -1, which
    keeps more digits than their values would.
    """
    few_digits = has_few_digits(images.dtype)
    if images.dtype.kind != "f":  # `fit` may have seen real numbers, of a larger range
        unit = min(unit, EXACT_DISTANCE / GREATEST_SPAN)
    around: Any = background
    least = most = background
    if isinstance(background, np.ndarray):
        least, most = float(background.min()), float(background.max())
        around, background = background[:, None, None], background.astype(np.float32)
    if images.dtype == np.float32:
        values = deform_selected(images, *arguments, background, out)
    elif few_digits and isinstance(background, np.ndarray):
        values = deform_selected(images.astype(np.float32), *arguments, background)
    else:
        inside = np.subtract(images, around, dtype=np.float32 if few_digits else np.float64)
        inside /= unit
        inside += BACKGROUND
        shown = deform_selected(inside.astype(np.float32, copy=False), *arguments)
        values = np.subtract(shown, BACKGROUND, dtype=np.float64)
        values *= unit
        values += around
    if few_digits:  # rounding errors are far below 1/2
        np.rint(values, out=out, casting="unsafe")
        return
    if images.dtype.kind != "f":
        np.rint(values, out=values)
    # Rounding may have left the range of an image and the background.
    axes = (1, 2, 3)
    low = np.minimum(images.min(axis=axes, keepdims=True), least)
    high = np.maximum(images.max(axis=axes, keepdims=True), most)
    np.clip(values, low, high, out=out, casting="unsafe")
