"""Connected components of ink, and the boxes around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mlpcore.typing import AnyArray, UInt8Array

#: A component with a smaller share of the largest one's pixels is dirt.
MIN_SHARE = 0.05


class Box(NamedTuple):
    """A rectangle in pixels; `right` and `bottom` are the first pixels outside."""

    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def of_size(cls, left: int, top: int, width: int, height: int) -> Box:
        """A rectangle as OpenCV has it."""
        return cls(left, top, left + width, top + height)

    @property
    def width(self) -> int:
        """In pixels."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """In pixels."""
        return self.bottom - self.top

    @property
    def slices(self) -> tuple[slice, slice]:
        """The index of its pixels in an image (h, w)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def union(self, other: Box) -> Box:
        """The box that holds both."""
        return Box(*map(min, self[:2], other[:2]), *map(max, self[2:], other[2:]))

    def shared_width(self, other: Box) -> int:
        """The number of columns that both take; below 0 for those between them."""
        return min(self.right, other.right) - max(self.left, other.left)


class Components(NamedTuple):
    """The connected components of a black and white image; number 0 is the ground.

    Attributes
    ----------
    labels : ndarray of int32, shape (h, w)
        The number of the component that each pixel belongs to.
    boxes : list of Box
        Around each component.
    areas : ndarray of int32
        Pixels of each component.
    """

    labels: AnyArray
    boxes: list[Box]
    areas: AnyArray

    def inside(self, rim: float) -> list[int]:
        """The components that are not only along the border, by this share of each side.

        Others are rests of a line along which somebody cut, or of a neighbour.
        """
        (height, width), (y, x) = self.labels.shape, (int(rim * n) for n in self.labels.shape)
        counts = np.bincount(self.labels[y : height - y, x : width - x].ravel())
        return (1 + np.flatnonzero(counts[1:])).tolist()

    def without_dirt(self, numbers: Sequence[int]) -> list[int]:
        """The components that are no specks next to the largest of them."""
        most = max((int(self.areas[k]) for k in numbers), default=0)
        return [k for k in numbers if self.areas[k] >= MIN_SHARE * most]

    def mask(self, numbers: Sequence[int]) -> AnyArray:
        """A mask (h, w) of the pixels of some components."""
        chosen = np.zeros(len(self.boxes), bool)
        chosen[list(numbers)] = True
        return chosen[self.labels]


def find_components(dark: UInt8Array) -> Components:
    """The components of what is not 0 in an image (h, w); pixels touch at edges or corners."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(dark, connectivity=8)
    boxes = [Box.of_size(*each) for each in stats[:, :4].tolist()]
    return Components(labels, boxes, stats[:, 4])
