"""Trained networks from the folder of a run or a file of weights, with their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.network import Network
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import read_run_network, read_settings, weights_file
from mlpcore.store.weights import read_network


def read_saved(path: Path) -> tuple[Network, dict[str, str], DataSummary | None]:
    """Read a file of weights, or the best network of a run, which may be in training.

    Returns
    -------
    The network, the metadata of its file, and the data of the run; None for a file.

    Raises
    ------
    InputError
        When there is no network, or a file is damaged or does not fit its run.
    """
    file = weights_file(path)
    if file == path:
        return *read_network(path), None
    config, data = read_settings(path)
    return *read_run_network(file, config, data), data


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
    """

    path: Path
    network: Network
    input: NetworkInput
    metadata: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> TrainedNetwork:
        """Read the network as `read_saved` does."""
        network, metadata, data = read_saved(path)
        file = weights_file(path)
        if data is not None:
            return cls(file, network, NetworkInput.of(data, metadata["input_range"]), metadata)
        try:
            network_input = NetworkInput.from_metadata(metadata, network.layer_sizes[0])
        except InputError as error:
            raise InputError(f"{shown(file)}: {error}") from None
        return cls(file, network, network_input, metadata)

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
