"""The inputs of a network: the images of its data, before and after their conversion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlpcore.data import dataset, embedded
from mlpcore.data import scaling as images
from mlpcore.data.arrays import check_range
from mlpcore.data.scaling import MAX_SIDE
from mlpcore.data.summary import DataSummary
from mlpcore.data.width import to_inputs
from mlpcore.errors import InputError
from mlpcore.typing import Float32Array

MNIST_PIXELS = (28, 28)
MNIST_IMAGE = (29, 29)


@dataclass(frozen=True)
class NetworkInput:
    """How pixels become the inputs of a network.

    Attributes
    ----------
    data : str
        Name of the data set that the network was trained on; empty if unknown.
    image_shape : tuple of int
        Height and width of the images that are the inputs, row by row.
    pixel_shape : tuple of int
        Height and width of the images in the files, which are scaled to `image_shape`.
    assumed : bool
        Whether part of this was not recorded, but guessed.
    input_range : str
        The range of the inputs (`mlpcore.data.scaling.INPUT_RANGES`).
    width : int, optional
        The width to which the ink of an image is brought (`mlpcore.data.width`).
    value_range : tuple of float, optional
        `Dataset.value_range` of the data: the values of pixels that became the two ends.
    """

    data: str
    image_shape: tuple[int, int]
    pixel_shape: tuple[int, int]
    assumed: bool = False
    input_range: str = "signed"
    width: int | None = None
    value_range: tuple[float, float] | None = None

    @classmethod
    def of(cls, data: DataSummary, input_range: str, width: int | None) -> NetworkInput:
        """The inputs for the data of a run."""
        return cls(
            data.name,
            data.image_shape,
            data.pixel_shape,
            input_range=input_range,
            width=width,
            value_range=data.value_range,
        )

    @classmethod
    def from_metadata(cls, metadata: dict[str, str], n_inputs: int) -> NetworkInput:
        """The inputs that a file of weights records. Without a record, 841 inputs are MNIST's."""
        input_range, width = metadata.get("input_range", "signed"), read_width(metadata)
        if not metadata.keys() & {"dataset", "image_shape", "pixel_shape"}:
            if n_inputs != MNIST_IMAGE[0] * MNIST_IMAGE[1]:
                raise InputError(
                    f"{n_inputs:,} inputs of unknown height and width: expected 841, or the "
                    "folder of a run"
                )
            return cls("", MNIST_IMAGE, MNIST_PIXELS, True, input_range, width)
        rows, columns = image_shape = _read_shape(metadata, "image_shape")
        if rows * columns != n_inputs:
            raise InputError(f"image_shape {rows},{columns}: expected {n_inputs:,} pixels")
        pixel_shape = _read_shape(metadata, "pixel_shape")
        data = metadata.get("dataset", "")
        values = _read_range(metadata["value_range"]) if "value_range" in metadata else None
        return cls(data, image_shape, pixel_shape, False, input_range, width, values)

    def to_metadata(self) -> dict[str, str]:
        """The inverse of `from_metadata`."""
        metadata = {
            "dataset": self.data,
            "image_shape": "{},{}".format(*self.image_shape),
            "pixel_shape": "{},{}".format(*self.pixel_shape),
            "input_range": self.input_range,
        }
        if self.width is not None:
            metadata["width"] = str(self.width)
        if self.value_range:
            metadata["value_range"] = "{!r},{!r}".format(*self.value_range)
        return metadata

    @property
    def is_embedded(self) -> bool:
        """Whether these are scikit-learn's digits, which fill only a part of the image."""
        known = dataset.EMBEDDED, MNIST_IMAGE, embedded.SIDES
        return (self.data, self.image_shape, self.pixel_shape) == known

    @property
    def white(self) -> int:
        """The greatest value of a pixel, which becomes 1; 0 becomes the background of the range."""
        return embedded.WHITE if self.is_embedded else 255

    @property
    def is_mnist(self) -> bool:
        """Whether the network takes images in the format of MNIST's, scaled as these are."""
        return self.image_shape == MNIST_IMAGE

    def of_images(self, images: Float32Array) -> Float32Array:
        """The inputs (n, n_inputs) from images in [-1, 1], as a `Dataset` holds them.

        Raises
        ------
        InputError
            When these images are less wide than `width`.
        """
        height, width = self.image_shape
        shaped = images.reshape(-1, height, width)
        inputs = to_inputs(shaped, self.input_range, self.width)
        return inputs.reshape(-1, height * width)

    def interpolation(self) -> tuple[Float32Array, Float32Array]:
        """Matrices R (H, h) and C (W, w) that scale pixels P (h, w) to R P C^T (H, W)."""
        (height, width), (n_rows, n_columns) = self.image_shape, self.pixel_shape
        return self._interpolation(n_rows, height), self._interpolation(n_columns, width)

    def _interpolation(self, pixels: int, side: int) -> Float32Array:
        """The matrix (side, pixels) of one axis: its columns are the scaled unit vectors."""
        box = embedded.BOX if self.is_embedded else slice(0, side)
        result = np.zeros((side, pixels), np.float32)
        result[box] = images.resize(np.eye(pixels)[None], len(result[box]), pixels)[0]
        return result


def _read_shape(metadata: dict[str, str], name: str) -> tuple[int, int]:
    text = metadata.get(name, "")
    sides = [int(part) for part in text[:20].split(",") if part.isascii() and part.isdigit()]
    if len(text) > 20 or len(sides) != 2 or not all(2 <= side <= MAX_SIDE + 1 for side in sides):
        raise InputError(f"{name} {text[:40]!r} in the metadata: expected height,width")
    return sides[0], sides[1]


def read_width(metadata: dict[str, str]) -> int | None:
    """The width of the ink that a file of weights records; None if the ink stays as it is."""
    text = metadata.get("width")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MAX_SIDE + 1):
        raise InputError(f"width {text[:40]!r} in the metadata: expected a number of pixels")
    return int(text)


def _read_range(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(f"value_range {text[:40]!r} in the metadata: expected low,high") from None
    return check_range((low, high), "value_range in the metadata")
