"""Compiles the kernels with nvcc; used by setup.py, and by mlpcore for resident training.

Most kernels go into one fatbin for several architectures. The resident kernel is compiled for
one network on one kind of device at a time, which takes seconds to a minute each: here for the
paper's networks, when a device of a data centre is there or its architecture is asked for, and
by mlpcore for all others when they are first used.

Steered by two variables: ``MLPCORE_CUDA=0`` leaves the kernels out, and
``MLPCORE_CUDA_ARCH=90`` (or ``80,90``) compiles for these compute capabilities alone.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parent

#: Compute capabilities by default: Turing to Blackwell. The newest is also there as PTX, which
#: the driver compiles for what comes after it.
ARCHITECTURES = (75, 80, 86, 89, 90, 100)

#: Sums and products are fused where the kernels say so and nowhere else, as in the emulation.
FLAGS = ["-std=c++17", "-O3", "-fmad=false", "-Werror", "all-warnings"]


#: Devices for which resident kernels are built ahead, by compute capability: multiprocessors
#: and bytes of shared memory for a block of A100, H100 and H200 (SXM), and B200.
DATA_CENTRE = {80: (108, 166912), 90: (132, 232448), 100: (148, 232448)}

#: Of the paper's networks on MNIST at 29 x 29.
N_INPUTS, N_CLASSES = 841, 10


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


def _ahead(architectures: list[int]) -> list[int]:
    """Architectures for which the paper's networks are compiled ahead."""
    if os.environ.get("MLPCORE_CUDA_ARCH"):
        return architectures
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return []
    query = [smi, "--query-gpu=compute_cap", "--format=csv,noheader"]
    result = subprocess.run(query, capture_output=True, text=True)
    here = {line.strip().replace(".", "") for line in result.stdout.splitlines()}
    return [arch for arch in architectures if str(arch) in here]


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
    for old in (output, *output.parent.glob("resident-*.cubin")):
        old.unlink(missing_ok=True)
    if os.environ.get("MLPCORE_CUDA") == "0":
        return "CUDA kernels left out: MLPCORE_CUDA=0"
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return "CUDA kernels left out: nvcc is not on PATH"
    architectures = _wanted(_known(nvcc))
    output.parent.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    _build_ahead(nvcc, output.parent, cache, _ahead(architectures))
    label = "-".join(map(str, architectures))
    made = cache / f"kernels-{label}-{sources_digest()}.fatbin"
    if not made.exists():
        unfinished = made.with_suffix(".new")
        line = command(nvcc, unfinished, architectures)
        print(" ".join(line), file=sys.stderr)
        result = subprocess.run(line, capture_output=True, text=True)
        if result.returncode:
            raise CudaBuildError(f"nvcc failed:\n{result.stdout}{result.stderr}")
        unfinished.replace(made)
    shutil.copyfile(made, output)
    return None


def sources_digest() -> str:
    """A name for the sources of the kernels and the options of the compiler, this file."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.glob("*.[cp][uy]*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# ---- resident training ---------------------------------------------------------------------


def compile_resident(nvcc: str, header: str, capability: int, output: Path) -> str:
    """Compiles ``resident.cu`` for a plan, given as its header, into a cubin.

    Returns
    -------
    One line: registers of a thread, and bytes of them that are spilled to memory, if any.

    Raises
    ------
    CudaBuildError
        When nvcc refuses.
    """
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        made = Path(folder) / "made.cubin"
        (Path(folder) / "resident_plan.h").write_text(header)
        line = [nvcc, "-cubin", f"-arch=sm_{capability}", *FLAGS, "-Xptxas", "-v", f"-I{folder}"]
        line += ["-o", str(made), str(SOURCES / "resident.cu")]
        result = subprocess.run(line, capture_output=True, text=True)
        if result.returncode:
            raise CudaBuildError(f"nvcc failed:\n{result.stdout}{result.stderr}")
        made.replace(output)
    report = result.stdout + result.stderr
    registers = re.search(r"Used (\d+) registers", report)
    spills = re.search(r"(\d+) bytes spill stores", report)
    if not registers or not spills:
        raise CudaBuildError(f"ptxas reports no registers:\n{report}")
    if spills[1] == "0":
        return f"{registers[1]} registers, no spills"
    return f"{registers[1]} registers, WARNING: {spills[1]} bytes spilled to memory"


def cubin_name(plan: Any, version: str, capability: int) -> str:
    """File name of a plan's kernel, as it is compiled from the sources as they are now.

    `resident_build.find` knows how it begins and ends.
    """
    return f"resident-{plan.digest(version)}-{sources_digest()}-sm{capability}.cubin"


def _build_ahead(nvcc: str, folder: Path, cache: Path, architectures: list[int]) -> None:
    """The paper's networks on the devices of data centres, as far as they fit."""
    presets = _module("network.architecture").PRESETS
    planner = _module("backends.cuda.plan")
    jobs = []
    for capability in sorted(set(architectures) & set(DATA_CENTRE)):
        device = planner.Device(*DATA_CENTRE[capability], capability=capability)
        for preset, hidden in presets.items():
            try:
                plan = planner.make_plan((N_INPUTS, *hidden, N_CLASSES), device)
            except planner.DoesNotFit:
                continue
            jobs.append((preset, plan, planner.VERSIONS[-1], capability))

    def compile_one(job: tuple[str, Any, str, int]) -> str:
        preset, plan, version, capability = job
        made = cache / cubin_name(plan, version, capability)
        report = made.with_suffix(".txt")
        if not (made.exists() and report.exists()):
            line = compile_resident(nvcc, plan.header(version), capability, made)
            report.write_text(line + "\n")
        shutil.copyfile(made, folder / made.name)
        return f"resident {preset}, sm_{capability}: {report.read_text().strip()}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(compile_one, jobs):
            print(f"mlpcore: {line}", file=sys.stderr)


def _module(name: str) -> Any:
    """A plain module of mlpcore; the package itself cannot be imported before it is built."""
    for package in ("mlpcore", "mlpcore.network", "mlpcore.backends", "mlpcore.backends.cuda"):
        if package not in sys.modules:
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = [str(SOURCES.parent / package.replace(".", "/"))]
    return importlib.import_module(f"mlpcore.{name}")
