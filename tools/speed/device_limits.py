"""What a CUDA device can do: the bandwidth of its memory, timed by events; multiply-adds."""

from __future__ import annotations

import math
from typing import Any

from mlpcore.backends.cuda.backend import CudaBackend
from speed.limits import Level, Limits

#: Bytes copied, beyond any cache, and how often.
SIZE = 1 << 30
REPEATS = 10

#: Single-precision lanes of a multiprocessor; 128 on those not listed.
LANES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}


def _copy_bandwidth(cuda: Any) -> float:
    """Bytes per second, read plus written, of the fastest of a few copies."""
    size = min(SIZE, cuda.mem_get_info()[0] // 8)
    source, target = cuda.mem_alloc(size), cuda.mem_alloc(size)
    cuda.memset_d8(source, 0, size)
    cuda.memcpy_dtod(target, source, size)
    fastest = math.inf
    for _ in range(REPEATS):
        begin, end = cuda.Event(), cuda.Event()
        begin.record()
        cuda.memcpy_dtod_async(target, source, size)
        end.record()
        end.synchronize()
        fastest = min(fastest, begin.time_till(end) / 1e3)
    source.free()
    target.free()
    return 2 * size / fastest


def measure_device_limits(backend: CudaBackend) -> Limits:
    """Of the device that a CUDA backend uses.

    Reading alone is taken to be as fast as copying. The multiply-adds are those of the
    device's attributes, lanes times clock, not measured.
    """
    import pycuda.driver as cuda

    with backend.driver.active():
        device = cuda.Context.get_device()
        bandwidth = _copy_bandwidth(cuda)
        lanes = LANES.get(tuple(device.compute_capability()), 128)
        attributes = cuda.device_attribute
        multiprocessors = device.get_attribute(attributes.MULTIPROCESSOR_COUNT)
        clock = 1e3 * device.get_attribute(attributes.CLOCK_RATE)
    level = Level("device", math.inf, bandwidth, bandwidth, SIZE)
    note = "multiply-adds from the device's attributes; what stays on the chip can be faster"
    return Limits(1, (level,), multiprocessors * lanes * clock, 0.0, note)
