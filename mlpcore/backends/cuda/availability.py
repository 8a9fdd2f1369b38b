"""The one driver of this process, or why there is none.

Nothing is imported and no context is made before a device is asked for. Where there is no device,
the rest of the backend is not imported either, which would take longer than to look.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from mlpcore.errors import InputError, one_line

if TYPE_CHECKING:
    from mlpcore.backends.cuda.driver import CudaDriver


def _import_packages() -> tuple[Any, Any]:
    """PyCUDA's driver module, initialised, and the driver API of cuda-bindings."""
    try:
        import pycuda.driver as cuda
        from cuda.bindings import driver as bindings
    except ImportError as error:
        reason = one_line(error)
        if "libcuda" in reason:
            raise InputError(f"no NVIDIA driver: {reason}") from error
        raise InputError(
            f"PyCUDA and cuda-bindings cannot be imported ({reason}): pip install 'mlpcore[cuda]'"
        ) from error
    try:
        cuda.init()
        if cuda.Device.count() == 0:
            raise InputError("no CUDA device is visible")
    except cuda.Error as error:
        raise InputError(f"no CUDA device: {one_line(error)}") from error
    return cuda, bindings


@functools.cache
def _first_driver() -> CudaDriver | str:
    try:
        packages = _import_packages()
        from mlpcore.backends.cuda.driver import CudaDriver

        return CudaDriver(*packages)
    except InputError as error:  # absent, or failing as soon as it is used
        return str(error)


_LOCK = threading.Lock()


def driver_or_reason() -> CudaDriver | str:
    """The one driver of all threads, or why no CUDA device can be used, in one line."""
    with _LOCK:
        return _first_driver()
