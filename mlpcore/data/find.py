"""Where a data set is and what its format is: files that a user names, or MNIST in its places."""

from __future__ import annotations

import os
from pathlib import Path

from mlpcore.data import class_folders, idx, mnist, npz, tables
from mlpcore.data.arrays import Part
from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath

LOCAL = Path("data", "mnist")

#: The formats of data, in the order in which they are tried: whether a module `recognises` a path,
#: and how it `read`s it.
READERS = idx, tables, npz, class_folders

#: The hint about files in the cache.
CACHED = "; delete it and try again"


class NotFound(InputError):
    """MNIST is not on this machine, and cannot be had."""


def find(path: StrPath | None, download: bool) -> tuple[Path, Part, Part | None, str]:
    """Find and read a data set. See `mlpcore.data.dataset.load` for where it looks.

    Returns its path, its training and its test set, if it has one, and the end of a message about
    what is wrong with it.

    Raises
    ------
    NotFound
        When there is no path, and MNIST is nowhere.
    InputError
        When what is there lacks a file, or a file cannot be read.
    """
    place, hint = _place(path, download)
    try:
        reader = next((each for each in READERS if each.recognises(place)), idx)
        return (place, *reader.read(place), hint)
    except InputError as error:
        raise InputError(f"{error}{hint}") from None


def _place(path: StrPath | None, download: bool) -> tuple[Path, str]:
    """Return where the data are, and the end of messages about them."""
    if path is not None:
        return _absolute(path), ""
    if variable := os.environ.get("MLPCORE_DATA"):
        return _absolute(variable), " (the environment variable MLPCORE_DATA names it)"
    if LOCAL.is_dir() and idx.idx_sets(LOCAL):
        return _absolute(LOCAL), ""
    cache = mnist.cache_folder()
    try:
        found = idx.idx_sets(cache).get("", {}) if cache.is_dir() else {}
        missing = [file for file in idx.FILES if file not in found]
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


def _absolute(path: StrPath) -> Path:
    """Return the absolute path of what a user names."""
    try:
        return Path(os.path.abspath(os.path.expanduser(os.fsdecode(path))))
    except TypeError:
        raise InputError(
            f"path is {path!r}, expected a folder of IDX files or pictures, a .npz or a .csv file"
        ) from None
