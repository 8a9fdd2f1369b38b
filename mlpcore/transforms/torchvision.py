"""The deformation as a transform of `torchvision.transforms.v2` (torchvision 0.21 or newer)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import Transform
from torchvision.transforms.v2 import functional as F

from mlpcore.checks import tensor_values
from mlpcore.errors import InputError
from mlpcore.transforms.single import Fill, RandomMap, axis_parameters, channels_last, check_fill
from mlpcore.typing import AnyArray

_KEYPOINTS = getattr(tv_tensors, "KeyPoints", ())  # newer than the oldest torchvision

#: Modes of PIL whose pixels are places of a palette, which have no mean.
_INDEXED = "P", "PA"


class ElasticDeformation(Transform):  # type: ignore[misc]
    """Deforms an image at random, elastically and affinely, and all that belongs to it.

    Takes what the transforms of torchvision take: PIL images, tensors (..., height, width) and
    `tv_tensors`, alone or in any nest. Masks show the nearest pixel. Keypoints move exactly as what
    is at them. Bounding boxes become the boxes around what they held; they cannot be rotated ones.
    All images of a batch get the same map, and so does all of a sample, which is of one size.
    Indices of a palette are moved like masks. Torch's global generator draws the map.

    Parameters
    ----------
    sigma : float or pair of equal floats, default=6.0
        Standard deviation of the smoothing, in pixels, as for `mlpcore.ElasticDeformer`.
    alpha : float or pair of floats, default=36.0
        Scale of the displacements, in pixels, as for it. A pair is for those along x and along y.
    beta, gamma : float, default=15.0
        Greatest angle in degrees, and greatest change of the sides in percent, as for it.
    fill : float, sequence of floats, dict or None, default=None
        The value around an image, or one for each channel; None takes the median of the image's
        border, in each channel. Around masks it is 0. A dict has one for each type of input, such
        as `tv_tensors.Mask`, and for "others".

    Raises
    ------
    InputError
        A ValueError, when a parameter or an image cannot be used.
    """

    def __init__(
        self,
        sigma: float | Sequence[float] = 6.0,
        alpha: float | Sequence[float] = 36.0,
        beta: float = 15.0,
        gamma: float = 15.0,
        fill: Fill | dict[type | str, Fill] = None,
    ):
        super().__init__()
        for value in fill.values() if isinstance(fill, dict) else [fill]:
            if value is not None:
                check_fill("fill", value)
        self._deformation = axis_parameters(sigma, alpha, beta, gamma)
        self.sigma, self.alpha, self.beta, self.gamma = sigma, alpha, beta, gamma
        self.fill = fill

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The random map of a sample, or an InputError if its inputs differ in size."""
        for each in flat_inputs:
            if isinstance(each, torch.Tensor) and each.ndim < 2:
                raise InputError(f"input of shape {tuple(each.shape)}: expected (..., h, w)")
        sizes = sorted({tuple(F.get_size(each)) for each in flat_inputs})
        if len(sizes) > 1:
            found = " and ".join(f"{height} x {width}" for height, width in sizes)
            raise InputError(f"a sample of {found} pixels: expected inputs of one size")
        seed = int(torch.randint(2**63 - 1, ()))
        return {"map": RandomMap(self._deformation, seed)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input of a sample, deformed by the sample's map."""
        drawn: RandomMap = params["map"]
        if isinstance(inpt, PIL.Image.Image):
            return self._picture(inpt, drawn)
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return _boxes(inpt, drawn)
        if isinstance(inpt, _KEYPOINTS):
            points = drawn.points(_array(inpt).reshape(-1, 2), *inpt.canvas_size)
            return tv_tensors.wrap(_like(points, inpt), like=inpt)
        result = self._planes(inpt, drawn)
        return tv_tensors.wrap(result, like=inpt) if type(inpt) is not torch.Tensor else result

    def _picture(self, picture: PIL.Image.Image, drawn: RandomMap) -> PIL.Image.Image:
        move = drawn.mask if picture.mode in _INDEXED else drawn.image
        moved = channels_last(move, np.asarray(picture), self._fill_of(type(picture)))
        result = picture.copy()  # of any mode, and with its palette
        result.frombytes(moved.tobytes(), "raw", "1;8" if picture.mode == "1" else picture.mode)
        return result

    def _planes(self, images: torch.Tensor, drawn: RandomMap) -> torch.Tensor:
        """Images or a mask (..., h, w)."""
        shape = images.shape
        channels = shape[-3] if len(shape) > 2 else 1
        planes = _array(images).reshape(math.prod(shape[:-2]), *shape[-2:])
        fill = self._fill_of(type(images))
        if isinstance(images, tv_tensors.Mask):
            return _like(drawn.mask(planes, 0 if fill is None else fill, channels), images)
        return _like(drawn.image(planes, fill, channels), images)

    def _fill_of(self, kind: type) -> Fill:
        """The fill of a type, or of the type that it is derived from."""
        if not isinstance(self.fill, dict):
            return None if issubclass(kind, tv_tensors.Mask) else self.fill
        known: list[type | str] = [each for each in kind.__mro__ if each in self.fill]
        return self.fill.get(known[0] if known else "others")


def _array(tensor: torch.Tensor) -> AnyArray:
    if tensor.dtype == torch.bfloat16:  # which NumPy lacks
        tensor = tensor.float()
    values: AnyArray = tensor_values("input", tensor)
    return values


def _like(values: AnyArray, tensor: torch.Tensor) -> torch.Tensor:
    """Values as a tensor of the same shape, type and device; rounded if that is of integers."""
    if values.dtype.kind == "f" and not tensor.is_floating_point():
        values = np.rint(values)
    return torch.from_numpy(values).reshape(tensor.shape).to(tensor.device, tensor.dtype)


def _boxes(boxes: tv_tensors.BoundingBoxes, drawn: RandomMap) -> tv_tensors.BoundingBoxes:
    if boxes.format.value not in ("XYXY", "XYWH", "CXCYWH"):
        raise InputError(f"bounding boxes are {boxes.format.value}, expected ones that are upright")
    exact = tv_tensors.wrap(boxes.double(), like=boxes)  # centres may lie between whole numbers
    upright = F.convert_bounding_box_format(exact, new_format="XYXY")
    moved = torch.from_numpy(drawn.boxes(_array(upright), *boxes.canvas_size)).to(boxes.device)
    clamped = F.clamp_bounding_boxes(tv_tensors.wrap(moved, like=upright))
    result = F.convert_bounding_box_format(clamped, new_format=boxes.format)
    return tv_tensors.wrap(_like(_array(result), boxes), like=boxes)
