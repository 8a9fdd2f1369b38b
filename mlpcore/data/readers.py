"""The formats of data, and where in a folder the data are."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from mlpcore.checks import check_unicode
from mlpcore.data import class_folders, idx, npz, tables
from mlpcore.data.arrays import FORMATS
from mlpcore.errors import InputError, shown
from mlpcore.files import is_hidden, open_regular

#: In the order in which they are tried: a module `recognises` a path, and `read`s it.
READERS = idx, tables, npz, class_folders

#: A folder that holds no data itself is searched if it holds at most so many files and folders.
MAX_ENTRIES = 1000

#: What loads files that are not read here, by the ends of their names.
ELSEWHERE = {
    (".parquet", ".feather", ".json", ".jsonl", ".xls", ".xlsx"): "pandas",
    (".mat",): "scipy.io.loadmat",
    (".arff",): "scipy.io.arff.loadarff",
    (".h5", ".hdf5"): "h5py",
    (".pt", ".pth"): "torch.load",
    (".npy",): "numpy.load",
    (".pkl", ".pickle", ".pkl.gz"): "pickle, which may run any code, where you trust it",
}

ARCHIVES = ".zip", ".tar", ".tar.gz", ".tgz", ".7z", ".rar"


def locate(path: Path) -> tuple[Path, ModuleType]:
    """Find the data that a path leads to, and what reads them.

    A folder that holds none itself may have them one or two levels below, as torchvision's root
    has them in ``MNIST/raw``. An InputError when there are none, or several.
    """
    check_unicode("the path of data", os.fspath(path))
    if not os.path.isdir(path):
        open_regular(path).close()  # which says what is wrong
        return path, _reader(path) or _refuse(path)
    level = [path]
    for _ in range(3):
        readers = {each: reader for each in level if (reader := _reader(each))}
        # The table for the test is read with that for training.
        trained = {each: each.parent / each.name.replace("test", "train") for each in readers}
        found = [each for each, train in trained.items() if train == each or train not in readers]
        if len(found) == 1:
            return found[0], readers[found[0]]
        if found:
            names = ", ".join(shown(each.relative_to(path)) for each in found[:5])
            raise InputError(f"{shown(path)} holds several data sets: expected one, as in {names}")
        level = _inside(level)
    raise InputError(f"{shown(path)} holds no training images: expected {FORMATS}")


def _reader(path: Path) -> ModuleType | None:
    return next((each for each in READERS if each.recognises(path)), None)


def _inside(folders: Iterable[Path]) -> list[Path]:
    """The content of folders, sorted, without hidden files and the test's; nothing if too much."""
    inside = (each for folder in folders if folder.is_dir() for each in folder.iterdir())
    found = list(islice(inside, MAX_ENTRIES + 1))
    if len(found) > MAX_ENTRIES:
        return []
    left_out = class_folders.TEST
    return sorted(path for path in found if not (is_hidden(path.name) or path.name in left_out))


def _refuse(path: Path) -> NoReturn:
    """Raise the InputError for a file that no reader knows."""
    name = path.name.lower()
    tool = next((tool for ends, tool in ELSEWHERE.items() if name.endswith(ends)), None)
    if tool:
        raise InputError(
            f"{shown(path)} is not read here: load it with {tool}, and write its arrays with "
            "numpy.savez(FILE, X=X, y=y, X_test=X_test, y_test=y_test)"
        )
    unpacked = "unpack it; " if name.endswith(ARCHIVES) else ""
    raise InputError(f"{shown(path)} is of an unknown kind: {unpacked}expected {FORMATS}")
