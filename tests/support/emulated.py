"""The CUDA kernels compiled for the CPU, for tests on machines without a GPU. It has no speed.

``cuda/emulation`` says what is emulated. A library is built on demand from the sources, and kept
in ``build/emulation`` under a digest of everything that it depends on.
"""

import ctypes
import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.plan import DeviceLimits
from mlpcore.backends.cuda.resident import KERNEL

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "cuda"
CACHE = ROOT / "build" / "emulation"

#: The environment variable that chooses a sanitizer ("address"); Python must preload its library.
SANITIZE_VARIABLE = "MLPCORE_EMULATION_SANITIZE"

#: Sums and products are fused only where the kernels say so.
FLAGS = ["-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC"]
FLAGS += ["-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror"]

#: Limits for resident training that let many blocks and threads run in little time.
LIMITS = DeviceLimits(6, shared_bytes=48 << 10, registers=64 * 64, threads=(32, 64))

_KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')


def compiler():
    """The C++ compiler, $CXX or the first found; None without one."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


AVAILABLE = compiler() is not None

needs_emulation = pytest.mark.skipif(not AVAILABLE, reason="no C++ compiler for the emulation")


def checks_shared_memory():
    """Whether AddressSanitizer can watch shared variables: GCC's can, clang's cannot."""
    return "clang" not in _version(compiler())


def build(source, sanitize=None, headers=None):
    """The path of a .cu file's shared library, compiled unless it is there already.

    `headers` has the text of further files that it includes, by name.
    """
    source, headers = Path(source).resolve(), headers or {}
    command = [compiler(), *FLAGS, f"-I{SOURCES / 'emulation'}", f"-I{SOURCES}"]
    if headers:  # a specialisation, which runs for less time than it compiles
        command.append("-O1")
    if sanitize:
        command += [f"-fsanitize={sanitize}", "-g", "-fno-omit-frame-pointer"]
        if checks_shared_memory():
            command.append("-fsanitize-sections=emulated_shared")
    names = _KERNEL.findall(_text(source))
    main = (
        f'#include "cuda_words.h"\n#include "{source}"\n#include "library.h"\n'
        "const emulation::entry emulation::table[] = {"
        f"{', '.join(f'KERNEL({name})' for name in names)}}};\n"
        f"const int emulation::table_size = {len(names)};\n"
    )
    files = {"main.cpp": main, **headers}
    digest = hashlib.sha256(repr((command, sorted(files.items()))).encode())
    digest.update(_version(command[0]).encode() + _cpu_features())
    found = {*source.parent.glob("*.cu*"), *SOURCES.rglob("*.cu*"), *SOURCES.rglob("*.h")}
    for path in sorted(found):
        digest.update(path.read_bytes())
    library = CACHE / f"{source.stem}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        _compile(command, files, library)
    return library


def _text(source):
    """A .cu file and the .cu files that it includes."""
    text = source.read_text()
    included = re.findall(r'^#include "(\w+\.cu)"', text, re.MULTILINE)
    return text + "".join(_text(source.parent / name) for name in included)


def _compile(command, files, library):
    """Compiles beside the library and renames, because two processes may build it at once."""
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / "made.so"
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        line = [*command, f"-I{folder}", f"{folder}/main.cpp", "-o", str(made)]
        result = subprocess.run(line, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        made.rename(library)


@functools.cache
def _version(command):
    return subprocess.run([command, "--version"], capture_output=True, text=True).stdout


def _cpu_features():
    """What -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return b""
    return next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")


class EmulationError(RuntimeError):
    """A launch that went wrong: a deadlock, or a grid beyond the limits of a device."""


class _EmulatedMemory:
    """Memory of exactly so many bytes, NaN at first."""

    def __init__(self, driver, n_bytes):
        self._driver, self._n_bytes = driver, n_bytes
        self.address = driver._library.emulation_allocate(n_bytes)
        assert self.address, f"{n_bytes} bytes for the emulated device"
        driver.free -= n_bytes

    def __int__(self):
        return self.address

    def __del__(self):
        self._driver._library.emulation_free(self.address)
        self._driver.free += self._n_bytes


class EmulatedKernel:
    """The resident kernel, specialised for a plan: a library of its own."""

    def __init__(self, plan, source):
        headers = {"resident_plan.h": plan.header()}
        self.driver, self.plan = EmulatedDriver(source, headers=headers), plan

    def launch(self, job):
        grid, block = (self.plan.blocks, 1, 1), (self.plan.threads, 1, 1)
        self.driver.launch(Launch(KERNEL, grid, block, (job,)), 4 * self.plan.shared_floats)


class EmulatedDriver:
    """A device made of one thread of the CPU.

    Parameters
    ----------
    source
        The .cu file whose kernels it can launch, with `headers` as in `build`.
    memory
        Bytes that it pretends to have.
    limits, resident_source
        What it has for resident training, and the .cu file of the resident kernel.
    """

    name = "cuda-emulated"
    description = "cuda-emulated: the CUDA kernels on 1 thread of the CPU, for tests only"

    def __init__(
        self,
        source=SOURCES / "kernels.cu",
        memory=1 << 33,
        headers=None,
        limits=LIMITS,
        resident_source=SOURCES / "resident.cu",
    ):
        path = build(source, os.environ.get(SANITIZE_VARIABLE), headers)
        self._library = library = ctypes.PyDLL(str(path))
        library.emulation_name.restype = ctypes.c_char_p
        library.emulation_formats.restype = ctypes.c_char_p
        library.emulation_allocate.restype = ctypes.c_void_p
        library.emulation_allocate.argtypes = [ctypes.c_size_t]
        library.emulation_free.argtypes = [ctypes.c_void_p]
        library.emulation_seed.argtypes = [ctypes.c_uint64]
        self.free, self.limits, self.resident_source = memory, limits, resident_source
        #: Index and parameter letters of each kernel.
        self.kernels = {
            library.emulation_name(i).decode(): (i, library.emulation_formats(i).decode())
            for i in range(library.emulation_size())
        }

    def seed(self, seed):
        """Chooses the order in which threads run from now on."""
        self._library.emulation_seed(seed)

    def specialise(self, plan):
        return EmulatedKernel(plan, self.resident_source)

    def active(self):
        return nullcontext()

    def free_memory(self):
        return self.free

    def allocate(self, n_bytes):
        return _EmulatedMemory(self, n_bytes)

    def upload(self, address, array):
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array, address):
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, target, source, n_bytes):
        ctypes.memmove(target, source, n_bytes)

    def launch(self, launch, shared_bytes=0):
        index, formats = self.kernels[launch.kernel]
        error = ctypes.create_string_buffer(512)
        status = self._library.emulation_launch(
            index,
            (ctypes.c_uint * 3)(*launch.grid),
            (ctypes.c_uint * 3)(*launch.block),
            ctypes.c_size_t(shared_bytes),
            struct.pack(formats, *launch.arguments),
            error,
            ctypes.c_size_t(len(error)),
        )
        if status:
            raise EmulationError(error.value.decode())

    def capture(self, launches):
        return list(launches)

    def replay(self, graph):
        for launch in graph:
            self.launch(launch)

    def synchronize(self):
        pass


def emulated_backend(schedule="streaming", **device):
    """The CUDA backend on an emulated device; `device` has arguments of `EmulatedDriver`."""
    return CudaBackend(EmulatedDriver(**device), schedule)


#: Every backend that can run here, the emulated one included.
BACKENDS = [name for name, reason in backends.available().items() if reason is None]
BACKENDS += [EmulatedDriver.name] if AVAILABLE else []


def get_backend(name, threads=None, schedule=None):
    """One of `BACKENDS`, as `mlpcore.backends.get` gives them; skips without the emulation."""
    if name != EmulatedDriver.name:
        return backends.get(name, threads, schedule)
    if not AVAILABLE:
        pytest.skip("no C++ compiler for the emulation")
    return emulated_backend(schedule or "streaming")
