"""Pictures that stay in their file, as those of sets that are larger than the memory may be."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from io import BufferedReader
from typing import IO, Any

import numpy as np

from mlpcore.errors import InputError, shown
from mlpcore.files import explained, open_regular
from mlpcore.typing import AnyArray, DTypeLike

#: So many bytes of pictures are read into memory; more stay in their file.
IN_MEMORY = 2**26


class BytesOnDisk:
    """Bytes (n, ...) in an open file, from a place on, read when `numpy.asarray` asks for them.

    Slices, and rows by their numbers or by truth values, are such arrays again.

    A file that is mapped would take less time (0.2 µs for a picture of MNIST instead of 1.4), but
    the process would end without a word if it became shorter. An InputError is raised if reading
    fails, or the file has changed since it was opened.
    """

    dtype = np.dtype(np.uint8)
    nbytes = 0  #: in memory

    def __init__(self, file: IO[bytes], offset: int, shape: tuple[int, ...]):
        self._path, self._found, self._offset = file.name, _state(file), offset
        self._rows: range | AnyArray = range(shape[0])
        self._sides, self._is_transposed = shape[1:], False

    def _with(self, **changes: Any) -> BytesOnDisk:
        view = object.__new__(BytesOnDisk)
        vars(view).update(vars(self) | changes)
        return view

    def __reduce__(self) -> Any:
        """Pickled, it is an array: on another machine there is no such file."""
        return np.asarray, (np.asarray(self),)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths along the axes."""
        return len(self._rows), *self._sides

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice | AnyArray) -> BytesOnDisk:
        own = self._rows
        if isinstance(own, range) and not isinstance(rows, slice):
            numbers = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
            return self._with(_rows=own.start + own.step * numbers)
        return self._with(_rows=own[rows])

    def reshape(self, *shape: int) -> BytesOnDisk:
        """The same bytes of each row in another shape."""
        return self._with(_sides=shape[1:])

    def joined(self, other: BytesOnDisk) -> BytesOnDisk:
        """These rows joined with others of the same file; all stay on disk."""
        return self._with(_rows=np.concatenate([self._rows, other._rows]))

    def swapaxes(self, first: int, second: int) -> BytesOnDisk:
        """The same pictures, with columns as rows."""
        return self._with(_sides=self._sides[::-1], _is_transposed=True)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        result = np.empty((len(self), math.prod(self._sides)), np.uint8)
        with explained("read", self._path), open_regular(self._path) as file:
            if isinstance(self._rows, range) and self._rows.step == 1:
                file.seek(self._offset + self._rows.start * result.shape[1])
                file.readinto(result.data)
            else:
                size, view = result.shape[1], result.reshape(-1).data
                begins = self._offset + np.asarray(self._rows, np.int64) * size
                rows = [view[k : k + size] for k in range(0, result.size, size)]
                _read_rows(file, list(zip(begins.tolist(), rows)))
            state = _state(file)
        if state != self._found:  # fewer bytes would be another size
            raise InputError(
                f"{shown(self._path)} has changed: expected the bytes that it held at first"
            )
        if self._is_transposed:
            stored = result.reshape(-1, *self._sides[::-1])
            result = np.ascontiguousarray(stored.swapaxes(1, 2))
        return result.reshape(self.shape).astype(dtype or np.uint8, copy=False)


def _read_rows(file: BufferedReader, rows: list[tuple[int, memoryview]]) -> None:
    """Reads rows, of bytes, each from its place in a file.

    Those in Linux's cache take a system call each. From the first one on that it lacks, all are
    fetched from the disk at once.
    """
    cached, number = 0, file.fileno()
    if hasattr(os, "RWF_NOWAIT"):
        read, now = os.preadv, os.RWF_NOWAIT
        with suppress(OSError):  # from a file system that cannot tell, too
            for begin, row in rows:
                if read(number, (row,), begin, now) < len(row):
                    break
                cached += 1
    rows = rows[cached:]
    for begin, row in rows if hasattr(os, "posix_fadvise") else ():
        os.posix_fadvise(number, begin, len(row), os.POSIX_FADV_WILLNEED)
    raw: Any = file.raw  # a buffer would be filled for each row, and not used
    for begin, row in rows:
        raw.seek(begin)
        raw.readinto(row)


def _state(file: IO[bytes]) -> tuple[int, int]:
    """The size of a file, and when it was written to."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
