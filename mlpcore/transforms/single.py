"""One random map for an image and all that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mlpcore import backends
from mlpcore.backends.arguments import check_finite
from mlpcore.checks import real_array
from mlpcore.deformation.deform import deform_selected, displacements
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.deformation.targets import move_boxes, move_masks, move_points
from mlpcore.deformation.values import (
    EXACT_OF_MASKS,
    border_values,
    check_background,
    check_values,
    deform_values,
    limits_of,
)
from mlpcore.errors import InputError, brief
from mlpcore.typing import AnyArray, Float32Array, Float64Array

_FIRST, _LABEL = np.zeros(1, np.int64), np.zeros(1, np.uint8)  # of a set of one image
_UNTURNED = np.eye(2, dtype=np.float32)[None]

#: The value around an image, or around each of its channels; None is that of its border.
Fill: TypeAlias = float | Sequence[float] | None

#: Those of x and of y: the same object, unless their alphas differ.
AxisParameters: TypeAlias = tuple[DeformationParameters, DeformationParameters]


def axis_parameters(
    sigma: Any, alpha: float | Sequence[float], beta: float, gamma: float
) -> AxisParameters:
    """The parameters of a transform, checked. A pair of alphas is for x and for y."""
    if isinstance(sigma, (list, tuple)) and len(sigma) == 2 and sigma[0] == sigma[1]:
        sigma = sigma[0]  # torchvision's own form
    alphas: list[Any] = list(alpha) if isinstance(alpha, (list, tuple)) else [alpha]
    if len(alphas) not in (1, 2):
        raise InputError(f"alpha {brief(alpha)}: expected a number, or one for x and for y")
    of_x, of_y = (
        DeformationParameters(sigma, each, beta, gamma, ()) for each in (alphas[0], alphas[-1])
    )
    return of_x, of_x if of_x == of_y else of_y


def check_fill(name: str, fill: Any) -> None:
    """Raises InputError unless images can have this fill."""
    for value in fill if isinstance(fill, (list, tuple)) else [fill]:
        check_background(value, np.dtype(np.float32), name)


def channels_last(move: Callable[..., AnyArray], image: AnyArray, fill: Fill) -> AnyArray:
    """An image (h, w) or (h, w, channels), moved by `RandomMap.image` or `RandomMap.mask`."""
    planes = image[None] if image.ndim == 2 else np.moveaxis(image, -1, 0)
    return np.moveaxis(move(planes, fill, len(planes)), 0, -1).reshape(image.shape)


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
        image = real_array("image", image)
        if not image.size:
            return image.copy()
        check_values("image", image)
        around = _per_plane(fill, image, channels)
        result = np.empty(image.shape, image.dtype)
        around = np.clip(around, *limits_of(image.dtype)).tolist()
        deform_values(image[None], result[None], self._deform, around)
        return result

    def _deform(
        self, images: Float32Array, background: Float32Array, out: Float32Array | None
    ) -> Float32Array:
        """`deform_selected` of one image, whose displacements may differ in x and y."""
        of_x, of_y = self._parameters
        if of_x is of_y:
            return deform_selected(images, _FIRST, _LABEL, of_x, *self._drawn, background, out)
        field = self.displacement(*images.shape[2:])[None]
        planes = zip(images.swapaxes(0, 1), background.tolist())
        moved = [self._backend.deform_by(plane, _UNTURNED, field, value) for plane, value in planes]
        return np.stack(moved, axis=1)

    def mask(self, mask: AnyArray, fill: Fill, channels: int) -> AnyArray:
        """A mask (planes, h, w) of any type; each pixel is the nearest one at its source."""
        fills = _per_plane(fill, mask, channels)
        for value in set(fills):
            check_background(value, mask.dtype, "fill of a mask", EXACT_OF_MASKS)
        moved = move_masks(mask[None], self.displacement(*mask.shape[1:])[None], fills)[0]
        return np.ascontiguousarray(moved)  # as the `view` of a tensor needs

    def points(self, points: AnyArray, height: int, width: int) -> Float64Array:
        """Points (k, 2), x and y; (0, 0) is the centre of the first pixel."""
        check_finite("keypoints", points)
        return move_points(points, self.displacement(height, width))

    def boxes(self, boxes: AnyArray, height: int, width: int) -> Float64Array:
        """Boxes (k, 4) around moved boxes: left, top, right and bottom edge in pixels."""
        check_finite("boxes", boxes)
        return move_boxes(boxes, self.displacement(height, width))


def _per_plane(fill: Fill, planes: AnyArray, channels: int) -> list[float]:
    """The value around each plane of (n, h, w)."""
    if fill is None:
        return border_values(planes[:, None]).astype(float).tolist()
    values: list[Any] = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    if len(values) not in (1, channels):
        raise InputError(
            f"fill {brief(fill)}: expected one value, or {channels} for as many channels"
        )
    return [float(each) for each in values * len(planes)][: len(planes)]
