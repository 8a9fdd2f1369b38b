"""One random map for an image and all that belongs to it."""

from __future__ import annotations

import numpy as np

from mlpcore import backends
from mlpcore.deformation.deform import deform_selected, displacements
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.deformation.targets import move_boxes, move_masks, move_points
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array, Float64Array

_FIRST, _LABEL = np.zeros(1, np.int64), np.zeros(1, np.uint8)  # of a set of one image


class RandomMap:
    """The map of a seed, 0 to 2**64 - 1, by one thread of the CPU."""

    def __init__(self, parameters: DeformationParameters, seed: int):
        backend = backends.get("cpu", 1)
        self._arguments = _FIRST, _LABEL, parameters, seed, 0, backend

    def displacement(self, height: int, width: int) -> Float32Array:
        """The distance (2, h, w) from each pixel to its source, x before y, in pixels."""
        return displacements((height, width), *self._arguments)[0]

    def image(self, image: AnyArray, fill: float) -> AnyArray:
        """An image (channels, h, w) of any real type, deformed; with `fill` around it."""
        if image.dtype.kind not in "iuf":
            raise InputError(f"image has type {image.dtype}, expected whole or real numbers")
        planes = image.astype(np.float32, copy=False)[None]
        result = deform_selected(planes, *self._arguments, fill)[0]
        if image.dtype.kind != "f":
            limits = np.iinfo(image.dtype)
            np.clip(np.rint(result, out=result), limits.min, limits.max, out=result)
        return result.astype(image.dtype, copy=False)

    def mask(self, mask: AnyArray, fill: float) -> AnyArray:
        """A mask (channels, h, w) of any type; each pixel is the nearest one at its source."""
        return move_masks(mask[None], self.displacement(*mask.shape[1:])[None], fill)[0]

    def points(self, points: AnyArray, height: int, width: int) -> Float64Array:
        """Points (k, 2), x and y; (0, 0) is the centre of the first pixel."""
        return move_points(points, self.displacement(height, width))

    def boxes(self, boxes: AnyArray, height: int, width: int) -> Float64Array:
        """Boxes (k, 4) around moved boxes: left, top, right and bottom edge in pixels."""
        return move_boxes(boxes, self.displacement(height, width))
