"""The IDX files of a data set by their names: those of MNIST, EMNIST and others.

| name | data set |
|---|---|
| ``train-images-idx3-ubyte``, ``t10k-labels-idx1-ubyte`` | MNIST, Fashion-MNIST, KMNIST |
| ``emnist-letters-train-images-idx3-ubyte``, ``emnist-letters-test-...`` | EMNIST's letters |
| ``qmnist-train-labels-idx2-int``, ``qmnist-test-...`` | QMNIST, whose labels have 8 columns |

``.idx`` may replace ``-idx``, and ``.gz`` may follow. A folder may hold several sets, such as those
of EMNIST, whose names begin otherwise.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mlpcore.data.arrays import Part
from mlpcore.data.formats import MAX_BYTES, read_idx
from mlpcore.data.mnist import FILES
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray

_NAME = re.compile(r"(.*?)(train|t10k|test)-(images|labels)[-.]idx(\d)-\w+(?:\.gz)?")

#: Sets of such names have images whose rows are columns.
TRANSPOSED = "emnist"

#: Of a label: class, partition, writer, and where the digit was.
QMNIST_COLUMNS = 8


def set_of(name: str) -> str | None:
    """How the names of a file's data set begin; None if it is not the name of an IDX file."""
    found = _NAME.fullmatch(name)
    return found and found[1]


def idx_sets(folder: Path) -> dict[str, dict[str, Path]]:
    """The files of each data set in a folder, by how its names begin and by the names in `FILES`.

    Raises
    ------
    InputError
        When the folder cannot be read.
    """
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError) as error:  # ValueError: a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the folder {shown(folder)}: {reason}") from None
    sets: dict[str, dict[str, Path]] = {}
    for found in filter(None, map(_NAME.fullmatch, names)):
        part = "train" if found[2] == "train" else "t10k"
        file = next(file for file in FILES if file.startswith(f"{part}-{found[3]}"))
        files, path = sets.setdefault(found[1], {}), folder / found[0]
        # Some archives unpack to a folder of the same name beside the file.
        files[file] = min(files.get(file, path), path, key=os.path.isdir)
    return sets


def read_idx_set(folder: Path, begin: str, files: dict[str, Path]) -> tuple[Part, Part]:
    """Read the training and the test set of the data set whose names begin so."""
    missing = [begin + file for file in FILES if file not in files]
    if missing:
        raise InputError(f"{shown(folder)} lacks {', '.join(missing)} (each may end in .gz)")
    names = [shown(files[file]) for file in FILES]
    arrays: list[Any] = []
    limit = MAX_BYTES
    for file in FILES:
        array = read_idx(files[file], limit)
        limit -= array.nbytes
        if array.ndim == 2 and "labels" in file:
            array = _classes_of(array, shown(files[file]))
        arrays.append(array)
    if begin.lower().startswith(TRANSPOSED):
        arrays = [each.swapaxes(1, 2) if each.ndim == 3 else each for each in arrays]
    return Part(*arrays[:2], *names[:2]), Part(*arrays[2:], *names[2:])


def _classes_of(labels: AnyArray, name: str) -> AnyArray:
    """The classes (n,) among QMNIST's labels (n, 8), which also say who wrote a digit."""
    if labels.shape[1] != QMNIST_COLUMNS:
        raise InputError(
            f"{name} has {labels.shape[1]} columns of labels: expected one, or QMNIST's "
            f"{QMNIST_COLUMNS}, of which the first is the class"
        )
    return labels[:, 0]
