"""Where a data set is and what its format is: files that a user names, or MNIST in its places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from mlpcore.data import mnist
from mlpcore.data.arrays import Part
from mlpcore.data.class_folders import read_class_folders
from mlpcore.data.formats import read_npy_folder, read_npz
from mlpcore.data.idx_folder import idx_sets, read_idx_set, set_of
from mlpcore.data.tables import SUFFIXES, read_tables
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
        The folder or the file.
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
    if LOCAL.is_dir() and idx_sets(LOCAL):
        return _absolute(LOCAL), ""
    cache = mnist.cache_folder()
    try:
        found = idx_sets(cache).get("", {}) if cache.is_dir() else {}
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
    """Read the training and the test set of a folder or of a file, of any format."""
    if path.is_file():
        begin = set_of(path.name)
        if begin is not None:  # one of several sets in a folder
            return read_idx_set(path.parent, begin, idx_sets(path.parent)[begin])
        return read_tables(path) if path.suffix.lower() in SUFFIXES else read_npz(path)
    if path.suffix == ".npz":
        return read_npz(path)
    sets = idx_sets(path)
    if len(sets) > 1:
        example = next(iter(next(iter(sets.values())).values()))
        raise InputError(
            f"{shown(path)} holds several data sets ({', '.join(sorted(sets))}): expected the path "
            f"of a file of one, such as {shown(example)}"
        )
    if not sets:
        found = read_npy_folder(path) or read_class_folders(path)
        if found:
            return found
    ((begin, files),) = sets.items() or [("", {})]
    return read_idx_set(path, begin, files)


def _absolute(path: StrPath) -> Path:
    """Return the absolute path of what a user names."""
    try:
        return Path(os.path.abspath(os.path.expanduser(os.fsdecode(path))))
    except TypeError:
        raise InputError(
            f"path is {path!r}, expected a folder of IDX files or pictures, a .npz or a .csv file"
        ) from None
