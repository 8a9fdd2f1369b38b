"""The CUDA backend: the paper's kernels on an NVIDIA device, or under the tests' emulation.

Data and weights stay on the device between calls. After an epoch only counts are copied back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from mlpcore import philox
from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.arguments import (
    MARGIN,
    MAX_IMAGES,
    TAPS,
    check_alpha,
    check_array,
    check_noise,
    check_place,
    check_scale,
    check_shape,
    layer_shape,
)
from mlpcore.backends.base import Backend, LearningRate, Poll, Progress, TrainingResult
from mlpcore.backends.cuda import launch as kernels
from mlpcore.backends.cuda.deformation import FieldMemory
from mlpcore.backends.cuda.joint import JointLaunches, joint_launches
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray, Driver, ResidentKernel, put
from mlpcore.backends.cuda.network import DeviceNetwork
from mlpcore.backends.cuda.plan import DoesNotFit, ResidentPlan, make_plan
from mlpcore.backends.cuda.resident import ResidentNetwork
from mlpcore.backends.cuda.streaming import StreamingNetwork
from mlpcore.backends.rates import layer_rates
from mlpcore.checks import check_whole
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import check_target
from mlpcore.typing import AnyArray, BackendArray, DTypeLike, Float32Array

#: Where the weights are while a network trains, the faster schedule first.
SCHEDULES = ("resident", "streaming")

#: Schedules of resident networks that share a device, and how many do.
SHARED = {"resident-2": 2, "resident-4": 4, "resident-8": 8}


class CudaBackend(Backend):
    """The operations as kernel launches on a driver.

    Parameters
    ----------
    driver
        Runs the launches: PyCUDA's driver, or the emulation.
    schedule
        ``"resident"`` (the default) keeps the weights of a network that fits in the
        multiprocessors while it trains. ``"streaming"`` launches kernels for each layer, which
        is also done for networks that do not fit. The two differ in rounding and speed only.
        ``"resident-2"``, ``"resident-4"`` and ``"resident-8"`` give a network so small a part of
        the multiprocessors that so many networks train in the same launches, each by a backend
        and in a thread of its own. What does not fit into its part is refused.

    Raises
    ------
    InputError
        When there is no such schedule.
    """

    can_weight = False

    def __init__(self, driver: Driver, schedule: str | None = None):
        self._schedule = SCHEDULES[0] if schedule is None else schedule
        if self.schedule not in (*SCHEDULES, *SHARED):
            expected = f"{', '.join((*SCHEDULES, *SHARED))} with the backend {driver.name}"
            raise InputError(f"schedule {schedule!r}: expected {expected}")
        #: Why the last network streams although its schedule is resident.
        self.notice: str | None = None
        self.driver = driver
        self._keys: DeviceArray | None = None
        self._fields = FieldMemory(driver)

    @property
    def name(self) -> str:
        return self.driver.name

    @property
    def schedule(self) -> str:
        return self._schedule

    @property
    def description(self) -> str:
        if self.notice:
            return f"{self.driver.description}, streaming schedule: {self.notice}"
        return f"{self.driver.description}, {self.schedule} schedule"

    # ---- residency ---------------------------------------------------------------------

    def put(self, array: AnyArray) -> DeviceArray:
        return put(self.driver, array)

    def load(self, network: Network) -> DeviceNetwork:
        if self.schedule in SHARED:
            joint = self._joint_launches(network)
            return ResidentNetwork(self.driver, network, joint.kernel, joint)
        kernel = self._resident_kernel(network) if self.schedule == "resident" else None
        if kernel is None:
            return StreamingNetwork(self.driver, network)
        return ResidentNetwork(self.driver, network, kernel)

    def _resident_kernel(self, network: Network) -> ResidentKernel | None:
        """The kernel that trains such networks, or None and a notice."""
        try:
            with self.driver.active():
                kernel = self.driver.specialise(self._plan(network))
        except DoesNotFit as reason:
            self.notice = str(reason)
            return None
        self.notice = None
        return kernel

    def _plan(self, network: Network) -> ResidentPlan:
        """The plan of such networks on this backend's part of the device."""
        hidden, output = kernels.activations(network)
        limits, sharing = self.driver.limits, SHARED.get(self.schedule, 1)
        if limits.multiprocessors < sharing:
            raise DoesNotFit(f"the device has {limits.multiprocessors} multiprocessors")
        limits = replace(limits, multiprocessors=limits.multiprocessors // sharing)
        return replace(make_plan(network.layer_sizes, limits), hidden=hidden, output=output)

    def _joint_launches(self, network: Network) -> JointLaunches:
        """Where such networks meet, of whatever backend in this process.

        They cannot stream instead: the graphs of streaming are for one thread.
        """
        try:
            with self.driver.active():
                return joint_launches(self.driver, self._plan(network), SHARED[self.schedule])
        except DoesNotFit as reason:
            raise InputError(f"schedule {self.schedule}: {reason}") from None

    def store(self, loaded: DeviceNetwork, network: Network) -> None:
        loaded.store(network)

    def reserve(self, network: DeviceNetwork, images: DeviceArray, labels: DeviceArray) -> None:
        n, height, width = images.shape
        if images.nbytes == 0:
            return
        self._fields.reserve(height, width, 0, n)
        self._sort_keys(n)
        with self.driver.active():
            network.reserve(images, labels)

    def _on_device(
        self,
        name: str,
        array: BackendArray,
        shape: tuple[int | None, ...],
        dtype: DTypeLike = np.float32,
    ) -> DeviceArray:
        """The array on the device, checked as `check_array` does; a NumPy array is put there."""
        if not isinstance(array, DeviceArray):
            return self.put(check_array(name, array, shape, dtype))
        check_shape(name, array, shape, dtype)
        return array

    def _empty(self, *shape: int) -> DeviceArray:
        return DeviceArray(self.driver, shape, np.float32)

    def _output(
        self, out: BackendArray | None, shape: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> DeviceArray:
        """The array for a result: `out`, if it is given and fits."""
        if out is None:
            return DeviceArray(self.driver, shape, dtype)
        if not isinstance(out, DeviceArray):
            raise InputError(f"out: {type(out).__name__}, expected an array on the device")
        return self._on_device("out", out, shape, dtype)

    def _run(self, launches: Iterable[Launch]) -> None:
        with self.driver.active():
            for launch in launches:
                self.driver.launch(launch)

    def _synchronize(self) -> None:
        with self.driver.active():
            self.driver.synchronize()

    # ---- one layer ---------------------------------------------------------------------

    def forward(self, network: DeviceNetwork, layer: int, inputs: BackendArray) -> Float32Array:
        n_in, n_out = layer_shape(network, layer)
        inputs = self._on_device("inputs", inputs, (None, n_in))
        outputs, weights = self._empty(len(inputs), n_out), network.layers[layer]
        for i in range(len(inputs)):
            x, y = inputs[i:].address, outputs[i:].address
            self._run(kernels.forward(weights, x, network.partials, y))
        self._run(kernels.complete(weights, len(inputs), outputs.address))
        return np.asarray(outputs)

    def backward(
        self, network: DeviceNetwork, layer: int, deltas: BackendArray, states: BackendArray
    ) -> Float32Array:
        n_in, n_out = layer_shape(network, layer)
        deltas = self._on_device("deltas", deltas, (None, n_out))
        states = self._on_device("states", states, (len(deltas), n_in))
        below, weights = self._empty(len(deltas), n_in), network.layers[layer]
        for i in range(len(deltas)):
            delta, y, out = deltas[i:].address, states[i:].address, below[i:].address
            arguments = delta, y, network.partials, out
            self._run(kernels.backward(weights, network.hidden, *arguments))
        return np.asarray(below)

    def update(
        self,
        network: DeviceNetwork,
        layer: int,
        inputs: BackendArray,
        deltas: BackendArray,
        learning_rate: float,
    ) -> None:
        n_in, n_out = layer_shape(network, layer)
        inputs = self._on_device("inputs", inputs, (None, n_in))
        deltas = self._on_device("deltas", deltas, (len(inputs), n_out))
        with self.driver.active():
            network.set_rates(layer_rates(network, learning_rate))
        for i in range(len(inputs)):
            x, delta = inputs[i:].address, deltas[i:].address
            self._run(kernels.update(network.layers[layer], x, delta, network.rate(layer)))
        self._synchronize()

    # ---- the network -------------------------------------------------------------------

    def train(
        self,
        network: DeviceNetwork,
        images: BackendArray,
        labels: BackendArray,
        order: BackendArray,
        learning_rate: LearningRate,
        progress: Progress | None = None,
        target: float = 1.0,
        sample_weight: BackendArray | None = None,
    ) -> TrainingResult:
        if sample_weight is not None:
            raise InputError("sample_weight: the CUDA backend takes none, expected a CPU backend")
        images = self._on_device("images", images, (None, network.layer_sizes[0]))
        labels = self._on_device("labels", labels, (len(images),), np.uint8)
        order = self._on_device("order", order, (None,), np.int32)
        rates = layer_rates(network, learning_rate)
        check_target(target)
        if len(order) == 0:
            return TrainingResult(0, 0, 0.0)
        self._check_order(network, order, len(images))
        with self.driver.active():
            return network.train(images, labels, order, rates, target, progress)

    def _check_order(self, network: DeviceNetwork, order: DeviceArray, n_images: int) -> None:
        """Raises InputError unless every number is that of an image. Only a count comes back."""
        check = kernels.check_order(order.address, len(order), n_images, network.errors)
        if self._count(network, check):
            numbers = np.asarray(order)
            raise InputError(
                f"order: from {numbers.min()} to {numbers.max()}, expected 0 to {n_images - 1}"
            )

    def _count(self, network: DeviceNetwork, launches: Iterable[Launch]) -> int:
        """What launches add to the network's count."""
        count = np.zeros(1, np.int32)
        with self.driver.active():
            self.driver.upload(network.errors, count)
            self._run(launches)
            self.driver.download(count, network.errors)
        return int(count[0])

    def _predict(
        self, network: DeviceNetwork, images: DeviceArray
    ) -> Iterator[tuple[int, int, int]]:
        """Yields (begin, end, address of outputs) for batches of images, in order.

        The outputs of a softmax are sums, which `kernels.complete` turns into probabilities.
        """
        for begin in range(0, len(images), network.batch):
            end = min(begin + network.batch, len(images))
            states = images[begin:].address
            for i, layer in enumerate(network.layers):
                outputs = network.outputs[i % 2]
                self._run(kernels.predict_layer(layer, states, end - begin, outputs))
                states = outputs
            yield begin, end, states

    def predict(self, network: DeviceNetwork, images: BackendArray) -> Float32Array:
        images = self._on_device("images", images, (None, network.layer_sizes[0]))
        result = np.empty((len(images), network.layer_sizes[-1]), np.float32)
        for begin, end, outputs in self._predict(network, images):
            self._run(kernels.complete(network.layers[-1], end - begin, outputs))
            with self.driver.active():
                self.driver.download(result[begin:end], outputs)
        return result

    def count_errors(
        self,
        network: DeviceNetwork,
        images: BackendArray,
        labels: BackendArray,
        poll: Poll | None = None,
    ) -> int:
        images = self._on_device("images", images, (None, network.layer_sizes[0]))
        labels = self._on_device("labels", labels, (len(images),), np.uint8)
        n_out = network.layer_sizes[-1]

        def launches() -> Iterator[Launch]:
            for begin, end, outputs in self._predict(network, images):
                classes = labels[begin:end].address
                yield from kernels.count_errors(
                    outputs, end - begin, n_out, classes, network.errors
                )
                if poll is not None:
                    self.driver.synchronize()
                    poll()

        return self._count(network, launches())

    # ---- what an epoch draws at random -------------------------------------------------

    def permutation(
        self, n: int, seed: int, epoch: int, out: BackendArray | None = None
    ) -> DeviceArray:
        check_whole("n", n, 0, MAX_IMAGES)
        check_place(epoch, 0, n)
        out = self._output(out, (n,), np.int32)
        if n:
            keys, key = self._sort_keys(n).address, philox.split_seed(seed)
            self._run(kernels.permutation(key, epoch, n, keys, out.address))
        return out

    def _sort_keys(self, n: int) -> DeviceArray:
        """Room for the sort keys of n images, kept for the next epoch."""
        if self._keys is None or len(self._keys) < n:
            self._keys = None  # freed before more is taken
            self._keys = DeviceArray(self.driver, (n,), np.uint64)
        return self._keys

    def affine_maps(
        self,
        labels: BackendArray,
        angles: BackendArray,
        scale: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: BackendArray | None = None,
    ) -> DeviceArray:
        labels = self._on_device("labels", labels, (None,), np.uint8)
        angles = self._on_device("angles", angles, (N_LABELS,), np.float64)
        n, key = len(labels), philox.split_seed(seed)
        check_scale(scale)
        check_place(epoch, first, n)
        out = self._output(out, (n, 2, 2))
        if n:
            arguments = n, first, angles.address, scale, key, epoch, out.address
            self._run(kernels.affine_maps(labels.address, *arguments))
            self._synchronize()  # before the memory of the angles is freed
        return out

    # ---- deformation -------------------------------------------------------------------

    def noise(self, seed: int, epoch: int, grid: int, height: int, width: int) -> Float32Array:
        check_noise(epoch, grid, height, width)
        shape, key = kernels.noise_shape(height, width), philox.split_seed(seed)
        result = self._empty(2, *shape)
        self._run(kernels.noise(key, epoch, grid, 1, shape, result.address))
        return np.asarray(result)

    def displacement_field(
        self, noise: BackendArray, taps: BackendArray, alpha: float
    ) -> Float32Array:
        noise = self._on_device("noise", noise, (2, None, None))
        taps = self._on_device("taps", taps, (TAPS,))
        check_alpha(alpha)
        _, rows, columns = noise.shape
        if min(rows, columns) < TAPS:
            raise InputError(f"noise: {rows} x {columns} cells, expected {TAPS} or more a side")
        middle = self._empty(2, rows - MARGIN, columns)
        out = self._empty(2, rows - MARGIN, columns - MARGIN)
        arguments = taps.address, alpha, middle.address, out.address
        self._run(kernels.displacement_field(2, (rows, columns), noise.address, *arguments))
        return np.asarray(out)

    def deform_by(
        self,
        images: BackendArray,
        affine: BackendArray,
        displacement: BackendArray,
        background: float = -1.0,
    ) -> Float32Array:
        images = self._on_device("images", images, (None, None, None))
        n, height, width = images.shape
        affine = self._on_device("affine", affine, (n, 2, 2))
        displacement = self._on_device("displacement", displacement, (n, 2, height, width))
        out = self._empty(n, height, width)
        if out.nbytes:
            arguments = affine.address, displacement.address, background, out.address
            self._run(kernels.deform_by(images.address, images.shape, *arguments))
        return np.asarray(out)

    def deform(
        self,
        images: BackendArray,
        affine: BackendArray,
        taps: BackendArray,
        alpha: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: BackendArray | None = None,
        background: float = -1.0,
    ) -> DeviceArray:
        images = self._on_device("images", images, (None, None, None))
        n = len(images)
        check_place(epoch, first, n)
        check_alpha(alpha)
        affine = self._on_device("affine", affine, (n, 2, 2))
        taps = self._on_device("taps", taps, (TAPS,))
        out = self._output(out, images.shape)
        ends = images.address + images.nbytes, out.address + out.nbytes
        if out.address < ends[0] and images.address < ends[1]:
            raise InputError("out: expected memory that the images do not use")
        if images.nbytes:
            key = philox.split_seed(seed)
            arguments = images, affine, out, taps, alpha, key, epoch, first, background
            self._run(self._fields.launches(*arguments))
            self._synchronize()
        return out
