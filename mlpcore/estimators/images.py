"""Images as users have them: arrays or tensors, their shapes, and any range of values."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.checks import check_real
from mlpcore.data.dataset import BACKGROUND
from mlpcore.deformation.deform import deform_selected
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, UInt8Array

#: Those of `deform_selected`, from the indices to the backend.
Arguments: TypeAlias = tuple[AnyArray, UInt8Array, DeformationParameters, int, int, Backend]

#: What `channels` may be, and the shapes that it stands for.
SHAPES = {
    None: "(n, h, w) or (n, n_features), or channels to be 'first' or 'last'",
    "first": "(n, channels, h, w)",
    "last": "(n, h, w, channels)",
}

#: The greatest distance of a pixel's value from the background's that `_unit` leaves.
GREATEST_SPAN = 2.0

#: The greatest background, and whole numbers with so many bytes are exact in float32.
_GREATEST = float(np.finfo(np.float32).max)
_EXACT_BYTES = 2


def from_tensor(X: Any) -> tuple[Any, Callable[[AnyArray], Any]]:
    """A tensor's values as an array, which shares its memory on a CPU, and what goes back.

    What goes back makes an array a tensor on the same device, or leaves it as it is where X is no
    tensor.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.Tensor):
        return X, lambda result: result
    device = X.device
    try:
        return X.detach().cpu().numpy(), lambda result: torch.from_numpy(result).to(device)
    except TypeError:
        raise InputError(f"X has type {X.dtype}, expected one that NumPy has") from None


def check_background(background: Any, dtype: np.dtype[Any]) -> None:
    """Raises InputError unless the value can be around images of this type."""
    check_real("background", background)
    if dtype.kind == "f":
        low, high = -_GREATEST, _GREATEST
    elif dtype.kind == "b":
        low, high = 0, 1
    else:
        limits = np.iinfo(dtype)
        low, high = limits.min, limits.max
    if low <= background <= high and (dtype.kind == "f" or not background % 1):
        return
    whole = f"a whole number from {low} to {high:,} for images of {dtype}"
    expected = "a finite number" if dtype.kind == "f" else whole
    raise InputError(f"background {reprlib.repr(background)}: expected {expected}")


def check_sides(found: tuple[int, int] | None, expected: tuple[int, int]) -> None:
    """Raises InputError if X holds images of other sides; None stands for flat ones."""
    if found not in (None, expected):
        sides = [f"{height} x {width}" for height, width in (found or expected, expected)]
        raise InputError(f"X holds images of {sides[0]}, expected {sides[1]}")


def deform_values(
    images: AnyArray, out: AnyArray, arguments: Arguments, background: float, unit: float
) -> None:
    """Deforms images (n, channels, h, w) of any type into `out`, an array alike.

    Types other than float32 are computed in multiples of `unit` from a background of -1, which
    keeps more digits than their values would.
    """
    few_digits = images.dtype.kind != "f" and images.dtype.itemsize <= _EXACT_BYTES
    if images.dtype == np.float32:
        values = deform_selected(images, *arguments, background, out)
    else:
        inside = np.subtract(images, background, dtype=np.float32 if few_digits else np.float64)
        inside /= unit
        inside += BACKGROUND
        shown = deform_selected(inside.astype(np.float32, copy=False), *arguments)
        values = np.subtract(shown, BACKGROUND, dtype=np.float64)
        values *= unit
        values += background
    if few_digits:  # rounding errors are far below 1/2
        np.rint(values, out=out, casting="unsafe")
        return
    if images.dtype.kind != "f":
        np.rint(values, out=values)
    # Rounding may have left the range of an image and the background.
    axes = (1, 2, 3)
    low = np.minimum(images.min(axis=axes, keepdims=True), background)
    high = np.maximum(images.max(axis=axes, keepdims=True), background)
    np.clip(values, low, high, out=out, casting="unsafe")
