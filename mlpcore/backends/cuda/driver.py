"""The driver of real devices, by cuda-bindings: NVIDIA's driver API.

Nothing is imported and no context is made before a device is asked for. The driver uses the
device's primary context, which PyTorch and CuPy share. It is current only within `active`.
"""

from __future__ import annotations

import atexit
import functools
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from mlpcore.backends.cuda import nvcc
from mlpcore.backends.cuda.launch import KERNELS, Launch
from mlpcore.backends.cuda.plan import DeviceLimits, DoesNotFit, ResidentPlan
from mlpcore.backends.cuda.resident import KERNEL
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray

#: Less free memory than this cannot hold a network and data worth training.
MIN_FREE_BYTES = 256 << 20


class Unavailable(Exception):
    """Why there is no device, in one line."""


class DriverError(RuntimeError):
    """A failure that the driver API reports, in one line."""


def _import_bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise Unavailable(
            f"cuda-bindings cannot be imported ({error}): pip install 'mlpcore[cuda]'"
        ) from error
    return driver


class CudaDriver:
    """The first visible device.

    Raises
    ------
    Unavailable
        When there is none that can run the kernels.
    """

    name = "cuda"

    def __init__(self) -> None:
        self.bindings = _import_bindings()
        try:
            self.call("cuInit", 0)
            self._device = self.call("cuDeviceGet", 0)
            self.device_name = self.call("cuDeviceGetName", 128, self._device).decode().strip("\0 ")
            self._context = self.call("cuDevicePrimaryCtxRetain", self._device)
        except DriverError as error:
            raise Unavailable(f"no CUDA device: {error}") from error
        except RuntimeError as error:  # of cuda-bindings, which finds no libcuda
            raise Unavailable(f"no NVIDIA driver: {' '.join(str(error).split())}") from error
        self.closed = False
        atexit.register(setattr, self, "closed", True)
        with self.active():
            self._check_memory()
            self._load()
            self.stream = self.call("cuStreamCreate", 0)

    @property
    def description(self) -> str:
        """One line: the device, its compute capability and the precision."""
        major, minor = divmod(self.limits.capability, 10)
        return f"cuda: {self.device_name}, compute capability {major}.{minor}, float32"

    @functools.cached_property
    def limits(self) -> DeviceLimits:
        return DeviceLimits(
            self.attribute("MULTIPROCESSOR_COUNT"),
            self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            self.attribute("MAX_REGISTERS_PER_MULTIPROCESSOR"),
            10 * self.attribute("COMPUTE_CAPABILITY_MAJOR")
            + self.attribute("COMPUTE_CAPABILITY_MINOR"),
        )

    def attribute(self, name: str) -> int:
        """An attribute of the device by its name in the driver API, without the prefix."""
        attribute = getattr(self.bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", attribute, self._device))

    def _check_memory(self) -> None:
        free = self.free_memory()
        if free < MIN_FREE_BYTES:
            raise Unavailable(
                f"{self.device_name} has {free / 2**20:,.0f} MiB of memory free, "
                f"{MIN_FREE_BYTES / 2**20:,.0f} needed"
            )

    def _load(self) -> None:
        """Makes the kernels ready to launch.

        Asking for an attribute loads a function's code now. It must not be loaded later, while
        a graph is captured.
        """
        try:
            cubin = nvcc.compiled("kernels.cu", self.limits.capability)
        except nvcc.CannotCompile as error:
            raise Unavailable(f"the kernels cannot be compiled: {error}") from error
        self._module = self.call("cuModuleLoadData", cubin)
        self._functions = {
            name: self.call("cuModuleGetFunction", self._module, name.encode()) for name in KERNELS
        }
        registers = self.bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
        for function in self._functions.values():
            self.call("cuFuncGetAttribute", registers, function)

    def call(self, name: str, *arguments: Any) -> Any:
        """What a function of the driver API returns; DriverError when it fails."""
        bindings = self.bindings
        error, *results = getattr(bindings, name)(*arguments)
        if error != bindings.CUresult.CUDA_SUCCESS:
            _, text = bindings.cuGetErrorString(error)
            raise DriverError(f"{name}: {text.decode() if isinstance(text, bytes) else error}")
        return results[0] if len(results) == 1 else results

    @contextmanager
    def active(self) -> Iterator[None]:
        """Makes the context current for this thread; afterwards the previous one is again.

        A failure of the device is raised as an InputError of one line. It may come from anything
        launched before.
        """
        try:
            self.call("cuCtxPushCurrent", self._context)
            try:
                yield
            finally:
                self.call("cuCtxPopCurrent")
        except DriverError as error:
            raise InputError(f"{self.device_name} failed: {error}") from error

    # ---- memory ------------------------------------------------------------------------

    def free_memory(self) -> int:
        free, _ = self.call("cuMemGetInfo")
        return int(free)

    def allocate(self, n_bytes: int) -> _Memory:
        return _Memory(self, self.call("cuMemAlloc", n_bytes))

    def upload(self, address: int, array: AnyArray) -> None:
        if array.nbytes:
            self.synchronize()
            self.call("cuMemcpyHtoD", address, array.ctypes.data, array.nbytes)

    def download(self, array: AnyArray, address: int) -> None:
        if array.nbytes:
            self.synchronize()
            self.call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        self.call("cuMemcpyDtoDAsync", target, source, n_bytes, self.stream)

    # ---- launches ----------------------------------------------------------------------

    def launch(self, launch: Launch) -> None:
        function, formats = self._functions[launch.kernel], KERNELS[launch.kernel]
        self.start("cuLaunchKernel", function, formats, launch, 0, 0)

    def start(
        self, name: str, function: Any, formats: str, launch: Launch, shared_bytes: int, *more: int
    ) -> None:
        """Launches by a function of the driver API, which reads the arguments before it returns."""
        values = [np.array(each, letter) for letter, each in zip(formats, launch.arguments)]
        pointers = np.array([value.ctypes.data for value in values], np.uintp)
        where = *launch.grid, *launch.block, shared_bytes, self.stream, pointers.ctypes.data
        self.call(name, function, *where, *more)

    def synchronize(self) -> None:
        self.call("cuStreamSynchronize", self.stream)

    def capture(self, launches: list[Launch]) -> _CapturedGraph:
        """A graph of the launches; the stream records them and runs none.

        In the relaxed mode, memory can be freed meanwhile: by the garbage collector, or by
        another library in the process.
        """
        mode = self.bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self.call("cuStreamBeginCapture", self.stream, mode)
        try:
            for launch in launches:
                self.launch(launch)
        finally:
            graph = self.call("cuStreamEndCapture", self.stream)
        try:
            return _CapturedGraph(self, self.call("cuGraphInstantiate", graph, 0))
        finally:
            self.call("cuGraphDestroy", graph)

    def replay(self, graph: _CapturedGraph) -> None:
        self.call("cuGraphLaunch", graph.handle, self.stream)

    def specialise(self, plan: ResidentPlan) -> _CooperativeKernel:
        if not self.attribute("COOPERATIVE_LAUNCH"):
            raise DoesNotFit("the device has no cooperative launch")
        try:
            cubin = nvcc.compiled("resident.cu", self.limits.capability, plan.header())
        except nvcc.CannotCompile as error:
            raise DoesNotFit(f"its kernel cannot be compiled: {error}") from error
        return _CooperativeKernel(self, cubin, plan)


class _Memory:
    """Device memory, freed with the object, in any thread."""

    def __init__(self, driver: CudaDriver, address: Any):
        self._driver, self._address = driver, address

    def __int__(self) -> int:
        return int(self._address)

    def __del__(self) -> None:
        if not self._driver.closed:
            with suppress(InputError), self._driver.active():
                self._driver.call("cuMemFree", self._address)


class _CapturedGraph:
    """An executable graph, destroyed with the object."""

    def __init__(self, driver: CudaDriver, handle: Any):
        self.handle, self._driver = handle, driver

    def __del__(self) -> None:
        if not self._driver.closed:
            with suppress(InputError), self._driver.active():
                self._driver.call("cuGraphExecDestroy", self.handle)


class _CooperativeKernel:
    """The resident kernel of a plan. Either all its blocks run side by side, or none starts."""

    def __init__(self, driver: CudaDriver, cubin: bytes, plan: ResidentPlan):
        self._driver, self.plan, self._shared_bytes = driver, plan, 4 * plan.shared_floats
        attributes, call = driver.bindings.CUfunction_attribute, driver.call
        self._module = call("cuModuleLoadData", cubin)
        self._function = call("cuModuleGetFunction", self._module, KERNEL.encode())
        shared = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", self._function, shared, self._shared_bytes)
        local = attributes.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
        if spilled := call("cuFuncGetAttribute", local, self._function):
            warnings.warn(f"resident kernel: {spilled} bytes of a thread are spilled", stacklevel=3)
        occupancy = self._function, plan.threads, self._shared_bytes
        per_multiprocessor = call("cuOccupancyMaxActiveBlocksPerMultiprocessor", *occupancy)
        resident = per_multiprocessor * driver.limits.multiprocessors
        if resident < plan.blocks:
            raise DoesNotFit(f"{plan.blocks} blocks must be resident at once, {resident} can be")

    def launch(self, job: int) -> None:
        launch = Launch(KERNEL, (self.plan.blocks, 1, 1), (self.plan.threads, 1, 1), (job,))
        start, shared_bytes = self._driver.start, self._shared_bytes
        start("cuLaunchCooperativeKernel", self._function, "P", launch, shared_bytes)

    def __del__(self) -> None:
        if hasattr(self, "_module") and not self._driver.closed:
            with suppress(InputError), self._driver.active():
                self._driver.call("cuModuleUnload", self._module)


@functools.cache
def _first_driver() -> CudaDriver | str:
    try:
        return CudaDriver()
    except (Unavailable, InputError) as error:  # absent, or failing as soon as it is used
        return str(error)


_LOCK = threading.Lock()


def _driver_or_reason() -> CudaDriver | str:
    """The one driver of all threads, or why there is none."""
    with _LOCK:
        return _first_driver()


def unavailable_reason() -> str | None:
    """Why no CUDA device can be used, in one line; None when one can."""
    result = _driver_or_reason()
    return result if isinstance(result, str) else None


def get_driver() -> CudaDriver:
    """The one driver of this process, where `unavailable_reason` has none."""
    result = _driver_or_reason()
    assert isinstance(result, CudaDriver), result
    return result
