"""The IDX file format of the MNIST data: one array of bytes behind a short header.

The header is big-endian: a magic number (two zero bytes, the type code 8 for unsigned
bytes, the number of dimensions), then one 32-bit size per dimension. The array follows,
last dimension fastest. Files may be gzipped.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import stat
import struct
import zlib
from collections.abc import Sequence
from typing import IO

import numpy as np

from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath, UInt8Array

MAGIC_LABELS = 0x00000801  # one dimension
MAGIC_IMAGES = 0x00000803  # three: count, height, width

# The first layer of the paper's smallest network (1,000 neurons) would have 10^9 weights
# at 1024x1024 pixels; a header beyond that is damaged rather than meant.
MAX_SIDE = 1024
# 1.3 million images of MNIST's size. As float32 they take four times as much memory.
MAX_BYTES = 2**30

_DEFLATE_MAX_RATIO = 1032  # bytes out per byte in (zlib's technical notes)
_CHUNK = 2**20


def read_idx(path: StrPath) -> UInt8Array:
    """Read an IDX file of unsigned bytes.

    Parameters
    ----------
    path : str or os.PathLike
        The file, gzipped or not: its content decides, not its name.

    Returns
    -------
    numpy.ndarray of uint8, shape (n,) for labels or (n, height, width) for images

    Raises
    ------
    InputError
        If the file cannot be read, is not such an IDX file, has an empty or too large
        dimension (`MAX_SIDE` per image side, `MAX_BYTES` in all), or is longer or shorter
        than its header says.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise InputError(f"{shown(path)} is not a regular file; expected an IDX file")
        with open(path, "rb") as file:
            return decode(file, shown(path))
    except OSError as error:
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from None
    except InputError:
        raise
    except (TypeError, ValueError):  # not a path at all, or a zero byte inside
        raise InputError(f"{path!r} is not the path of an IDX file") from None


def decode(file: IO[bytes], name: str) -> UInt8Array:
    """Read an IDX array from a seekable binary file; `name` stands for it in messages.

    Memory is taken as data arrives, and never for more than the header announces, so
    neither a damaged header nor a gzip bomb can exhaust it.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    zipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    stream = gzip.GzipFile(fileobj=file) if zipped else file
    try:
        shape = _read_shape(stream, name)
        count, n_header = math.prod(shape), len(header(shape))
        at_most = size * _DEFLATE_MAX_RATIO if zipped else size
        if at_most < n_header + count or (not zipped and size > n_header + count):
            raise _wrong_length(name, shape, f"{'at most ' * zipped}{at_most:,}")
        data = _read_bounded(stream, count + 1)  # the extra byte finds a file too long
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is truncated or corrupt gzip data: {error}") from None
    if len(data) > count:
        raise _wrong_length(name, shape, "more")
    if len(data) < count:
        raise _wrong_length(name, shape, f"{n_header + len(data):,}")
    return np.frombuffer(data, np.uint8).reshape(shape)


def header(shape: Sequence[int]) -> bytes:
    """Return the bytes that announce an array of 1 or 3 dimensions of these sizes."""
    magic = MAGIC_LABELS if len(shape) == 1 else MAGIC_IMAGES
    return struct.pack(f">{1 + len(shape)}I", magic, *shape)


def md5(array: UInt8Array) -> str:
    """Return the MD5, in hexadecimal, of an array's uncompressed IDX file."""
    digest = hashlib.md5(header(array.shape), usedforsecurity=False)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read_shape(stream: IO[bytes] | gzip.GzipFile, name: str) -> tuple[int, ...]:
    """Read and check the header; return the array's shape."""
    magic = bytes(_read_bounded(stream, 4))
    n_dims = {MAGIC_LABELS: 1, MAGIC_IMAGES: 3}.get(int.from_bytes(magic, "big"), 0)
    if len(magic) < 4 or not n_dims:
        raise InputError(
            f"{name} is not an IDX file of labels or images: it starts with "
            f"0x{magic.hex() or '(nothing)'}, expected 0x00000801 or 0x00000803"
        )
    sizes = bytes(_read_bounded(stream, 4 * n_dims))
    if len(sizes) < 4 * n_dims:
        raise InputError(
            f"{name} ends inside its header: expected {4 + 4 * n_dims} bytes, "
            f"found {4 + len(sizes)}"
        )
    shape = struct.unpack(f">{n_dims}I", sizes)
    text = " x ".join(str(size) for size in shape)
    if 0 in shape:
        raise InputError(f"{name} is empty: its header says {text}, expected no zero")
    if max(shape[1:], default=0) > MAX_SIDE or math.prod(shape) > MAX_BYTES:
        raise InputError(
            f"{name} is too large: its header says {text}, expected sides of at most "
            f"{MAX_SIDE} pixels and {MAX_BYTES:,} bytes in all"
        )
    return shape


def _read_bounded(stream: IO[bytes] | gzip.GzipFile, n_bytes: int) -> bytearray:
    """Read up to `n_bytes`: fewer only where the stream ends."""
    data = bytearray()
    while len(data) < n_bytes:
        chunk = stream.read(min(_CHUNK, n_bytes - len(data)))
        if not chunk:
            break
        data += chunk
    return data


def _wrong_length(name: str, shape: Sequence[int], found: str) -> InputError:
    """Return the error for a file longer or shorter than its header says."""
    text = " x ".join(str(size) for size in shape)
    expected = len(header(shape)) + math.prod(shape)
    return InputError(
        f"{name} is damaged: expected {expected:,} bytes for the {text} of its header, "
        f"found {found}"
    )
