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

import gzip
import io
import math
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mlpcore.data import on_disk
from mlpcore.data.arrays import Part, most_bytes
from mlpcore.errors import InputError, shown
from mlpcore.files import explained, open_regular
from mlpcore.typing import AnyArray

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


def decode(file: IO[bytes], name: str, limit: int) -> AnyArray | on_disk.BytesOnDisk:
    """The array of an IDX file, gzipped or not: labels, or images (n, height, width).

    Many images of bytes, not gzipped, stay in the file, which can seek; an array that is read has
    at most `limit` bytes. An InputError, with the name, when this is no such IDX file, or it is too
    large, or longer or shorter than its header says.
    """
    zipped = file.read(2) == b"\x1f\x8b"
    length = file.seek(0, io.SEEK_END)
    file.seek(0)
    stream: Any = gzip.GzipFile(fileobj=file) if zipped else file
    try:
        kind, shape = _read_header(stream, name)
        start, n = len(header(shape)), math.prod(shape) * kind.itemsize
        is_large = not zipped and length > on_disk.IN_MEMORY
        if is_large and kind == np.uint8 and len(shape) == 3 and start + n == length:
            return on_disk.BytesOnDisk(file, start, shape)
        if n > limit:
            raise InputError(
                f"{name} is too large: its header says {_text(shape)}, expected at most {limit:,} "
                "bytes in all"
            )
        data = stream.read(n + 1)  # one byte more finds a file that is too long
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is truncated or corrupt gzip data: {error}") from None
    if len(data) != n:
        found = f"{start + len(data):,}" if len(data) < n else "more"
        raise InputError(
            f"{name} is damaged: expected {start + n:,} bytes for the {_text(shape)} of its "
            f"header, found {found}"
        )
    return np.frombuffer(data, kind).astype(kind.newbyteorder("="), copy=False).reshape(shape)


def header(shape: Sequence[int]) -> bytes:
    """Return the header of an array of bytes, whose code is 8."""
    return struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape)


def _read_header(stream: Any, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read the header; return the type and the shape of the array."""
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
    return np.dtype(TYPES[code]), struct.unpack(f">{n_dims}I", sizes)


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
    limit = most_bytes()
    for file in FILES:
        with open_regular(files[file]) as opened:
            array: Any = decode(opened, shown(files[file]), limit)
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
    with explained("read", folder):
        paths = sorted(folder.iterdir())
    sets: dict[str, dict[str, Path]] = {}
    for path in paths:
        found = _NAME.fullmatch(path.name)
        if found and not path.is_dir():  # as some archives unpack beside the file
            file = FILES[2 * (found[2] != "train") + (found[3] == "labels")]
            sets.setdefault(found[1], {}).setdefault(file, path)
    return sets
