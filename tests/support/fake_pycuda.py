"""A stand-in for PyCUDA and cuda-bindings on the emulated device, as the CUDA driver uses them.

With it the driver's code runs where there is no GPU. Kernels are compiled for the CPU, and a graph
replays what a stream has captured.
"""

import ctypes
from types import SimpleNamespace
from unittest.mock import Mock

from emulated import EmulatedDriver
from mlpcore.backends.cuda.driver import KERNEL
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.sources import SOURCES

#: What the functions return that do nothing else; those of cuda-bindings an error code first.
RESULTS = {
    "init": None,
    "name": "Fake GPU",
    "compute_capability": (9, 0),
    "cuDeviceGet": (0, 0),
    "cuModuleUnload": (0,),
    "cuFuncSetAttribute": (0,),
    "cuGraphDestroy": (0,),
    "cuGraphExecDestroy": (0,),
    "cuGetErrorString": (0, b"too many blocks in cooperative launch"),
}


class _Function:
    def __init__(self, cuda, name):
        self.cuda, self.name = cuda, name
        self.get_attribute = Mock()

    def prepare(self, formats):
        assert formats == self.cuda.emulated.kernels[self.name][1]
        return self

    def prepared_async_call(self, grid, block, stream, *arguments):
        launch = Launch(self.name, grid, block, arguments)
        if stream.captured is None:
            self.cuda.current().launch(launch)
        else:
            stream.captured.append(launch)


class _Memory:
    """Memory of PyCUDA, as a thread sees it that has not made the context."""

    def __init__(self, cuda, n_bytes):
        self.cuda, self.memory = cuda, cuda.emulated.allocate(n_bytes)
        cuda.allocated.append(self.memory)

    def __int__(self):
        return int(self.memory)

    def free(self):
        self.cuda.current()
        self.cuda.allocated.remove(self.memory)


class FakeCuda:
    """The modules pycuda.driver and cuda.bindings.driver, the device, and its stream, in one."""

    function_attribute = SimpleNamespace(NUM_REGS=4)
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    handle = 1  # of the stream

    class Error(Exception):
        """pycuda.driver.Error."""

    def __init__(self):
        self.emulated, self.stack, self.resident = EmulatedDriver(), [], 1
        self.allocated, self.replayed, self.captured = [], 0, None
        self.Device = Mock(return_value=self, count=lambda: 1)
        self.Context = SimpleNamespace(
            pop=self.stack.pop, push=lambda: self.stack.append(1), detach=lambda: None
        )
        self.retain_primary_context = lambda: self.Context
        #: What resident training asks of the device.
        self.attributes = {
            "MULTIPROCESSOR_COUNT": 6,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 48 << 10,
            "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
            "COOPERATIVE_LAUNCH": 1,
        }
        names = {f"CU_DEVICE_ATTRIBUTE_{name}": name for name in self.attributes}
        self.CUdevice_attribute = SimpleNamespace(**names)
        for name, result in RESULTS.items():
            setattr(self, name, Mock(return_value=result))
        self.cuDeviceGetAttribute = lambda name, device: (0, self.attributes[name])
        self.cuGraphInstantiate = lambda graph, flags: (0, graph)
        self.cuModuleGetFunction = lambda module, name: (0, module)
        self.cuOccupancyMaxActiveBlocksPerMultiprocessor = lambda *launch: (0, self.resident)
        module = SimpleNamespace(get_function=lambda name: _Function(self, name))
        self.module_from_buffer = lambda cubin: module
        self.mem_get_info = lambda: (self.emulated.free, 1 << 33)
        self.mem_alloc = lambda n_bytes: _Memory(self, n_bytes)
        self.memcpy_htod = lambda *arguments: self.current().upload(*arguments)
        self.memcpy_dtoh = lambda *arguments: self.current().download(*arguments)
        self.memcpy_dtod_async = lambda *arguments: self.current().copy(*arguments[:3])

    def current(self):
        assert self.stack, "no context is current"
        return self.emulated

    def Stream(self):
        self.current()
        return self

    def synchronize(self):
        assert self.captured is None, "synchronised while capturing"

    def cuStreamBeginCapture(self, stream, mode):
        self.captured = []
        return (0,)

    def cuStreamEndCapture(self, stream):
        graph, self.captured = self.captured, None
        return 0, graph

    def cuGraphLaunch(self, graph, stream):
        self.replayed += 1
        self.current().replay(graph)
        return (0,)

    def cuModuleLoadData(self, header):
        """Compiles the resident kernel; a plan's header stands for its cubin."""
        files = {"resident_plan.h": header.decode()}
        return 0, EmulatedDriver(SOURCES / "resident.cu", files=files)

    def cuLaunchCooperativeKernel(self, function, *sizes_and_more):
        self.current()
        *sizes, shared, _, arguments = sizes_and_more
        (pointer,) = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))[:1]
        job = ctypes.c_void_p.from_address(pointer).value
        function.launch(Launch(KERNEL, sizes[:3], sizes[3:], (job,)), shared // 4)
        return (0,)
