"""Data sets in NumPy's arrays: a .npz file, or a folder with .npy files.

Files come from anywhere. The memory grows with the data that arrive, up to what a header
announces, so that neither a false header nor a compressed bomb can exhaust it.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mlpcore.data import on_disk
from mlpcore.data.arrays import MAX_BYTES, Part, check_ratio
from mlpcore.errors import InputError, one_line, shown
from mlpcore.files import open_regular
from mlpcore.typing import AnyArray

#: The names of the arrays in a .npz file: those of Keras, or those of scikit-learn's documentation.
KEYS = (("x_train", "X_train", "X"), ("y_train", "y"), ("x_test", "X_test"), ("y_test",))


class Member(NamedTuple):
    """A .npy file, its bytes, and in which file and from where on these are unpacked, if at all."""

    file: IO[bytes]
    size: int
    place: tuple[IO[bytes], int] | None


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

        def open_member(member: str) -> Member:
            file = open_regular(path / member)
            return Member(file, os.fstat(file.fileno()).st_size, (file, 0))

        return _read_arrays(path, [each.name for each in path.glob("*.npy")], open_member)
    try:
        with open_regular(path) as content, zipfile.ZipFile(content) as archive:

            def open_zipped(member: str) -> Member:
                info = archive.getinfo(member)  # `zipfile` reads no more than this announces
                name = f"{shown(path)}: {member.removesuffix('.npy')}"
                check_ratio(info.file_size, info.compress_size, name)
                file, place = archive.open(info), None
                if info.compress_type == zipfile.ZIP_STORED:
                    content.seek(info.header_offset + 26)  # where lengths of two fields are
                    lengths = struct.unpack("<HH", content.read(4))
                    place = content, content.tell() + sum(lengths)
                return Member(file, info.file_size, place)

            return _read_arrays(path, archive.namelist(), open_zipped)
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise InputError(f"{shown(path)} is not a readable .npz file: {one_line(error)}") from None


def _read_arrays(
    path: Path, members: Sequence[str], open_member: Callable[[str], Member]
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
    limit = 8 * MAX_BYTES
    for k, (key, name) in enumerate(zip(keys, names)):
        if key:
            member = open_member(f"{key}.npy")
            with member.file:
                arrays[k] = _left_on_disk(member, name) or _read_array(member, name, limit)
            limit -= arrays[k].nbytes
    train, test = Part(*arrays[:2], *names[:2]), Part(*arrays[2:], *names[2:])
    return train, None if test.images is None and test.labels is None else test


def _left_on_disk(member: Member, name: str) -> on_disk.BytesOnDisk | None:
    """The pictures of a .npy file; None if they are few, compressed or no bytes."""
    if member.size <= on_disk.IN_MEMORY or member.place is None:
        return None
    file, begin = member.place
    file.seek(begin)
    with suppress(Exception):  # `_read_array` says what is wrong
        version = np.lib.format.read_magic(file)
        read_header = getattr(np.lib.format, "read_array_header_{}_{}".format(*version))
        shape, is_fortran, kind = read_header(file)
        is_whole = file.tell() + math.prod(shape) == begin + member.size
        if kind == np.uint8 and is_whole and not is_fortran and len(shape) > 1:
            return on_disk.BytesOnDisk(file, name, file.tell(), shape)
    file.seek(0)
    return None


def _read_array(member: Member, name: str, limit: int) -> AnyArray:
    """Read a .npy file of at most `limit` bytes."""
    file, size = member.file, member.size
    if size > limit:
        raise InputError(f"{name} has {size:,} bytes: expected at most {limit:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, of what a header says
            return np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # NumPy parses a header as Python, which raises almost anything
        reason = one_line(error)
        raise InputError(f"{name} is no array of numbers or text: {reason}") from None
