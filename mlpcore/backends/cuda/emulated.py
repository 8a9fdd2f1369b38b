"""The CUDA kernels compiled for the CPU: for tests, where there is no GPU. It has no speed.

``cuda/emulation`` says what is emulated. The library is built on demand from the sources of a
checkout, and kept in ``build/emulation`` under a digest of all that it depends on.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.plan import Device, Plan
from mlpcore.backends.cuda.resident import KERNEL
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "cuda"
CACHE = ROOT / "build" / "emulation"

#: Compiles with this sanitizer ("address"); its library must then be loaded before Python.
SANITIZE_VARIABLE = "MLPCORE_EMULATION_SANITIZE"

#: Sums and products are fused where the kernels say so and nowhere else.
FLAGS = [
    "-std=c++17",
    "-O2",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-pragmas",
    "-Werror",
]

_KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')


def compiler() -> str | None:
    """The C++ compiler: $CXX, or the first found."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


def unavailable_reason() -> str | None:
    """Why there is no emulation here, or None."""
    if not (SOURCES / "kernels.cu").is_file():
        return "its sources are in a checkout of mlpcore only"
    if compiler() is None:
        return "no C++ compiler found to build it with"
    return None


def checks_shared_memory() -> bool:
    """Whether AddressSanitizer can watch shared variables: GCC's can, clang's not."""
    return "clang" not in _version(compiler() or "")


def _text(source: Path) -> str:
    """A .cu file and those that it includes, for the names of its kernels."""
    text = source.read_text()
    included = re.findall(r'^#include "(\w+\.cu)"', text, re.MULTILINE)
    return text + "".join(_text(source.parent / name) for name in included)


def build(source: Path, sanitize: str | None = None, headers: dict[str, str] | None = None) -> Path:
    """The shared library of a .cu file, compiled unless it is there already.

    `headers` are files that it includes and that are not beside it, by name.

    Raises
    ------
    InputError
        When the compiler is missing or refuses; the message is its own.
    """
    source = source.resolve()
    command = [compiler() or "c++", *FLAGS, f"-I{SOURCES / 'emulation'}", f"-I{SOURCES}"]
    if headers:  # one of many specialisations, which run for less time than they compile
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
    digest = hashlib.sha256(" ".join(command).encode() + main.encode())
    digest.update(_version(command[0]).encode() + _cpu_features())
    digest.update(repr(sorted((headers or {}).items())).encode())
    for path in sorted([source, *SOURCES.rglob("*.cu*"), *SOURCES.rglob("*.h")]):
        digest.update(path.read_bytes())
    library = CACHE / f"{source.stem}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        _compile(command, {"main.cpp": main, **(headers or {})}, library)
    return library


def _compile(command: list[str], files: dict[str, str], library: Path) -> None:
    """Compiles main.cpp beside the library and renames: two processes may build at once."""
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        path, made = Path(folder) / "main.cpp", Path(folder) / "made.so"
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        result = subprocess.run(
            [*command, f"-I{folder}", str(path), "-o", str(made)], capture_output=True, text=True
        )
        if result.returncode:
            raise InputError(f"{command[0]} cannot build the emulation:\n{result.stderr}")
        made.rename(library)


@functools.cache
def _version(command: str) -> str:
    result = subprocess.run([command, "--version"], capture_output=True, text=True)
    return result.stdout


def _cpu_features() -> bytes:
    """What -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return b""
    return next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")


class EmulationError(RuntimeError):
    """A launch that went wrong: a deadlock, or a grid beyond the limits of a device."""


class _Memory:
    """Memory of exactly so many bytes, NaN at first."""

    def __init__(self, library: ctypes.PyDLL, n_bytes: int, release: Callable[[], None]):
        self._library, self._release = library, release
        self.address: int = library.emulation_allocate(n_bytes)
        if not self.address:
            raise MemoryError(f"{n_bytes} bytes for the emulated device")

    def __int__(self) -> int:
        return self.address

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._library.emulation_free(self.address)
            self._release()


class EmulatedKernel:
    """The resident kernel, specialised for a plan: a library of its own."""

    def __init__(self, plan: Plan, version: str, source: Path = SOURCES / "resident.cu"):
        headers = {"resident_plan.h": plan.header(version)}
        self.driver, self._plan = EmulatedDriver(source, headers=headers), plan

    def launch(self, blocks: int, arguments: tuple[int, ...]) -> None:
        launch = Launch(KERNEL, (blocks, 1, 1), (self._plan.threads, 1, 1), arguments)
        self.driver.launch(launch, 4 * self._plan.shared_floats)


class EmulatedDriver:
    """A device made of one thread of the CPU.

    Parameters
    ----------
    source
        The .cu file whose kernels it can launch; by default all of mlpcore's.
    memory
        Bytes that it pretends to have.
    """

    name = "cuda-emulated"
    default_schedule = "streaming"
    #: Of resident training, small enough that many blocks and threads run in little time.
    limits = Device(6, shared_bytes=48 << 10, registers=64 * 64, threads=(32, 64))
    description = "cuda-emulated: the CUDA kernels on 1 thread of the CPU, for tests only"

    def __init__(
        self,
        source: Path = SOURCES / "kernels.cu",
        memory: int = 1 << 33,
        headers: dict[str, str] | None = None,
    ):
        path = build(source, os.environ.get(SANITIZE_VARIABLE), headers)
        self._library = library = ctypes.PyDLL(str(path))
        library.emulation_name.restype = ctypes.c_char_p
        library.emulation_formats.restype = ctypes.c_char_p
        library.emulation_allocate.restype = ctypes.c_void_p
        library.emulation_allocate.argtypes = [ctypes.c_size_t]
        library.emulation_free.argtypes = [ctypes.c_void_p]
        library.emulation_seed.argtypes = [ctypes.c_uint64]
        self._free = memory
        self._error = ctypes.create_string_buffer(512)
        #: Index and parameter letters of each kernel.
        self.kernels = {
            library.emulation_name(i).decode(): (i, library.emulation_formats(i).decode())
            for i in range(library.emulation_size())
        }

    def seed(self, seed: int) -> None:
        """Chooses the order in which threads run from now on."""
        self._library.emulation_seed(seed)

    def specialise(self, plan: Plan, version: str) -> EmulatedKernel:
        return EmulatedKernel(plan, version)

    def active(self) -> nullcontext[None]:
        return nullcontext()

    def free_memory(self) -> int:
        return self._free

    def allocate(self, n_bytes: int) -> _Memory:
        memory = _Memory(self._library, n_bytes, lambda: self._release(n_bytes))
        self._free -= n_bytes
        return memory

    def _release(self, n_bytes: int) -> None:
        self._free += n_bytes

    def upload(self, address: int, array: AnyArray) -> None:
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: AnyArray, address: int) -> None:
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        ctypes.memmove(target, source, n_bytes)

    def launch(self, launch: Launch, shared_bytes: int = 0) -> None:
        index, formats = self.kernels[launch.kernel]
        status = self._library.emulation_launch(
            index,
            (ctypes.c_uint * 3)(*launch.grid),
            (ctypes.c_uint * 3)(*launch.block),
            ctypes.c_size_t(shared_bytes),
            struct.pack(formats, *launch.arguments),
            self._error,
            ctypes.c_size_t(len(self._error)),
        )
        if status:
            raise EmulationError(self._error.value.decode())

    def capture(self, launches: list[Launch]) -> list[Launch]:
        return list(launches)

    def replay(self, graph: list[Launch]) -> None:
        for launch in graph:
            self.launch(launch)

    def synchronize(self) -> None:
        pass
