"""Peers: other libraries that do the work of a routine or learn, and the task that all get."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from mlpcore import backends
from mlpcore.data.dataset import Dataset
from mlpcore.deformation import DeformationParameters, deform
from mlpcore.network import Network
from mlpcore.typing import Float32Array

#: Weights and biases of each layer, in arrays of a library.
Layers: TypeAlias = list[tuple[Any, Any]]


def not_installed(*modules: str) -> str | None:
    """The name of the module that is not there, or None."""
    return next((f"{name} is not installed" for name in modules if not find_spec(name)), None)


def failure_text(failure: Exception) -> str:
    """A line on the failure of another library."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    return f"failed: {text[:120]}"


@dataclass(frozen=True)
class Peer:
    """Another library's way to do the work of a routine.

    `backend` gives, for a number of threads, an object with those methods of a `Backend` that the
    routine calls. `threads` are the numbers to try where so many are allowed. `gpu` says whether
    the library finds a GPU; it is None for a peer that computes on the CPU.
    """

    name: str
    routine: str
    module: str  #: has to be installed
    backend: Callable[[int], Any]
    threads: Callable[[int], set[int]]
    gpu: Callable[[], bool] | None = None

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        no_gpu = f"{self.module} finds no GPU"
        return not_installed(self.module) or (no_gpu if self.gpu and not self.gpu() else None)


class Task:
    """A task to learn: the same data, hidden layers and threads for all."""

    def __init__(self, data: Dataset, hidden: tuple[int, ...], threads: int):
        self.data, self.hidden, self.threads = data, hidden, threads
        self.layer_sizes = data.n_inputs, *hidden, data.n_classes
        self.backend = backends.get("cpu", threads)
        self.deformation = DeformationParameters(similar_labels=data.similar_labels)

    def deformed(self, seed: int, epochs: int) -> Iterator[Float32Array]:
        """The training set (n, h w) in [0, 1] of each epoch, deformed as a `Trainer` does.

        Each changes the array of the one before.
        """
        data = self.data.as_inputs("unit")
        images, labels = data.train_images, data.train_labels
        out = np.empty_like(images)
        for epoch in range(epochs):
            drawing = self.deformation, seed, epoch, self.backend
            deform(images, labels, *drawing, out=out, background=0.0)
            yield out.reshape(len(labels), -1)

    def error_of(self, layers: Layers) -> float:
        """Test error in percent of rectifiers: weights (n_out, n_in) and biases of each layer."""
        network = Network(self.layer_sizes, 0, "relu", "cross-entropy")
        for layer, (w, bias) in enumerate(layers):
            network.weights[layer], network.biases[layer] = w, bias
        images, labels = self.data.as_inputs("unit").test_images, self.data.test_labels
        errors = self.backend.count_errors(network, images.reshape(len(labels), -1), labels)
        return 100 * errors / len(labels)


@dataclass(frozen=True)
class Learner:
    """A way to train, of ours or of a peer.

    `train` gets the numbers of epochs and of the seed, and the peak of the learning rate, which
    ours ignore: a recipe has its own. It returns the seconds of deformation and training, and the
    test error after the last epoch in percent.
    """

    name: str
    settings: str  #: but for the learning rate of a peer
    train: Callable[[Task, int, int, float], tuple[float, float]]
    rates: Mapping[int, float] = field(default_factory=dict)  #: by epochs; empty for ours
    modules: tuple[str, ...] = ()  #: have to be installed

    def rate(self, epochs: int) -> float:
        """The learning rate for a budget: that of the most epochs within it; 0 for ours."""
        within = [n for n in self.rates if n <= epochs]
        return self.rates[max(within)] if within else 0.0

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        return not_installed(*self.modules)
