"""A folder of four IDX files, as MNIST's, and the digits embedded in scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mlpcore.data.idx import MAX_BYTES, read_idx
from mlpcore.data.scaling import BACKGROUNDS, normalise, resize
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray, Float32Array, StrPath, UInt8Array

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

# scikit-learn's digits: their sides, their greatest pixel value, and the rows and columns of
# 29 x 29 pixels that they fill.
EMBEDDED_PIXELS, EMBEDDED_WHITE, EMBEDDED_BOX = (8, 8), 16, slice(4, 25)


def read_folder(folder: Path, advice: str = "") -> tuple[list[UInt8Array], list[Path]]:
    """Read the `FILES` of a folder; return the arrays and where they were.

    `advice` ends the message about a damaged file.
    """
    found = find(folder)
    missing = [file for file in FILES if file not in found]
    if missing:
        raise InputError(f"{shown(folder)} lacks {', '.join(missing)} (each may end in .gz)")
    paths = [found[file] for file in FILES]
    arrays: list[UInt8Array] = []
    try:
        for path in paths:
            arrays.append(read_idx(path, MAX_BYTES - sum(each.nbytes for each in arrays)))
        return arrays, paths
    except InputError as error:
        raise InputError(f"{error}{advice}") from None


def absolute(path: StrPath) -> Path:
    """Return the absolute path of what a user names."""
    try:
        text = os.fsdecode(path)
        if not text or "\0" in text:
            raise ValueError
        return Path(os.path.abspath(os.path.expanduser(text)))
    except OSError as error:  # a relative path when the working directory is gone
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from None
    except (TypeError, ValueError):
        raise InputError(
            f"path is {path!r}, expected a folder of IDX files or a .npz file"
        ) from None


def find(folder: Path) -> dict[str, Path]:
    """Return the paths of the `FILES` that a folder holds, by their names."""
    try:
        names = set(os.listdir(folder))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot read the folder {shown(folder)}: {reason}") from None
    found = {}
    for file in FILES:
        variants = (file, file.replace("-idx", ".idx"))
        paths = [Path(folder, v + end) for v in variants for end in ("", ".gz") if v + end in names]
        if paths:  # some archives unpack to a folder of the same name beside the file
            found[file] = min(paths, key=os.path.isdir)
    return found


def embedded_digits() -> tuple[Float32Array, UInt8Array, AnyArray]:
    """Return scikit-learn's 8x8 digits in the format of MNIST, and which are for the test.

    Every fifth sample of each digit is a test image: always the same 1,442 images for training and
    355 for the test.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    labels = digits.target.astype(np.uint8)
    test = np.zeros(len(labels), bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[4::5]] = True
    return embedded_images(digits.images), labels, test


def embedded_images(pixels: AnyArray) -> Float32Array:
    """Return pixels (n, 8, 8) from 0 to 16 as images (n, 29, 29) in [-1, 1].

    MNIST's digits fill 20x20 of 28x28 pixels, and deformations need the margin. So these become
    21x21 in the middle.
    """
    images = np.full((len(pixels), 29, 29), BACKGROUNDS["signed"], np.float32)
    box = images[:, EMBEDDED_BOX, EMBEDDED_BOX]
    box[...] = resize(normalise(pixels * (255 / EMBEDDED_WHITE)), *box.shape[1:])
    return images
