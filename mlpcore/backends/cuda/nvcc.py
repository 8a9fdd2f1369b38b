"""Compiles kernels for the device at hand when they are first used, and keeps them in a cache.

A kernel is compiled again for another architecture, by another version of nvcc, because the driver
may refuse what a newer one has made, and when the driver refuses what is in the cache.

nvcc takes a second for all kernels of one architecture, and up to some seconds for the resident
kernel, which is compiled for one network on one kind of device at a time.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mlpcore.backends.cuda.sources import SOURCES
from mlpcore.errors import InputError, one_line
from mlpcore.files import atomic_write, make_folder

#: Sums and products are fused only where the kernels say so, as in the emulation.
FLAGS = ("-cubin", "-std=c++17", "-O3", "-fmad=false", "-Werror", "all-warnings")

#: Where NVIDIA's installer on Linux links the CUDA of the machine.
SYSTEM_FOLDER = Path("/usr/local/cuda/bin")


class CannotCompile(Exception):
    """The reason why there is no machine code, in one line."""


def cache_folder() -> Path:
    """The folder of compiled kernels in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("mlpcore") / "kernels"


def find_nvcc() -> str | None:
    """The compiler of CUDA_HOME or CUDA_PATH, on PATH, in /usr/local/cuda, or installed by pip."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    installed = importlib.util.find_spec("nvidia")
    folders = [Path(home, "bin") for home in homes if home]
    folders += [Path(each) for each in os.get_exec_path()] + [SYSTEM_FOLDER]
    for folder in (installed.submodule_search_locations or ()) if installed else ():
        folders += sorted(Path(folder).glob("cu*/bin"), reverse=True)  # the newest first
    return shutil.which("nvcc", path=os.pathsep.join(map(str, folders)))


def compiled(source: str, capability: int, plan: str = "") -> Iterator[bytes]:
    """The machine code of one of the sources, a cubin: what is in the cache, then compiled anew.

    A caller takes the first that the device, of a compute capability such as 90 for 9.0, can load.
    The source is ``"kernels.cu"``, or ``"resident.cu"``, which includes the plan as
    ``resident_plan.h``. CannotCompile is raised when nvcc refuses, or is not there and nothing was
    in the cache.
    """
    nvcc = find_nvcc()
    compiler = "*"  # without nvcc, what any version has made
    if nvcc is not None:
        version = subprocess.run([nvcc, "--version"], capture_output=True).stdout
        compiler = hashlib.sha256(version).hexdigest()[:8]
    digest = hashlib.sha256(repr((FLAGS, plan)).encode())
    for path in sorted(SOURCES.glob("*.cu*")):
        digest.update(path.read_bytes())
    name = f"{Path(source).stem}-sm{capability}-{digest.hexdigest()[:16]}-{compiler}.cubin"
    kept: list[bytes] = []
    with suppress(OSError):
        kept = [path.read_bytes() for path in cache_folder().glob(name)]
    yield from kept
    if nvcc is None:
        if kept:
            return
        raise CannotCompile("nvcc is not on PATH, in CUDA_HOME or installed by pip")
    cubin = _compile(nvcc, source, capability, plan)
    with suppress(InputError):  # a cache that cannot be written to only costs time
        make_folder(cache_folder())
        atomic_write(cache_folder() / name, cubin)
    yield cubin


def _compile(nvcc: str, source: str, capability: int, plan: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.cubin")
        Path(folder, "resident_plan.h").write_text(plan)
        command = [nvcc, *FLAGS, f"-arch=sm_{capability}", f"-I{folder}", "-o", str(made)]
        result = subprocess.run([*command, str(SOURCES / source)], capture_output=True, text=True)
        if result.returncode or not made.is_file():
            said = one_line(result.stdout + result.stderr)
            raise CannotCompile(f"nvcc failed: {said}")
        return made.read_bytes()
