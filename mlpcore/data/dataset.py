"""Data sets of grey-scale images with labels: MNIST, others in IDX files, scikit-learn's digits.

Files become float32 images in [-1, 1] with odd sides. An even side grows by one pixel, so that an
image has a central pixel about which it is rotated and scaled. The paper's 28x28 digits become
29x29 "to get a proper center".
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlpcore.data import mnist
from mlpcore.data.idx import md5, read_idx
from mlpcore.data.scaling import BACKGROUNDS, batches, normalise, resize, to_range
from mlpcore.errors import InputError, shown
from mlpcore.html import ReprHtmlMixin
from mlpcore.typing import Float32Array, StrPath, UInt8Array

__all__ = ["Dataset", "load", "normalise", "read_idx", "resize"]

BACKGROUND = BACKGROUNDS["signed"]  # of pixels of value 0
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
LOCAL = Path("data", "mnist")
DIGITS: dict[str, Any] = {"n_classes": 10, "similar_labels": (1, 7)}

MNIST, EMBEDDED = "MNIST", "scikit-learn digits"

# scikit-learn's digits: their sides, their greatest pixel value, and the rows and columns of
# 29 x 29 pixels that they fill.
EMBEDDED_PIXELS, EMBEDDED_WHITE, EMBEDDED_BOX = (8, 8), 16, slice(4, 25)


@dataclass(frozen=True, eq=False)
class Dataset(ReprHtmlMixin):
    """Training and test images with their labels.

    Attributes
    ----------
    name : str
        "MNIST", "scikit-learn digits", or the name of the folder with the files.
    train_images, test_images : numpy.ndarray of float32, shape (n, height, width)
        C-contiguous, in [-1, 1], with odd sides. The background of digits is -1. `with_range`
        maps them to [0, 1].
    train_labels, test_labels : numpy.ndarray of uint8, shape (n,)
        All are below `n_classes`. The training set has every label of the test set.
    n_classes : int
        The largest label plus one: 2 to 256. Labels in between may be unused.
    source : str
        Where the data came from: the path of the folder, or some words.
    similar_labels : tuple of int
        Labels whose images are rotated and sheared half as much: 1 and 7 for digits
        (the paper's "Deforming images"), none for other data.
    notice : str
        A line that the user should see, such as why this is not MNIST. Mostly empty.
    pixel_shape : tuple of int, optional
        Height and width of the images in the files, before the sides became odd.
    held_out : int
        0, or the number of test images if they are from the end of the training set (`hold_out`).
    """

    name: str
    train_images: Float32Array
    train_labels: UInt8Array
    test_images: Float32Array
    test_labels: UInt8Array
    n_classes: int
    source: str
    similar_labels: tuple[int, ...] = ()
    notice: str = ""
    pixel_shape: tuple[int, int] | None = None
    held_out: int = 0

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of an image, in pixels."""
        _, height, width = self.train_images.shape
        return height, width

    @property
    def n_inputs(self) -> int:
        """Pixels of an image, which is the size of a network's input layer."""
        height, width = self.image_shape
        return height * width

    def hold_out(self, n: int) -> Dataset:
        """Return the data with the last n training images in place of the test images.

        They allow comparing settings without a look at the test images.

        Raises
        ------
        InputError
            When n is out of range, when some images are held out already, or when the rest lacks
            a second class or a class that is held out.
        """
        rest = len(self.train_labels) - n
        if self.held_out or n < 1 or rest < 1:
            most = len(self.train_labels) - 1
            expected = "none, as some are already" if self.held_out else f"1 to {most:,}"
            note = f" ({self.notice})" if self.notice else ""
            raise InputError(f"{n:,} training images to hold out: expected {expected}{note}")
        trained = np.unique(self.train_labels[:rest])
        unknown = np.setdiff1d(self.train_labels[rest:], trained)
        if len(trained) < 2 or len(unknown):
            lost = f"the label {unknown[0]}" if len(unknown) else "a second class"
            raise InputError(
                f"{n:,} training images to hold out leave none with {lost}: expected fewer"
            )
        return dataclasses.replace(
            self,
            train_images=self.train_images[:rest],
            train_labels=self.train_labels[:rest],
            test_images=self.train_images[rest:],
            test_labels=self.train_labels[rest:],
            held_out=n,
        )

    def with_range(self, input_range: str) -> Dataset:
        """Return the data with images in a network's range of inputs (`scaling.to_range`).

        The images of this data set must be in [-1, 1]. It returns itself if that is the range.

        Raises
        ------
        InputError
            When there is no such range.
        """
        if input_range == "signed":
            return self
        return dataclasses.replace(
            self,
            train_images=to_range(self.train_images, input_range),
            test_images=to_range(self.test_images, input_range),
        )


def kind_of_test(held_out: int) -> str:
    """Return the word for the images that errors are counted on."""
    return "held-out" if held_out else "test"


def test_images_text(n_test: int, held_out: int) -> str:
    """Return the number and the kind of the images that errors are counted on."""
    return f"{n_test:,} {'held-out training' if held_out else 'test'} images"


def load(path: StrPath | None = None, *, name: str | None = None, download: bool = True) -> Dataset:
    """Load a data set: a folder of IDX files, MNIST, or the digits embedded in scikit-learn.

    The first of these that is there decides: `path`; the environment variable ``MLPCORE_DATA``;
    the folder ``data/mnist``; the user's cache; a download of MNIST into that cache, every file
    checked; the digits embedded in scikit-learn, with a `Dataset.notice`.

    Parameters
    ----------
    path : str or os.PathLike, optional
        A folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same with
        ``t10k`` for the test set. ``.idx`` may replace ``-idx``, and ``.gz`` may follow.
    name : {None, "mnist", "digits"}
        "mnist" accepts the published MNIST only, recognised by its checksums. "digits" loads the
        embedded digits.
    download : bool
        Whether to download MNIST when it is not on this machine.

    Raises
    ------
    InputError
        When a named folder lacks files, a file is damaged or does not fit the others, or MNIST
        was asked for by name and is not available.

    Examples
    --------
    >>> digits = load(name="digits")
    >>> digits.train_images.shape, digits.train_labels.shape, digits.n_classes
    ((1442, 29, 29), (1442,), 10)
    """
    if name not in (None, "mnist", "digits"):
        raise InputError(f"name is {name!r}, expected None, 'mnist' or 'digits'")
    if name == "digits":
        if path is not None:
            raise InputError(f"data folder {path!r} together with data set 'digits': expected one")
        return _embedded_digits()
    if path is not None:
        return _from_folder(path, name)
    if variable := os.environ.get("MLPCORE_DATA"):
        try:
            return _from_folder(variable, name)
        except InputError as error:
            raise InputError(f"MLPCORE_DATA: {error}") from None
    if LOCAL.is_dir() and _find(LOCAL):
        return _from_folder(LOCAL, name)
    return _cached_mnist(name, download)


def _cached_mnist(name: str | None, download: bool) -> Dataset:
    """Load MNIST from the user's cache, or the embedded digits unless `name` is "mnist"."""
    cache = mnist.cache_folder()
    try:
        found = _find(cache) if cache.is_dir() else {}
        missing = [file for file in FILES if file not in found]
        reason = ""
        if missing:
            reason = mnist.download(cache, missing) if download else "downloading is off"
    except InputError as error:
        reason = str(error)
    if not reason:
        return _from_folder(cache, "mnist", advice="; delete it and try again")
    missed = (
        f"MNIST was not found (looked in {shown(LOCAL)}, {shown(cache)}) "
        f"and could not be downloaded ({reason})"
    )
    if name == "mnist":
        raise InputError(f"{missed}; expected its four IDX files in a folder that you name")
    return _embedded_digits(f"{missed}; using scikit-learn's 1,797 embedded 8x8 digits instead")


def _from_folder(path: StrPath, name: str | None, advice: str = "") -> Dataset:
    """Load the four files of a folder; if `name` is "mnist", accept MNIST's only.

    `advice` ends the message about a damaged file.
    """
    folder = _absolute(path)
    found = _find(folder)
    missing = [file for file in FILES if file not in found]
    if missing:
        raise InputError(f"{shown(folder)} lacks {', '.join(missing)} (each may end in .gz)")
    paths = [found[file] for file in FILES]
    try:
        arrays = [read_idx(path) for path in paths]
    except InputError as error:
        raise InputError(f"{error}{advice}") from None
    sums = [md5(array) for array in arrays]
    differ = [i for i, file in enumerate(FILES) if sums[i] != mnist.MD5[file]]
    if differ and name == "mnist":
        i = differ[0]
        raise InputError(
            f"{shown(paths[i])} is not MNIST's: its content has MD5 {sums[i]}, "
            f"expected {mnist.MD5[FILES[i]]}{advice}"
        )
    n_classes = _check_arrays(arrays, [shown(path) for path in paths])
    if not differ:
        return _dataset(MNIST, arrays, source=os.fspath(folder), **DIGITS)
    notice = ""
    if len(differ) < len(FILES) or folder.name.lower() == "mnist":
        files = ", ".join(paths[i].name for i in differ)
        notice = f"{shown(folder)} is not the published MNIST: {files} differ from it"
    own = shown(folder.name or folder)
    if own in (MNIST, EMBEDDED):  # other data must not pass for these
        own = f"{own}, another than the published"
    return _dataset(own, arrays, n_classes, source=os.fspath(folder), notice=notice)


def _absolute(path: StrPath) -> Path:
    """Return the absolute path of a folder that a user names."""
    try:
        text = os.fsdecode(path)
        if not text or "\0" in text:
            raise ValueError
        return Path(os.path.abspath(os.path.expanduser(text)))
    except OSError as error:  # a relative path when the working directory is gone
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from None
    except (TypeError, ValueError):
        raise InputError(f"path is {path!r}, expected a folder with IDX files") from None


def _find(folder: Path) -> dict[str, Path]:
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


def _check_arrays(arrays: Sequence[UInt8Array], names: Sequence[str]) -> int:
    """Check that four arrays in the order of `FILES` fit together; return `n_classes`."""
    for i in (0, 2):
        for j, kind, wrong in ((i, "images", "labels"), (i + 1, "labels", "images")):
            if arrays[j].ndim != (3 if kind == "images" else 1):
                raise InputError(f"{names[j]} holds {wrong}, expected {kind}")
        if len(arrays[i + 1]) != len(arrays[i]):
            raise InputError(
                f"{names[i + 1]} holds {len(arrays[i + 1])} labels, expected {len(arrays[i])} "
                f"for the images of {names[i]}"
            )
    train_images, train_labels, test_images, test_labels = arrays
    if test_images.shape[1:] != train_images.shape[1:]:
        sizes = ["x".join(map(str, images.shape[1:])) for images in (test_images, train_images)]
        raise InputError(f"{names[2]} holds images of {sizes[0]}, expected {sizes[1]}")
    if min(train_images.shape[1:]) < 2:
        raise InputError(f"{names[0]} holds images with a side of 1 pixel, expected at least 2")
    trained = np.unique(train_labels)
    if len(trained) < 2:
        raise InputError(
            f"{names[1]} holds only the label {trained[0]}, expected 2 classes or more"
        )
    # A network could not learn such a class, so the files hardly belong together.
    unknown = np.setdiff1d(test_labels, trained)
    if len(unknown):
        raise InputError(
            f"{names[3]} holds the label {unknown[0]}, which is out of range: "
            f"expected only labels that {names[1]} holds"
        )
    return int(trained[-1]) + 1


def _dataset(name: str, arrays: Sequence[UInt8Array], n_classes: int, **fields: Any) -> Dataset:
    """Make a Dataset of four arrays of bytes in the order of `FILES`."""
    train_pixels, train_labels, test_pixels, test_labels = arrays
    images = [_odd_sided(pixels) for pixels in (train_pixels, test_pixels)]
    _, *sides = train_pixels.shape
    fields["pixel_shape"] = tuple(sides)
    return Dataset(name, images[0], train_labels, images[1], test_labels, n_classes, **fields)


def _odd_sided(pixels: UInt8Array) -> Float32Array:
    """Return float32 images in [-1, 1] with odd sides; work in batches to save memory."""
    height, width = (side + 1 - side % 2 for side in pixels.shape[1:])
    images = np.empty((len(pixels), height, width), np.float32)
    for batch in batches(len(pixels), height * width):
        images[batch] = resize(normalise(pixels[batch]), height, width)
    return images


def _embedded_digits(notice: str = "") -> Dataset:
    """Return scikit-learn's 8x8 digits in the format of MNIST.

    MNIST's digits fill 20x20 of 28x28 pixels, and deformations need the margin. So these become
    21x21 in the middle of 29x29. Every fifth sample of each digit is a test image: always the
    same 1,442 images for training and 355 for the test.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    labels = digits.target.astype(np.uint8)
    images = np.full((len(labels), 29, 29), BACKGROUND, np.float32)
    box = images[:, EMBEDDED_BOX, EMBEDDED_BOX]
    box[...] = resize(normalise(digits.images * (255 / EMBEDDED_WHITE)), *box.shape[1:])
    test = np.zeros(len(labels), bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[4::5]] = True
    return Dataset(
        EMBEDDED,
        images[~test],
        labels[~test],
        images[test],
        labels[test],
        source="embedded in scikit-learn",
        notice=notice,
        pixel_shape=EMBEDDED_PIXELS,
        **DIGITS,
    )
