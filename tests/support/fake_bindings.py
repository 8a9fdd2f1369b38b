"""A stand-in for cuda.bindings.driver on the emulated device, as the CUDA driver uses it.

With it the driver's code runs where there is no GPU. Kernels are compiled for the CPU, arguments
are read where the driver API reads them, and a graph replays what the stream has captured.
"""

import ctypes
from types import SimpleNamespace

import numpy as np

from emulated import SOURCES, EmulatedDriver
from mlpcore.backends.cuda.launch import Launch

#: What the device answers, by names of the driver API without their prefixes.
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 6,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 48 << 10,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "COOPERATIVE_LAUNCH": 1,
}


class _Enumeration:
    """An enumeration of the driver API: its members stand for themselves, without the prefix."""

    def __init__(self, prefix):
        self._prefix = prefix

    def __getattr__(self, name):
        return name.removeprefix(self._prefix)


#: What functions answer that do nothing here.
ANSWERS = {
    "cuInit": (0,),
    "cuDeviceGet": (0, "a device"),
    "cuDeviceGetName": (0, b"Fake GPU\0  "),
    "cuDevicePrimaryCtxRetain": (0, "a context"),
    "cuFuncGetAttribute": (0, 0),
    "cuFuncSetAttribute": (0,),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (0, 1),
    "cuGraphDestroy": (0,),
    "cuGraphExecDestroy": (0,),
}


class FakeBindings:
    """Every function returns an error first. 0 is success, and any other error is its own text.

    Parameters
    ----------
    free
        Bytes of free memory.
    answers
        What functions answer, by their names.
    """

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUdevice_attribute = _Enumeration("CU_DEVICE_ATTRIBUTE_")
    CUfunction_attribute = _Enumeration("CU_FUNC_ATTRIBUTE_")
    CUstreamCaptureMode = _Enumeration("CU_STREAM_CAPTURE_MODE_")

    def __init__(self, free=1 << 33, **answers):
        self.emulated = EmulatedDriver(memory=free)
        self.contexts, self.memory, self.replayed, self.captured = 0, {}, 0, None
        for name, answer in {**ANSWERS, **answers}.items():
            setattr(self, name, lambda *arguments, answer=answer: answer)

    def cuGetErrorString(self, error):
        return 0, error.encode()

    def cuDeviceGetAttribute(self, name, device):
        return 0, ATTRIBUTES[name]

    def cuCtxPushCurrent(self, context):
        self.contexts += 1
        return (0,)

    def cuCtxPopCurrent(self):
        self.contexts -= 1
        return 0, "a context"

    def _in_context(self):
        assert self.contexts, "no context is current"

    # ---- memory ------------------------------------------------------------------------

    def cuMemGetInfo(self):
        self._in_context()
        return 0, self.emulated.free_memory(), 1 << 33

    def cuMemAlloc(self, n_bytes):
        self._in_context()
        memory = self.emulated.allocate(n_bytes)
        self.memory[int(memory)] = memory
        return 0, int(memory)

    def cuMemFree(self, address):
        self._in_context()
        del self.memory[address]
        return (0,)

    def _copy(self, to, source, n_bytes, stream=None):
        self._in_context()
        ctypes.memmove(to, source, n_bytes)
        return (0,)

    cuMemcpyHtoD = cuMemcpyDtoH = cuMemcpyDtoDAsync = _copy

    # ---- modules and launches ----------------------------------------------------------

    def cuModuleLoadData(self, code):
        """`code` is the plan of a resident kernel, or nothing for all others."""
        if not code:
            return 0, self.emulated
        files = {"resident_plan.h": code.decode()}
        return 0, EmulatedDriver(SOURCES / "resident.cu", files=files)

    def cuModuleUnload(self, module):
        self._in_context()
        return (0,)

    def cuModuleGetFunction(self, module, name):
        return 0, (module, name.decode())

    def cuLaunchKernel(self, function, *where):
        self._in_context()
        module, name = function
        *shape, shared_bytes, _stream, pointers = where[:9]
        letters = module.kernels[name][1]
        addresses = (ctypes.c_uint64 * len(letters)).from_address(pointers)
        values = [
            np.frombuffer(ctypes.string_at(at, np.dtype(letter).itemsize), letter)[0].item()
            for letter, at in zip(letters, addresses)
        ]
        launch = Launch(name, tuple(shape[:3]), tuple(shape[3:]), tuple(values))
        if self.captured is None:
            module.launch(launch, shared_bytes)
        else:
            self.captured.append(launch)
        return (0,)

    cuLaunchCooperativeKernel = cuLaunchKernel

    def cuStreamCreate(self, flags):
        self._in_context()
        return 0, "a stream"

    def cuStreamSynchronize(self, stream):
        assert self.captured is None, "synchronised while capturing"
        return (0,)

    # ---- graphs are their launches -----------------------------------------------------

    def cuStreamBeginCapture(self, stream, mode):
        self.captured = []
        return (0,)

    def cuStreamEndCapture(self, stream):
        graph, self.captured = self.captured, None
        return 0, graph

    def cuGraphInstantiate(self, graph, flags):
        return 0, graph

    def cuGraphLaunch(self, graph, stream):
        self.replayed += 1
        self.emulated.replay(graph)
        return (0,)
