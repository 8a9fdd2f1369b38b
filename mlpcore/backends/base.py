"""The contract: every operation that a backend computes, its shapes and its meaning.

A backend only computes. It reads no files, prints nothing and makes no choices. It refuses arrays
of wrong shape or type before anything runs (`mlpcore.backends.arguments`).

Shapes: n samples, h x w pixels, n_in inputs and n_out neurons of a layer. All arrays are
C-contiguous float32 unless stated otherwise. The tests compare every backend with `reference`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mlpcore import philox
from mlpcore.backends import affine
from mlpcore.backends.arguments import (
    MAX_IMAGES,
    check_array,
    check_finite,
    check_out,
    check_place,
    check_scale,
)
from mlpcore.checks import check_whole
from mlpcore.network import Network
from mlpcore.typing import (
    AnyArray,
    BackendArray,
    Float32Array,
    Float64Array,
    LoadedNetwork,
)

Progress: TypeAlias = Callable[["TrainingResult"], bool | None]
"""Called during training with the result so far; true means stop."""

LearningRate: TypeAlias = float | Sequence[float]
"""One for all layers, or one for each layer, from the first."""

Poll: TypeAlias = Callable[[], object]
"""Called now and then during a count. An exception that it raises ends the count."""


@dataclass(frozen=True)
class TrainingResult:
    """What training has done. Errors and loss are measured on each sample before its update.

    Attributes
    ----------
    samples
        Samples trained; fewer than asked for when progress said stop.
    errors
        Samples misclassified; meaningless when the loss is not finite.
    loss
        Sum of the network's loss over the samples: 1/2 |y - t|^2, or -log y of the class,
        each times the sample's weight.
    """

    samples: int
    errors: int
    loss: float


class Backend(ABC):
    """One way to compute the operations below."""

    can_weight: bool = True  # whether `train` takes `sample_weight`

    @property
    @abstractmethod
    def name(self) -> str:
        """As chosen by ``--backend``: ``"reference"``, ``"avx2"``, ``"cuda"``."""

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

    # ---- residency: where data and weights live between calls -------------------------

    @abstractmethod
    def put(self, array: AnyArray) -> BackendArray:
        """An array where this backend computes; a NumPy array itself on a CPU."""

    @abstractmethod
    def load(self, network: Network) -> LoadedNetwork:
        """The network where this backend computes; `network` itself on a CPU."""

    @abstractmethod
    def store(self, loaded: LoadedNetwork, network: Network) -> None:
        """Copies the weights of a loaded network back into `network`."""

    def reserve(  # noqa: B027
        self, network: LoadedNetwork, images: BackendArray, labels: BackendArray
    ) -> None:
        """Allocates the other memory of an epoch on these arrays, so that no run fails midway.

        `images` is (n, h, w). A device with too little memory raises an InputError. A CPU
        allocates nothing.
        """

    # ---- one layer: the paper's routines ---------------------------------------------

    @abstractmethod
    def forward(self, network: LoadedNetwork, layer: int, inputs: Float32Array) -> Float32Array:
        """Outputs (n, n_out), y(W x + b), of inputs (n, n_in). The activation is the layer's."""

    @abstractmethod
    def backward(
        self, network: LoadedNetwork, layer: int, deltas: Float32Array, states: Float32Array
    ) -> Float32Array:
        """Deltas of the layer below, (n, n_in) = (W^T delta) y'(states).

        `deltas` is (n, n_out); `states` is (n, n_in), the outputs of the hidden layer below.
        y' is (B / A) (A - y) (A + y) of the scaled tanh. Of the rectifier it is 1 where y > 0.
        """

    @abstractmethod
    def update(
        self,
        network: LoadedNetwork,
        layer: int,
        inputs: Float32Array,
        deltas: Float32Array,
        learning_rate: float,
    ) -> None:
        """W -= eta delta x^T and b -= eta delta for each sample in turn.

        `inputs` is (n, n_in) and `deltas` (n, n_out).
        """

    # ---- the network -----------------------------------------------------------------

    @abstractmethod
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
    ) -> TrainingResult:
        """On-line back-propagation: one update after each sample, in the given order.

        Parameters
        ----------
        network, images, labels
            As `load` and `put` gave them: images (n, n_in), labels (n,) uint8.
        order
            (m,) int32, the image of each step, for example from `permutation`. A CPU backend reads
            `order`, `labels` and `sample_weight` before the first step. What is written to them
            later has no effect.
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
        """

    @abstractmethod
    def predict(self, network: LoadedNetwork, images: BackendArray) -> Float32Array:
        """Outputs (n, n_classes) of the whole network for images (n, n_in)."""

    @abstractmethod
    def count_errors(
        self,
        network: LoadedNetwork,
        images: BackendArray,
        labels: BackendArray,
        poll: Poll | None = None,
    ) -> int:
        """How many images are misclassified. Of equal outputs the first counts.

        `poll` is called now and then. An exception from it or from a signal handler ends the
        count.
        """

    # ---- what an epoch draws at random -----------------------------------------------
    # NumPy draws here. A device that holds the data draws the same numbers itself.

    def permutation(
        self, n: int, seed: int, epoch: int, out: BackendArray | None = None
    ) -> BackendArray:
        """The order, (n,) int32, in which an epoch presents n images: `philox.permutation`.

        The result is `out` if given, else a new array where `put` would have put it.
        """
        check_whole("n", n, 0, MAX_IMAGES)
        check_place(epoch, 0, n)
        return self._placed(philox.permutation(n, seed, epoch), out)

    def affine_maps(
        self,
        labels: BackendArray,
        angles: Float64Array,
        scale: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: BackendArray | None = None,
    ) -> BackendArray:
        """Random matrices (n, 2, 2) for images of these labels; see `mlpcore.backends.affine`.

        `labels` is (n,) uint8 and `angles` (256,) float64. Implementations may differ in the last
        bit. The result is `out` if given, else a new array where `put` would have put it.
        """
        labels = check_array("labels", labels, (None,), np.uint8)
        angles = check_finite("angles", angles, (affine.N_LABELS,), np.float64)
        check_scale(scale)
        check_place(epoch, first, len(labels))
        return self._placed(affine.affine_maps(labels, angles, scale, seed, epoch, first), out)

    def _placed(self, drawn: AnyArray, out: BackendArray | None) -> BackendArray:
        """A NumPy array where this backend computes."""
        if out is None:
            return self.put(drawn)
        check_out(out, drawn.shape, drawn.dtype)
        out[...] = drawn
        return out

    # ---- deformation -----------------------------------------------------------------

    @abstractmethod
    def noise(self, seed: int, epoch: int, grid: int, height: int, width: int) -> Float32Array:
        """Uniform noise in [-1, 1] for a grid of h x w images: (2, 10 h + 20, 10 w + 20).

        The numbers are those of `mlpcore.philox.noise`, for x and then y.
        """

    @abstractmethod
    def displacement_field(
        self, noise: Float32Array, taps: Float32Array, alpha: float
    ) -> Float32Array:
        """Displacements in pixels, alpha * (G * noise).

        `noise` is (2, rows, columns). The result has 20 rows and 20 columns fewer.

        `taps` are the 21 weights of the one-dimensional Gaussian; G is their outer product.
        """

    @abstractmethod
    def deform_by(
        self,
        images: Float32Array,
        affine: Float32Array,
        displacement: Float32Array,
        background: float = -1.0,
    ) -> Float32Array:
        """Images (n, h, w) looked up at M (p - c) + c + displacement(p).

        `affine` (n, 2, 2) maps target to source, in (x, y) about the centre c; `displacement`
        (n, 2, h, w) is in pixels, x before y. Bilinear; `background` outside the image. Where
        only background is looked up, the result is exactly that.
        """

    @abstractmethod
    def deform(
        self,
        images: BackendArray,
        affine: BackendArray,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: BackendArray | None = None,
        background: float = -1.0,
    ) -> BackendArray:
        """`deform_by` with the displacements of a training set's epoch, (n, h, w).

        `images` (n, h, w) are number `first` and on of the set: image i takes tile i % 100 of
        the field of grid i // 100. `affine` comes from `affine_maps`. The result is `out` if given,
        else a new array where `put` would have put it.
        """
