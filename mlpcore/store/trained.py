"""Trained networks from the folder of a run or a file of weights, with their inputs."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from mlpcore.data.pixels import PixelSpec
from mlpcore.data.summary import Classes, DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.network import Network
from mlpcore.network.activation import check_target
from mlpcore.store.documents import from_json, to_metadata
from mlpcore.store.run_folder import BEST, holds_run, read_run_network, read_settings
from mlpcore.store.weights import read_network
from mlpcore.training.config import USUAL_TARGET
from mlpcore.typing import StrPath

#: The metadata that say where the weights come from.
ORIGIN = ("data", "epoch", "seed", "learning_rate", "ones_and_sevens", "revision", "machine")


@dataclass(frozen=True)
class TrainedNetwork:
    """A network as it was saved.

    Attributes
    ----------
    path : Path
        The file of weights.
    network : Network
    pixels : PixelSpec
        The pixels that it takes, and how they become its inputs.
    metadata : dict
        The metadata of the file, which `mlpcore.store.weights` describes.
    target : float
        Target of the output for the class, of a network of the loss "squared".
    classes : tuple of int, float or str
        What each output stands for: 0, 1 ... unless the training data had other labels.
    data : DataSummary, optional
        The data of the run; none for a file.
    """

    path: Path
    network: Network
    pixels: PixelSpec
    metadata: dict[str, str]
    target: float = USUAL_TARGET
    classes: Classes = ()
    data: DataSummary | None = None

    def __post_init__(self) -> None:
        sizes, shape = self.network.layer_sizes, self.pixels.image_shape
        check_target(self.target)
        if math.prod(shape) != sizes[0]:
            raise InputError(f"images of {shape[0]} x {shape[1]}: expected {sizes[0]:,} pixels")
        if not self.classes:
            object.__setattr__(self, "classes", tuple(range(sizes[-1])))
        elif len(self.classes) != sizes[-1]:
            raise InputError(f"{len(self.classes)} classes: expected {sizes[-1]}")

    @property
    def data_name(self) -> str:
        """The name of the data that it was trained on, "" if the file has none."""
        return self.metadata.get("data", "")

    def known_metadata(self) -> dict[str, str]:
        """The metadata for other files: without the layers and the place in a run."""
        origin = {name: self.metadata[name] for name in ORIGIN if name in self.metadata}
        known = to_metadata(pixels=self.pixels, target=self.target, classes=self.classes)
        return origin | known

    @classmethod
    def read(cls, path: StrPath) -> TrainedNetwork:
        """Read a file of weights, or the best network of a run, which may be in training.

        An InputError when there is no network, or a file is damaged or does not fit its run.
        """
        file, data = Path(path), None
        if not os.path.lexists(file):
            expected = "the folder of a run or of a committee, or a .safetensors file"
            raise InputError(f"{shown(file)} does not exist: expected {expected}")
        if os.path.isdir(file):
            file /= BEST
            if not os.path.lexists(file):
                runs = sorted(each.parent for each in Path(path).glob(f"*/{BEST}"))
                hint = f", such as {shown(runs[0])}" if runs else ""
                if not (runs or holds_run(path)) and [*Path(path).glob("[!.]*")]:
                    hint = f"; mlpcore evaluate takes data as --data {shown(path)}"
                raise InputError(
                    f"{shown(path)} holds no {BEST}: expected a run of at least one epoch{hint}"
                )
            config, data = read_settings(path)
            network, metadata = read_run_network(file, config, data)
        else:
            network, metadata = read_network(file)
        try:
            target = from_json(metadata.get("target", f"{USUAL_TARGET}"), float)
            classes = from_json(metadata.get("classes", "[]"), Classes)
            if "pixels" not in metadata:
                expected = "expected a file of a run, or its export"
                raise InputError(f"its metadata name no pixels: {expected}")
            pixels = from_json(metadata["pixels"], PixelSpec)
            return cls(file, network, pixels, metadata, target, classes, data)
        except InputError as error:
            raise InputError(f"{shown(file)}: {error}") from None
