"""Finds the resident kernel of a plan: built with mlpcore, in the user's cache, or compiled now."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from mlpcore.backends.cuda import nvcc
from mlpcore.backends.cuda.plan import DoesNotFit, ResidentPlan
from mlpcore.errors import InputError
from mlpcore.files import atomic_write

#: The folder of kernels that were built with mlpcore.
BUILT = Path(__file__).parent

#: Why nvcc refused a kernel, by where it would be kept. nvcc would take its time to refuse again.
_refused: dict[Path, str] = {}


def cache_folder() -> Path:
    """The folder of compiled kernels in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("mlpcore") / "kernels"


def find(plan: ResidentPlan, capability: int) -> tuple[bytes, str | None]:
    """The kernel as a cubin, and the compiler's report in one line if it was compiled now.

    Raises
    ------
    DoesNotFit
        When it has to be compiled and cannot be; the reason is one line.
    """
    header = plan.header()
    if not (nvcc.SOURCES / "resident.cu").is_file():
        # An installed package: its kernels were built from the sources of the package itself.
        for built in BUILT.glob(nvcc.cubin_name(header, capability, sources="*")):
            return built.read_bytes(), None
        raise DoesNotFit("its kernel is not built, and the sources are in a checkout only")
    name = nvcc.cubin_name(header, capability)
    for kept in (BUILT / name, cache_folder() / name):  # a name has the hash of its sources
        if kept.is_file():
            return kept.read_bytes(), None
    return _compile(header, capability, kept)


def _compile(header: str, capability: int, kept: Path) -> tuple[bytes, str]:
    """Compiles into the cache, which takes some seconds."""
    if kept in _refused:
        raise DoesNotFit(_refused[kept])
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise DoesNotFit("its kernel is not built, and nvcc is not on PATH")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "kernel.cubin")
            report = nvcc.compile_resident(compiler, header, capability, made)
            cubin = made.read_bytes()
        atomic_write(kept, cubin)
        return cubin, report
    except InputError as error:
        raise DoesNotFit(f"its kernel cannot be kept: {error}") from error
    except OSError as error:
        raise DoesNotFit(f"its kernel cannot be kept in {kept.parent}: {error.strerror}") from error
    except nvcc.NvccError as error:
        _refused[kept] = f"its kernel cannot be compiled: {' '.join(str(error).split())}"
        raise DoesNotFit(_refused[kept]) from error
