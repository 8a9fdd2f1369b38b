"""The deformation as a transform of Albumentations (2.0 or newer)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from albumentations.core.transforms_interface import DualTransform
from albumentations.core.type_definitions import ALL_TARGETS

from mlpcore.errors import InputError
from mlpcore.transforms.single import Fill, RandomMap, axis_parameters, channels_last, check_fill
from mlpcore.typing import AnyArray


class ElasticDeformation(DualTransform):  # type: ignore[misc]
    """Deforms an image at random, elastically and affinely, and all that belongs to it.

    Takes images, masks, keypoints and bounding boxes. Masks show the nearest pixel. Keypoints move
    exactly as what is at them; their angles and scales stay. Bounding boxes become the boxes around
    what they held.

    Parameters
    ----------
    sigma : float or pair of equal floats, default=6.0
        Standard deviation of the smoothing, in pixels, as for `mlpcore.ElasticDeformer`.
    alpha : float or pair of floats, default=36.0
        Scale of the displacements, in pixels, as for it. A pair is for those along x and along y.
    beta, gamma : float, default=15.0
        Greatest angle in degrees, and greatest change of the sides in percent, as for it.
    fill : float, sequence of floats or None, default=None
        The value around an image, or one for each channel; None takes the median of the image's
        border, in each channel.
    fill_mask : float or sequence of floats, default=0
        The value around a mask.
    p : float, default=0.5
        The probability of deforming at all.

    Raises
    ------
    InputError
        A ValueError, when a parameter or an image cannot be used.
    """

    _targets = ALL_TARGETS

    def __init__(
        self,
        sigma: float | Sequence[float] = 6.0,
        alpha: float | Sequence[float] = 36.0,
        beta: float = 15.0,
        gamma: float = 15.0,
        fill: Fill = None,
        fill_mask: float | Sequence[float] = 0,
        p: float = 0.5,
    ):
        super().__init__(p=p)
        if fill is not None:
            check_fill("fill", fill)
        check_fill("fill_mask", fill_mask)
        self._deformation = axis_parameters(sigma, alpha, beta, gamma)
        self.sigma, self.alpha, self.beta, self.gamma = sigma, alpha, beta, gamma
        self.fill, self.fill_mask = fill, fill_mask

    def get_params(self) -> dict[str, Any]:
        """The seed of a sample's map."""
        return {"seed": self.py_random.getrandbits(64)}

    def apply(self, img: AnyArray, seed: int, **params: Any) -> AnyArray:
        """An image (h, w) or (h, w, channels), deformed."""
        return channels_last(self._map(seed).image, img, self.fill)

    def apply_to_mask(self, mask: AnyArray, seed: int, **params: Any) -> AnyArray:
        """A mask (h, w) or (h, w, channels), moved along."""
        if mask.shape[:2] != params["shape"][:2]:
            found, size = (f"{h} x {w}" for h, w in (mask.shape[:2], params["shape"][:2]))
            raise InputError(f"a mask of {found} pixels: expected {size}, like the image")
        return channels_last(self._map(seed).mask, mask, self.fill_mask)

    def apply_to_keypoints(self, keypoints: AnyArray, seed: int, **params: Any) -> AnyArray:
        """Keypoints (k, 2 or more), x and y in pixels first, moved along."""
        if not len(keypoints):
            return keypoints
        result = keypoints.astype(np.float32)
        result[:, :2] = self._map(seed).points(keypoints[:, :2], *params["shape"][:2])
        return result

    def apply_to_bboxes(self, bboxes: AnyArray, seed: int, **params: Any) -> AnyArray:
        """Boxes (k, 4 or more), edges as fractions of width and height first, moved along."""
        if not len(bboxes):
            return bboxes
        height, width = params["shape"][:2]
        sides = np.array([width, height, width, height])
        result = bboxes.astype(np.float32)
        result[:, :4] = self._map(seed).boxes(bboxes[:, :4] * sides, height, width) / sides
        return result

    def _map(self, seed: int) -> RandomMap:
        return RandomMap(self._deformation, seed)
