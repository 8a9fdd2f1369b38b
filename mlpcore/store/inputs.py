"""The inputs of a network: the images of its data, before and after their conversion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mlpcore.checks import check_choice
from mlpcore.data import dataset, embedded
from mlpcore.data.arrays import check_range
from mlpcore.data.scaling import BYTES, INPUT_RANGES, to_range
from mlpcore.data.summary import DataSummary, Side
from mlpcore.errors import InputError
from mlpcore.store.documents import from_json, to_json
from mlpcore.training.config import TrainingConfig
from mlpcore.typing import Float32Array

MNIST_IMAGE = (29, 29)

Classes: TypeAlias = tuple[int | float | str, ...]
"""What each output of a network stands for."""


@dataclass(frozen=True)
class NetworkInput:
    """How pixels become the inputs of a network.

    Attributes
    ----------
    data : str
        Name of the data set that the network was trained on.
    image_shape : tuple of int
        Height and width of the images that are the inputs, row by row.
    pixel_shape : tuple of int
        Height and width of the images in the files, which are scaled to `image_shape`.
    input_range : str
        The range of the inputs (`mlpcore.data.scaling.INPUT_RANGES`).
    value_range : tuple of float, optional
        `Dataset.given_range` of the data: the values of pixels that became the two ends.

    Raises
    ------
    InputError
        When the range of the inputs or the values cannot be.
    """

    data: str
    image_shape: tuple[Side, Side]
    pixel_shape: tuple[Side, Side]
    input_range: str = "signed"
    value_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_choice("input range", self.input_range, INPUT_RANGES)
        if self.value_range is not None:
            check_range(self.value_range, "range of values")

    @classmethod
    def of(cls, data: DataSummary, config: TrainingConfig) -> NetworkInput:
        """The inputs of the network of a run."""
        return cls(
            data.name,
            data.image_shape,
            data.pixel_shape,
            config.input_range,
            data.value_range,
        )

    @classmethod
    def from_metadata(cls, metadata: dict[str, str]) -> NetworkInput:
        """The inputs that a file of weights records; an InputError when it does not."""
        if "input" not in metadata:
            raise InputError("its metadata name no input: expected a file of a run, or its export")
        return from_json(metadata["input"], cls)

    def to_metadata(self) -> dict[str, str]:
        """The inverse of `from_metadata`."""
        return {"input": to_json(self)}

    @property
    def is_embedded(self) -> bool:
        """Whether these are scikit-learn's digits, which fill only a part of the image."""
        known = dataset.EMBEDDED, MNIST_IMAGE, embedded.SIDES
        return (self.data, self.image_shape, self.pixel_shape) == known

    @property
    def pixel_range(self) -> tuple[float, float]:
        """The values of pixels that become the two ends of the range."""
        return self.value_range or ((0.0, embedded.WHITE) if self.is_embedded else BYTES)

    @property
    def is_mnist(self) -> bool:
        """Whether the network takes images in the format of MNIST's, scaled as these are."""
        return self.image_shape == MNIST_IMAGE

    def of_images(self, images: Float32Array) -> Float32Array:
        """The inputs (n, n_inputs) from images (n, h, w) in [-1, 1], as a `Dataset` holds them."""
        height, width = self.image_shape
        return to_range(images, self.input_range).reshape(-1, height * width)


def output_metadata(target: float, classes: Classes) -> dict[str, str]:
    """The metadata of what the outputs stand for."""
    return {"target": to_json(target), "classes": to_json(classes)}
