"""What a network is given: the images of its data, before and after their conversion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlpcore.data import dataset
from mlpcore.data import scaling as images
from mlpcore.data.idx import MAX_SIDE
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from mlpcore.typing import Float32Array

MNIST_PIXELS = (28, 28)
MNIST_IMAGE = (29, 29)


@dataclass(frozen=True)
class NetworkInput:
    """How pixels become a network's inputs.

    Attributes
    ----------
    data : str
        Name of the data set that the network was trained on, empty if unknown.
    image_shape : tuple of int
        Height and width of the image that the network is given, row by row.
    pixel_shape : tuple of int
        Height and width of the images in the data set's files, which are scaled to that.
    assumed : bool
        Whether part of this was not recorded, but concluded.
    """

    data: str
    image_shape: tuple[int, int]
    pixel_shape: tuple[int, int]
    assumed: bool = False

    @classmethod
    def of(cls, data: DataSummary) -> NetworkInput:
        """For the data of a run; those of early ones do not say how large their images were."""
        if data.pixel_shape is not None:
            return cls(data.name, data.image_shape, data.pixel_shape)
        known = {dataset.MNIST: MNIST_PIXELS, dataset.EMBEDDED: dataset.EMBEDDED_PIXELS}
        if data.image_shape == MNIST_IMAGE and data.name in known:
            return cls(data.name, data.image_shape, known[data.name])
        return cls(data.name, data.image_shape, data.image_shape, assumed=True)

    @classmethod
    def from_metadata(cls, metadata: dict[str, str], n_inputs: int) -> NetworkInput:
        """From a file of weights; without a word in it, 841 inputs are those of MNIST.

        Raises
        ------
        InputError
            When the metadata are damaged, or say nothing and the inputs are not 841.
        """
        keys = ("dataset", "image_shape", "pixel_shape")
        if not any(key in metadata for key in keys):
            if n_inputs != MNIST_IMAGE[0] * MNIST_IMAGE[1]:
                raise InputError(
                    f"{n_inputs:,} inputs of unknown height and width: expected 841, or the "
                    "folder of a run"
                )
            return cls("", MNIST_IMAGE, MNIST_PIXELS, assumed=True)
        data, image_shape, pixel_shape = (metadata.get(key, "") for key in keys)
        result = cls(data, _read_shape(image_shape), _read_shape(pixel_shape))
        height, width = result.image_shape
        if height * width != n_inputs:
            raise InputError(f"image_shape {image_shape}: expected {n_inputs:,} pixels")
        return result

    def to_metadata(self) -> dict[str, str]:
        """The inverse of `from_metadata`."""
        shapes = {"image_shape": self.image_shape, "pixel_shape": self.pixel_shape}
        return {"dataset": self.data} | {
            name: ",".join(map(str, shape)) for name, shape in shapes.items()
        }

    @property
    def is_embedded(self) -> bool:
        """Whether these are scikit-learn's digits, which fill a part of the image only."""
        embedded = dataset.EMBEDDED, MNIST_IMAGE, dataset.EMBEDDED_PIXELS
        return (self.data, self.image_shape, self.pixel_shape) == embedded

    @property
    def white(self) -> int:
        """The greatest value of a pixel, which becomes +1; 0 becomes -1."""
        return dataset.EMBEDDED_WHITE if self.is_embedded else 255

    @property
    def is_mnist(self) -> bool:
        """Whether images in the format of MNIST's, scaled as these are, fit the network."""
        return self.image_shape == MNIST_IMAGE

    def interpolation(self) -> tuple[Float32Array, Float32Array]:
        """Matrices R (H, h) and C (W, w) with which pixels P (h, w) become R P C^T (H, W)."""
        rows, columns = (
            self._interpolation(*sides) for sides in zip(self.pixel_shape, self.image_shape)
        )
        return rows, columns

    def _interpolation(self, pixels: int, side: int) -> Float32Array:
        """Of one axis: the conversion of each unit vector."""
        box = dataset.EMBEDDED_BOX if self.is_embedded else slice(0, side)
        result = np.zeros((side, pixels), np.float32)
        result[box] = images.resize(np.eye(pixels)[None], len(result[box]), pixels)[0]
        return result


def _read_shape(text: str) -> tuple[int, int]:
    sides = [int(part) for part in text.split(",") if part.isascii() and part.isdigit()][:3]
    if len(text) > 20 or len(sides) != 2 or not all(2 <= side <= MAX_SIDE + 1 for side in sides):
        raise InputError(f"image of {text[:40]!r} in the metadata: expected height,width")
    return sides[0], sides[1]
