"""The driver of real devices: PyCUDA for modules, memory and launches, cuda-bindings for graphs.

The driver uses the device's primary context, which PyTorch and CuPy share. It is current only
within `active`.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any, SupportsInt

from mlpcore.backends.cuda import nvcc
from mlpcore.backends.cuda.launch import KERNELS, Launch
from mlpcore.backends.cuda.plan import DeviceLimits, DoesNotFit, ResidentPlan
from mlpcore.errors import InputError, one_line
from mlpcore.typing import AnyArray

#: Less free memory than this cannot hold a network and data worth training.
MIN_FREE_BYTES = 256 << 20

#: The resident kernel, whose only parameter is the address of a job.
KERNEL = "resident_train_kernel"


class GraphError(RuntimeError):
    """A failure of the driver API, as cuda-bindings reports it."""


class CudaDriver:
    """The first device of CUDA_VISIBLE_DEVICES. The tests have another driver, an emulation.

    All methods below `active` are called in it. What they start runs after everything that was
    started before. `cuda` is PyCUDA's driver module, initialised, and `bindings` the driver API of
    cuda-bindings. An InputError when the device cannot run the kernels.
    """

    name = "cuda"

    def __init__(self, cuda: Any, bindings: Any) -> None:
        self._cuda, self.bindings = cuda, bindings
        try:
            device = cuda.Device(0)
            self.compute_capability = device.compute_capability()
            self.device_name = device.name()
            self._context = device.retain_primary_context()
        except cuda.Error as error:
            raise InputError(f"the CUDA device cannot be used: {one_line(error)}") from error
        self.closed = False
        atexit.register(self._close)
        self._depth = threading.local()
        with self.active():
            if (free := self.free_memory()) < MIN_FREE_BYTES:
                raise InputError(
                    f"{self.device_name} has {free / 2**20:,.0f} MiB of memory free, "
                    f"{MIN_FREE_BYTES / 2**20:,.0f} needed"
                )
            try:
                module = self._load(cuda.module_from_buffer, "kernels.cu")
            except nvcc.CannotCompile as error:
                raise InputError(f"the kernels cannot be compiled: {error}") from error
            self._functions: dict[str, Any] = {}
            for name, kernel in KERNELS.items():
                function = module.get_function(name).prepare(kernel.format)
                # This loads the function's code, which must not happen while a graph is captured.
                function.get_attribute(cuda.function_attribute.NUM_REGS)
                self._functions[name] = function
            self.stream = cuda.Stream()

    def _load(self, load: Callable[[bytes], Any], source: str, plan: str = "") -> Any:
        """The module that `load` makes of a source; nvcc.CannotCompile when the device has none."""
        for cubin in nvcc.compiled(source, self.limits.capability, plan):
            try:
                return load(cubin)
            except (self._cuda.Error, GraphError) as error:
                refused = one_line(error)
        where = f"expected others of an nvcc for its driver in {nvcc.cache_folder()}"
        raise nvcc.CannotCompile(f"{self.device_name} refuses those compiled: {refused}; {where}")

    def _close(self) -> None:
        """Gives the primary context back before the interpreter and the driver shut down."""
        self.closed = True
        self._context.detach()

    @property
    def description(self) -> str:
        """One line: the device, its compute capability and the precision."""
        capability = ".".join(map(str, self.compute_capability))
        return f"cuda: {self.device_name}, compute capability {capability}, float32"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Makes the context current for this thread; afterwards the previous one is again.

        A failure of the device is raised as an InputError of one line. It may come from anything
        launched before.
        """
        depth = getattr(self._depth, "value", 0)
        try:
            if depth == 0:
                self._context.push()
            self._depth.value = depth + 1
            try:
                yield
            finally:
                self._depth.value = depth
                if depth == 0:
                    self._cuda.Context.pop()
        except (self._cuda.Error, GraphError) as error:
            raise InputError(f"{self.device_name} failed: {one_line(error)}") from error

    # ---- memory ------------------------------------------------------------------------

    def free_memory(self) -> int:
        """Bytes that can be allocated."""
        return self._cuda.mem_get_info()[0]

    def allocate(self, n_bytes: int) -> SupportsInt:
        """An object whose `int()` is an address; the memory is freed with the object."""
        allocation = self._cuda.mem_alloc(n_bytes)
        return _Owned(self, allocation, allocation.free)

    def upload(self, address: int, array: AnyArray) -> None:
        """Copies a C-contiguous array to the device; the array may change afterwards."""
        if array.nbytes:
            self.synchronize()
            self._cuda.memcpy_htod(address, array)

    def download(self, array: AnyArray, address: int) -> None:
        """Copies to a C-contiguous array."""
        if array.nbytes:
            self.synchronize()
            self._cuda.memcpy_dtoh(array, address)

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        """Copies within the device."""
        self._cuda.memcpy_dtod_async(target, source, n_bytes, self.stream)

    # ---- launches ----------------------------------------------------------------------

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function of cuda-bindings, or GraphError with the driver's words."""
        bindings = self.bindings
        error, *results = function(*arguments)
        if error != bindings.CUresult.CUDA_SUCCESS:
            _, text = bindings.cuGetErrorString(error)
            text = text.decode() if isinstance(text, bytes) else error
            raise GraphError(f"{function.__name__}: {text}")
        return results[0] if results else None

    def launch(self, launch: Launch) -> None:
        """Starts a kernel."""
        self._functions[launch.kernel].prepared_async_call(
            launch.grid, launch.block, self.stream, *launch.arguments
        )

    def synchronize(self) -> None:
        """Waits until everything that was started has ended."""
        self.stream.synchronize()

    def capture(self, launches: list[Launch]) -> _Owned:
        """A graph of the launches; the stream records them and runs none.

        In the relaxed mode, memory can be freed meanwhile: by the garbage collector, or by
        another library in the process.
        """
        bindings, stream = self.bindings, self.stream.handle
        mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self.call(bindings.cuStreamBeginCapture, stream, mode)
        try:
            for launch in launches:
                self.launch(launch)
        finally:
            graph = self.call(bindings.cuStreamEndCapture, stream)
        try:
            executable = self.call(bindings.cuGraphInstantiate, graph, 0)
        finally:
            self.call(bindings.cuGraphDestroy, graph)
        return _Owned(self, executable, partial(bindings.cuGraphExecDestroy, executable))

    def replay(self, graph: _Owned) -> None:
        """Starts a graph in one call."""
        bindings = self.bindings
        self.call(bindings.cuGraphLaunch, graph.handle, self.stream.handle)

    # ---- resident training -------------------------------------------------------------

    @cached_property
    def limits(self) -> DeviceLimits:
        """The limits of this device for resident training."""
        major, minor = self.compute_capability
        return DeviceLimits(
            self._attribute("MULTIPROCESSOR_COUNT"),
            self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            self._attribute("MAX_REGISTERS_PER_MULTIPROCESSOR"),
            10 * major + minor,
        )

    def _attribute(self, name: str) -> int:
        bindings = self.bindings
        attribute = getattr(bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        device = self.call(bindings.cuDeviceGet, 0)
        return int(self.call(bindings.cuDeviceGetAttribute, attribute, device))

    def specialise(self, plan: ResidentPlan) -> ResidentKernel:
        """The resident kernel of a plan; DoesNotFit when the device cannot run it."""
        if not self._attribute("COOPERATIVE_LAUNCH"):
            raise DoesNotFit("the device has no cooperative launch")
        load = partial(self.call, self.bindings.cuModuleLoadData)
        try:
            module = self._load(load, "resident.cu", plan.header())
        except nvcc.CannotCompile as error:
            raise DoesNotFit(f"its kernel cannot be compiled: {error}") from error
        return ResidentKernel(self, module, plan)


class _Owned:
    """Something on the device, given back with the object, in any thread.

    PyCUDA on its own frees memory only in a thread where its context is current or was made.
    """

    def __init__(self, driver: CudaDriver, handle: Any, release: Callable[[], object]):
        self.handle, self._driver, self._release = handle, driver, release

    def __int__(self) -> int:
        return int(self.handle)

    def __del__(self) -> None:
        if not self._driver.closed:
            with suppress(InputError), self._driver.active():
                self._release()


class ResidentKernel:
    """The resident kernel of a plan. Either all its blocks run side by side, or none starts.

    It uses cuda-bindings only, because PyCUDA has no cooperative launch.
    """

    def __init__(self, driver: CudaDriver, module: Any, plan: ResidentPlan):
        self._driver, self.plan, self._shared = driver, plan, 4 * plan.shared_floats
        bindings, call = driver.bindings, driver.call
        self._module = _Owned(driver, module, partial(bindings.cuModuleUnload, module))
        self._function = call(bindings.cuModuleGetFunction, module, KERNEL.encode())
        shared = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call(bindings.cuFuncSetAttribute, self._function, shared, self._shared)
        occupancy = bindings.cuOccupancyMaxActiveBlocksPerMultiprocessor
        per_multiprocessor = call(occupancy, self._function, plan.threads, self._shared)
        resident = per_multiprocessor * driver.limits.multiprocessors
        if resident < plan.blocks:
            raise DoesNotFit(f"{plan.blocks} blocks must be resident at once, {resident} can be")

    def launch(self, job: int) -> None:
        """Starts all blocks side by side; `job` is an address."""
        value = ctypes.c_void_p(job)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(value))
        grid, block = (self.plan.blocks, 1, 1), (self.plan.threads, 1, 1)
        launch = self._driver.bindings.cuLaunchCooperativeKernel
        where = *grid, *block, self._shared, self._driver.stream.handle
        self._driver.call(launch, self._function, *where, ctypes.addressof(pointers))
