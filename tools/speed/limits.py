"""What the machine can do: bandwidth at each level of its memory, multiply-adds a second.

A probe can only fall short of the hardware, so each limit is the fastest repeat of the best of
two probes that have nothing in common:

- NumPy: a dot product of a buffer with itself reads it, `copyto` copies one half of it to the
  other; a thread each works on its own part. Python's lock is given back meanwhile, but at the
  size of a small cache handing it over costs as much as the work.
- the C backend: `forward` of a layer whose weights are the buffer reads them once for each
  sample, `update` reads and writes them; threads start once for many samples. At most sixteen
  threads share a layer, and more than reading and writing is done.

Multiply-adds are counted with a BLAS matrix product. Copied bytes are those read plus those
written; what a cache fetches before it is overwritten is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from mlpcore import backends
from mlpcore.network import Network
from mlpcore.typing import Float32Array
from speed.machine import Caches
from speed.timing import Case, Settings, measure

#: The largest buffer, and for the C backend, which has nothing to add where NumPy is enough.
MOST = 1 << 30
MOST_FOR_LAYERS = 64 << 20

#: Floats in a row of the layer that serves as a buffer, the bias included.
ROW = 2048

#: Rows of the square matrices of the matrix product.
ORDER = 1024


@dataclass(frozen=True)
class Level:
    """A level of memory.

    Bytes per second when read, and when copied (read plus written); `size` bytes are what
    the probes worked on.
    """

    name: str
    capacity: float  #: bytes that it holds for all threads together
    read: float
    copy: float
    size: int = 0


@dataclass(frozen=True)
class Limits:
    """What so many threads, or a device, can do.

    `levels` goes from the nearest to the farthest, which holds everything. `private` bytes,
    the L1 caches, cost nothing: they are too near to be timed.
    """

    threads: int
    levels: tuple[Level, ...]
    multiply_adds: float  #: per second
    private: float = 0.0
    note: str = ""


def level_sizes(caches: Caches, threads: int, memory: int) -> dict[str, int]:
    """Bytes of the buffer that shows each level: well inside it, and outside the one before."""
    l2 = caches.l2 * threads
    sizes = {"L2": l2 // 2}
    if caches.l3 >= 2 * l2:
        sizes["L3"] = min(math.isqrt(l2 * caches.l3), MOST_FOR_LAYERS)
    sizes["DRAM"] = min(max(2 * caches.l3, 4 * l2, 64 << 20), MOST, memory // 8)
    return sizes


def numpy_probes(size: int, threads: int, pool: ThreadPoolExecutor) -> dict[str, Case]:
    """Reads, and copies, a buffer of `size` bytes in all; n passes over it."""
    chunks = [np.ones(max(size // threads // 8, 1) * 2, np.float32) for _ in range(threads)]

    def read(chunk: Float32Array, n: int) -> None:
        for _ in range(n):
            np.dot(chunk, chunk)

    def copy(chunk: Float32Array, n: int) -> None:
        source, target = np.split(chunk, 2)
        for _ in range(n):
            np.copyto(target, source)

    def shared(work: Callable[[Float32Array, int], None]) -> Case:
        def run(n: int) -> None:
            with threadpool_limits(1, "blas"):
                list(pool.map(work, chunks, [n] * threads))

        return Case(run)

    return {"read": shared(read), "copy": shared(copy)}


def layer_probes(size: int, threads: int) -> dict[str, Case]:
    """Reads, and reads and writes, the weights of a layer of `size` bytes; n times."""
    name = [n for n in backends.INSTRUCTION_SETS if backends.available()[n] is None][-1]
    backend = backends.get(name, threads)
    rows = max(size // (4 * ROW), 1)
    network = Network((ROW - 1, rows))
    x, d = np.zeros((256, ROW - 1), np.float32), np.zeros((256, rows), np.float32)

    def calls(work: Callable[[int], object]) -> Case:
        return Case(lambda n: [work(min(256, n - i)) for i in range(0, n, 256)], step=16)

    return {
        "read": calls(lambda n: backend.forward(network, 0, x[:n])),
        "copy": calls(lambda n: backend.update(network, 0, x[:n], d[:n], 0.5)),
    }


def product_probe(threads: int) -> Case:
    """A matrix product of ORDER**3 multiply-adds, n times."""
    a = np.ones((ORDER, ORDER), np.float32)
    out = np.empty_like(a)

    def run(n: int) -> None:
        with threadpool_limits(threads, "blas"):
            for _ in range(n):
                np.matmul(a, a, out=out)

    return Case(run)


#: Level, kind, bytes moved per pass, and case; the matrix product's level is None.
Probe: TypeAlias = tuple[str | None, str, int, Case]


def _probes(sizes: dict[str, int], threads: int, pool: ThreadPoolExecutor) -> list[Probe]:
    probes: list[Probe] = [(None, "", 0, product_probe(threads))]
    for level, size in sizes.items():
        probes += [(level, k, size, c) for k, c in numpy_probes(size, threads, pool).items()]
        if level != "DRAM" and size <= MOST_FOR_LAYERS:
            cases = layer_probes(size, threads)
            moved = max(size // (4 * ROW), 1) * 4 * ROW
            probes += [(level, "read", moved, cases["read"])]
            probes += [(level, "copy", 2 * moved, cases["copy"])]
    return probes


def at_least(limits: Limits, fewer: Limits) -> Limits:
    """The limits of more threads, which are no lower than those of fewer.

    A probe that others have disturbed may say so.
    """
    known = {level.name: level for level in fewer.levels}
    levels = []
    for level in limits.levels:
        other = known.get(level.name, level)
        read, copy = max(level.read, other.read), max(level.copy, other.copy)
        levels.append(replace(level, read=read, copy=copy))
    multiply_adds = max(limits.multiply_adds, fewer.multiply_adds)
    return replace(limits, levels=tuple(levels), multiply_adds=multiply_adds)


def measure_limits(
    caches: Caches,
    threads: int,
    memory: int,
    settings: Settings,
    progress: Callable[[], object] = lambda: None,
) -> Limits:
    """Of the CPU, with so many threads."""
    sizes = level_sizes(caches, threads, memory)
    best: dict[tuple[str | None, str], float] = {}
    with ThreadPoolExecutor(threads) as pool:
        probes = _probes(sizes, threads, pool)
        timings = measure([case for *_, case in probes], settings, progress)
    for (level, kind, moved, _), timing in zip(probes, timings):
        amount = moved if level else ORDER**3
        best[level, kind] = max(best.get((level, kind), 0.0), amount / timing.low)
    capacity = {"L2": caches.l2 * threads, "L3": caches.l3, "DRAM": math.inf}
    levels = [
        Level(name, capacity[name], best[name, "read"], best[name, "copy"], size)
        for name, size in sizes.items()
    ]
    too_small = sizes["DRAM"] <= caches.l3
    note = "the buffer for DRAM is no larger than the L3 cache" if too_small else ""
    return Limits(threads, tuple(levels), best[None, ""], caches.l1 * threads, note)
