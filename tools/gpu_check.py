"""Checks and measures on a machine with an NVIDIA GPU what no other machine can show.

    python tools/gpu_check.py RESULTS [STEP ...]

Each step is a command with a time limit. What it says goes to RESULTS/STEP.log, the figures of the
tests to tests.xml, and those of tools/speedup.py to speedup.json. It uses the Python that runs it,
without network or installation. The exit status is 0 when no step failed.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: What a build and the device need, and what single steps need.
ESSENTIAL = ("Cython", "cuda.bindings", "numpy", "pycuda", "pytest", "setuptools")
OTHERS = (
    *("PIL", "hypothesis", "joblib", "matplotlib", "msgspec", "platformdirs", "rich"),
    *("safetensors", "scipy", "sklearn", "tabulate", "threadpoolctl", "jax", "torch"),
)


def device_problem() -> str | None:
    """Why no CUDA device can be used, from the driver itself; None when one can."""
    try:
        status = ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError as error:
        return f"no NVIDIA driver: {error}"
    return f"no CUDA device: the driver reports error {status}" if status else None


def missing(modules: tuple[str, ...]) -> list[str]:
    """The modules that cannot be found; only their parents are imported."""

    def is_found(module: str) -> bool:
        try:
            return importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:  # the parent
            return False

    return [f"no module {module}" for module in modules if not is_found(module)]


def requirements() -> list[str]:
    """Print all that is missing; return what stops everything."""
    fatal, others = missing(ESSENTIAL), missing(OTHERS)
    for program, lacking in (("nvcc", fatal), ("compute-sanitizer", others)):
        if shutil.which(program, path=environment()["PATH"]) is None:
            lacking.append(f"{program} is not on PATH")
    fatal += filter(None, [device_problem()])
    for meaning, lacking in (("cannot start", fatal), ("some steps will fail", others)):
        if lacking:
            print(f"{meaning}: {'; '.join(lacking)}", flush=True)
    return fatal


def environment() -> dict[str, str]:
    """The variables of steps: they find this checkout, and the programs of CUDA."""
    lists = {"PATH": ["/usr/local/cuda/bin"], "PYTHONPATH": [str(ROOT), str(ROOT / "tools")]}
    added = {name: [os.environ.get(name, ""), *more] for name, more in lists.items()}
    return os.environ | {name: os.pathsep.join(filter(None, added[name])) for name in added}


def steps(results: Path) -> dict[str, tuple[int, list[str]]]:
    """The steps in their order, each with its limit in seconds."""
    pytest = [sys.executable, "-m", "pytest", "-m", "gpu"]
    # A package that is missing stops the tests that import it, and no others.
    tests = ["-v", "--continue-on-collection-errors", f"--junitxml={results / 'tests.xml'}"]
    # cuda-bindings asks for functions that older drivers lack; mlpcore checks all its calls.
    options = ["--report-api-errors", "no", "--error-exitcode", "9"]
    kernels = [*pytest, "tests/gpu/test_every_kernel.py"]
    # The peers on CPUs take minutes for the larger networks.
    routines = "step,step-streaming,deformation,inference"
    chosen = ["--backend", "cuda", "--routine", routines, "--threads", "1", "--quick"]
    peers = ["--peers", "GPU,PyTorch CUDA graph", "--json", str(results / "speedup.json")]
    speedup = ["tools/speedup.py", "--arch", "net1;net2;net3;net4;net5", *chosen, *peers]
    return {
        "build": (180, [sys.executable, "setup.py", "build_ext", "--inplace"]),
        "tests": (300, [*pytest, *tests]),
        **{
            tool: (90, ["compute-sanitizer", "--tool", tool, *options, *kernels])
            for tool in ("memcheck", "racecheck", "synccheck")
        },
        "speedup": (180, [sys.executable, *speedup]),
    }


def run(name: str, seconds: int, command: list[str], log: Path) -> bool:
    """Run a step; whether it worked."""
    start = time.monotonic()
    # timeout(1) ends all that the command has started.
    command = ["timeout", "--signal=KILL", str(seconds), *command]
    with log.open("w") as output:
        status = subprocess.run(
            command, cwd=ROOT, env=environment(), stdout=output, stderr=subprocess.STDOUT
        ).returncode
    end = f"exit status {status}" if status else "ok"
    print(f"{name}: {end} ({time.monotonic() - start:.1f} s)", flush=True)
    if status:
        print(*log.read_text(errors="replace").splitlines()[-30:], sep="\n", flush=True)
    return not status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = list(steps(Path()))
    parser.add_argument("results", type=Path, help="folder for the figures")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(names)} (all)")
    arguments = parser.parse_args()
    if unknown := set(arguments.steps) - set(names):
        parser.error(f"no step {', '.join(unknown)}: expected {', '.join(names)}")
    if requirements():
        return 1
    results = arguments.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    failed = False
    for name, (seconds, command) in steps(results).items():
        if name in (arguments.steps or names):
            failed |= not run(name, seconds, command, results / f"{name}.log")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
