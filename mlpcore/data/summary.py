"""A summary of the data that a run was trained on, by which they are found again."""

from __future__ import annotations

import math
import os
from typing import Annotated, TypeAlias

from msgspec import Meta

from mlpcore.checks import Record, check_whole
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.pixels import PixelSpec
from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Classes: TypeAlias = tuple[int | float | str, ...]
"""What each output of a network stands for."""


class DataSummary(Record, frozen=True):
    """The data that a run was trained on; what is not explained is as in `Dataset`."""

    name: str
    source: str
    n_classes: Count
    n_train: Count  #: training images
    n_test: Count
    sha256: str  #: of the four arrays
    pixels: PixelSpec
    held_out: int = 0
    classes: Classes | None = None  #: none if they are the labels themselves

    def __post_init__(self) -> None:
        check_whole("held_out", self.held_out, 0, self.n_test)
        if self.classes is not None and len(self.classes) != self.n_classes:
            raise InputError(f"{len(self.classes)} classes, expected {self.n_classes}")

    @classmethod
    def of(cls, data: Dataset) -> DataSummary:
        """Summarise a data set."""
        return cls(
            name=data.name,
            source=data.source,
            n_classes=data.n_classes,
            n_train=len(data.train_labels),
            n_test=len(data.test_labels),
            sha256=data.sha256,
            pixels=data.pixels,
            held_out=data.held_out,
            classes=None if data.classes == tuple(range(data.n_classes)) else data.classes,
        )

    def check_same(self, found: DataSummary, what: str) -> None:
        """Raise InputError unless what began with these data finds the same."""
        if (found.sha256, found.classes) != (self.sha256, self.classes):
            raise InputError(
                f"the data from {shown(found.source)} are not those that {what} began with: "
                f"expected {shown(self.name)} as it was in {shown(self.source)}"
            )

    def layer_sizes(self, hidden_layers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the layer sizes of a network with these hidden layers for these data."""
        return (math.prod(self.pixels.image_shape), *hidden_layers, self.n_classes)

    def load(self, folder: StrPath | None = None, *, download: bool = True) -> Dataset:
        """Load the data again, from where they were or from another folder.

        The caller compares the result with this summary, because the files may have changed.
        MNIST is downloaded if it is not on this machine and `download` allows it. Errors are those
        of `dataset.load`.
        """
        if self.source == dataset.MEMORY and folder is None:
            raise InputError(
                f"the data {shown(self.name)} were {dataset.MEMORY}: expected --data FILE.npz with "
                "them, as numpy.savez(FILE, X=X, y=y, X_test=X_test, y_test=y_test) writes them"
            )
        name = dataset.NAMES.get(self.name)
        if name == "mnist" and folder is None and os.path.exists(self.source):
            folder = self.source
        elif name is None:
            folder = folder or self.source
        values = None if name else self.pixels.value_range
        data = dataset.load(folder, name=name, download=download, value_range=values)
        return data.hold_out(self.held_out) if self.held_out else data
