"""What the machine is, and how fast its CPU reads each level of its memory.

A probe can only fall short of the hardware. So each limit is the fastest repeat of the better of
two probes that have nothing in common: NumPy, and the C backend.
"""

from __future__ import annotations

import math
import os
import platform
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from mlpcore import __version__, backends
from mlpcore.cpu import total_memory
from mlpcore.network import Network
from mlpcore.store import provenance
from speed.timing import Case, Settings, measure

#: Libraries whose versions decide the figures, where they are installed.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "jax", "pycuda")

#: Bytes of the largest buffer, and of the largest that is to be in the third-level cache.
MOST, MOST_IN_L3 = 1 << 30, 64 << 20

#: Bytes of a usual core's data caches, for a machine that does not tell its own.
USUAL = {"L1d": 32 << 10, "L2": 1 << 20, "L3": 16 << 20}

#: Passes over a buffer in a call, and floats in a row of the layer that serves as a buffer.
PASSES, ROW = 256, 2048


def cache_sizes() -> dict[str, int]:
    """Bytes of the data caches, as Linux tells them: L1d and L2 of a core, L3 shared by all."""
    command = ["lscpu", "--json", "--bytes", "--caches=NAME,ONE-SIZE"]
    try:
        content = subprocess.run(command, capture_output=True, check=True).stdout
        rows = msgspec.json.decode(content)["caches"]
        sizes = {row["name"]: int(row["one-size"]) for row in rows}
        # Without an L3 the next level is memory: nothing fits beyond the L2.
        return {"L1d": sizes["L1d"], "L2": sizes["L2"], "L3": sizes.get("L3", sizes["L2"])}
    except (OSError, subprocess.SubprocessError, LookupError, ValueError):
        return USUAL


def describe() -> dict[str, str]:
    """The head of the tables. What changes from hour to hour is in brackets."""
    no_gpu = backends.available()["cuda"]
    caches = (f"{name} {size >> 10:,} KiB" for name, size in cache_sizes().items())
    versions = [f"mlpcore {__version__}", f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return {
        "CPU": f"{provenance.machine()} (load {os.getloadavg()[0]:.2f})",
        "caches": ", ".join(caches),
        "GPU": f"none ({no_gpu})" if no_gpu else backends.get("cuda").description,
        "versions": ", ".join(versions),
    }


@dataclass(frozen=True)
class Limits:
    """How fast so many threads can read.

    `levels` of memory have a name, a capacity in bytes for all threads together, and the bytes
    that can be read in a second. They go from the nearest to the farthest, whose capacity is None:
    unlimited. `private` bytes, the L1 caches, cost nothing: they are too near to be timed.
    """

    threads: int
    levels: tuple[tuple[str, float | None, float], ...]
    private: float = 0.0

    def seconds(self, size: float) -> float:
        """Least time to read so many bytes, each from the nearest level that has room for it."""
        seconds, held = 0.0, min(self.private, size)
        for _, capacity, speed in self.levels:
            part = max(0.0, min(math.inf if capacity is None else capacity, size) - held)
            held += part
            seconds += part / speed
        return seconds


def numpy_probe(size: int, threads: int, pool: ThreadPoolExecutor) -> Case:
    """Reads a buffer of `size` bytes in all, each thread its own part, by dot products."""
    parts = np.ones((threads, max(size // threads // 4, 1)), np.float32)

    def read(part: int, n: int) -> None:
        repeated = np.broadcast_to(parts[part], (PASSES, parts.shape[1]))
        for _ in range(0, n, PASSES):
            np.vecdot(repeated, parts[part])

    def run(n: int) -> None:
        with threadpool_limits(1, "blas"):
            list(pool.map(read, range(threads), [n] * threads))

    return Case(run, PASSES)


def layer_probe(size: int, threads: int) -> Case:
    """Reads the weights of a layer of `size` bytes, once for each sample."""
    backend, network = backends.get("cpu", threads), Network((ROW - 1, max(size // (4 * ROW), 1)))
    x = np.zeros((PASSES, ROW - 1), np.float32)
    return Case(lambda n: [backend.forward(network, 0, x) for _ in range(0, n, PASSES)], PASSES)


def measure_limits(threads: int, settings: Settings) -> Limits:
    """Limits of so many threads. Each buffer is well inside its level, outside the one before."""
    caches = cache_sizes()
    l2, l3 = caches["L2"] * threads, caches["L3"]
    beyond = min(max(2 * l3, 4 * l2, 64 << 20), MOST, total_memory() // 8)
    levels = [("L2", l2, l2 // 2), ("DRAM", None, beyond)]
    if l3 >= 2 * l2:
        levels.insert(1, ("L3", l3, min(math.isqrt(l2 * l3), MOST_IN_L3)))
    sizes = [size for *_, size in levels]
    with ThreadPoolExecutor(threads) as pool:
        cases = [numpy_probe(size, threads, pool) for size in sizes]
        cases += [layer_probe(size, threads) for size in sizes]
        lows = [timing.low for timing in measure(cases, settings)]
    best = [size / min(pair) for size, *pair in zip(sizes, lows, lows[len(sizes) :])]
    found = tuple((name, room, speed) for (name, room, _), speed in zip(levels, best))
    return Limits(threads, found, caches["L1d"] * threads)
