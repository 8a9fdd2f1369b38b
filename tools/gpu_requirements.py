"""What has to be installed before `gpu_check` builds anything: all that is missing, at once."""

from __future__ import annotations

import importlib.util
import shutil
from typing import Any, TypeAlias

#: What a step has found, as JSON keeps it.
Result: TypeAlias = dict[str, Any]

#: Modules that the build, mlpcore on a GPU and the tests import, and what pip calls them.
REQUIRED = {
    "Cython": "cython",
    "PIL": "pillow",
    "cuda.bindings": "cuda-bindings",
    "hypothesis": "hypothesis",
    "joblib": "joblib",
    "markdown_it": "markdown-it-py",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "platformdirs": "platformdirs",
    "pycuda": "pycuda",
    "pytest": "pytest",
    "rich": "rich",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "setuptools": "setuptools",
    "sklearn": "scikit-learn",
    "threadpoolctl": "threadpoolctl",
}

#: Modules without which a part is left out or fails, while the rest is worth running.
COMPARED = {"torch": "accuracy and speedup fail without it", "jax": "speedup leaves it out"}


def missing(modules: list[str]) -> list[str]:
    """Those that cannot be found; nothing but their parents is imported."""

    def found(module: str) -> bool:
        try:
            return importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:  # the parent
            return False

    return [module for module in modules if not found(module)]


def requirements() -> Result:
    """Nothing, or a note about what only comparisons need.

    Raises
    ------
    RuntimeError
        With everything that is missing and how to install it, in one line.
    """
    lines = []
    if modules := missing(list(REQUIRED)):
        packages = " ".join(REQUIRED[module] for module in modules)
        lines.append(f"no module {', '.join(modules)}: pip install {packages}")
    if shutil.which("nvcc") is None:
        lines.append("nvcc is not on PATH: install the CUDA toolkit, or name its bin in PATH")
    if lines:
        raise RuntimeError("; ".join(lines))
    absent = missing(list(COMPARED))
    return {"note": "; ".join(f"no {m}: {COMPARED[m]}" for m in absent)} if absent else {}
