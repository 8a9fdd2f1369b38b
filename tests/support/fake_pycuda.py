"""Stand-ins for PyCUDA and cuda-bindings on the emulated device, as the CUDA driver uses them.

With them the driver's code runs where there is no GPU. Kernels are compiled for the CPU,
arguments are packed by PyCUDA's rules, and a graph replays what a stream has captured.
"""

import ctypes
import struct
import types

from emulated import SOURCES, EmulatedDriver
from mlpcore.backends.cuda import resident
from mlpcore.backends.cuda.launch import Launch

#: The attributes of the fake device that resident training asks for.
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 6,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 48 << 10,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "COOPERATIVE_LAUNCH": 1,
}


class FakeError(Exception):
    """pycuda.driver.Error."""


class _Function:
    def __init__(self, device, name):
        self._device, self._name, self._formats = device, name, None

    def prepare(self, formats):
        self._formats = formats
        return self

    def get_attribute(self, attribute):
        return 32

    def prepared_async_call(self, grid, block, stream, *arguments):
        assert self._formats == self._device.emulated.kernels[self._name][1]
        assert self._device.stack, "no context is current"
        launch = Launch(self._name, grid, block, arguments)
        if stream.captured is None:
            self._device.emulated.launch(launch)
        else:
            stream.captured.append(launch)


class _Stream:
    def __init__(self, device):
        assert device.stack
        self.captured, self.handle = None, len(device.streams) + 1
        device.streams[self.handle] = self

    def synchronize(self):
        assert self.captured is None, "synchronised while capturing"


class _Event:
    def record(self, stream):
        pass

    def synchronize(self):
        pass

    def time_since(self, other):
        return 1.0


class _Device:
    """One device, its context stack and streams."""

    def __init__(self, free):
        self.emulated = EmulatedDriver(memory=free)
        self.stack, self.streams, self.launched = [], {}, 0
        self.allocated = []

    def name(self):
        return "Fake GPU"

    def compute_capability(self):
        return 9, 0

    def retain_primary_context(self):
        stack = self.stack
        return types.SimpleNamespace(push=lambda: stack.append(1), detach=lambda: None)


class _Allocation:
    """Memory of PyCUDA, as a thread sees it that has not made the context."""

    def __init__(self, device, n_bytes):
        self.device, self.memory = device, device.emulated.allocate(n_bytes)
        device.allocated.append(self.memory)

    def __int__(self):
        return int(self.memory)

    def free(self):
        assert self.device.stack, "the context is not current"
        self.device.allocated.remove(self.memory)


def make(count=1, error=None, free=1 << 33, no_code=False, stream_error=None):
    """The modules pycuda.driver and cuda.bindings.driver, for `sys.modules`."""
    device = _Device(free)

    def stream():
        if stream_error:
            raise FakeError(stream_error)
        return _Stream(device)

    def init():
        if error:
            raise FakeError(error)

    def module_from_buffer(code):
        assert isinstance(code, bytes)
        if no_code:
            raise FakeError("module_from_buffer failed: no kernel image is available")
        return types.SimpleNamespace(get_function=lambda name: _Function(device, name))

    def make_device(index):
        return device

    make_device.count = lambda: count
    driver = types.ModuleType("pycuda.driver")
    driver.device = device
    driver.Error = driver.MemoryError = FakeError
    driver.init = init
    driver.Device = make_device
    driver.Context = types.SimpleNamespace(pop=device.stack.pop)
    driver.function_attribute = types.SimpleNamespace(NUM_REGS=4)
    driver.module_from_buffer = module_from_buffer
    driver.mem_get_info = lambda: (device.emulated.free_memory(), free)
    driver.mem_alloc = lambda n_bytes: _Allocation(device, n_bytes)
    driver.memcpy_htod = device.emulated.upload
    driver.memcpy_dtoh = device.emulated.download
    driver.memcpy_dtod_async = lambda target, source, n_bytes, stream: device.emulated.copy(
        target, source, n_bytes
    )
    driver.Stream = stream
    driver.Event = _Event
    return driver, _bindings(device)


def _bindings(device):
    """cuda.bindings.driver: every function returns an error code first."""
    success = 0
    graphs = []

    def begin(handle, mode):
        device.streams[handle].captured = []
        return (success,)

    def end(handle):
        stream = device.streams[handle]
        graphs.append(stream.captured)
        stream.captured = None
        return success, len(graphs) - 1

    def launch(graph, handle):
        device.launched += 1
        for one in graphs[graph]:
            device.emulated.launch(one)
        return (success,)

    def load_module(code):  # which is the header of a plan
        return success, EmulatedDriver(
            SOURCES / "resident.cu", headers={"resident_plan.h": code.decode()}
        )

    def launch_cooperatively(function, gx, gy, gz, bx, by, bz, shared, stream, arguments):
        assert device.stack, "no context is current"
        formats = resident.FORMATS
        pointers = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))
        values = [
            struct.unpack(letter, ctypes.string_at(pointers[i], struct.calcsize(letter)))[0]
            for i, letter in enumerate(formats)
        ]
        launch = Launch(resident.KERNEL, (gx, gy, gz), (bx, by, bz), tuple(values))
        function.launch(launch, shared)
        return (success,)

    module = types.ModuleType("cuda.bindings.driver")
    names = {f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES}
    module.CUdevice_attribute = types.SimpleNamespace(**names)
    module.CUfunction_attribute = types.SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8
    )
    module.cuDeviceGet = lambda index: (success, index)
    module.cuDeviceGetAttribute = lambda name, device: (success, ATTRIBUTES[name])
    module.cuModuleLoadData, module.cuLaunchCooperativeKernel = load_module, launch_cooperatively
    module.cuModuleGetFunction = lambda loaded, name: (success, loaded)
    module.cuModuleUnload = module.cuFuncSetAttribute = lambda *arguments: (success,)
    module.cuOccupancyMaxActiveBlocksPerMultiprocessor = lambda *arguments: (success, 1)
    module.CUresult = types.SimpleNamespace(CUDA_SUCCESS=success)
    module.CUstreamCaptureMode = types.SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    module.cuGetErrorString = lambda error: (success, b"an error")
    module.cuStreamBeginCapture, module.cuStreamEndCapture = begin, end
    module.cuGraphInstantiate = lambda graph, flags: (success, graph)
    module.cuGraphDestroy = module.cuGraphExecDestroy = lambda graph: (success,)
    module.cuGraphLaunch = launch
    return module
