"""The deformation as a transform of `torchvision.transforms.v2` (torchvision 0.21 or newer)."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import Transform
from torchvision.transforms.v2 import functional as F

from mlpcore.checks import check_real
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.transforms.single import RandomMap
from mlpcore.typing import AnyArray

_KEYPOINTS = getattr(tv_tensors, "KeyPoints", ())  # newer than the oldest torchvision


class ElasticDeformation(Transform):  # type: ignore[misc]
    """Deforms an image at random, elastically and affinely, and all that belongs to it.

    Takes what the transforms of torchvision take: PIL images, tensors (..., height, width) and
    `tv_tensors`, alone or in any nest. Masks show the nearest pixel. Keypoints move exactly as what
    is at them. Bounding boxes become the boxes around what they held; they cannot be rotated ones.
    All images of a batch get the same map. Torch's global generator draws the map.

    Parameters
    ----------
    sigma : float, default=6.0
        Standard deviation, in pixels, of the Gaussian that smooths the displacements, at most
        512. It is cut off at 10 pixels up to a sigma of 6, as in the paper, and at 4 sigma beyond.
    alpha : float, default=36.0
        Scale of the displacements, in pixels, before they are smoothed. Their RMS is then
        alpha / 32 with a sigma of 6, and alpha / (6.1 sigma) with a greater one. 0 means no
        elastic deformation.
    beta : float, default=15.0
        Greatest angle, in degrees, of a rotation or a horizontal shear, each with probability
        1/2. 0 means neither.
    gamma : float, default=15.0
        Greatest change of width and of height, in percent. 0 means no scaling.
    fill : float, default=0
        The value around an image. Around masks it is 0.

    Raises
    ------
    InputError
        A ValueError, when a parameter or an image cannot be used.
    """

    def __init__(
        self,
        sigma: float = 6.0,
        alpha: float = 36.0,
        beta: float = 15.0,
        gamma: float = 15.0,
        fill: float = 0,
    ):
        super().__init__()
        check_real("fill", fill)
        self._deformation = DeformationParameters(sigma, alpha, beta, gamma, ())
        self.sigma, self.alpha, self.beta, self.gamma = sigma, alpha, beta, gamma
        self.fill = fill

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The random map of a sample."""
        seed = int(torch.randint(2**63 - 1, ()))
        return {"map": RandomMap(self._deformation, seed)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input of a sample, deformed by the sample's map."""
        drawn: RandomMap = params["map"]
        if isinstance(inpt, PIL.Image.Image):
            pixels = self._planes(F.pil_to_tensor(inpt), drawn)
            return F.to_pil_image(pixels, mode=inpt.mode)
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return _boxes(inpt, drawn)
        if isinstance(inpt, _KEYPOINTS):
            points = drawn.points(_array(inpt).reshape(-1, 2), *inpt.canvas_size)
            return tv_tensors.wrap(_like(points, inpt), like=inpt)
        result = self._planes(inpt, drawn)
        return tv_tensors.wrap(result, like=inpt) if type(inpt) is not torch.Tensor else result

    def _planes(self, images: torch.Tensor, drawn: RandomMap) -> torch.Tensor:
        """Images or a mask (..., h, w)."""
        planes = _array(images).reshape(-1, *images.shape[-2:])
        is_mask = isinstance(images, tv_tensors.Mask)
        return _like(drawn.mask(planes, 0) if is_mask else drawn.image(planes, self.fill), images)


def _array(tensor: torch.Tensor) -> AnyArray:
    return tensor.detach().cpu().numpy()


def _like(values: AnyArray, tensor: torch.Tensor) -> torch.Tensor:
    """Values as a tensor of the same shape, type and device; rounded if that is of integers."""
    if values.dtype.kind == "f" and not tensor.is_floating_point():
        values = np.rint(values)
    return torch.from_numpy(values).reshape(tensor.shape).to(tensor.device, tensor.dtype)


def _boxes(boxes: tv_tensors.BoundingBoxes, drawn: RandomMap) -> tv_tensors.BoundingBoxes:
    if boxes.format.value not in ("XYXY", "XYWH", "CXCYWH"):
        raise InputError(f"bounding boxes are {boxes.format.value}, expected ones that are upright")
    upright = F.convert_bounding_box_format(boxes, new_format="XYXY")
    moved = _like(drawn.boxes(_array(upright), *boxes.canvas_size), upright)
    clamped = F.clamp_bounding_boxes(tv_tensors.wrap(moved, like=upright))
    return F.convert_bounding_box_format(clamped, new_format=boxes.format)
