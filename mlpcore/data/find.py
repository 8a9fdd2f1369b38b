"""Where a data set is: a folder of IDX files or a .npz file, or MNIST in one of its places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from mlpcore.data import mnist
from mlpcore.data.arrays import Part
from mlpcore.data.formats import MAX_BYTES, read_idx, read_npz
from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath

LOCAL = Path("data", "mnist")

#: The advice about files in the cache.
CACHED = "; delete it and try again"


class NotFound(InputError):
    """MNIST is not on this machine, and cannot be had."""


class Found(NamedTuple):
    """A data set as it was found.

    Attributes
    ----------
    path : Path
        The folder or the .npz file.
    train, test : Part
        `test` is None if there is no test set.
    advice : str
        The end of a message about what is wrong with it.
    """

    path: Path
    train: Part
    test: Part | None
    advice: str


def find(path: StrPath | None, download: bool) -> Found:
    """Find and read a data set. See `mlpcore.data.dataset.load` for where it looks.

    Raises
    ------
    NotFound
        When there is no path, and MNIST is nowhere.
    InputError
        When what is there lacks a file, or a file cannot be read.
    """
    place, advice = _place(path, download)
    try:
        return Found(place, *_read(place), advice)
    except InputError as error:
        raise InputError(f"{error}{advice}") from None


def _place(path: StrPath | None, download: bool) -> tuple[Path, str]:
    """Return where the data are, and the `Found.advice`."""
    if path is not None:
        return _absolute(path), ""
    if variable := os.environ.get("MLPCORE_DATA"):
        return _absolute(variable), " (the environment variable MLPCORE_DATA names it)"
    if LOCAL.is_dir() and _files(LOCAL):
        return _absolute(LOCAL), ""
    cache = mnist.cache_folder()
    try:
        found = _files(cache) if cache.is_dir() else {}
        missing = [file for file in mnist.FILES if file not in found]
        reason = "downloading is off" if missing else ""
        if missing and download:
            reason = mnist.download(cache, missing)
    except InputError as error:  # the cache cannot be read or written
        reason = str(error)
    if reason:
        raise NotFound(
            f"MNIST was not found (looked in {shown(LOCAL)}, {shown(cache)}) and could not be "
            f"downloaded ({reason})"
        )
    return cache, CACHED


def _read(path: Path) -> tuple[Part, Part | None]:
    """Read the training and the test set in a folder of IDX files or in a .npz file."""
    if path.suffix == ".npz" or path.is_file():
        return read_npz(path)
    found = _files(path)
    missing = [file for file in mnist.FILES if file not in found]
    if missing:
        raise InputError(f"{shown(path)} lacks {', '.join(missing)} (each may end in .gz)")
    names = [shown(found[file]) for file in mnist.FILES]
    arrays: list[Any] = []
    limit = MAX_BYTES
    for file in mnist.FILES:
        arrays.append(read_idx(found[file], limit))
        limit -= arrays[-1].nbytes
    return Part(*arrays[:2], *names[:2]), Part(*arrays[2:], *names[2:])


def _absolute(path: StrPath) -> Path:
    """Return the absolute path of what a user names."""
    try:
        return Path(os.path.abspath(os.path.expanduser(os.fsdecode(path))))
    except TypeError:
        raise InputError(
            f"path is {path!r}, expected a folder of IDX files or a .npz file"
        ) from None


def _files(folder: Path) -> dict[str, Path]:
    """Return the paths of MNIST's files, or files of the same names, that a folder holds."""
    try:
        names = set(os.listdir(folder))
    except (OSError, ValueError) as error:  # ValueError: a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the folder {shown(folder)}: {reason}") from None
    found = {}
    for file in mnist.FILES:
        variants = (file, file.replace("-idx", ".idx"))
        paths = [Path(folder, v + end) for v in variants for end in ("", ".gz") if v + end in names]
        if paths:  # some archives unpack to a folder of the same name beside the file
            found[file] = min(paths, key=os.path.isdir)
    return found
