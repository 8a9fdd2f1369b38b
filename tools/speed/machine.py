"""What the machine and the software are, for the head of the tables."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from mlpcore import __version__, backends
from mlpcore.cpu import available_cores, cpu_model, total_memory

#: Where Linux describes the first core's caches.
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

#: Libraries whose versions decide the figures, when they are installed.
LIBRARIES = ("numpy", "scipy", "torch", "torchvision", "jax", "pycuda")

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Caches:
    """Bytes of the data caches: L1 and L2 of a core, L3 shared by all.

    The defaults are a usual core's, for a machine that does not tell its own (`known`).
    """

    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 16 << 20
    known: bool = False


def read_caches(folder: Path = CACHES) -> Caches:
    """Cache sizes as Linux tells them, else the usual ones."""
    sizes = {}
    for index in folder.glob("index*"):
        try:
            level, kind, size = ((index / n).read_text().strip() for n in ("level", "type", "size"))
        except OSError:
            continue
        if kind in ("Data", "Unified") and (match := re.fullmatch(r"(\d+)([KMG]?)", size)):
            sizes[level] = int(match[1]) * UNITS[match[2]]
    if not (sizes.get("1") and sizes.get("2")):
        return Caches()
    # Without an L3 the next level is memory: nothing fits beyond the L2.
    return Caches(sizes["1"], sizes["2"], sizes.get("3", sizes["2"]), known=True)


@dataclass(frozen=True)
class Machine:
    """The head of the tables."""

    cpu: str
    instruction_sets: tuple[str, ...]
    cores: int  #: that this process may use
    cores_of_machine: int
    caches: Caches
    memory: int  #: bytes
    device: str  #: the GPU, or why there is none
    versions: dict[str, str]
    load: float | None = None  #: average number of running processes before the measurement

    @classmethod
    def here(cls) -> Machine:
        """This machine."""
        reasons = backends.available()
        no_gpu = reasons["cuda"]
        versions = {name: metadata.version(name) for name in LIBRARIES if find_spec(name)}
        versions["scikit-learn"] = metadata.version("scikit-learn")
        return cls(
            cpu=cpu_model(),
            instruction_sets=tuple(n for n in backends.INSTRUCTION_SETS if reasons[n] is None),
            cores=available_cores(),
            cores_of_machine=os.cpu_count() or 1,
            caches=read_caches(),
            memory=total_memory(),
            device=f"none ({no_gpu})" if no_gpu else backends.get("cuda").description,
            versions={"mlpcore": __version__, "Python": platform.python_version(), **versions},
            load=round(os.getloadavg()[0], 2),
        )
