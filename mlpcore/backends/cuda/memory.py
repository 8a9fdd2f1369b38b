"""Device memory: arrays, their allocation, and a network's layers and work buffers."""

from __future__ import annotations

import math
from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, SupportsInt

import numpy as np

from mlpcore.backends.cuda.launch import STATE, Launch, Layer
from mlpcore.backends.cuda.plan import Device, Plan
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.typing import AnyArray, DTypeLike, Float32Array, Float64Array

if TYPE_CHECKING:
    from mlpcore.backends.cuda.resident import Resident

#: Samples that a validation takes through a layer at a time: enough to fill a device.
PREDICT_BATCH = 4096

#: Floats of a layer's outputs for a batch, above which fewer samples are taken at a time.
PREDICT_FLOATS = 1 << 25


class Kernel(Protocol):
    """The resident kernel of a plan."""

    def launch(self, blocks: int, arguments: tuple[int, ...]) -> None:
        """Starts it on so many blocks, all resident at once, or raises an InputError."""


class Driver(Protocol):
    """What a device has to offer: PyCUDA's in cuda_driver.py, the emulation's."""

    name: str

    #: Of the two schedules of training, the one that is meant when none is named.
    default_schedule: str

    @property
    def limits(self) -> Device:
        """What the plan of resident training has to know."""

    def specialise(self, plan: Plan, version: str) -> Kernel:
        """The kernel of a plan, ready to launch.

        Raises
        ------
        DoesNotFit
            When it cannot be had, or not run.
        """

    @property
    def description(self) -> str:
        """One line that says what it is."""

    def active(self) -> AbstractContextManager[None]:
        """A context manager within which everything below is called."""

    def free_memory(self) -> int:
        """Bytes that can be allocated."""

    def allocate(self, n_bytes: int) -> SupportsInt:
        """An object whose `int()` is an address, and which frees the memory when it goes."""

    def upload(self, address: int, array: AnyArray) -> None:
        """Copies a C-contiguous array to the device; it can be changed afterwards."""

    def download(self, array: AnyArray, address: int) -> None:
        """Copies to a C-contiguous array, when all launched before is done."""

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        """Copies within the device, behind all launched before."""

    def launch(self, launch: Launch) -> None:
        """Starts a kernel behind all launched before."""

    def capture(self, launches: list[Launch]) -> Any:
        """A graph of launches, one after another."""

    def replay(self, graph: Any) -> None:
        """Starts a graph behind all launched before, in one call."""

    def synchronize(self) -> None:
        """Waits for all that has been launched."""


def allocate(driver: Driver, what: str, sizes: list[int]) -> list[SupportsInt]:
    """Device memory of so many bytes each, or an InputError with what is needed and what free."""
    needed, free = sum(sizes), driver.free_memory()
    if needed > free:
        raise InputError(
            f"{what}: {needed / 2**20:,.1f} MiB ({needed:,} bytes) of device memory needed, "
            f"{free / 2**20:,.1f} MiB ({free:,} bytes) free on {driver.description}"
        )
    return [driver.allocate(max(n_bytes, 1)) for n_bytes in sizes]


class DeviceArray:
    """A C-contiguous array in device memory; NumPy copies it back with `np.asarray`."""

    def __init__(
        self,
        driver: Driver,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        memory: SupportsInt | None = None,
        offset: int = 0,
    ):
        self.driver, self.shape, self.dtype = driver, tuple(shape), np.dtype(dtype)
        if memory is None:
            with driver.active():
                (memory,) = allocate(driver, f"an array of shape {self.shape}", [self.nbytes])
        self._memory = memory
        self.address = int(memory) + offset

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same memory in another shape; -1 for what follows from the rest."""
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        shape = np.broadcast_to(np.empty((), bool), self.shape).reshape(shape).shape
        return self._view(shape, 0)

    def __getitem__(self, rows: slice) -> DeviceArray:
        """Consecutive rows, in the same memory."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise InputError(f"rows {rows}: expected consecutive ones")
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self._view((max(stop - start, 0), *self.shape[1:]), start * row)

    def _view(self, shape: tuple[int, ...], offset: int) -> DeviceArray:
        offset += self.address - int(self._memory)
        return DeviceArray(self.driver, shape, self.dtype, self._memory, offset)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        result = np.empty(self.shape, self.dtype)
        with self.driver.active():
            self.driver.download(result, self.address)
        return result if dtype is None else result.astype(dtype, copy=False)

    def set(self, array: AnyArray) -> None:
        """Copies an array of the same shape and type to the device."""
        with self.driver.active():
            self.driver.upload(self.address, np.ascontiguousarray(array, self.dtype))


def as_matrix(weights: Float32Array, biases: Float32Array, layer: Layer) -> Float32Array:
    """W[connection][neuron], padded with zeros, of weights (n_out, n_in) and biases (n_out)."""
    matrix = np.zeros((layer.rows, layer.stride), np.float32)
    matrix[0, : layer.n_out] = biases
    matrix[1 : layer.n_in + 1, : layer.n_out] = weights.T
    return matrix


class DeviceNetwork:
    """A network's weights and the buffers of its training and validation, on a device.

    All is allocated at once, so that a network that does not fit is refused when it is loaded
    and not in the middle of a run.

    Attributes
    ----------
    layer_sizes, n_layers
        As of `mlpcore.network.Network`.
    layers : list of Layer
    inputs : int
        Address of a sample, (n_in,).
    states, deltas : list of int
        Addresses per layer, (n_out,).
    partials, rates, state, errors : int
        Addresses of partial sums, shared by all layers, of the learning rate of each layer, of a
        training state, and of a count.
    outputs : list of int
        Addresses of two buffers for the outputs of a layer, (batch, n_out).
    batch : int
        Samples that validation takes at a time.
    """

    def __init__(self, driver: Driver, network: Network):
        self.driver = driver
        self.layer_sizes, self.n_layers = network.layer_sizes, network.n_layers
        self.batch = max(1, min(PREDICT_BATCH, PREDICT_FLOATS // max(self.layer_sizes[1:])))
        with driver.active():
            self._allocate()
        self.order: DeviceArray | None = None
        self.graphs: dict[Hashable, Any] = {}
        self.resident: Resident | None = None  # where its weights stay on the chip
        self.assign(network)

    def _allocate(self) -> None:
        """Sets all addresses; memory of its own for each, so that what lies beyond is known."""
        n_inputs, *widths = self.layer_sizes
        layers = [Layer(n_in, n_out, 0) for n_in, n_out in zip(self.layer_sizes, widths)]
        lengths = [layer.rows * layer.stride for layer in layers]
        lengths += [n_inputs, *widths, *widths, max(layer.n_partials for layer in layers)]
        lengths += [len(widths), STATE.itemsize // 4, 1, *[self.batch * max(widths)] * 2]
        what = f"a network of layers {', '.join(map(str, self.layer_sizes))}"
        self._memory = allocate(self.driver, what, [4 * length for length in lengths])

        addresses, n = iter(map(int, self._memory)), self.n_layers
        self.layers = [replace(layer, weights=next(addresses)) for layer in layers]
        self.inputs = next(addresses)
        self.states = list(islice(addresses, n))
        self.deltas = list(islice(addresses, n))
        self.partials, self.rates, self.state, self.errors, *self.outputs = addresses

    def assign(self, network: Network) -> None:
        """Copies the weights of a network to the device."""
        with self.driver.active():
            for layer, weights, biases in zip(self.layers, network.weights, network.biases):
                self.driver.upload(layer.weights, as_matrix(weights, biases, layer))

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

    def set_rates(self, rates: Float64Array) -> None:
        """The learning rate of each layer."""
        self.driver.upload(self.rates, rates.astype(np.float32))

    def rate(self, layer: int) -> int:
        """The address of a layer's learning rate."""
        return self.rates + 4 * layer

    def set_state(self, target: float) -> None:
        """Starts counting anew, with a target."""
        state = np.zeros(1, STATE)
        state["target"] = target
        self.driver.upload(self.state, state)

    def get_state(self) -> np.void:
        """The counts: fields step, errors and loss."""
        state = np.empty(1, STATE)
        self.driver.download(state, self.state)
        return state[0]
