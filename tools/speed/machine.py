"""What the machine and the software are, for the head of the table."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from mlpcore import __version__, backends
from mlpcore.cpu import available_cores, cpu_model, total_memory

#: Where Linux describes the first core's caches.
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

#: A plain core of the last years, for machines that do not say.
USUAL = {"L1": 32 << 10, "L2": 1 << 20, "L3": 16 << 20}

#: Libraries whose versions decide the figures, when they are installed.
LIBRARIES = ["numpy", "scipy", "scikit-learn", "torch", "jax", "torchvision", "kornia"]
LIBRARIES += ["albumentations", "pycuda"]

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Caches:
    """Bytes of the data caches: L1 and L2 of a core, L3 shared by all.

    `known` tells whether the machine said so, or the usual sizes were assumed.
    """

    l1: int = USUAL["L1"]
    l2: int = USUAL["L2"]
    l3: int = USUAL["L3"]
    known: bool = False


def read_caches(folder: Path = CACHES) -> Caches:
    """Cache sizes as Linux tells them, else the usual ones."""
    sizes = {}
    for index in sorted(folder.glob("index*")):
        try:
            level = (index / "level").read_text().strip()
            kind = (index / "type").read_text().strip()
            size = (index / "size").read_text().strip()
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind in ("Data", "Unified") and match and int(match[1]):
            sizes[f"L{level}"] = int(match[1]) * UNITS.get(match[2], 1)
    if "L1" not in sizes or "L2" not in sizes:
        return Caches()
    # Without an L3 the next level is memory: no room is claimed beyond the L2.
    return Caches(sizes["L1"], sizes["L2"], sizes.get("L3", sizes["L2"]), known=True)


def available_memory() -> int:
    """Bytes that this process can still get: of the machine, its control group, its limits."""
    available = total_memory()
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        text = ""
    if match := re.search(r"^MemAvailable:\s*(\d+) kB", text, re.MULTILINE):
        available = min(available, int(match[1]) << 10)
    try:
        import resource
    except ImportError:
        return available
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return available if limit == resource.RLIM_INFINITY else min(available, limit)


def compiler() -> str:
    """The compiler that built the C backend.

    GCC and Clang leave their name in what they build. Where it has been stripped, the
    compiler found now is named, and that it is a guess.
    """
    try:
        built = Path(backends.simd.__file__).read_bytes()
    except OSError:
        built = b""
    match = re.search(rb"GCC: \([^)\0]*\) [\d.]+|(?:[A-Z]\w+ )?clang version [\d.]+", built)
    if match:
        return match[0].decode()
    name = shutil.which("cc")
    if name:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout:
            return f"{done.stdout.splitlines()[0]} (found now; the one used is not known)"
    return "not known"


def library_versions() -> dict[str, str]:
    """Versions of the installed libraries that take part, with Python's and ours."""
    versions = {"mlpcore": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def device() -> str:
    """The GPU, or why there is none."""
    reason = backends.available().get("cuda", "this build has no such backend")
    return f"none ({reason})" if reason else backends.get("cuda").description


@dataclass(frozen=True)
class Machine:
    """The head of the table."""

    cpu: str
    instruction_sets: tuple[str, ...]
    cores: int  #: that this process may use
    cores_of_machine: int
    caches: Caches
    memory: int  #: bytes
    system: str
    compiler: str
    device: str
    versions: dict[str, str]
    load: float | None = None  #: processes that ran before the measurement, on average

    @classmethod
    def here(cls) -> Machine:
        """This machine."""
        reasons = backends.available()
        return cls(
            cpu=cpu_model(),
            instruction_sets=tuple(
                name for name in backends.INSTRUCTION_SETS if reasons[name] is None
            ),
            cores=available_cores(),
            cores_of_machine=os.cpu_count() or 1,
            caches=read_caches(),
            memory=total_memory(),
            system=f"{platform.system()} {platform.machine()}, {sys.implementation.name}",
            compiler=compiler(),
            device=device(),
            versions=library_versions(),
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        )

    @property
    def is_busy(self) -> bool:
        """Whether others seem to use the cores, so that times are longer than they need be."""
        return self.load is not None and self.load > self.cores_of_machine / 2

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        kib = 1 << 10
        sizes = f"L1 {self.caches.l1 // kib:,} KiB and L2 {self.caches.l2 // kib:,} KiB per core"
        sizes += f", L3 {self.caches.l3 // kib:,} KiB"
        if not self.caches.known:
            sizes += " (assumed: the machine does not say)"
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        load = "not known" if self.load is None else f"{self.load:.1f} over the last minute"
        if self.is_busy:
            load += ": the machine is busy, and times are not what they could be"
        return [
            ("CPU", self.cpu),
            ("Instruction sets", ", ".join(self.instruction_sets)),
            ("Cores", f"{self.cores} of {self.cores_of_machine} usable"),
            ("Caches", sizes),
            ("Memory", f"{self.memory / 2**30:.1f} GiB"),
            ("System", self.system),
            ("Compiler", self.compiler),
            ("Device", self.device),
            ("Versions", versions),
            ("Load", load),
        ]
