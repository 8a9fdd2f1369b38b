"""Trained networks from the folder of a run or a file of weights, with their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.network import Network
from mlpcore.network.activation import check_target
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import read_run_network, read_settings, weights_file
from mlpcore.store.weights import read_network
from mlpcore.training.config import USUAL_TARGET
from mlpcore.typing import StrPath


@dataclass(frozen=True)
class TrainedNetwork:
    """A network as it was saved.

    Attributes
    ----------
    path : Path
        The file of weights.
    network : Network
    input : NetworkInput
        The images that it takes.
    metadata : dict
        The metadata of the file, which `mlpcore.store.weights` describes.
    target : float
        Target of the output for the class, of a network of the loss "squared".
    classes : tuple of int, float or str
        What each output stands for: 0, 1 ... unless the data of the training had other labels.
    data : DataSummary, optional
        The data of the run; none for a file.
    """

    path: Path
    network: Network
    input: NetworkInput
    metadata: dict[str, str]
    target: float = USUAL_TARGET
    classes: tuple[int | float | str, ...] = ()
    data: DataSummary | None = None

    def __post_init__(self) -> None:
        n = self.network.layer_sizes[-1]
        if not self.classes:
            object.__setattr__(self, "classes", tuple(range(n)))
        elif len(self.classes) != n:
            raise InputError(f"{shown(self.path)}: {len(self.classes)} classes, expected {n}")

    @classmethod
    def read(cls, path: StrPath) -> TrainedNetwork:
        """Read a file of weights, or the best network of a run, which may be in training.

        Raises
        ------
        InputError
            When there is no network, or a file is damaged or does not fit its run.
        """
        file = weights_file(path)
        if file != Path(path):
            config, data = read_settings(path)
            network, metadata = read_run_network(file, config, data)
            network_input = NetworkInput.of(data, config.input_range, config.width)
            classes = data.classes or ()
            return cls(file, network, network_input, metadata, config.target, classes, data)
        network, metadata = read_network(file)
        try:
            network_input = NetworkInput.from_metadata(metadata, network.layer_sizes[0])
            target, classes = _target(metadata), _classes(metadata)
        except InputError as error:
            raise InputError(f"{shown(file)}: {error}") from None
        return cls(file, network, network_input, metadata, target, classes)

    @property
    def assumption(self) -> str:
        """A line that says what was assumed, if `input.assumed`."""
        if not self.input.data:
            return f"{shown(self.path)} does not name its data: taken for a network of MNIST's"
        height, width = self.input.image_shape
        return (
            f"{shown(self.path)} does not say how large the images of {shown(self.input.data)} "
            f"were before they became {height} x {width}: taken for as large"
        )


def _classes(metadata: dict[str, str]) -> tuple[int | float | str, ...]:
    """The classes that a file of weights names; most do not, because they are 0, 1 ..."""
    text = metadata.get("classes", "[]")
    try:
        return msgspec.json.decode(text, type=tuple[int | float | str, ...])
    except msgspec.MsgspecError:
        raise InputError("classes in the metadata: expected a list of labels") from None


def _target(metadata: dict[str, str]) -> float:
    """The target that a file of weights records; files did not always have it."""
    text = metadata.get("target", str(USUAL_TARGET))
    try:
        target = float(text)
    except ValueError:
        raise InputError(f"target {text[:40]!r} in the metadata: expected a number") from None
    check_target(target)
    return target
