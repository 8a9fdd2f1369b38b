"""Compiles the kernels with nvcc, for several architectures at once; used by setup.py.

Steered by two variables: ``MLPCORE_CUDA=0`` leaves the kernels out, and
``MLPCORE_CUDA_ARCH=90`` (or ``80,90``) compiles for these compute capabilities alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent

#: Compute capabilities by default: Turing to Blackwell. The newest is also there as PTX, which
#: the driver compiles for what comes after it.
ARCHITECTURES = (75, 80, 86, 89, 90, 100)

#: Sums and products are fused where the kernels say so and nowhere else, as in the emulation.
FLAGS = ["-std=c++17", "-O3", "-fmad=false", "-Werror", "all-warnings"]


class CudaBuildError(Exception):
    """The kernels cannot be compiled; one line, or nvcc's own words."""


def _wanted(known: list[int]) -> list[int]:
    """Architectures to compile for, of those that this nvcc knows."""
    text = os.environ.get("MLPCORE_CUDA_ARCH", "")
    if not text:
        return [arch for arch in ARCHITECTURES if arch in known]
    try:
        wanted = sorted({int(part) for part in text.split(",")})
    except ValueError:
        wanted = []
    unknown = [arch for arch in wanted if arch not in known]
    if not wanted or unknown:
        raise CudaBuildError(
            f"MLPCORE_CUDA_ARCH={text}: expected some of {','.join(map(str, known))}"
        )
    return wanted


def _known(nvcc: str) -> list[int]:
    """Compute capabilities that an nvcc compiles for, plain ones only."""
    result = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True)
    codes = [line.strip().removeprefix("sm_") for line in result.stdout.splitlines()]
    known = sorted(int(code) for code in codes if code.isdecimal())
    if result.returncode or not known:
        raise CudaBuildError(f"{nvcc} --list-gpu-code says nothing that is understood")
    return known


def command(nvcc: str, output: Path, architectures: list[int]) -> list[str]:
    """The call of nvcc that compiles all kernels into one fatbin."""
    targets = [f"arch=compute_{arch},code=sm_{arch}" for arch in architectures]
    targets.append(f"arch=compute_{architectures[-1]},code=compute_{architectures[-1]}")
    codes = [word for target in targets for word in ("-gencode", target)]
    source = str(SOURCES / "kernels.cu")
    return [nvcc, "-fatbin", *FLAGS, *codes, "--threads", "0", "-o", str(output), source]


def compile_fatbin(output: Path, cache: Path) -> str | None:
    """Compiles the kernels into a file in a folder, unless they are there, and copies it.

    Returns
    -------
    None, or the one line that says why there are no kernels.

    Raises
    ------
    CudaBuildError
        When nvcc was found and refuses.
    """
    output.unlink(missing_ok=True)
    if os.environ.get("MLPCORE_CUDA") == "0":
        return "CUDA kernels left out: MLPCORE_CUDA=0"
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return "CUDA kernels left out: nvcc is not on PATH"
    architectures = _wanted(_known(nvcc))
    label = "-".join(map(str, architectures))
    made = cache / f"kernels-{label}.fatbin"
    newest = max(path.stat().st_mtime for path in SOURCES.glob("*.[cp][uy]*"))
    if not made.exists() or made.stat().st_mtime < newest:
        cache.mkdir(parents=True, exist_ok=True)
        line = command(nvcc, made, architectures)
        print(" ".join(line), file=sys.stderr)
        result = subprocess.run(line, capture_output=True, text=True)
        if result.returncode:
            raise CudaBuildError(f"nvcc failed:\n{result.stdout}{result.stderr}")
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(made, output)
    return None
