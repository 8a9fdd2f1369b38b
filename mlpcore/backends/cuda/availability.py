"""The one driver of this process, or why there is none.

Nothing is imported and no context is made before a device is asked for. Where there is no device,
the rest of the backend is not imported either, which would take longer than to look.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from mlpcore.errors import InputError, one_line

if TYPE_CHECKING:
    from mlpcore.backends.cuda.driver import CudaDriver


@functools.cache
def _first_driver() -> CudaDriver | str:
    try:
        import pycuda.driver as cuda
        from cuda.bindings import driver as bindings
    except ImportError as error:
        reason = one_line(error)
        if "libcuda" in reason:
            return f"no NVIDIA driver: {reason}"
        install = "pip install 'mlpcore[cuda]'"
        return f"PyCUDA and cuda-bindings cannot be imported ({reason}): {install}"
    try:
        cuda.init()
        if cuda.Device.count() == 0:
            return "no CUDA device is visible"
    except cuda.Error as error:
        return f"no CUDA device: {one_line(error)}"
    from mlpcore.backends.cuda.driver import CudaDriver

    try:
        return CudaDriver(cuda, bindings)
    except InputError as error:  # failing as soon as it is used
        return str(error)


_LOCK = threading.Lock()


def driver_or_reason() -> CudaDriver | str:
    """The one driver of all threads, or why no CUDA device can be used, in one line."""
    with _LOCK:
        return _first_driver()
