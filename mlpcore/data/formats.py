"""The files of data sets: IDX, the format of MNIST's, and .npz and .npy, those of NumPy's arrays.

An IDX file is an array behind a short header, and both are big-endian. The header consists of a
magic number (two zero bytes, the code of the type, the number of dimensions) and one 32-bit size
per dimension. The array follows, the last dimension fastest. Files may be gzipped.

Files come from anywhere. The memory grows with the data that arrive, up to what a header
announces, so that neither a false header nor a compressed bomb can exhaust it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mlpcore.data.arrays import Part
from mlpcore.data.scaling import MAX_SIDE
from mlpcore.errors import InputError, shown
from mlpcore.files import open_regular
from mlpcore.typing import AnyArray, StrPath, UInt8Array

#: The magic number of labels (one dimension) and of images (count, height, width), of bytes.
MAGIC_LABELS, MAGIC_IMAGES = 0x00000801, 0x00000803

#: The types of arrays by their codes. MNIST's are bytes, of code 8.
TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}

#: Most bytes of an array: 1.3 million images of MNIST's size. In float32 they take four times this.
MAX_BYTES = 2**30

#: An array may be so many times as long as its compressed file, or so long whatever the file.
#: MNIST's images are five times as long, and zeros a thousand times.
MAX_RATIO, ALWAYS_BYTES = 100, 2**26

#: The names of the arrays in a .npz file: those of Keras, or those of scikit-learn's documentation.
KEYS = (("x_train", "X_train", "X"), ("y_train", "y"), ("x_test", "X_test"), ("y_test",))

_CHUNK = 2**20


def read_idx(path: StrPath, limit: int = MAX_BYTES) -> AnyArray:
    """Read an IDX file.

    Parameters
    ----------
    path : str or os.PathLike
        The file. Its content, not its name, tells whether it is gzipped.
    limit : int
        Most bytes of the array.

    Returns
    -------
    numpy.ndarray, shape (n,) or (n, columns) for labels, or (n, height, width) for images
        Of uint8 for unsigned bytes, or of another of `TYPES`.

    Raises
    ------
    InputError
        When the file cannot be read, is no such IDX file, has an empty or too large dimension
        (`mlpcore.data.scaling.MAX_SIDE`, `MAX_BYTES`), or is longer or shorter than its header
        says.
    """
    with open_regular(path) as file:
        return decode(file, shown(path), limit)


def decode(file: IO[bytes], name: str, limit: int = MAX_BYTES) -> AnyArray:
    """Read an IDX array of at most `limit` bytes from a seekable file, gzipped or not.

    `name` is that of the file in messages.
    """
    zipped = file.read(2) == b"\x1f\x8b"
    compressed = file.seek(0, io.SEEK_END)
    file.seek(0)
    stream = gzip.GzipFile(fileobj=file) if zipped else file
    try:
        kind, shape = _read_header(stream, name, limit)
        n = math.prod(shape) * kind.itemsize
        if zipped:
            _check_ratio(n, compressed, name)
        data = _read(stream, n + 1)  # one byte more finds a file that is too long
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is truncated or corrupt gzip data: {error}") from None
    if len(data) != n:
        start = len(header(shape))
        found = f"{start + len(data):,}" if len(data) < n else "more"
        raise InputError(
            f"{name} is damaged: expected {start + n:,} bytes for the {_text(shape)} of its "
            f"header, found {found}"
        )
    return np.frombuffer(data, kind).astype(kind.newbyteorder("="), copy=False).reshape(shape)


def header(shape: Sequence[int]) -> bytes:
    """Return the header of an array of one or three dimensions."""
    magic = MAGIC_LABELS if len(shape) == 1 else MAGIC_IMAGES
    return struct.pack(f">{1 + len(shape)}I", magic, *shape)


def _check_ratio(n_bytes: int, compressed: int, name: str) -> None:
    """Raise InputError for compressed data that would fill the memory from a short file."""
    if n_bytes > max(ALWAYS_BYTES, MAX_RATIO * compressed):
        raise InputError(
            f"{name} announces {n_bytes:,} bytes in {compressed:,} compressed ones: expected at "
            f"most {MAX_RATIO} times as many"
        )


def md5(array: UInt8Array) -> str:
    """Return the MD5, in hexadecimal, of the uncompressed IDX file of an array."""
    digest = hashlib.md5(header(array.shape), usedforsecurity=False)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read_header(
    stream: IO[bytes] | gzip.GzipFile, name: str, limit: int
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read and check the header; return the type and the shape of the array."""
    magic = bytes(_read(stream, 4))
    code, n_dims = magic[2:] if len(magic) == 4 else (0, 0)
    if magic[:2] != b"\0\0" or code not in TYPES or n_dims not in (1, 2, 3):
        raise InputError(
            f"{name} is not an IDX file of labels or images: it starts with "
            f"0x{magic.hex() or '(nothing)'}, expected 0x00000801 or 0x00000803"
        )
    sizes = _read(stream, 4 * n_dims)
    if len(sizes) < 4 * n_dims:
        raise InputError(
            f"{name} ends inside its header: expected {4 + 4 * n_dims} bytes, "
            f"found {4 + len(sizes)}"
        )
    shape = struct.unpack(f">{n_dims}I", sizes)
    if 0 in shape:
        raise InputError(f"{name} is empty: its header says {_text(shape)}, expected no zero")
    kind = np.dtype(TYPES[code])
    if max(shape[1:], default=0) > MAX_SIDE or math.prod(shape) * kind.itemsize > limit:
        raise InputError(
            f"{name} is too large: its header says {_text(shape)}, expected sides of at most "
            f"{MAX_SIDE} pixels and {limit:,} bytes in all"
        )
    return kind, shape


def _read(stream: IO[bytes] | gzip.GzipFile, n_bytes: int) -> bytearray:
    """Read `n_bytes`, or fewer when the stream ends before."""
    data = bytearray()
    while len(data) < n_bytes:
        chunk = stream.read(min(_CHUNK, n_bytes - len(data)))
        if not chunk:
            break
        data += chunk
    return data


def _text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def read_npz(path: Path) -> tuple[Part, Part | None]:
    """Read the training and the test set of a .npz file, with None for a missing test set.

    Objects of Python are refused, because reading them could run any code.
    """
    try:
        with open_regular(path) as content, zipfile.ZipFile(content) as archive:

            def read(member: str, name: str, limit: int) -> AnyArray:
                info = archive.getinfo(member)  # `zipfile` reads no more than this announces
                _check_ratio(info.file_size, info.compress_size, name)
                with archive.open(info) as file:
                    return _read_array(file, info.file_size, name, limit)

            return _read_arrays(path, archive.namelist(), read)
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        if ".pkl" in path.name or ".pickle" in path.name:
            reason = (
                "a pickle may run any code; where you trust it, load it and write its arrays by "
                "numpy.savez(FILE, X=X, y=y, X_test=X_test, y_test=y_test)"
            )
        raise InputError(f"{shown(path)} is not a readable .npz file: {reason}") from None


def read_npy_folder(folder: Path) -> tuple[Part, Part | None] | None:
    """Read the training and the test set of .npy files of the names in `KEYS`; None without any."""

    def read(member: str, name: str, limit: int) -> AnyArray:
        with open_regular(folder / member) as file:
            return _read_array(file, os.fstat(file.fileno()).st_size, name, limit)

    members = [name for name in os.listdir(folder) if name.endswith(".npy")]
    return _read_arrays(folder, members, read) if members else None


def _read_arrays(
    path: Path, members: Sequence[str], read: Callable[[str, str, int], AnyArray]
) -> tuple[Part, Part | None]:
    """Read the arrays of the names in `KEYS`; `read` takes a file's name, a label and a limit."""
    keys = [next((k for k in each if f"{k}.npy" in members), None) for each in KEYS]
    if keys[0] is None or keys[1] is None:
        found = ", ".join(sorted(members)[:9]) or "nothing"
        raise InputError(
            f"{shown(path)} holds {found}: expected x_train, y_train, x_test, y_test, or X, y, "
            "X_test, y_test"
        )
    names = [f"{shown(path)}: {key or each[0]}" for key, each in zip(keys, KEYS)]
    arrays: list[Any] = []
    limit = 8 * MAX_BYTES
    for key, name in zip(keys, names):
        arrays.append(read(f"{key}.npy", name, limit) if key else None)
        limit -= 0 if arrays[-1] is None else arrays[-1].nbytes
    train, test = Part(*arrays[:2], *names[:2]), Part(*arrays[2:], *names[2:])
    return train, None if test.images is None and test.labels is None else test


def _read_array(file: IO[bytes], size: int, name: str, limit: int) -> AnyArray:
    """Read a .npy file of a size, of at most `limit` bytes."""
    if size > limit:
        raise InputError(f"{name} has {size:,} bytes: expected at most {limit:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, of what a header says
            return np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # NumPy parses a header as Python, which raises almost anything
        reason = " ".join(str(error).split())
        raise InputError(f"{name} is no array of numbers or text: {reason}") from None
