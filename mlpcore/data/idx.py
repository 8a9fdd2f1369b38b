"""IDX, the format of MNIST's files, and the data sets in such files: of MNIST, EMNIST and others.

An IDX file is an array behind a short header, and both are big-endian. The header consists of a
magic number (two zero bytes, the code of the type, the number of dimensions) and one 32-bit size
per dimension. The array follows, the last dimension fastest. Files may be gzipped.

| name | data set |
|---|---|
| ``train-images-idx3-ubyte``, ``t10k-labels-idx1-ubyte`` | MNIST, Fashion-MNIST, KMNIST |
| ``emnist-letters-train-images-idx3-ubyte``, ``emnist-letters-test-...`` | EMNIST's letters |
| ``qmnist-train-labels-idx2-int``, ``qmnist-test-...`` | QMNIST, whose labels have 8 columns |

``.idx`` may replace ``-idx``, and ``.gz`` may follow. A folder may hold several sets, such as those
of EMNIST, whose names begin otherwise.

Files come from anywhere. Neither a false header nor a compressed bomb can exhaust the memory.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mlpcore.data import on_disk
from mlpcore.data.arrays import MAX_BYTES, Part, check_ratio
from mlpcore.data.pixels import MAX_SIDE
from mlpcore.errors import InputError, shown
from mlpcore.files import open_regular
from mlpcore.typing import AnyArray, StrPath, UInt8Array

#: The types of arrays by their codes. MNIST's are bytes, of code 8.
TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}

#: The names of the files of a data set, which may begin with that of the set.
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

_NAME = re.compile(r"(.*?)(train|t10k|test)-(images|labels)[-.]idx(\d)-\w+(?:\.gz)?")

#: Sets of such names have images whose rows are columns.
TRANSPOSED = "emnist"

#: Of a label: its class, and who wrote the digit and where it was.
QMNIST_COLUMNS = 8


def read_idx(path: StrPath, limit: int = MAX_BYTES) -> AnyArray:
    """Read an IDX file into memory.

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
        (`mlpcore.data.pixels.MAX_SIDE`, `MAX_BYTES`), or is longer or shorter than its header
        says.
    """
    with open_regular(path) as file:
        return decode(file, shown(path), limit)


def decode(file: IO[bytes], name: str, limit: int = MAX_BYTES) -> AnyArray:
    """Read an IDX array of at most `limit` bytes from a seekable file, gzipped or not.

    `name` is that of the file in messages.
    """
    zipped = file.read(2) == b"\x1f\x8b"
    length = file.seek(0, io.SEEK_END)
    file.seek(0)
    stream: Any = gzip.GzipFile(fileobj=file) if zipped else file
    try:
        kind, shape = _read_header(stream, name, limit)
        n = math.prod(shape) * kind.itemsize
        if zipped:
            check_ratio(n, length, name)
        # One byte more finds a file that is too long.
        data = stream.read(n + 1 if zipped else min(n + 1, length))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is truncated or corrupt gzip data: {error}") from None
    if len(data) != n:
        start = len(header(shape))
        found = f"{start + len(data):,}" if len(data) < n else "more"
        raise InputError(
            f"{name} is damaged: expected {start + n:,} bytes for the {_text(shape)} of its "
            f"header, found {found}"
        )
    return np.frombuffer(data, kind).astype(kind.newbyteorder("=")).reshape(shape)


def _open(path: Path, limit: int) -> AnyArray | on_disk.BytesOnDisk:
    """The array of an IDX file: `BytesOnDisk` if it holds many pictures, of bytes, unzipped."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > on_disk.IN_MEMORY and file.read(4) == header(())[:2] + b"\x08\x03":
            file.seek(0)
            _, shape = _read_header(file, shown(path), 2**63)
            start = len(header(shape))
            if start + math.prod(shape) == size:
                return on_disk.BytesOnDisk(file, shown(path), start, shape)
        file.seek(0)
        return decode(file, shown(path), limit)


def header(shape: Sequence[int]) -> bytes:
    """Return the header of an array of bytes, whose code is 8."""
    return struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape)


def md5(array: UInt8Array) -> str:
    """Return the MD5, in hexadecimal, of the uncompressed IDX file of an array."""
    digest = hashlib.md5(header(array.shape), usedforsecurity=False)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read_header(stream: Any, name: str, limit: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read and check the header; return the type and the shape of the array."""
    magic = stream.read(4)
    code, n_dims = magic[2:] if len(magic) == 4 else (0, 0)
    if magic[:2] != b"\0\0" or code not in TYPES or n_dims not in (1, 2, 3):
        raise InputError(
            f"{name} is not an IDX file of labels or images: it starts with "
            f"0x{magic.hex() or '(nothing)'}, expected 0x00000801 or 0x00000803"
        )
    sizes = stream.read(4 * n_dims)
    if len(sizes) < 4 * n_dims:
        found = f"expected {4 + 4 * n_dims} bytes of header, found {4 + len(sizes)}"
        raise InputError(f"{name} is damaged: {found}")
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


def _text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def recognises(path: Path) -> bool:
    """Whether a path is that of an IDX file of a set, or of a folder with some."""
    if path.is_file():
        return set_of(path.name) is not None
    return path.is_dir() and bool(idx_sets(path))


def read(path: Path) -> tuple[Part, Part]:
    """Read the training and the test set of a folder, or of the set that has a file."""
    folder, begin = (path.parent, set_of(path.name)) if path.is_file() else (path, None)
    sets = idx_sets(folder)
    if begin is None and len(sets) > 1:
        example = next(iter(next(iter(sets.values())).values()))
        raise InputError(
            f"{shown(path)} holds several data sets ({', '.join(sorted(sets))}): expected the path "
            f"of a file of one, such as {shown(example)}"
        )
    begin = next(iter(sets)) if begin is None else begin
    files = sets[begin]
    missing = [begin + file for file in FILES if file not in files]
    if missing:
        raise InputError(f"{shown(folder)} lacks {', '.join(missing)} (each may end in .gz)")
    arrays: list[Any] = []
    limit = MAX_BYTES
    for file in FILES:
        array: Any = _open(files[file], limit)
        limit -= array.nbytes
        if "labels" in file and array.shape[1:] == (QMNIST_COLUMNS,):
            array = array[:, 0]
        if begin.lower().startswith(TRANSPOSED) and array.ndim == 3:
            array = array.swapaxes(1, 2)
        arrays.append(array)
    names = [shown(files[file]) for file in FILES]
    return Part(*arrays[:2], *names[:2]), Part(*arrays[2:], *names[2:])


def set_of(name: str) -> str | None:
    """The beginning of the names of a file's data set; None if it is no name of an IDX file."""
    found = _NAME.fullmatch(name)
    return found and found[1]


def idx_sets(folder: Path) -> dict[str, dict[str, Path]]:
    """The files of each data set in a folder, by how its names begin and by the names in `FILES`.

    An InputError when the folder cannot be read.
    """
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError) as error:  # ValueError: a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {shown(folder)}: {reason}") from None
    sets: dict[str, dict[str, Path]] = {}
    for found in filter(None, map(_NAME.fullmatch, names)):
        part = "train" if found[2] == "train" else "t10k"
        file = next(file for file in FILES if file.startswith(f"{part}-{found[3]}"))
        files, path = sets.setdefault(found[1], {}), folder / found[0]
        # Some archives unpack to a folder of the same name beside the file.
        files[file] = min(files.get(file, path), path, key=os.path.isdir)
    return sets
