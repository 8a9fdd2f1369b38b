"""What contestants learn for `--to-error`, what they give back, and the error of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.data.scaling import BACKGROUNDS, to_range
from mlpcore.deformation import DeformationParameters, deform
from mlpcore.network import Network
from mlpcore.typing import AnyArray, Float32Array

#: Training images of a run that only warms up.
FEW = 1000


@dataclass(frozen=True, eq=False)
class Lesson:
    """A run: the same data, network, epochs, seed and threads for all contestants."""

    data: Dataset
    hidden: tuple[int, ...]
    epochs: int
    seed: int
    threads: int

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """From the inputs to the outputs."""
        return (self.data.n_inputs, *self.hidden, self.data.n_classes)

    @cached_property
    def backend(self) -> Backend:
        """The fastest of the CPU."""
        return backends.get("cpu", self.threads)

    @cached_property
    def deformation(self) -> DeformationParameters:
        """The paper's."""
        return DeformationParameters(similar_labels=self.data.similar_labels)

    @cached_property
    def unit(self) -> Dataset:
        """The data with images in [0, 1], as peers get them."""
        return self.data.as_inputs("unit")

    @cached_property
    def _deformed(self) -> Float32Array:
        return np.empty_like(self.unit.train_images)

    def deformed(self, epoch: int) -> Float32Array:
        """The training set (n, inputs) in [0, 1] as a `Trainer` deforms it in this epoch.

        The next call changes the same array.
        """
        images, labels = self.unit.train_images, self.unit.train_labels
        settings = self.deformation, self.seed, epoch, self.backend
        background = BACKGROUNDS["unit"]
        deform(images, labels, *settings, out=self._deformed, background=background)
        return self._deformed.reshape(len(labels), self.data.n_inputs)

    def shortened(self) -> Lesson:
        """An epoch of a few images."""
        images, labels = self.data.train_images[:FEW], self.data.train_labels[:FEW]
        data = replace(self.data, train_images=images, train_labels=labels)
        return replace(self, data=data, epochs=1)

    def network(self, layers: Sequence[tuple[AnyArray, AnyArray]]) -> Network:
        """A network of rectifiers and softmax outputs: weights (n_out, n_in) and biases."""
        network = Network(self.layer_sizes, None, "relu", "cross-entropy")
        for w, b, (weights, biases) in zip(network.weights, network.biases, layers):
            w[...], b[...] = weights, biases
        return network

    def error_of(self, trained: Trained) -> float:
        """Test error in percent. A network that is not finite has no right answers."""
        if not trained.network.is_finite():
            return 100.0
        labels, backend = self.data.test_labels, self.backend
        images = to_range(self.data.test_images, trained.input_range)
        inputs = backend.put(images.reshape(len(labels), self.data.n_inputs))
        network = backend.load(trained.network)
        return 100 * backend.count_errors(network, inputs, backend.put(labels)) / len(labels)


@dataclass(frozen=True)
class Trained:
    """A network after its last epoch, the range of its inputs, and the seconds that it took."""

    network: Network
    seconds: float  #: of deformation and training
    input_range: str = "unit"


@dataclass(frozen=True)
class Contestant:
    """A way to train, of ours or of a peer.

    `train` gets the peak of the learning rate, which ours ignore: a recipe has its own.
    """

    name: str
    text: str  #: its settings, but for the learning rate of a peer
    train: Callable[[Lesson, float], Trained]
    start: float | None = None  #: a usual learning rate, where a search begins; None for ours
    modules: tuple[str, ...] = ()  #: have to be installed
    settings: str = ""  #: whose learning rates it uses, if not its own

    @property
    def is_peer(self) -> bool:
        """Whether another library trains."""
        return self.start is not None

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        absent = [name for name in self.modules if find_spec(name) is None]
        return f"{absent[0]} is not installed" if absent else None
