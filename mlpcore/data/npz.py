"""Data sets in NumPy's arrays: a .npz file, or a folder with .npy files.

Files come from anywhere. The memory grows with the data that arrive, up to what a header
announces, so that neither a false header nor a compressed bomb can exhaust it.
"""

import io
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mlpcore.data import on_disk
from mlpcore.data.arrays import Part, most_bytes
from mlpcore.errors import InputError, one_line, shown
from mlpcore.files import open_regular
from mlpcore.typing import AnyArray

#: The names of the arrays in a .npz file: those of Keras, or those of scikit-learn's documentation.
KEYS = (("x_train", "X_train", "X"), ("y_train", "y"), ("x_test", "X_test"), ("y_test",))


def recognises(path: Path) -> bool:
    """Whether a path is that of a .npz file, or of a folder with .npy files."""
    if path.is_file():
        return path.suffix.lower() == ".npz"
    return path.is_dir() and any(path.glob("*.npy"))


def read(path: Path) -> tuple[Part, Part | None]:
    """Read the training and the test set, with None for a missing test set.

    Objects of Python are refused, because reading them could run any code.
    """
    if path.is_dir():

        def open_file(key: str) -> tuple[IO[bytes], int]:
            file = open_regular(path / f"{key}.npy")
            return file, os.fstat(file.fileno()).st_size

        return _read_arrays(path, [each.name for each in path.glob("*.npy")], open_file)
    try:
        with open_regular(path) as content, zipfile.ZipFile(content) as archive:

            def open_member(key: str) -> tuple[IO[bytes], int]:
                info = archive.getinfo(f"{key}.npy")  # `zipfile` reads no more than this announces
                return archive.open(info), info.file_size

            return _read_arrays(path, archive.namelist(), open_member)
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise InputError(f"{shown(path)} is not a readable .npz file: {one_line(error)}") from None


def _read_arrays(
    path: Path, members: Sequence[str], open_member: Callable[[str], tuple[IO[bytes], int]]
) -> tuple[Part, Part | None]:
    """Read the arrays of the names in `KEYS`."""
    keys = [next((k for k in each if f"{k}.npy" in members), None) for each in KEYS]
    if keys[0] is None or keys[1] is None:
        found = ", ".join(sorted(members)[:9]) or "nothing"
        raise InputError(
            f"{shown(path)} holds {found}: expected x_train, y_train, x_test, y_test, or X, y, "
            "X_test, y_test"
        )
    names = [f"{shown(path)}: {key or each[0]}" for key, each in zip(keys, KEYS)]
    arrays: list[Any] = [None] * len(KEYS)
    limit = most_bytes()
    for k, (key, name) in enumerate(zip(keys, names)):
        if key:
            file, size = open_member(key)
            with file:
                arrays[k] = _read_array(file, size, name, limit)
            limit -= arrays[k].nbytes
    train, test = Part(*arrays[:2], *names[:2]), Part(*arrays[2:], *names[2:])
    return train, None if test.images is None and test.labels is None else test


def _read_array(
    file: IO[bytes], size: int, name: str, limit: int
) -> AnyArray | on_disk.BytesOnDisk:
    """Read a .npy file of at most `limit` bytes, or leave many pictures, of bytes, in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, of what a header says
            if size > on_disk.IN_MEMORY and isinstance(file, io.BufferedReader):
                mapped = np.load(file.name, mmap_mode="r")  # of which no page is read
                if mapped.dtype == np.uint8 and mapped.ndim > 1 and mapped.flags.c_contiguous:
                    return on_disk.BytesOnDisk(file, mapped.offset, mapped.shape)
            if size <= limit:
                return np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # NumPy parses a header as Python, which raises almost anything
        reason = one_line(error)
        raise InputError(f"{name} is not an array of numbers or text: {reason}") from None
    raise InputError(f"{name} has {size:,} bytes: expected at most {limit:,}")
