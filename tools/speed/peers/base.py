"""What a peer is, another library that does the work of a routine or learns; what all are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from mlpcore import backends
from mlpcore.data.dataset import Dataset
from mlpcore.data.scaling import BACKGROUNDS
from mlpcore.deformation import DeformationParameters, deform
from mlpcore.typing import AnyArray, Float32Array


def not_installed(*modules: str) -> str | None:
    """Which module is not there, or None."""
    return next((f"{name} is not installed" for name in modules if not find_spec(name)), None)


def failure_text(failure: Exception) -> str:
    """What went wrong in another library, in a line."""
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
    """What is learnt: the same data, hidden layers and threads for all."""

    def __init__(self, data: Dataset, hidden: tuple[int, ...], threads: int):
        self.data, self.hidden, self.threads = data, hidden, threads
        self.unit = data.as_inputs("unit")  # with images in [0, 1], as peers get them
        self.layer_sizes = data.n_inputs, *hidden, data.n_classes
        self.backend = backends.get("cpu", threads)
        self.deformation = DeformationParameters(similar_labels=data.similar_labels)
        self._deformed = np.empty_like(self.unit.train_images)

    def deformed(self, seed: int, epoch: int) -> Float32Array:
        """The training set (n, h w) in [0, 1] as a `Trainer` deforms it in this epoch.

        The next call changes the same array.
        """
        images, labels = self.unit.train_images, self.unit.train_labels
        place, background = (seed, epoch, self.backend), BACKGROUNDS["unit"]
        deform(images, labels, self.deformation, *place, out=self._deformed, background=background)
        return self._deformed.reshape(len(labels), -1)

    def error_of(self, layers: Sequence[tuple[AnyArray, AnyArray]]) -> float:
        """Test error in percent of rectifiers: weights (n_out, n_in) and biases of each layer.

        A network that is not finite has no right answers.
        """
        labels = self.unit.test_labels
        y = self.unit.test_images.reshape(len(labels), -1)
        for w, bias in layers[:-1]:
            y = np.maximum(y @ w.T + bias, 0)
        outputs = y @ layers[-1][0].T + layers[-1][1]
        right = (outputs.argmax(axis=1) == labels) & np.isfinite(outputs).all(axis=1)
        return 100 * (1 - float(np.mean(right)))


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
