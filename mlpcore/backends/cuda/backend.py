"""The CUDA backend: the paper's kernels on an NVIDIA device, or under the emulation.

Data and weights stay on the device between calls; of an epoch, only counts come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from mlpcore import philox
from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.base import (
    IMAGES_PER_GRID,
    MARGIN,
    TAPS,
    Backend,
    LearningRate,
    Poll,
    Progress,
    TrainingResult,
    check_array,
    check_place,
    layer_rates,
    layer_shape,
)
from mlpcore.backends.cuda import launch as cuda_launch
from mlpcore.backends.cuda import streaming as cuda_training
from mlpcore.backends.cuda.memory import DeviceArray, DeviceNetwork, Driver
from mlpcore.backends.cuda.plan import VERSIONS, DoesNotFit, make_plan
from mlpcore.backends.cuda.resident import Resident, ResidentStepper
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import check_target
from mlpcore.typing import AnyArray, BackendArray, DTypeLike, Float32Array

#: Where the weights are while a network trains, the faster first.
SCHEDULES = ("resident", "streaming")

#: Steps of a captured graph: a thousand kernels or more for each call from Python.
STEPS_PER_GRAPH = 64

#: Grids deformed at a time, and the floats of their noise above which there are fewer.
GRIDS_AT_A_TIME = 32
NOISE_FLOATS = 1 << 26


class CudaBackend(Backend):
    """The operations as kernel launches on a driver.

    Parameters
    ----------
    driver
        Runs the launches: PyCUDA's, or the emulation's.
    steps_per_graph
        Training steps of a captured graph; 0 launches each kernel from Python.
    schedule
        ``"resident"`` keeps the weights of a network that fits in the multiprocessors while it
        trains; ``"streaming"`` launches kernels for each layer, as do networks that do not
        fit. They differ in rounding and speed only. By default what the driver says.
    version
        Of the resident kernel, one of `resident_plan.VERSIONS`; for comparison.

    Raises
    ------
    InputError
        When there is no such schedule.
    """

    threads = 1

    def __init__(
        self,
        driver: Driver,
        steps_per_graph: int = STEPS_PER_GRAPH,
        schedule: str | None = None,
        version: str = VERSIONS[-1],
    ):
        self.schedule = driver.default_schedule if schedule is None else schedule
        if self.schedule not in SCHEDULES:
            expected = f"{' or '.join(SCHEDULES)} with the backend {driver.name}"
            raise InputError(f"schedule {schedule!r}: expected {expected}")
        self.version = version
        #: Why the network that was loaded last is not resident, if it was to be.
        self.notice: str | None = None
        self.driver = driver
        self.name = driver.name
        self.steps_per_graph = steps_per_graph
        self._keys: DeviceArray | None = None
        self._workspace: tuple[DeviceArray, DeviceArray] | None = None
        self._committees: dict[tuple[tuple[int, ...], int], Resident | None] = {}

    @property
    def description(self) -> str:
        if self.notice:
            return f"{self.driver.description}, streaming schedule: {self.notice}"
        return f"{self.driver.description}, {self.schedule} schedule"

    # ---- residency ---------------------------------------------------------------------

    def put(self, array: AnyArray) -> DeviceArray:
        array = np.asarray(array)
        result = DeviceArray(self.driver, array.shape, array.dtype)
        result.set(array)
        return result

    def load(self, network: Network) -> DeviceNetwork:
        loaded = DeviceNetwork(self.driver, network)
        if self.schedule == "resident":
            try:
                loaded.resident = self._make_resident(network.layer_sizes, 1)
                self.notice = None
            except DoesNotFit as reason:
                self.notice = str(reason)
        return loaded

    def _make_resident(self, sizes: tuple[int, ...], networks: int) -> Resident:
        plan = make_plan(sizes, self.driver.limits, networks)
        return Resident(self.driver, plan, networks, self.version)

    def store(self, loaded: DeviceNetwork, network: Network) -> None:
        loaded.store(network)

    def reserve(self, network: DeviceNetwork, images: DeviceArray, labels: DeviceArray) -> None:
        n, height, width = images.shape
        if images.nbytes == 0:
            return
        self._fields(height, width, 0, n)
        self._sort_keys(n)
        with self.driver.active():
            order = cuda_training.room_for_order(network, n)
            if network.resident is None:
                self._stepper(network, images, labels, order).prepare(n)

    def _resident(
        self,
        name: str,
        array: BackendArray,
        shape: tuple[int | None, ...],
        dtype: DTypeLike = np.float32,
    ) -> DeviceArray:
        """The array on the device, checked as `check_array` does; NumPy's are put there."""
        if not isinstance(array, DeviceArray):
            return self.put(check_array(name, array, shape, dtype))
        lengths = zip(shape, array.shape)
        fits = len(shape) == len(array.shape) and all(a in (None, b) for a, b in lengths)
        if not fits or array.dtype != dtype:
            expected = ", ".join("any" if length is None else str(length) for length in shape)
            raise InputError(
                f"{name}: {array.dtype} of shape {array.shape}, "
                f"expected {np.dtype(dtype)} of shape ({expected})"
            )
        return array

    def _empty(self, *shape: int) -> DeviceArray:
        return DeviceArray(self.driver, shape, np.float32)

    def _run(self, launches: list[cuda_launch.Launch]) -> None:
        with self.driver.active():
            for launch in launches:
                self.driver.launch(launch)

    # ---- one layer ---------------------------------------------------------------------

    def forward(self, network: DeviceNetwork, layer: int, inputs: BackendArray) -> Float32Array:
        n_in, n_out = layer_shape(network, layer)
        inputs = self._resident("inputs", inputs, (None, n_in))
        outputs, w = self._empty(len(inputs), n_out), network.layers[layer]
        for i in range(len(inputs)):
            x, y = inputs[i:].address, outputs[i:].address
            self._run(cuda_launch.forward(w, x, network.partials, y))
        return np.asarray(outputs)

    def backward(
        self, network: DeviceNetwork, layer: int, deltas: BackendArray, states: BackendArray
    ) -> Float32Array:
        n_in, n_out = layer_shape(network, layer)
        deltas = self._resident("deltas", deltas, (None, n_out))
        states = self._resident("states", states, (len(deltas), n_in))
        below, w = self._empty(len(deltas), n_in), network.layers[layer]
        for i in range(len(deltas)):
            d, y, out = deltas[i:].address, states[i:].address, below[i:].address
            self._run(cuda_launch.backward(w, d, y, network.partials, out))
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
        inputs = self._resident("inputs", inputs, (None, n_in))
        deltas = self._resident("deltas", deltas, (len(inputs), n_out))
        with self.driver.active():
            network.set_rates(layer_rates(network, learning_rate))
        for i in range(len(inputs)):
            x, d = inputs[i:].address, deltas[i:].address
            self._run(cuda_launch.update(network.layers[layer], x, d, network.rate(layer)))
        with self.driver.active():
            self.driver.synchronize()

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
    ) -> TrainingResult:
        one = [network], [images], [labels], [order]
        (result,) = self._train(*one, learning_rate, target, progress)
        return result

    def train_committee(
        self,
        networks: list[DeviceNetwork],
        images: list[BackendArray],
        labels: list[BackendArray],
        orders: list[BackendArray],
        learning_rate: LearningRate,
        progress: Progress | None = None,
        target: float = 1.0,
    ) -> list[TrainingResult]:
        """`train` for several networks of the same layer sizes, each on samples of its own.

        One network occupies a device badly, because it waits most of the time. With the
        resident schedule, all of them train in the same launches, each on multiprocessors of
        its own; if they do not fit together, or with the streaming schedule, one after another.

        Parameters
        ----------
        networks, images, labels, orders
            As for `train`, one of each for each network; orders are of the same length.
        learning_rate, target
            For all.
        progress
            Of each network, with the number of samples that it has done.
        """
        sizes = {network.layer_sizes for network in networks}
        lengths = {len(each) for each in (networks, images, labels, orders)}
        if len(sizes) != 1 or len(lengths) != 1 or len({len(order) for order in orders}) != 1:
            raise InputError(
                f"a committee of layers {sorted(sizes)}: expected networks of the same sizes, "
                "and images, labels and an order for each, all orders of the same length"
            )
        return self._train(networks, images, labels, orders, learning_rate, target, progress)

    def _train(
        self,
        networks: list[DeviceNetwork],
        images: list[BackendArray],
        labels: list[BackendArray],
        orders: list[BackendArray],
        learning_rate: LearningRate,
        target: float,
        progress: Progress | None,
    ) -> list[TrainingResult]:
        """Results of the networks, which train together or one after another."""
        images = [
            self._resident("images", each, (None, network.layer_sizes[0]))
            for network, each in zip(networks, images)
        ]
        labels = [
            self._resident("labels", each, (len(of),), np.uint8) for each, of in zip(labels, images)
        ]
        orders = [self._resident("order", order, (None,), np.int32) for order in orders]
        layer_rates(networks[0], learning_rate)
        check_target(target)
        if len(orders[0]) == 0:
            return [TrainingResult(0, 0, 0.0)] * len(networks)
        for network, order, of in zip(networks, orders, images):
            self._check_order(network, order, len(of))
        n_steps, results = len(orders[0]), []
        with self.driver.active():
            orders = [self._keep_order(*each) for each in zip(networks, orders)]
            resident = networks[0].resident if len(networks) == 1 else self._committee(networks)
            if resident is not None:
                stepper = ResidentStepper(resident, networks, images, labels, orders)
                return cuda_training.train(
                    networks, stepper, n_steps, learning_rate, target, progress
                )
            for one in zip(networks, images, labels, orders):
                arguments = self._stepper(*one), n_steps, learning_rate, target, progress
                results += cuda_training.train([one[0]], *arguments)
        return results

    def _keep_order(self, network: DeviceNetwork, order: DeviceArray) -> DeviceArray:
        """A copy of an order, where the network's graphs look for it."""
        room = cuda_training.room_for_order(network, len(order))
        self.driver.copy(room.address, order.address, order.nbytes)
        return room

    def _committee(self, networks: list[DeviceNetwork]) -> Resident | None:
        """What trains so many networks of these sizes together; kept for the next epoch."""
        key = networks[0].layer_sizes, len(networks)
        if self.schedule == "resident" and key not in self._committees:
            try:
                self._committees = {key: self._make_resident(*key)}
            except DoesNotFit as reason:
                self.notice = str(reason)
                self._committees = {key: None}
        return self._committees.get(key)

    def _stepper(
        self,
        network: DeviceNetwork,
        images: DeviceArray,
        labels: DeviceArray,
        order: DeviceArray,
    ) -> cuda_training.Stepper:
        return cuda_training.Stepper(network, images, labels, order, self.steps_per_graph)

    def _check_order(self, network: DeviceNetwork, order: DeviceArray, n_images: int) -> None:
        """Raises InputError unless all numbers are images'; one count comes back."""
        check = cuda_launch.check_order(order.address, len(order), n_images, network.errors)
        if self._count(network, check):
            numbers = np.asarray(order)
            raise InputError(
                f"order: from {numbers.min()} to {numbers.max()}, expected 0 to {n_images - 1}"
            )

    def _count(self, network: DeviceNetwork, launches: Iterable[cuda_launch.Launch]) -> int:
        """What launches add to the network's count."""
        count = np.zeros(1, np.int32)
        with self.driver.active():
            self.driver.upload(network.errors, count)
            for launch in launches:
                self.driver.launch(launch)
            self.driver.download(count, network.errors)
        return int(count[0])

    def _predict(
        self, network: DeviceNetwork, images: DeviceArray
    ) -> Iterator[tuple[int, int, int]]:
        """Yields (begin, end, address of outputs) for batches of images, in order."""
        for begin in range(0, len(images), network.batch):
            end = min(begin + network.batch, len(images))
            states = images[begin:].address
            for i, layer in enumerate(network.layers):
                outputs = network.outputs[i % 2]
                self._run(cuda_launch.predict_layer(layer, states, end - begin, outputs))
                states = outputs
            yield begin, end, states

    def predict(self, network: DeviceNetwork, images: BackendArray) -> Float32Array:
        images = self._resident("images", images, (None, network.layer_sizes[0]))
        result = np.empty((len(images), network.layer_sizes[-1]), np.float32)
        for begin, end, outputs in self._predict(network, images):
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
        images = self._resident("images", images, (None, network.layer_sizes[0]))
        labels = self._resident("labels", labels, (len(images),), np.uint8)
        n_out = network.layer_sizes[-1]

        def launches() -> Iterator[cuda_launch.Launch]:
            for begin, end, outputs in self._predict(network, images):
                of = labels[begin:].address
                yield from cuda_launch.count_errors(outputs, end - begin, n_out, of, network.errors)
                if poll is not None:
                    self.driver.synchronize()
                    poll()

        return self._count(network, launches())

    # ---- what an epoch draws at random -------------------------------------------------

    def permutation(
        self, n: int, seed: int, epoch: int, out: BackendArray | None = None
    ) -> DeviceArray:
        out = self._target(out, (n,), np.int32)
        if n:
            keys = self._sort_keys(n).address
            key = philox.split_seed(seed)
            self._run(cuda_launch.permutation(key, epoch, n, keys, out.address))
        return out

    def _sort_keys(self, n: int) -> DeviceArray:
        """Room for the sort keys of n images, kept for the next epoch."""
        if self._keys is None or len(self._keys) < n:
            self._keys = None
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
        labels = self._resident("labels", labels, (None,), np.uint8)
        angles = self._resident("angles", angles, (N_LABELS,), np.float64)
        n, key = len(labels), philox.split_seed(seed)
        out = self._target(out, (n, 2, 2))
        if n:
            addresses = angles.address, scale, key, epoch, out.address
            self._run(cuda_launch.affine_maps(labels.address, n, first, *addresses))
            with self.driver.active():
                self.driver.synchronize()  # before the angles' memory goes
        return out

    def _target(
        self, out: BackendArray | None, shape: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> DeviceArray:
        """Where a result goes: `out`, if that is given and fits."""
        if out is None:
            return DeviceArray(self.driver, shape, dtype)
        if not isinstance(out, DeviceArray):
            raise InputError(f"out: {type(out).__name__}, expected an array on the device")
        return self._resident("out", out, shape, dtype)

    # ---- deformation -------------------------------------------------------------------

    def noise(self, seed: int, epoch: int, grid: int, height: int, width: int) -> Float32Array:
        shape = cuda_launch.noise_shape(height, width)
        result = self._empty(2, *shape)
        key = philox.split_seed(seed)
        self._run(cuda_launch.noise(key, epoch, grid, 1, shape, result.address))
        return np.asarray(result)

    def displacement_field(
        self, noise: BackendArray, taps: BackendArray, alpha: float
    ) -> Float32Array:
        noise, taps, out = self._field_arrays(noise, taps)
        _, rows, columns = noise.shape
        middle = self._empty(2, rows - MARGIN, columns)
        launches = cuda_launch.displacement_field(
            2, (rows, columns), noise.address, taps.address, alpha, middle.address, out.address
        )
        self._run(launches)
        return np.asarray(out)

    def displacement_field_listing(
        self, noise: BackendArray, taps: BackendArray, alpha: float
    ) -> Float32Array:
        """`displacement_field` by the paper's kernel, for comparison."""
        noise, taps, out = self._field_arrays(noise, taps)
        launches = cuda_launch.displacement_field_listing(
            2, noise.shape[1:], noise.address, taps.address, alpha, out.address
        )
        self._run(launches)
        return np.asarray(out)

    def _field_arrays(
        self, noise: BackendArray, taps: BackendArray
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        noise = self._resident("noise", noise, (2, None, None))
        taps = self._resident("taps", taps, (TAPS,))
        _, rows, columns = noise.shape
        if min(rows, columns) < TAPS:
            raise InputError(f"noise: {rows} x {columns} cells, expected {TAPS} or more a side")
        return noise, taps, self._empty(2, rows - MARGIN, columns - MARGIN)

    def deform_by(
        self, images: BackendArray, affine: BackendArray, displacement: BackendArray
    ) -> Float32Array:
        images = self._resident("images", images, (None, None, None))
        n, height, width = images.shape
        affine = self._resident("affine", affine, (n, 2, 2))
        displacement = self._resident("displacement", displacement, (n, 2, height, width))
        out = self._empty(n, height, width)
        if out.nbytes:
            addresses = affine.address, displacement.address, out.address
            self._run(cuda_launch.deform_by(images.address, images.shape, *addresses))
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
    ) -> DeviceArray:
        images = self._resident("images", images, (None, None, None))
        n, height, width = images.shape
        check_place(epoch, first, n)
        affine = self._resident("affine", affine, (n, 2, 2))
        taps = self._resident("taps", taps, (TAPS,))
        out = self._target(out, images.shape)
        if n * height * width == 0:
            return out
        fields = self._fields(height, width, first, n)
        for begin, end in _by_grids(first, n, len(fields[0])):
            here = slice(begin - first, end - first)
            part = images[here], affine[here], out[here]
            self._deform_grids(part, fields, taps, alpha, seed, epoch, begin)
        with self.driver.active():
            self.driver.synchronize()
        return out

    def _deform_grids(
        self,
        part: tuple[DeviceArray, DeviceArray, DeviceArray],
        fields: tuple[DeviceArray, DeviceArray],
        taps: DeviceArray,
        alpha: float,
        seed: int,
        epoch: int,
        first: int,
    ) -> None:
        """Images, maps and results of a few grids, whose fields fit into the workspace."""
        images, affine, out = part
        noise, middle = (array.address for array in fields)
        n, height, width = images.shape
        shape, key = cuda_launch.noise_shape(height, width), philox.split_seed(seed)
        grid = first // IMAGES_PER_GRID
        n_grids = (first + n - 1) // IMAGES_PER_GRID + 1 - grid
        launches = cuda_launch.noise(key, epoch, grid, n_grids, shape, noise)
        launches += cuda_launch.displacement_field(
            2 * n_grids, shape, noise, taps.address, alpha, middle, noise
        )
        launches += cuda_launch.deform(
            images.address, first, (n, height, width), affine.address, noise, out.address
        )
        self._run(launches)

    def _fields(
        self, height: int, width: int, first: int, n: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """Memory for the noise, then the fields, of some grids, and for what lies between.

        Kept for the next epoch, when the same shape and as many grids will be wanted.
        """
        rows, columns = cuda_launch.noise_shape(height, width)
        grids = (first + n - 1) // IMAGES_PER_GRID - first // IMAGES_PER_GRID + 1
        grids = min(grids, GRIDS_AT_A_TIME, max(1, NOISE_FLOATS // (2 * rows * columns)))
        fields = self._workspace
        if fields is None or fields[0].shape[2:] != (rows, columns) or len(fields[0]) < grids:
            fields = self._workspace = None  # given back before more is taken
            noise = self._empty(grids, 2, rows, columns)
            fields = self._workspace = noise, self._empty(grids, 2, rows - MARGIN, columns)
        return fields


def _by_grids(first: int, n: int, grids: int) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) image numbers that lie in at most so many grids."""
    begin, stop = first, first + n
    while begin < stop:
        end = min(stop, (begin // IMAGES_PER_GRID + grids) * IMAGES_PER_GRID)
        yield begin, end
        begin = end
