"""The CUDA kernels compiled for the CPU, for tests on machines without a GPU. It has no speed.

``cuda/emulation`` says what is emulated. A library is built on demand from the sources, and kept
in ``build/emulation`` under a digest of everything that it depends on.
"""

import ctypes
import fcntl
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.driver import KERNEL
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.plan import DeviceLimits
from mlpcore.backends.cuda.sources import SOURCES, kernels

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "emulation"
KERNELS = SOURCES / "kernels.cu"

#: The environment variable that chooses GCC's AddressSanitizer; Python must preload its library.
SANITIZE_VARIABLE = "MLPCORE_EMULATION_SANITIZE"

#: Sums and products are fused only where the kernels say so. What some distributions have longjmp
#: check knows no fibers.
FLAGS = ["-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC"]
FLAGS += ["-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror"]
FLAGS += ["-U_FORTIFY_SOURCE"]

#: Limits for resident training that let many blocks and threads run in little time.
LIMITS = DeviceLimits(6, shared_bytes=48 << 10, registers=64 * 64, threads=(32, 64))


def compiler():
    """The C++ compiler, $CXX or the first found; None without one."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


#: An installed package, such as a build with sanitizers, has the kernels alone.
AVAILABLE = compiler() is not None and (SOURCES / "emulation").is_dir()

WITHOUT = "no C++ compiler, or no sources, for the emulation"
needs_emulation = pytest.mark.skipif(not AVAILABLE, reason=WITHOUT)


def build(source, files=None):
    """The path of a .cu file's shared library, compiled unless it is there already.

    `files` are texts by names: of further files that it includes, or that stand in for others.
    """
    source, files = Path(source), files or {}
    command = [compiler(), *FLAGS]
    if SANITIZE_VARIABLE in os.environ:
        command += ["-fsanitize=address", "-fsanitize-sections=emulated_shared", "-DEMULATION_ASAN"]
        command += ["-O1", "-g1", "-fno-omit-frame-pointer"]
    elif files:  # it runs for less time than it compiles
        command.append("-O1")
    calls = ", ".join(f"[] {{ call({name}); }}" for name in kernels(source))
    main = (
        f'#include "cuda_words.h"\n#include "{source.name}"\n'
        f"void (*const emulation::kernels[])() = {{{calls}}};\n"
    )
    files = {"main.cpp": main, **files}
    digest = hashlib.sha256(repr((command, sorted(files.items()))).encode())
    for path in sorted({source, *SOURCES.rglob("*.cu*"), *SOURCES.rglob("*.h")}):
        digest.update(path.read_bytes())
    library = CACHE / f"{source.stem}-{digest.hexdigest()[:16]}.so"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (
        library.with_suffix(".lock").open("w") as lock,
        tempfile.TemporaryDirectory(dir=CACHE) as folder,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed: others wait for the library
        if not library.exists():
            for name, text in files.items():
                Path(folder, name).write_text(text)
            folders = folder, source.parent, SOURCES / "emulation", SOURCES
            command += [*(f"-I{each}" for each in folders), f"{folder}/main.cpp"]
            # AddressSanitizer's library, which tests preload, would slow the compiler down.
            environment = {name: os.environ[name] for name in os.environ if name != "LD_PRELOAD"}
            made = Path(folder, "made.so")
            subprocess.run([*command, "-o", made], check=True, env=environment)
            made.rename(library)  # whole or not at all, if the process is killed
    return library


class _EmulatedMemory:
    """Memory of exactly so many bytes, NaN at first, which AddressSanitizer watches."""

    def __init__(self, driver, n_bytes):
        self._driver, self._bytes = driver, np.full(n_bytes, 255, np.uint8)
        self.address = self._bytes.ctypes.data
        driver.free -= n_bytes

    def __int__(self):
        return self.address

    def __del__(self):
        self._driver.free += self._bytes.size


class EmulatedDriver:
    """A device made of one thread of the CPU, which pretends to have so many bytes of memory.

    It can launch the kernels of a .cu file, with `files` as in `build`, and resident training
    within `limits`, whose kernel has `resident_files`.
    """

    name = "cuda-emulated"
    description = "cuda-emulated: the CUDA kernels on 1 thread of the CPU, for tests only"
    active, capture = nullcontext, staticmethod(list)

    def __init__(self, source=KERNELS, memory=2**33, files=None, limits=LIMITS, resident_files=()):
        self._library = ctypes.PyDLL(str(build(source, files)))
        self._library.emulation_launch.restype = ctypes.c_char_p
        self.free, self.limits, self.resident_files = memory, limits, dict(resident_files)
        #: Number and parameter letters of each kernel.
        self.kernels = {
            name: (i, kernel.format) for i, (name, kernel) in enumerate(kernels(source).items())
        }

    def seed(self, seed):
        """Chooses the order in which threads run from now on."""
        self._library.emulation_seed(ctypes.c_uint64(seed))

    def specialise(self, plan):
        """The resident kernel of a plan: a library of its own."""
        files = {**self.resident_files, "resident_plan.h": plan.header()}
        driver = EmulatedDriver(SOURCES / "resident.cu", files=files)
        launch = partial(Launch, KERNEL, (plan.blocks, 1, 1), (plan.threads, 1, 1))
        return SimpleNamespace(
            driver=driver,
            plan=plan,
            launch=lambda job: driver.launch(launch((job,)), plan.shared_floats),
        )

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

    def launch(self, launch, shared_floats=0):
        index, formats = self.kernels[launch.kernel]
        sizes = (ctypes.c_uint * 3)(*launch.grid), (ctypes.c_uint * 3)(*launch.block)
        arguments = struct.pack(formats, *launch.arguments)
        shared = ctypes.c_size_t(shared_floats)
        error = self._library.emulation_launch(index, *sizes, shared, arguments)
        if error:
            raise RuntimeError(f"{launch.kernel}: {error.decode()}")

    def replay(self, graph):
        for launch in graph:
            self.launch(launch)

    def synchronize(self):
        pass


def emulated_backend(schedule="streaming", **device):
    """The CUDA backend on an emulated device; `device` has arguments of `EmulatedDriver`."""
    if not AVAILABLE:
        pytest.skip(WITHOUT)
    return CudaBackend(EmulatedDriver(**device), schedule)


#: Every backend that can run here, the emulated one included.
BACKENDS = [name for name, reason in backends.available().items() if reason is None]
BACKENDS += [EmulatedDriver.name] if AVAILABLE else []

#: The C backends among them, which keep all bits at a stop.
SIMD = [name for name in BACKENDS if name in backends.INSTRUCTION_SETS]


def get_backend(name, threads=None, schedule=None):
    """One of `BACKENDS`, as `mlpcore.backends.get` gives them; skips without the emulation."""
    if name != EmulatedDriver.name:
        return backends.get(name, threads, schedule)
    return emulated_backend(schedule or "streaming")
