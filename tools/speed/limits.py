"""What the machine can do: bandwidth at each level of its memory, multiply-adds a second.

A probe can only fall short of the hardware. So each limit is the fastest repeat of the better
of two probes that have nothing in common. NumPy reads a buffer by a dot product and copies it,
each thread its own part; in a small cache, handing over Python's lock costs as much as the work.
The C backend reads a layer's weights by `forward`, and reads and writes them by `update`; its
threads start once for many samples, but at most sixteen share a layer.

Copied bytes are the bytes read plus those written; what a cache fetches before it is overwritten
is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.network import Network
from mlpcore.typing import AnyArray
from speed.machine import Machine
from speed.timing import Case, Settings, measure

#: Bytes of the largest buffer of NumPy, and of the C backend, which is not needed beyond.
MOST, MOST_FOR_LAYERS = 1 << 30, 64 << 20

#: Floats in a row of the layer that serves as a buffer; rows of the square matrices of a product.
ROW, ORDER = 2048, 1024

#: Single-precision lanes of a GPU's multiprocessor by compute capability; 128 on all others.
LANES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}

#: A level, "read" or "copy", the bytes or multiply-adds of one unit, and the case.
Probe: TypeAlias = tuple[str, str, int, Case]


@dataclass(frozen=True)
class Level:
    """A level of memory: bytes per second when read, and when copied (read plus written).

    `capacity` is in bytes, for all threads together; None is unlimited.
    """

    name: str
    capacity: float | None
    read: float
    copy: float


@dataclass(frozen=True)
class Limits:
    """What so many threads of a CPU ("cpu"), or a GPU ("cuda"), can do.

    `levels` go from the nearest to the farthest, which is unlimited. `private` bytes, the L1
    caches, cost nothing: they are too near to be timed.
    """

    place: str
    threads: int
    levels: tuple[Level, ...]
    multiply_adds: float  #: per second
    private: float = 0.0


def level_sizes(machine: Machine, threads: int) -> dict[str, int]:
    """Bytes of each level's buffer: well inside that level, and outside the one before."""
    l2, l3 = machine.caches.l2 * threads, machine.caches.l3
    sizes = {"L2": l2 // 2}
    if l3 >= 2 * l2:
        sizes["L3"] = min(math.isqrt(l2 * l3), MOST_FOR_LAYERS)
    sizes["DRAM"] = min(max(2 * l3, 4 * l2, 64 << 20), MOST, machine.memory // 8)
    return sizes


def numpy_case(
    work: Callable[[AnyArray], object], parts: AnyArray, pool: ThreadPoolExecutor
) -> Case:
    """Work on each part of a buffer, by a thread each; BLAS has one thread for each of them."""

    def repeat(part: AnyArray, n: int) -> None:
        for _ in range(n):
            work(part)

    def run(n: int) -> None:
        with threadpool_limits(1, "blas"):
            list(pool.map(repeat, parts, [n] * len(parts)))

    return Case(run)


def numpy_probes(level: str, size: int, threads: int, pool: ThreadPoolExecutor) -> list[Probe]:
    """Read, and copy, a buffer of `size` bytes in all."""
    parts = np.ones((threads, 2, max(size // threads // 8, 1)), np.float32)
    read = numpy_case(lambda part: np.dot(part.ravel(), part.ravel()), parts, pool)
    copy = numpy_case(lambda part: np.copyto(*part), parts, pool)
    return [(level, "read", size, read), (level, "copy", size, copy)]


def layer_probes(level: str, size: int, threads: int) -> list[Probe]:
    """Read, and read and write, the weights of a layer of `size` bytes."""
    backend, rows = backends.get("cpu", threads), max(size // (4 * ROW), 1)
    network, moved = Network((ROW - 1, rows)), rows * 4 * ROW
    x, d = np.zeros((256, ROW - 1), np.float32), np.zeros((256, rows), np.float32)

    def case(work: Callable[[int], object]) -> Case:
        return Case(lambda n: [work(min(256, n - i)) for i in range(0, n, 256)], step=16)

    forward = case(lambda n: backend.forward(network, 0, x[:n]))
    update = case(lambda n: backend.update(network, 0, x[:n], d[:n], 0.5))
    return [(level, "read", moved, forward), (level, "copy", 2 * moved, update)]


def product_probe(threads: int) -> Probe:
    """A matrix product by BLAS."""
    a, out = np.ones((2, ORDER, ORDER), np.float32)

    def run(n: int) -> None:
        with threadpool_limits(threads, "blas"):
            for _ in range(n):
                np.matmul(a, a, out=out)

    return "", "multiply-adds", ORDER**3, Case(run)


def measure_limits(machine: Machine, threads: int, settings: Settings) -> Limits:
    """Limits of so many threads of the CPU."""
    sizes, caches = level_sizes(machine, threads), machine.caches
    best: dict[tuple[str, str], float] = {}
    with ThreadPoolExecutor(threads) as pool:
        probes = [product_probe(threads)]
        for level, size in sizes.items():
            probes += numpy_probes(level, size, threads, pool)
            if level != "DRAM" and size <= MOST_FOR_LAYERS:
                probes += layer_probes(level, size, threads)
        timings = measure([case for *_, case in probes], settings)
    for (level, kind, amount, _), timing in zip(probes, timings):
        best[level, kind] = max(best.get((level, kind), 0.0), amount / timing.low)
    capacity = {"L2": caches.l2 * threads, "L3": caches.l3, "DRAM": None}
    levels = (Level(name, capacity[name], best[name, "read"], best[name, "copy"]) for name in sizes)
    product = best["", "multiply-adds"]
    return Limits("cpu", threads, tuple(levels), product, caches.l1 * threads)


def measure_device_limits(backend: CudaBackend) -> Limits:
    """Limits of a CUDA backend's GPU: the bandwidth of a copy, which reading is taken to have.

    Multiply-adds are not measured: they are lanes times clock, from the device's attributes.
    """
    import pycuda.driver as cuda

    with backend.driver.active():
        size = min(MOST, cuda.mem_get_info()[0] // 8)
        source, target = cuda.mem_alloc(size), cuda.mem_alloc(size)
        cuda.memset_d8(source, 0, size)

        def copy(n: int) -> None:
            for _ in range(n):
                cuda.memcpy_dtod_async(target, source, size)
            cuda.Context.synchronize()

        bandwidth = 2 * size / measure([Case(copy)], Settings())[0].low
        source.free()
        target.free()
        device, attributes = cuda.Context.get_device(), cuda.device_attribute
        lanes = LANES.get(tuple(device.compute_capability()), 128)
        lanes *= device.get_attribute(attributes.MULTIPROCESSOR_COUNT)
        clock = 1e3 * device.get_attribute(attributes.CLOCK_RATE)
    return Limits("cuda", 1, (Level("device", None, bandwidth, bandwidth),), lanes * clock)
