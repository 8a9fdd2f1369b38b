"""A network on a device: its weights, its work buffers, and the loop over samples."""

import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise
from typing import ClassVar

import numpy as np

from mlpcore.backends.base import Progress, Samples, TrainingResult
from mlpcore.backends.cuda.driver import CudaDriver
from mlpcore.backends.cuda.launch import STATE, Layer, activations
from mlpcore.backends.cuda.memory import DeviceArray, allocate
from mlpcore.errors import InputError
from mlpcore.network import Network

#: Seconds between two calls of the caller's progress function.
INTERVAL = 0.05

#: Samples that a validation takes through a layer at a time: enough to fill a device.
PREDICT_BATCH = 4096

#: The batch is smaller where a layer has more outputs than this in all.
PREDICT_FLOATS = 1 << 25


class DeviceNetwork(ABC):
    """A network on a device. Its subclasses are the schedules of training.

    All memory is allocated at once. So a network that does not fit is refused when it is loaded,
    not in the middle of a run.
    """

    granularity: ClassVar[int]
    """Chunks above this are multiples of it."""

    min_chunk: int = 1
    max_chunk: ClassVar[int] = 1 << 30

    def __init__(self, driver: CudaDriver, network: Network):
        self.driver = driver
        self.layer_sizes, self.n_layers = network.layer_sizes, network.n_layers
        self.loss = network.loss
        self.hidden, output = activations(network)
        #: Samples that validation takes at a time.
        self.batch = max(1, min(PREDICT_BATCH, PREDICT_FLOATS // max(self.layer_sizes[1:])))
        self.chunk = self.min_chunk  #: steps to start at a time; adapted to `INTERVAL`
        with driver.active():
            self._allocate(output)
            for layer, weights, biases in zip(self.layers, network.weights, network.biases):
                matrix = np.zeros((layer.rows, layer.stride), np.float32)
                matrix[0, : layer.n_out] = biases
                matrix[1 : layer.n_in + 1, : layer.n_out] = weights.T
                driver.upload(layer.weights, matrix)

    def _allocate(self, output: int) -> None:
        """Sets all addresses. Each has memory of its own, so that sanitizers see its bounds.

        `output` is the activation of the last layer.
        """
        n_inputs, *widths = self.layer_sizes
        layers = [Layer(a, b, 0, self.hidden) for a, b in pairwise(self.layer_sizes)]
        layers[-1] = replace(layers[-1], activation=output)
        lengths = [layer.rows * layer.stride for layer in layers]
        lengths += [n_inputs, *widths, *widths, max(layer.n_partials for layer in layers)]
        lengths += [len(widths), STATE.itemsize // 4, *[self.batch * max(widths)] * 2]
        what = f"a network of layers {', '.join(map(str, self.layer_sizes))}"
        self._memory = allocate(self.driver, what, [4 * length for length in lengths])

        addresses, n = iter(map(int, self._memory)), self.n_layers
        self.layers = [replace(layer, weights=next(addresses)) for layer in layers]
        self.inputs = next(addresses)  #: of one sample, (n_in,)
        self.states = list(islice(addresses, n))  #: (n_out,) for each layer
        self.deltas = list(islice(addresses, n))  #: likewise
        #: Of partial sums, which all layers share, of each layer's learning rate, of a training
        #: state, and of two buffers for the outputs of a layer, (batch, n_out).
        self.partials, self.rates, self.state, *self.outputs = addresses

    def store(self, network: Network) -> None:
        """Copies the weights into a network of the same layer sizes."""
        if network.layer_sizes != self.layer_sizes:
            raise InputError(f"a network of {network.layer_sizes}, expected {self.layer_sizes}")
        with self.driver.active():
            for layer, weights, biases in zip(self.layers, network.weights, network.biases):
                matrix = np.empty((layer.rows, layer.stride), np.float32)
                self.driver.download(matrix, layer.weights)
                biases[...] = matrix[0, : layer.n_out]
                weights[...] = matrix[1 : layer.n_in + 1, : layer.n_out].T

    # ---- training ----------------------------------------------------------------------

    def train(self, samples: Samples, progress: Progress | None) -> TrainingResult:
        """The steps of the order, or those that were done when `progress` stopped or raised.

        Where the schedule looks at the weights, training also ends as soon as one of them is not
        finite. The loss is then NaN.
        """
        state = np.zeros(1, STATE)
        state["target"] = samples.target
        self.driver.upload(self.state, state)
        self.driver.upload(self.rates, samples.rates.astype(np.float32))
        self.begin(samples.images, samples.labels, samples.order)
        try:
            finite = self._train_chunks(len(samples.order), progress)
        except BaseException:
            if progress is not None:
                with suppress(BaseException):  # the first exception wins
                    progress(self._result())
            raise
        result = self._result()
        if not finite:
            result = replace(result, loss=math.nan)
        if progress is not None:
            progress(result)
        return result

    def _train_chunks(self, n_steps: int, progress: Progress | None) -> bool:
        """Trains as many steps at a time as take `INTERVAL`; whether the weights are finite."""
        done = 0
        while done < n_steps:
            chunk = min(self.chunk, n_steps - done)
            if chunk > self.granularity:
                chunk -= chunk % self.granularity
            start = time.perf_counter()
            self.enqueue(done, chunk)
            self.driver.synchronize()
            if not self.weights_are_finite():
                return False
            done += chunk
            if done < n_steps and progress is not None and progress(self._result()):
                break
            elapsed = max(time.perf_counter() - start, 1e-6)
            wanted = min(int(chunk * INTERVAL / elapsed), 8 * chunk)
            self.chunk = max(self.min_chunk, min(wanted, self.max_chunk))
        return True

    def _result(self) -> TrainingResult:
        """The counts of the steps so far, after they have ended."""
        downloaded = np.empty(1, STATE)
        self.driver.download(downloaded, self.state)
        state = downloaded[0]
        return TrainingResult(int(state["step"]), int(state["errors"]), float(state["loss"]))

    # ---- what a schedule does ----------------------------------------------------------

    def reserve(self, images: DeviceArray, labels: DeviceArray) -> None:  # noqa: B027
        """Allocates the other memory that an epoch on these images and labels needs."""

    @abstractmethod
    def begin(self, images: DeviceArray, labels: DeviceArray, order: DeviceArray) -> None:
        """Prepares training on images in an order; all arrays stay alive meanwhile."""

    @abstractmethod
    def enqueue(self, begin: int, steps: int) -> None:
        """Starts `steps` steps, from index `begin` of the order on."""

    def weights_are_finite(self) -> bool:
        """Says whether training can go on; always true where the schedule does not look."""
        return True
