"""Data sets of grey-scale images with labels: MNIST, IDX and .npz files, arrays, digits.

Images become float32 images in [-1, 1] with odd sides. An even side grows by one pixel, so that an
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
from mlpcore.data.arrays import TEST_SIZE, check_sets, fields_of, read_npz
from mlpcore.data.folder import EMBEDDED_BOX as EMBEDDED_BOX
from mlpcore.data.folder import EMBEDDED_PIXELS as EMBEDDED_PIXELS
from mlpcore.data.folder import EMBEDDED_WHITE as EMBEDDED_WHITE
from mlpcore.data.folder import FILES, absolute, embedded_digits, find, read_folder
from mlpcore.data.idx import md5, read_idx
from mlpcore.data.scaling import BACKGROUNDS, normalise, resize, to_images, to_range
from mlpcore.data.width import normalise_width
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray, ArrayLike, Float32Array, StrPath, UInt8Array

__all__ = ["Dataset", "load", "normalise", "read_idx", "resize"]

BACKGROUND = BACKGROUNDS["signed"]  # of pixels of value 0
LOCAL = Path("data", "mnist")
DIGITS: dict[str, Any] = {"n_classes": 10, "similar_labels": (1, 7)}

MNIST, EMBEDDED = "MNIST", "scikit-learn digits"

#: The MD5 of MNIST's arrays.
MNIST_SUMS = [mnist.MD5[file] for file in FILES]

#: The `Dataset.source` of arrays that came from no file.
MEMORY = "arrays in memory"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Training and test images with their labels.

    Attributes
    ----------
    name : str
        "MNIST", "scikit-learn digits", the name of the folder or file, or one that was given.
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
    classes : tuple
        What the labels 0, 1 ... mean: numbers or strings. By default the labels themselves.
    value_range : tuple of float, optional
        The values that became -1 and 1, if the images came from arrays and these are not 0 and 255.
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
    classes: tuple[Any, ...] = ()
    value_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.classes:
            object.__setattr__(self, "classes", tuple(range(self.n_classes)))

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        image_shape: tuple[int, int] | None = None,
        value_range: tuple[float, float] | None = None,
        test_size: float = TEST_SIZE,
        seed: int = 0,
        name: str = "arrays",
        similar_labels: Sequence[Any] | None = None,
    ) -> Dataset:
        """Make a data set of images and labels from elsewhere.

        Parameters
        ----------
        X, X_test : array_like of real numbers, shape (n, h, w) or (n, h w)
            Grey images, or rows of their pixels. There may be an axis of one channel. Sequences
            of arrays or of PIL's pictures will do, and tensors of PyTorch on the CPU.
        y, y_test : array_like, shape (n,) or (n, 1)
            Labels: numbers or strings, of at most 256 classes. Classes become the labels 0, 1 ...
            in their order, and `classes` keeps them.
        image_shape : tuple of int, optional
            Height and width of images in rows; without it they are squares.
        value_range : tuple of float, optional
            The values that become -1, the background, and 1. Without it, they are 0 and 255 for
            uint8, as in IDX files; for bool 0 and 1; for floats within 0 ... 1 or -1 ... 1 these
            ends. For other numbers they are the least of `X`, or 0 if that is less, and the
            greatest. Values beyond, which `X_test` may have, become less than -1 or more than 1.
        test_size : float
            Without `X_test` and `y_test`, this share of the images of each class is for the test.
        seed : int
            Decides which.
        name : str
            Shown in reports.
        similar_labels : sequence, optional
            Classes whose images are rotated and sheared half as much, as 1 and 7 of digits.

        Raises
        ------
        InputError
            When the arrays are not such images and labels, do not fit together, or have fewer
            than two classes or a class in the test set only.

        Notes
        -----
        MNIST itself is recognised, and has its name and `similar_labels`. Deformations are in
        pixels, so images much smaller than MNIST's want a lower `DeformationParameters.alpha`.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> digits = load_digits()
        >>> data = Dataset.from_arrays(digits.images, digits.target, test_size=0.25)
        >>> data
        Dataset('arrays': 1,347 training and 450 test images of 9 x 9, 10 classes)
        >>> data.value_range
        (0.0, 16.0)
        """
        values, names = (X, y, X_test, y_test), ("X", "y", "X_test", "y_test")
        fields = fields_of(values, names, image_shape, value_range, test_size, seed, similar_labels)
        return _from_arrays(*fields, name, MEMORY)

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

    @property
    def contents(self) -> str:
        """The numbers and the size of the images, in words."""
        images = test_images_text(len(self.test_labels), self.held_out)
        sides = "{} x {}".format(*self.image_shape)
        return f"{len(self.train_labels):,} training and {images} of {sides}"

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self.contents}, {self.n_classes} classes)"

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
            lost = f"the label {self.classes[unknown[0]]}" if len(unknown) else "a second class"
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

    def with_width(self, width: int | None) -> Dataset:
        """Return the data with the ink of each image brought to a width (`normalise_width`).

        The images of this data set must be in [-1, 1]. It returns itself if the width is None.

        Raises
        ------
        InputError
            When the width is not from 1 to the width of the images.
        """
        if width is None:
            return self
        return dataclasses.replace(
            self,
            train_images=normalise_width(self.train_images, width),
            test_images=normalise_width(self.test_images, width),
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
    """Load a data set: IDX files, a .npz file, MNIST, or the digits embedded in scikit-learn.

    The first of these that is there decides: `path`; the environment variable ``MLPCORE_DATA``;
    the folder ``data/mnist``; the user's cache; a download of MNIST into that cache, every file
    checked; the digits embedded in scikit-learn, with a `Dataset.notice`.

    Parameters
    ----------
    path : str or os.PathLike, optional
        A folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same with
        ``t10k`` for the test set. ``.idx`` may replace ``-idx``, and ``.gz`` may follow. Or a
        .npz file with arrays called x_train, y_train, x_test and y_test, as Keras has them, or X,
        y, X_test and y_test, for `Dataset.from_arrays`.
    name : {None, "mnist", "digits"}
        "mnist" accepts the published MNIST only, recognised by its checksums. "digits" loads the
        embedded digits.
    download : bool
        Whether to download MNIST when it is not on this machine.

    Raises
    ------
    InputError
        When a named folder or file lacks what it should have, a file is damaged or does not fit
        the others, or MNIST was asked for by name and is not available.

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
        return _from_path(path, name)
    if variable := os.environ.get("MLPCORE_DATA"):
        try:
            return _from_path(variable, name)
        except InputError as error:
            raise InputError(f"MLPCORE_DATA: {error}") from None
    if LOCAL.is_dir() and find(LOCAL):
        return _from_folder(LOCAL, name)
    return _cached_mnist(name, download)


def _cached_mnist(name: str | None, download: bool) -> Dataset:
    """Load MNIST from the user's cache, or the embedded digits unless `name` is "mnist"."""
    cache = mnist.cache_folder()
    try:
        found = find(cache) if cache.is_dir() else {}
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
        raise InputError(f"{missed}; expected its four files there, or in the folder MLPCORE_DATA")
    return _embedded_digits(f"{missed}; using scikit-learn's 1,797 embedded 8x8 digits instead")


def _from_path(path: StrPath, name: str | None) -> Dataset:
    """Load a folder of IDX files or a .npz file; if `name` is "mnist", accept MNIST only."""
    file = absolute(path)
    if file.suffix != ".npz" and not file.is_file():
        return _from_folder(file, name)
    values, names = read_npz(file)
    data = _from_arrays(*fields_of(values, names), file.stem, os.fspath(file))
    if name == "mnist" and data.name != MNIST:
        raise InputError(f"{shown(file)} is not MNIST's: expected the published images")
    if values[2] is None:
        notice = f"{names[2]} is not there: {TEST_SIZE:.0%} of the images are for the test"
        data = dataclasses.replace(data, notice=notice)
    return data


def _from_arrays(
    arrays: Sequence[AnyArray], fields: dict[str, Any], name: str, source: str
) -> Dataset:
    """Make a Dataset of what `arrays.fields_of` returns."""
    if "value_range" not in fields and [md5(each) for each in arrays] == MNIST_SUMS:
        return _dataset(MNIST, arrays, **{**DIGITS, **fields}, source=source)
    return _dataset(_own(name), arrays, **fields, source=source)


def _own(name: str) -> str:
    """Return the name of other data, which must not pass for those that are known."""
    name = shown(name)
    return f"{name}, another than the published" if name in (MNIST, EMBEDDED) else name


def _from_folder(path: StrPath, name: str | None, advice: str = "") -> Dataset:
    """Load the four files of a folder; if `name` is "mnist", accept MNIST's only.

    `advice` ends the message about a damaged file.
    """
    folder = absolute(path)
    arrays, paths = read_folder(folder, advice)
    sums = [md5(array) for array in arrays]
    differ = [i for i, file in enumerate(FILES) if sums[i] != mnist.MD5[file]]
    if differ and name == "mnist":
        i = differ[0]
        raise InputError(
            f"{shown(paths[i])} is not MNIST's: its content has MD5 {sums[i]}, "
            f"expected {mnist.MD5[FILES[i]]}{advice}"
        )
    n_classes = int(check_sets(arrays, [shown(path) for path in paths])[-1]) + 1
    if not differ:
        return _dataset(MNIST, arrays, source=os.fspath(folder), **DIGITS)
    notice = ""
    if len(differ) < len(FILES) or folder.name.lower() == "mnist":
        files = ", ".join(paths[i].name for i in differ)
        notice = f"{shown(folder)} is not the published MNIST: {files} differ from it"
    own = _own(folder.name or os.fspath(folder))
    return _dataset(own, arrays, n_classes, source=os.fspath(folder), notice=notice)


def _dataset(name: str, arrays: Sequence[AnyArray], n_classes: int, **fields: Any) -> Dataset:
    """Make a Dataset of four arrays in the order of `FILES`, with their `value_range` if any."""
    train_pixels, train_labels, test_pixels, test_labels = arrays
    _, *sides = train_pixels.shape
    odd = [side | 1 for side in sides]
    train_images, test_images = (
        to_images(pixels, *odd, *fields.get("value_range", (0, 255)))
        for pixels in (train_pixels, test_pixels)
    )
    fields["pixel_shape"] = tuple(sides)
    return Dataset(name, train_images, train_labels, test_images, test_labels, n_classes, **fields)


def _embedded_digits(notice: str = "") -> Dataset:
    """Return scikit-learn's digits."""
    images, labels, test = embedded_digits()
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
