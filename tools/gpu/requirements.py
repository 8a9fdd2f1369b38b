"""Prints everything that this machine lacks for `make gpu-check`, before anything is built."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import sys

#: Modules without which nothing can be built or nothing runs on the device.
ESSENTIAL = ("Cython", "cuda.bindings", "numpy", "pycuda", "pytest", "setuptools")

#: Modules that only some steps import. What mlpcore itself lacks stops the step that needs it.
OTHERS = (
    *("PIL", "hypothesis", "joblib", "markdown_it", "matplotlib", "platformdirs", "rich"),
    *("safetensors", "scipy", "sklearn", "threadpoolctl"),
    *("jax", "torch"),  # accuracy needs torch; speedup leaves out what is not there
)


def missing(modules: tuple[str, ...]) -> list[str]:
    """The modules that cannot be found; only their parents are imported."""

    def is_found(module: str) -> bool:
        try:
            return importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:  # the parent
            return False

    return [f"no module {module}" for module in modules if not is_found(module)]


def device_problem() -> str | None:
    """Why no CUDA device can be used, from the driver itself; None when one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no NVIDIA driver: {error}"
    count = ctypes.c_int()
    if status := driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return f"no CUDA device: the driver reports error {status}"
    return None if count.value else "no CUDA device is visible"


def main() -> int:
    """Prints a line for all that stops the check, and a line for all that stops single steps."""
    fatal, others = missing(ESSENTIAL), missing(OTHERS)
    for tool, lacking in (("nvcc", fatal), ("compute-sanitizer", others)):
        if shutil.which(tool) is None:
            lacking.append(f"{tool} is not on PATH")
    if problem := device_problem():
        fatal.append(problem)
    for meaning, lacking in (("cannot start", fatal), ("some steps will fail", others)):
        if lacking:
            print(f"{meaning}: {'; '.join(lacking)}")
    return 1 if fatal else 0


if __name__ == "__main__":
    sys.exit(main())
