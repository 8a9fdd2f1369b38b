"""The resident kernel of a plan: built with mlpcore, kept from before, or compiled now."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from mlpcore.backends.cuda.plan import DoesNotFit, Plan

#: The compiler's side, and the kernel's source: in a checkout of mlpcore only.
COMPILE = Path(__file__).resolve().parents[3] / "cuda" / "compile_fatbin.py"

#: Why a kernel cannot be compiled, by where it would be kept: the compiler takes its time each
#: time that it is asked.
_refused: dict[Path, str] = {}

#: Kernels that were built with mlpcore.
BUILT = Path(__file__).parent


def cache_folder() -> Path:
    """The folder of compiled kernels in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("mlpcore") / "kernels"


def find(plan: Plan, version: str, capability: int) -> tuple[bytes, str | None]:
    """The kernel as a cubin, and what there is to say of it: a line, or None.

    Raises
    ------
    DoesNotFit
        When it has to be compiled and that is not possible; the reason is one line.
    """
    if not COMPILE.is_file():
        # Built from the sources that mlpcore was built from: their digest is not asked for.
        pattern = f"resident-{plan.digest(version)}-*-sm{capability}.cubin"
        for built in BUILT.glob(pattern):
            return built.read_bytes(), None
        raise DoesNotFit("its kernel is not built, and the sources are in a checkout only")
    compiler = _compiler()
    name = compiler.cubin_name(plan, version, capability)
    for kept in (BUILT / name, cache_folder() / name):
        if kept.is_file():
            return kept.read_bytes(), None
    return _compile(compiler, plan, version, capability, kept)


@functools.cache
def _compiler() -> ModuleType:
    """``cuda/compile_fatbin.py``, which is in no package."""
    loader = SourceFileLoader("compile_fatbin", str(COMPILE))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None  # there is a loader
    compiler = importlib.util.module_from_spec(spec)
    loader.exec_module(compiler)
    return compiler


def _compile(
    compiler: ModuleType, plan: Plan, version: str, capability: int, kept: Path
) -> tuple[bytes, str]:
    """Compiles into the cache, which takes some seconds."""
    if kept in _refused:
        raise DoesNotFit(_refused[kept])
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise DoesNotFit("its kernel is not built, and nvcc is not on PATH")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        report = compiler.compile_resident(nvcc, plan.header(version), capability, kept)
        return kept.read_bytes(), report
    except OSError as error:
        raise DoesNotFit(f"its kernel cannot be kept in {kept.parent}: {error.strerror}") from error
    except compiler.CudaBuildError as error:
        _refused[kept] = f"its kernel cannot be compiled: {' '.join(str(error).split())}"
        raise DoesNotFit(_refused[kept]) from error
