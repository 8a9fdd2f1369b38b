"""Stand-ins for PyCUDA and cuda-bindings on the emulated device, as the CUDA driver uses them.

With them the driver's code runs where there is no GPU. Kernels are compiled for the CPU,
arguments are packed by PyCUDA's rules, and a graph replays what a stream has captured.
"""

import ctypes
import struct
from types import SimpleNamespace

from emulated import EmulatedDriver
from mlpcore.backends.cuda.driver import KERNEL
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.sources import SOURCES

#: The attributes of the fake device that resident training asks for.
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 6,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 48 << 10,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "COOPERATIVE_LAUNCH": 1,
}


class FakeError(Exception):
    """pycuda.driver.Error."""


class _FakeDevice:
    """One device with its context stack, streams and memory."""

    def __init__(self, free):
        self.emulated = EmulatedDriver(memory=free)
        self.stack, self.streams, self.allocated, self.launched = [], {}, [], 0

    def name(self):
        return "Fake GPU"

    def compute_capability(self):
        return 9, 0

    def retain_primary_context(self):
        return SimpleNamespace(push=lambda: self.stack.append(1), detach=lambda: None)


class _FakeFunction:
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


class _FakeStream:
    def __init__(self, device):
        assert device.stack
        self.captured, self.handle = None, len(device.streams) + 1
        device.streams[self.handle] = self

    def synchronize(self):
        assert self.captured is None, "synchronised while capturing"


class _FakeAllocation:
    """Memory of PyCUDA, as a thread sees it that has not made the context."""

    def __init__(self, device, n_bytes):
        self.device, self.memory = device, device.emulated.allocate(n_bytes)
        device.allocated.append(self.memory)

    def __int__(self):
        return int(self.memory)

    def free(self):
        assert self.device.stack, "the context is not current"
        self.device.allocated.remove(self.memory)


def _raise(text):
    raise FakeError(text)


def make(count=1, error=None, free=1 << 33, stream_error=None):
    """The modules pycuda.driver and cuda.bindings.driver, for `sys.modules`."""
    device = _FakeDevice(free)
    emulated = device.emulated

    def module_from_buffer(code):
        assert isinstance(code, bytes)
        return SimpleNamespace(get_function=lambda name: _FakeFunction(device, name))

    def in_context(function):
        def call(*arguments):
            assert device.stack, "no context is current"
            return function(*arguments)

        return call

    def make_device(index):
        return device

    make_device.count = lambda: count
    driver = SimpleNamespace(
        device=device,
        Error=FakeError,
        MemoryError=FakeError,
        init=lambda: error and _raise(error),
        Device=make_device,
        Context=SimpleNamespace(pop=device.stack.pop),
        function_attribute=SimpleNamespace(NUM_REGS=4),
        module_from_buffer=module_from_buffer,
        mem_get_info=lambda: (emulated.free_memory(), free),
        mem_alloc=lambda n_bytes: _FakeAllocation(device, n_bytes),
        memcpy_htod=in_context(emulated.upload),
        memcpy_dtoh=in_context(emulated.download),
        memcpy_dtod_async=in_context(lambda to, source, n, stream: emulated.copy(to, source, n)),
        Stream=lambda: _raise(stream_error) if stream_error else _FakeStream(device),
    )
    return driver, _make_bindings(device)


def load_module(header):
    """Compiles the resident kernel; a plan's header stands for its cubin."""
    files = {"resident_plan.h": header.decode()}
    return 0, EmulatedDriver(SOURCES / "resident.cu", files=files)


def succeed(*arguments):
    return (0,)


def _make_bindings(device):
    """cuda.bindings.driver: every function returns an error code first. A graph is its launches."""

    def begin(handle, mode):
        device.streams[handle].captured = []
        return (0,)

    def end(handle):
        stream = device.streams[handle]
        graph, stream.captured = stream.captured, None
        return 0, graph

    def launch(graph, handle):
        device.launched += 1
        device.emulated.replay(graph)
        return (0,)

    def launch_cooperatively(function, gx, gy, gz, bx, by, bz, shared, stream, arguments):
        assert device.stack, "no context is current"
        (pointer,) = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))[:1]
        values = struct.unpack("P", ctypes.string_at(pointer, struct.calcsize("P")))
        function.launch(Launch(KERNEL, (gx, gy, gz), (bx, by, bz), values), shared // 4)
        return (0,)

    return SimpleNamespace(
        CUresult=SimpleNamespace(CUDA_SUCCESS=0),
        CUdevice_attribute=SimpleNamespace(
            **{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES}
        ),
        CUfunction_attribute=SimpleNamespace(
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES=3,
        ),
        CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2),
        cuGetErrorString=lambda error: (0, b"an error"),
        cuDeviceGet=lambda index: (0, index),
        cuDeviceGetAttribute=lambda name, device: (0, ATTRIBUTES[name]),
        cuModuleLoadData=load_module,
        cuModuleGetFunction=lambda loaded, name: (0, loaded),
        cuModuleUnload=succeed,
        cuFuncSetAttribute=succeed,
        cuFuncGetAttribute=lambda *arguments: (0, 0),
        cuOccupancyMaxActiveBlocksPerMultiprocessor=lambda *arguments: (0, 1),
        cuLaunchCooperativeKernel=launch_cooperatively,
        cuStreamBeginCapture=begin,
        cuStreamEndCapture=end,
        cuGraphInstantiate=lambda graph, flags: (0, graph),
        cuGraphDestroy=succeed,
        cuGraphExecDestroy=succeed,
        cuGraphLaunch=launch,
    )
