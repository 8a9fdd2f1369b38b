"""The CUDA backend: the paper's kernels on an NVIDIA device, or under the tests' emulation.

Data and weights stay on the device between calls. Counts and outputs are copied back.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mlpcore import philox
from mlpcore.backends.arguments import GRID, IMAGES_PER_GRID, Shape, check_array, check_shape
from mlpcore.backends.base import Backend, Poll, Progress, Samples, TrainingResult
from mlpcore.backends.cuda.deformation import FieldMemory
from mlpcore.backends.cuda.driver import CudaDriver
from mlpcore.backends.cuda.launch import CU, Launch, activations, ceil_div, for_each, launch
from mlpcore.backends.cuda.memory import DeviceArray
from mlpcore.backends.cuda.network import DeviceNetwork
from mlpcore.backends.cuda.plan import DoesNotFit, make_plan
from mlpcore.backends.cuda.resident import ResidentNetwork
from mlpcore.backends.cuda.streaming import StreamingNetwork
from mlpcore.backends.deforming import Deformation, EpochFields
from mlpcore.data.pixels import PixelSpec, batches
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import OF_TARGETS
from mlpcore.typing import AnyArray, BackendArray, DTypeLike, Float32Array

#: Where the weights are while a network trains, the faster schedule first.
SCHEDULES = ("resident", "streaming")


class CudaBackend(Backend):
    """The operations as kernel launches on a driver: that of a real device, or the emulation.

    The schedule ``"resident"`` (the default) keeps the weights of a network that fits in the
    multiprocessors while it trains. ``"streaming"`` launches kernels for each layer, which is also
    done for networks that do not fit. The two differ in rounding and speed only.
    """

    can_weight = False

    def __init__(self, driver: CudaDriver, schedule: str | None = None):
        self._schedule = SCHEDULES[0] if schedule is None else schedule
        if self.schedule not in SCHEDULES:
            expected = f"{' or '.join(SCHEDULES)} with the backend {driver.name}"
            raise InputError(f"schedule {schedule!r}: expected {expected}")
        #: Why the last network streams although its schedule is resident.
        self.notice: str | None = None
        self.driver = driver
        self._memory = FieldMemory(driver)

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
        result = DeviceArray(self.driver, array.shape, array.dtype)
        if isinstance(array, np.ndarray):
            result.set(array)
            return result
        for part in batches(len(array), math.prod(array.shape[1:])):
            result[part].set(np.asarray(array[part]))
        return result

    def load(self, network: Network) -> DeviceNetwork:
        self.check_option(f"loss {network.loss}", network.loss in OF_TARGETS or None)
        self.notice = None
        if self.schedule == "resident":
            hidden, output = activations(network)
            try:
                plan = make_plan(network.layer_sizes, self.driver.limits)
                with self.driver.active():
                    kernel = self.driver.specialise(replace(plan, hidden=hidden, output=output))
                return ResidentNetwork(self.driver, network, kernel)
            except DoesNotFit as reason:
                self.notice = str(reason)
        return StreamingNetwork(self.driver, network)

    def store(self, loaded: DeviceNetwork, network: Network) -> None:
        loaded.store(network)

    def reserve(
        self,
        network: DeviceNetwork,
        images: DeviceArray,
        labels: DeviceArray,
        taps_shape: tuple[int, int],
    ) -> None:
        n, height, width = images.shape
        if images.nbytes == 0:
            return
        self._memory.reserve(height, width, taps_shape, IMAGES_PER_GRID - 1, n)
        with self.driver.active():
            network.reserve(images, labels)

    def _array(
        self, name: str, array: BackendArray, shape: Shape, dtype: DTypeLike = np.float32
    ) -> DeviceArray:
        """The array on the device; a NumPy array is put there."""
        if not isinstance(array, DeviceArray):
            return self.put(check_array(name, array, shape, dtype))
        check_shape(name, array, shape, dtype)
        return array

    def _unaliased(self, array: DeviceArray, out: DeviceArray) -> DeviceArray:
        ends = array.address + array.nbytes, out.address + out.nbytes
        if out.address < ends[0] and array.address < ends[1]:
            raise InputError("out: expected memory that the images do not use")
        return array

    def _output(
        self, out: BackendArray | None, shape: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> DeviceArray:
        """The array for a result: `out`, if it is given and fits."""
        if out is None:
            return DeviceArray(self.driver, shape, dtype)
        if not isinstance(out, DeviceArray):
            raise InputError(f"out: {type(out).__name__}, expected an array on the device")
        return self._array("out", out, shape, dtype)

    def _run(self, launches: Iterable[Launch], wait: bool = False) -> None:
        """Starts kernels, and may wait for their end, after which memory can be freed."""
        with self.driver.active():
            for each in launches:
                self.driver.launch(each)
            if wait:
                self.driver.synchronize()

    # ---- samples as they came ----------------------------------------------------------

    def take(
        self, array: BackendArray, rows: DeviceArray, out: DeviceArray | None = None
    ) -> DeviceArray:
        n, row_bytes = len(rows), array[:1].nbytes
        out = self._output(out, (n, *array.shape[1:]), array.dtype)
        values = {"source": array.address, "rows": rows.address, "out": out.address}
        grid = n, ceil_div(row_bytes, CU.ELEMENT_THREADS)
        self._run([launch("take_kernel", grid, row_bytes=row_bytes, **values)])
        return out

    def _to_inputs(self, images: DeviceArray, pixels: PixelSpec, out: DeviceArray) -> None:
        values, (n, height, width) = self.put(pixels.values_of_bytes), out.shape
        converted = launch(
            "to_inputs_kernel",
            (n, ceil_div(height * width, CU.ELEMENT_THREADS)),
            pictures=images.address,
            values=values.address,
            in_height=images.shape[1],
            in_width=images.shape[2],
            height=height,
            width=width,
            unit=pixels.input_range == "unit",
            out=out.address,
        )
        self._run([converted], wait=True)

    # ---- the network -------------------------------------------------------------------

    def _train(
        self, network: DeviceNetwork, samples: Samples, progress: Progress | None
    ) -> TrainingResult:
        with self.driver.active():
            return network.train(samples, progress)

    def _predict(
        self, network: DeviceNetwork, images: DeviceArray, poll: Poll | None = None
    ) -> Float32Array:
        n_out = network.layer_sizes[-1]
        result = np.empty((len(images), n_out), np.float32)
        for begin in range(0, len(images), network.batch):
            batch = images[begin : begin + network.batch]
            n, values = len(batch), {"inputs": batch.address}
            launches = []
            for i, layer in enumerate(network.layers):
                grid = ceil_div(layer.n_out, CU.PRODUCT_TILE), ceil_div(n, CU.PRODUCT_TILE)
                values = layer.values | values | {"n": n, "outputs": network.outputs[i % 2]}
                launches.append(launch("predict_layer_kernel", grid, **values))
                values = {"inputs": values["outputs"]}
            if layer.activation == CU.SOFTMAX:  # its outputs are still sums
                outputs = values["inputs"]
                launches.append(launch("softmax_kernel", (n,), n_out=n_out, outputs=outputs))
            self._run(launches)
            with self.driver.active():
                self.driver.download(result[begin : begin + n], values["inputs"])
            if poll is not None:
                poll()
        return result

    # ---- what an epoch draws at random -------------------------------------------------

    def _affine_maps(
        self,
        labels: DeviceArray,
        angles: DeviceArray,
        scale: float,
        seed: int,
        epoch: int,
        first: int,
        out: DeviceArray,
    ) -> None:
        if len(labels):
            values = {"labels": labels.address, "angles": angles.address, "maps": out.address}
            values |= dict(zip(("key0", "key1"), philox.split_seed(seed)))
            values |= {"epoch": epoch, "first": first}
            drawn = for_each("affine_maps_kernel", len(labels), scale=scale, **values)
            self._run([drawn], wait=True)

    # ---- deformation -------------------------------------------------------------------

    def _grid_field(self, height: int, width: int, fields: EpochFields, grid: int) -> Float32Array:
        self._memory.reserve(height, width, fields.taps.shape, 0, 1)
        self._run(self._memory.field_launches(height, width, fields, grid, 1))
        shape = 2, GRID * height, GRID * width
        return np.asarray(self._memory.arrays[0][: math.prod(shape)]).reshape(shape)

    def _deform(self, job: Deformation) -> None:
        if job.out.nbytes:
            table = None if job.values is None else self.put(job.values)
            self._run(self._memory.launches(job, table), wait=True)
