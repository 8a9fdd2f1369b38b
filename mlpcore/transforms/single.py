"""One random map for an image and all that belongs to it."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mlpcore import backends
from mlpcore.backends.arguments import check_finite
from mlpcore.deformation.deform import deform_selected, displacements
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.deformation.targets import move_boxes, move_masks, move_points
from mlpcore.deformation.values import border_values, check_background, has_few_digits
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array, Float64Array

_FIRST, _LABEL = np.zeros(1, np.int64), np.zeros(1, np.uint8)  # of a set of one image
_UNTURNED = np.eye(2, dtype=np.float32)[None]

#: Whole numbers up to here are exact in float32.
_EXACT = 2**24

#: The value around an image, or around each of its channels; None is that of its border.
Fill: TypeAlias = float | Sequence[float] | None

#: Those of x and of y: the same object, unless their alphas differ.
AxisParameters: TypeAlias = tuple[DeformationParameters, DeformationParameters]


def axis_parameters(
    sigma: float | Sequence[float], alpha: float | Sequence[float], beta: float, gamma: float
) -> AxisParameters:
    """The parameters of a transform, checked. A pair of alphas is for x and for y.

    A pair of sigmas must be the same twice: torchvision takes one, and smooths by the first along x
    and by the second along y, but documents neither this nor another meaning.
    """
    sigmas: list[Any] = list(sigma) if isinstance(sigma, (list, tuple)) else [sigma]
    if len(sigmas) not in (1, 2) or sigmas[0] != sigmas[-1]:
        raise InputError(f"sigma {reprlib.repr(sigma)}: expected a number, or the same one twice")
    alphas: list[Any] = list(alpha) if isinstance(alpha, (list, tuple)) else [alpha]
    if len(alphas) not in (1, 2):
        raise InputError(f"alpha {reprlib.repr(alpha)}: expected a number, or one for x and for y")
    of_x, of_y = (
        DeformationParameters(sigmas[0], each, beta, gamma, ()) for each in (alphas[0], alphas[-1])
    )
    return of_x, of_x if of_x == of_y else of_y


def check_fill(name: str, fill: Any) -> None:
    """Raises InputError unless images can have this fill."""
    for value in fill if isinstance(fill, (list, tuple)) else [fill]:
        check_background(value, np.dtype(np.float32), name)


class RandomMap:
    """The map of a seed, 0 to 2**64 - 1, by one thread of the CPU."""

    def __init__(self, parameters: AxisParameters, seed: int):
        self._backend = backends.get("cpu", 1)
        self._parameters, self._drawn = parameters, (seed, 0, self._backend)

    def displacement(self, height: int, width: int) -> Float32Array:
        """The distance (2, h, w) from each pixel to its source, x before y, in pixels."""
        of_x, of_y = self._parameters
        size = (height, width), _FIRST, _LABEL
        result = displacements(*size, of_x, *self._drawn)[0]
        if of_x is not of_y:
            result[1] = displacements(*size, of_y, *self._drawn)[0, 1]
        return result

    def image(self, image: AnyArray, fill: Fill, channels: int) -> AnyArray:
        """Images (planes, h, w) of so many channels, of any real type, with `fill` around them."""
        if image.dtype.kind not in "biuf":
            raise InputError(f"image has type {image.dtype}, expected real numbers or truth values")
        if not image.size:
            return image.copy()
        if fill is None:
            fills = border_values(image[:, None]).tolist()
        else:
            fills = _per_plane(fill, len(image), channels)
        if image.dtype.kind != "f":
            low, high = _limits(image.dtype)
            fills = [min(max(each, low), high) for each in fills]
            if not has_few_digits(image.dtype):
                _check_exact(image, fills)
        planes = image.astype(np.float32, copy=False)
        if self._parameters[0] is not self._parameters[1]:
            planes, field = np.ascontiguousarray(planes), self.displacement(*image.shape[1:])[None]
            result = np.empty_like(planes)
            for i, value in enumerate(fills):
                result[i] = self._backend.deform_by(planes[i : i + 1], _UNTURNED, field, value)[0]
        else:
            place = _FIRST, _LABEL, self._parameters[0], *self._drawn
            result = deform_selected(planes[None], *place, np.array(fills, np.float32))[0]
        if image.dtype.kind != "f":
            np.rint(result, out=result)
            if not has_few_digits(image.dtype):  # an interpolation may leave their range
                np.clip(result, low, high, out=result)
        return result.astype(image.dtype, copy=False)

    def mask(self, mask: AnyArray, fill: float | Sequence[float], channels: int) -> AnyArray:
        """A mask (planes, h, w) of any type; each pixel is the nearest one at its source."""
        fills = _per_plane(fill, len(mask), channels)
        for value in set(fills):
            check_background(value, mask.dtype, "fill of a mask")
        return move_masks(mask[None], self.displacement(*mask.shape[1:])[None], fills)[0]

    def points(self, points: AnyArray, height: int, width: int) -> Float64Array:
        """Points (k, 2), x and y; (0, 0) is the centre of the first pixel."""
        check_finite("keypoints", points)
        return move_points(points, self.displacement(height, width))

    def boxes(self, boxes: AnyArray, height: int, width: int) -> Float64Array:
        """Boxes (k, 4) around moved boxes: left, top, right and bottom edge in pixels."""
        check_finite("boxes", boxes)
        return move_boxes(boxes, self.displacement(height, width))


@functools.cache
def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest of these whole numbers or truth values."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _check_exact(image: AnyArray, fills: list[float]) -> None:
    """Raises InputError unless float32 holds the whole numbers of an image and around it."""
    low, high = min(int(image.min()), *fills), max(int(image.max()), *fills)
    if not -_EXACT <= low <= high <= _EXACT:
        raise InputError(
            f"image of {image.dtype} holds {low} to {high}: expected whole numbers from "
            f"-{_EXACT:,} to {_EXACT:,}, because float32 rounds others"
        )


def _per_plane(fill: float | Sequence[float], n: int, channels: int) -> list[float]:
    """The value around each of n planes."""
    values: list[Any] = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    if len(values) not in (1, channels):
        raise InputError(
            f"fill {reprlib.repr(fill)}: expected one value, or {channels} for as many channels"
        )
    return [float(each) for each in values * n][:n]
