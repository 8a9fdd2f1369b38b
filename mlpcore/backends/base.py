"""The contract: every operation that a backend computes, its shapes and its meaning.

A backend only computes. It reads no files, prints nothing and makes no choices. `Backend` refuses
arrays of wrong shape or type before anything runs (`mlpcore.backends.arguments`).

Shapes: n samples, h x w pixels, n_in inputs and n_out neurons of a layer. All arrays are
C-contiguous float32 unless stated otherwise. The tests compare every backend with `reference`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mlpcore.backends.arguments import (
    LearningRate,
    check_decay,
    check_range,
    check_weights,
    layer_rates,
)
from mlpcore.backends.deforming import Deforming
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import OF_TARGETS, check_target
from mlpcore.typing import BackendArray, Float32Array, Float64Array, LoadedNetwork, UInt8Array

Progress: TypeAlias = Callable[["TrainingResult"], bool | None]
"""Called during training with the result so far; true means stop."""


Poll: TypeAlias = Callable[[], object]
"""Called now and then during a count. An exception that it raises ends the count."""


@dataclass(frozen=True)
class TrainingResult:
    """The outcome of training. Errors and loss are measured on each sample before its update.

    Attributes
    ----------
    samples
        Samples trained; fewer than asked for when progress said stop.
    errors
        Samples misclassified; meaningless when the loss is not finite, and 0 with targets.
    loss
        Sum of the network's loss (`Network.loss`) over the samples, each times the sample's weight.
    """

    samples: int
    errors: int
    loss: float


@dataclass(frozen=True)
class Samples:
    """Samples of a training run, as `Backend.train` checked them, where the backend computes."""

    images: BackendArray  # (n, n_in)
    labels: BackendArray  # (n,) uint8; the targets (n, n_out) float32 of `OF_TARGETS`
    order: BackendArray  # (m,) int32
    rates: Float64Array  # (n_layers,) of learning
    target: float
    weights: BackendArray  # (n,); None for a backend that takes none
    weight_decay: float


class Backend(Deforming):
    """One way to compute the operations below, and those of `Deforming`."""

    can_weight: bool = True  # whether `train` takes `sample_weight` and `weight_decay`

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that ``--backend`` takes: ``"reference"``, ``"avx2"``, ``"cuda"``."""

    @property
    def threads(self) -> int:
        """Threads that compute; 1 where there is no choice."""
        return 1

    @property
    def schedule(self) -> str | None:
        """When updates are applied, where there is a choice. The bits depend on it."""
        return None

    @property
    @abstractmethod
    def description(self) -> str:
        """One line that says what runs: instruction set and threads, or the device."""

    # ---- the network where the backend computes -----------------------------------------

    def load(self, network: Network) -> LoadedNetwork:
        """The network where this backend computes; `network` itself on a CPU."""
        return network

    def store(self, loaded: LoadedNetwork, network: Network) -> None:
        """Copies the weights of a loaded network back into `network`."""
        if loaded is not network:
            network.assign(loaded)

    def reserve(
        self,
        network: LoadedNetwork,
        images: BackendArray,
        labels: BackendArray,
        taps_shape: tuple[int, int],
    ) -> None:
        """Allocates the other memory of an epoch, so that no run fails midway.

        `images` (n, h, w) and their labels are all, or those of a segment that are handed over in
        the same memory; a Gaussian of this shape deforms them. A device with too little memory
        raises an InputError. A CPU allocates nothing.
        """

    # ---- the network -----------------------------------------------------------------

    def train(
        self,
        network: LoadedNetwork,
        images: BackendArray,
        labels: BackendArray,
        order: BackendArray,
        learning_rate: LearningRate,
        progress: Progress | None = None,
        target: float = 1.0,
        sample_weight: BackendArray | None = None,
        weight_decay: float = 0.0,
    ) -> TrainingResult:
        """On-line back-propagation: one update after each sample, in the given order.

        Parameters
        ----------
        network, images, labels
            As `load` and `put` gave them: images (n, n_in), labels (n,) uint8. For a network of
            a loss of `OF_TARGETS`, which CPUs alone train, they are targets (n, n_out) float32.
        order
            (m,) int32, the image of each step, for example from `mlpcore.philox.permutation`. A CPU
            backend reads `order`, `labels` and `sample_weight` before the first step. What is
            written to them later has no effect.
        learning_rate
            eta in w -= eta dE/dw, E being the network's loss; one for all layers, or one for
            each.
        progress
            Called about twenty times a second with this call's result so far, and once more
            with all of it before the call ends. Training stops when it returns true, or when
            it or a signal handler raises: at the end of a sample, or of a block of samples
            where a backend works by blocks. Training the rest of the order in another call
            then gives the same bits.
        target
            With the squared loss: t for the class; the other outputs have -t.
        sample_weight
            (n,) float32, finite and 0 or more, of the images as `labels` is: the factor of the
            learning rate in each step with the image, and of its loss in the result. 0 means no
            update. None stands for 1 everywhere, with the same bits. Errors count without
            weights.
        weight_decay
            In each step weights, but not biases, shrink by exp(-eta weight_decay) before the
            update, whatever the sample's weight. It is decoupled from the gradient (Loshchilov and
            Hutter 2019, "Decoupled weight decay regularization").
        """
        n_in, n_classes = network.layer_sizes[0], network.layer_sizes[-1]
        images = self._array("images", images, (None, n_in))
        numeric = network.loss in OF_TARGETS
        kind = ((len(images), n_classes), np.float32) if numeric else ((len(images),), np.uint8)
        labels = self._copied_array("labels", labels, *kind)
        order = self._copied_array("order", order, (None,), np.int32)
        check_target(target)
        check_decay(weight_decay)
        self.check_option("sample_weight", sample_weight)
        self.check_option("weight_decay", weight_decay or None)
        if sample_weight is not None:
            shape = (len(images),)
            sample_weight = self._copied_array("sample_weight", sample_weight, shape, np.float32)
            check_weights(sample_weight)
        elif self.can_weight:
            sample_weight = np.ones(len(images), np.float32)
        rates = layer_rates(network, learning_rate)
        if len(order) == 0:
            return TrainingResult(0, 0, 0.0)
        if not numeric:
            check_range("labels", np.asarray(labels), n_classes)
        check_range("order", np.asarray(order), len(images))
        more = float(target), sample_weight, float(weight_decay)
        return self._train(network, Samples(images, labels, order, rates, *more), progress)

    def check_option(self, name: str, value: object) -> None:
        """Raises InputError if an argument that only CPUs take is not None on another device."""
        if value is not None and not self.can_weight:
            raise InputError(f"{name}: the backend {self.name} takes none, expected a CPU backend")

    @abstractmethod
    def _train(
        self, network: LoadedNetwork, samples: Samples, progress: Progress | None
    ) -> TrainingResult:
        """See `train`. There is a sample or more."""

    def stepper(self, network: Network) -> Stepper:
        """A `Stepper`, which trains a network with a few samples a call."""
        return Stepper(self, network)

    def predict(self, network: LoadedNetwork, images: BackendArray) -> Float32Array:
        """Outputs (n, n_classes) of the whole network for images (n, n_in)."""
        return self._predict(network, self._array("images", images, (None, network.layer_sizes[0])))

    @abstractmethod
    def _predict(
        self, network: LoadedNetwork, images: BackendArray, poll: Poll | None = None
    ) -> Float32Array:
        """See `predict`; `poll` is as for `count_errors`."""

    def count_errors(
        self,
        network: LoadedNetwork,
        images: BackendArray,
        labels: BackendArray,
        poll: Poll | None = None,
    ) -> int:
        """The number of misclassified images. Of equal outputs the first counts.

        `poll` is called now and then. An exception from it or from a signal handler ends the
        count.
        """
        images = self._array("images", images, (None, network.layer_sizes[0]))
        labels = self._array("labels", labels, (len(images),), np.uint8)
        guesses = self._predict(network, images, poll).argmax(axis=1)
        return int(np.count_nonzero(guesses != np.asarray(labels)))


class Stepper:
    """Trains a network by one sample, or a few, a call: `Backend.stepper` makes it.

    That of an instruction set keeps the weights in the order in which steps read them, and all
    buffers, from call to call. The same samples in the same order then give the same bits, however
    they are cut into calls. This class is what other backends do: each call is one of
    `Backend.train`.

    The network belongs to the stepper: read it from `network`. Threads may share a stepper of an
    instruction set: no other one learns or predicts in the middle of a sample.
    """

    def __init__(self, backend: Backend, network: Network):
        self._backend, self._network = backend, network
        self._loaded = backend.load(network)

    def train(
        self,
        images: Float32Array | Any,
        labels: UInt8Array,
        learning_rate: LearningRate,
        target: float = 1.0,
        sample_weight: Float32Array | None = None,
        weight_decay: float = 0.0,
    ) -> TrainingResult:
        """Learns samples in the order given.

        Arguments are as those of `Backend.train`, on the host. Images may be a float32 matrix of
        SciPy in compressed sparse rows, in canonical format; this class makes it dense. When the
        loss is not finite, the network is of no use any more.
        """
        put, order = self._backend.put, np.arange(len(labels), dtype=np.int32)
        weights = None if sample_weight is None else put(sample_weight)
        data = put(_dense(images)), put(labels), put(order)
        return self._backend.train(
            self._loaded, *data, learning_rate, None, target, weights, weight_decay
        )

    def predict(self, images: Float32Array) -> Float32Array:
        """Outputs (n, n_classes) for images (n, n_in), both on the host."""
        return self._backend.predict(self._loaded, self._backend.put(_dense(images)))

    @property
    def network(self) -> Network:
        """The network with the weights as they are now, which no later step changes."""
        network = self._network.copy()
        self._backend.store(self._loaded, network)
        return network


def _dense(images: Any) -> Float32Array:
    """Images as an array, which may be those of a sparse matrix."""
    if not hasattr(images, "toarray"):
        return images
    images.check_format(full_check=True)  # SciPy would write where wrong indices point
    return images.toarray()
