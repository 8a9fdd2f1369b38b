"""Arrays in the memory of a device."""

from __future__ import annotations

import math
from typing import Any, SupportsInt

import numpy as np

from mlpcore.backends.cuda.driver import CudaDriver
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, DTypeLike


def allocate(driver: CudaDriver, what: str, sizes: list[int]) -> list[SupportsInt]:
    """Device memory, one piece for each size in bytes; an InputError when too little is free."""
    needed, free = sum(sizes), driver.free_memory()
    if needed > free:
        raise InputError(
            f"{what}: {needed / 2**20:,.1f} MiB ({needed:,} bytes) of device memory needed, "
            f"{free / 2**20:,.1f} MiB ({free:,} bytes) free on {driver.description}"
        )
    return [driver.allocate(max(n_bytes, 1)) for n_bytes in sizes]


class DeviceArray:
    """A C-contiguous array in device memory; `numpy.asarray` copies it back."""

    def __init__(
        self,
        driver: CudaDriver,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        memory: SupportsInt | None = None,
        offset: int = 0,
    ):
        self.driver, self.shape, self.dtype = driver, tuple(shape), np.dtype(dtype)
        if memory is None:
            with driver.active():
                (memory,) = allocate(driver, f"an array of shape {self.shape}", [self.nbytes])
        self._memory = memory
        self.address = int(memory) + offset

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same memory in another shape; -1 stands for the length that the others leave."""
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        shape = np.broadcast_to(np.empty((), bool), self.shape).reshape(shape).shape
        return self._view(shape, 0)

    def __getitem__(self, rows: slice) -> DeviceArray:
        """Consecutive rows, in the same memory."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise InputError(f"rows {rows}: expected consecutive ones")
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self._view((max(stop - start, 0), *self.shape[1:]), start * row)

    def _view(self, shape: tuple[int, ...], offset: int) -> DeviceArray:
        offset += self.address - int(self._memory)
        return DeviceArray(self.driver, shape, self.dtype, self._memory, offset)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        result = np.empty(self.shape, self.dtype)
        with self.driver.active():
            self.driver.download(result, self.address)
        return result if dtype is None else result.astype(dtype, copy=False)

    def set(self, array: AnyArray) -> None:
        """Copies an array of the same shape and type to the device."""
        with self.driver.active():
            self.driver.upload(self.address, np.ascontiguousarray(array, self.dtype))
