"""Which data a run was trained on, so that the same can be found again."""

from __future__ import annotations

import hashlib
import os
import reprlib
from dataclasses import dataclass

from mlpcore.checks import check_fields, check_list, check_whole
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.idx import MAX_SIDE
from mlpcore.errors import InputError
from mlpcore.typing import StrPath

#: Of a data set.
MAX_SAMPLES = 2**31 - 1


@dataclass(frozen=True)
class DataSummary:
    """Which data a run was trained on.

    `sha256` is that of the four arrays, after their conversion to what is trained on;
    `pixel_shape` that of the images before it, None where it was not recorded. `held_out` of the
    training images take the place of the test images (`Dataset.hold_out`).
    """

    name: str
    source: str
    image_shape: tuple[int, int]
    n_classes: int
    n_train: int
    n_test: int
    sha256: str
    pixel_shape: tuple[int, int] | None = None
    held_out: int = 0

    @classmethod
    def of(cls, dataset: Dataset) -> DataSummary:
        """Summarises a data set."""
        digest = hashlib.sha256()
        for array in (
            dataset.train_images,
            dataset.train_labels,
            dataset.test_images,
            dataset.test_labels,
        ):
            digest.update(repr(array.shape).encode())
            digest.update(array.data)
        return cls(
            name=dataset.name,
            source=dataset.source,
            image_shape=dataset.image_shape,
            n_classes=dataset.n_classes,
            n_train=len(dataset.train_labels),
            n_test=len(dataset.test_labels),
            sha256=digest.hexdigest(),
            pixel_shape=dataset.pixel_shape,
            held_out=dataset.held_out,
        )

    def layer_sizes(self, hidden_layers: tuple[int, ...]) -> tuple[int, ...]:
        """Of a network for these data."""
        height, width = self.image_shape
        return (height * width, *hidden_layers, self.n_classes)

    def load(self, folder: StrPath | None = None, *, download: bool = True) -> Dataset:
        """The same data again, from where they were or from another folder.

        MNIST is downloaded if it is not on this machine and `download` allows it.

        Raises
        ------
        InputError
            As `dataset.load`. Whether the data are the same is for the caller to check.
        """
        if self.name == dataset.EMBEDDED:
            data = dataset.load(folder, name="digits")
        elif self.name == dataset.MNIST:
            there = self.source if os.path.isdir(self.source) else None
            data = dataset.load(folder or there, name="mnist", download=download)
        else:
            data = dataset.load(folder or self.source)
        return self.part_of(data)

    def part_of(self, data: Dataset) -> Dataset:
        """Data with as many training images held out."""
        return data.hold_out(self.held_out) if self.held_out else data

    @classmethod
    def from_json(cls, values: object) -> DataSummary:
        """Of values from a file that may be damaged; an InputError if they are."""
        if isinstance(values, dict):
            values = {"pixel_shape": None, "held_out": 0} | values
        values = dict(check_fields("data", values, cls))
        for name in ("name", "source", "sha256"):
            if not isinstance(values[name], str):
                raise InputError(f"{name} {reprlib.repr(values[name])}: expected text")
        for name in ("n_classes", "n_train"):
            check_whole(name, values[name], 1, MAX_SAMPLES)
        check_whole("n_test", values["n_test"], 0, MAX_SAMPLES)
        check_whole("held_out", values["held_out"], 0, values["n_test"])
        values["image_shape"] = _check_sides("image_shape", values["image_shape"])
        if values["pixel_shape"] is not None:
            values["pixel_shape"] = _check_sides("pixel_shape", values["pixel_shape"])
        return cls(**values)


def _check_sides(name: str, value: object) -> tuple[int, int]:
    sides = check_list(name, value)
    if len(sides) != 2:
        raise InputError(f"{name} {reprlib.repr(sides)}: expected two sides")
    for side in sides:
        check_whole("side", side, 1, MAX_SIDE + 1)
    return sides[0], sides[1]
