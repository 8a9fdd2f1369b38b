"""Compiles kernels with nvcc: for ``setup.py``, and at run time for resident training.

Most kernels go into one fatbin for several architectures. The resident kernel is compiled for
one network on one kind of device at a time, which takes seconds to a minute. ``setup.py`` does
this for the paper's networks where such a device is there, or its architecture is asked for.
mlpcore does it for every other network when it is first used.

Two variables steer the build. ``MLPCORE_CUDA=0`` leaves the kernels out. ``MLPCORE_CUDA_ARCH=90``
(or ``80,90``) compiles for these compute capabilities only.

This module imports the standard library only, because ``setup.py`` runs it before mlpcore is
built. The sources of the kernels are in a checkout and in an sdist, not in an installed package.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "cuda"

#: The default compute capabilities: Turing to Blackwell. The newest is also there as PTX, which
#: the driver compiles for later devices.
ARCHITECTURES = (75, 80, 86, 89, 90, 100)

#: Sums and products are fused only where the kernels say so, as in the emulation.
FLAGS = ["-std=c++17", "-O3", "-fmad=false", "-Werror", "all-warnings"]

#: For a compute capability, the headers of resident kernels to build, by a name for each.
Headers = Callable[[int], dict[str, str]]


class NvccError(Exception):
    """The kernels cannot be compiled. The message is one line, or nvcc's own words."""


def build(output: Path, cache: Path, headers: Headers) -> str | None:
    """Compiles all kernels into `cache`, unless they are there, and copies them.

    Parameters
    ----------
    output
        The fatbin; resident kernels go into the same folder.
    headers
        The resident kernels to build.

    Returns
    -------
    None, or one line that says why there are no kernels.

    Raises
    ------
    NvccError
        When nvcc refuses.
    """
    for old in (output, *output.parent.glob("resident-*.cubin")):
        old.unlink(missing_ok=True)
    if os.environ.get("MLPCORE_CUDA") == "0":
        return "CUDA kernels left out: MLPCORE_CUDA=0"
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return "CUDA kernels left out: nvcc is not on PATH"
    architectures = chosen_architectures(known_architectures(nvcc))
    output.parent.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    _build_resident(nvcc, output.parent, cache, resident_architectures(architectures), headers)
    label = "-".join(map(str, architectures))
    made = cache / f"kernels-{label}-{sources_digest()}.fatbin"
    if not made.exists():
        compile_fatbin(nvcc, architectures, made)
    shutil.copyfile(made, output)
    return None


def _build_resident(
    nvcc: str, folder: Path, cache: Path, architectures: list[int], headers: Headers
) -> None:
    """Compiles resident kernels, as many at a time as there are cores."""

    def build_one(capability: int, name: str, header: str) -> str:
        made = cache / cubin_name(header, capability)
        report = made.with_suffix(".txt")
        if not (made.exists() and report.exists()):
            report.write_text(compile_resident(nvcc, header, capability, made) + "\n")
        shutil.copyfile(made, folder / made.name)
        return f"resident {name}, sm_{capability}: {report.read_text().strip()}"

    jobs = [(arch, *item) for arch in architectures for item in headers(arch).items()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(build_one, *zip(*jobs)) if jobs else ():
            print(f"mlpcore: {line}", file=sys.stderr)


# ---- architectures -------------------------------------------------------------------------


def known_architectures(nvcc: str) -> list[int]:
    """The compute capabilities that an nvcc compiles for, without variants such as 90a."""
    result = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True)
    codes = re.findall(r"^\s*sm_(\d+)\s*$", result.stdout, re.MULTILINE)
    known = sorted(map(int, codes))
    if result.returncode or not known:
        raise NvccError(f"{nvcc} --list-gpu-code says nothing that is understood")
    return known


def chosen_architectures(known: list[int]) -> list[int]:
    """The architectures to compile for, among those that nvcc knows."""
    text = os.environ.get("MLPCORE_CUDA_ARCH", "")
    if not text:
        return [arch for arch in ARCHITECTURES if arch in known]
    try:
        wanted = sorted({int(part) for part in text.split(",")})
    except ValueError:
        wanted = []
    if not wanted or not set(wanted) <= set(known):
        expected = ",".join(map(str, known))
        raise NvccError(f"MLPCORE_CUDA_ARCH={text}: expected some of {expected}")
    return wanted


def resident_architectures(architectures: list[int]) -> list[int]:
    """Where resident kernels are built: if chosen, else on a machine with such a device."""
    if os.environ.get("MLPCORE_CUDA_ARCH"):
        return architectures
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return []
    query = [smi, "--query-gpu=compute_cap", "--format=csv,noheader"]
    result = subprocess.run(query, capture_output=True, text=True)
    present = {line.strip().replace(".", "") for line in result.stdout.splitlines()}
    return [arch for arch in architectures if str(arch) in present]


# ---- nvcc ----------------------------------------------------------------------------------


def fatbin_command(nvcc: str, output: Path, architectures: list[int]) -> list[str]:
    """The call of nvcc that compiles all kernels except the resident one."""
    newest = architectures[-1]
    targets = [f"arch=compute_{arch},code=sm_{arch}" for arch in architectures]
    targets.append(f"arch=compute_{newest},code=compute_{newest}")
    codes = [word for target in targets for word in ("-gencode", target)]
    source = str(SOURCES / "kernels.cu")
    return [nvcc, "-fatbin", *FLAGS, *codes, "--threads", "0", "-o", str(output), source]


def compile_fatbin(nvcc: str, architectures: list[int], output: Path) -> None:
    """Compiles all kernels except the resident one; raises NvccError when nvcc refuses."""
    unfinished = output.with_suffix(".new")
    command = fatbin_command(nvcc, unfinished, architectures)
    print(" ".join(command), file=sys.stderr)
    _run(command)
    unfinished.replace(output)


def compile_resident(nvcc: str, header: str, capability: int, output: Path) -> str:
    """Compiles ``resident.cu`` for the header of a plan into a cubin.

    Returns
    -------
    One line: registers of a thread, and how many bytes are spilled to memory, if any.

    Raises
    ------
    NvccError
        When nvcc refuses.
    """
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        made = Path(folder) / "made.cubin"
        (Path(folder) / "resident_plan.h").write_text(header)
        command = [nvcc, "-cubin", f"-arch=sm_{capability}", *FLAGS, "-Xptxas", "-v"]
        command += [f"-I{folder}", "-o", str(made), str(SOURCES / "resident.cu")]
        report = _run(command)
        registers = re.search(r"Used (\d+) registers", report)
        spills = re.search(r"(\d+) bytes spill stores", report)
        if not registers or not spills:
            raise NvccError(f"ptxas reports no registers:\n{report}")
        made.replace(output)
    if spills[1] == "0":
        return f"{registers[1]} registers, no spills"
    return f"{registers[1]} registers, WARNING: {spills[1]} bytes spilled to memory"


def _run(command: list[str]) -> str:
    """What a command prints; NvccError when it fails."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise NvccError(f"nvcc failed:\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


# ---- names ---------------------------------------------------------------------------------


def sources_digest() -> str:
    """A name for the sources of the kernels and for this file, which has nvcc's options."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(SOURCES.glob("*.cu*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def cubin_name(header: str, capability: int, sources: str | None = None) -> str:
    """The file name of a resident kernel; `sources` is by default the digest of the sources."""
    plan = hashlib.sha256(header.encode()).hexdigest()[:12]
    return f"resident-{plan}-{sources or sources_digest()}-sm{capability}.cubin"
