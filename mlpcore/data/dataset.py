"""Data sets of grey-scale images with labels, from files, arrays and scikit-learn.

Images become float32 images in [-1, 1] with odd sides. An even side grows by one pixel, so that an
image has a central pixel about which it is rotated and scaled. The paper's 28x28 digits become
29x29 "to get a proper center".
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from mlpcore.data import mnist, readers
from mlpcore.data.arrays import FORMATS, TEST_SIZE, Part, check_parts
from mlpcore.data.on_disk import BytesOnDisk
from mlpcore.data.pixels import (
    BYTES,
    DIGITS_PIXELS,
    InputRange,
    PixelSpec,
    batches,
    check_range,
    range_of,
    to_range,
)
from mlpcore.data.strokes import draw_strokes
from mlpcore.errors import InputError, brief, shown
from mlpcore.typing import AnyArray, ArrayLike, Float32Array, StrPath, UInt8Array

MNIST, EMBEDDED = "MNIST", "scikit-learn digits"

#: What `load` calls them.
NAMES = {MNIST: "mnist", EMBEDDED: "digits"}

#: Digits that look alike when they are rotated or sheared.
SIMILAR_DIGITS = 1, 7

#: The notice for a folder of pictures of dark ink.
INVERTED = "the pictures are inverted, because most have a light border"

#: The `Dataset.source` of arrays that came from no file.
MEMORY = "arrays in memory"


@dataclass(frozen=True)
class Images:
    """Images (n, height, width), float32, converted from pixels when a slice or numbers index it.

    `drawn` replaces some: it holds the place (n,) of each image's replacement, or -1, and these
    images (m, height, width) in [-1, 1]. `convert`, if given, makes images of pixels by a record.

    >>> load(name="digits").test_set[:3].shape
    (3, 29, 29)
    """

    stored: AnyArray
    pixels: PixelSpec
    drawn: tuple[AnyArray, Float32Array] | None = None
    convert: Callable[[AnyArray, PixelSpec], AnyArray] | None = None

    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths along the axes."""
        return len(self.stored), *self.pixels.image_shape

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> Any:
        stored, spec = self.stored[rows], self.pixels
        if self.convert is None:
            images = to_range(spec.to_images(stored), spec.input_range)
        else:
            images = np.asarray(self.convert(stored, spec))
        if self.drawn is not None:
            places, drawn = self.drawn[0][rows], self.drawn[1]
            images[places >= 0] = to_range(drawn[places[places >= 0]], spec.input_range)
        return images


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Training and test images with their labels.

    Attributes
    ----------
    name : str
        "MNIST", "scikit-learn digits", the name of the folder or file, or one that was given.
    train_pixels, test_pixels : numpy.ndarray, shape ``(n, *pixels.pixel_shape)``
        Pictures as they came, of any real type. Where they are many bytes in a file, they stay
        there (`mlpcore.data.on_disk`): `numpy.asarray` reads them, or some of them.
    train_labels, test_labels : numpy.ndarray of uint8, shape (n,)
        Places among the classes. The training set has every label of the test set.
    classes : tuple
        What the labels 0, 1 ... stand for: the numbers or strings in the files, in their order.
    source : str
        Where the data came from: the path of the folder, or some words.
    pixels : PixelSpec
        How the pixels become images.
    similar_labels : tuple of int
        Labels whose images are rotated and sheared half as much: 1 and 7 for digits
        (the paper's "Deforming images"), none for other data.
    notice : str
        A line that the user should see, such as why this is not MNIST. Mostly empty.
    held_out : int
        0, or the number of test images if they are from the training set (`hold_out`).
    drawn : tuple or None
        Training images in place of those that pixels make (`with_strokes`), as `Images` has them.
    divided : bool
        Whether files without a test set were divided into training and test images.
    """

    name: str
    train_pixels: AnyArray
    train_labels: UInt8Array
    test_pixels: AnyArray
    test_labels: UInt8Array
    classes: tuple[Any, ...]
    source: str
    pixels: PixelSpec
    similar_labels: tuple[int, ...] = ()
    notice: str = ""
    held_out: int = 0
    drawn: tuple[AnyArray, Float32Array] | None = None
    divided: bool = False

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        value_range: tuple[float, float] | None = None,
        test_size: float = TEST_SIZE,
        seed: int = 0,
        name: str = "arrays",
        similar_labels: Sequence[Any] | None = None,
    ) -> Dataset:
        """Make a data set from images and labels.

        Parameters
        ----------
        X, X_test : array_like of real numbers, shape (n, h, w) or (n, h h)
            Grey images, or rows of the pixels of squares. There may be an axis of one channel.
            Sequences of arrays or of PIL's pictures also work, and tensors of PyTorch on the CPU.
        y, y_test : array_like, shape (n,) or (n, 1)
            Labels: numbers or strings, of at most 256 classes. Classes become the labels 0, 1 ...
            in their order, and `classes` keeps them.
        value_range : tuple of float, optional
            The values that become -1, the background, and 1. By default 0 and 255 for uint8, as
            in IDX files, or 0 and the greatest of `X` if that is below 128; 0 and 1 for bool; the
            ends for floats within 0 ... 1 or -1 ... 1; for other numbers the least of `X`, or 0 if
            that is less, and the greatest. Values beyond become less than -1 or more than 1. They
            may be beyond by the width of the range, or by a quarter of it for 0 ... 1 or -1 ... 1.
        test_size, seed : float, int
            Without `X_test` and `y_test`, this share of the images of each class is the test set,
            and the seed decides which.
        name : str
            Shown in reports.
        similar_labels : sequence, optional
            Classes whose images are rotated and sheared half as much, as 1 and 7 of digits.

        Raises
        ------
        InputError
            When the arrays are not such images and labels, do not fit together, have fewer than
            two classes or a class in the test set only, or values farther beyond the range than it
            is wide.

        Notes
        -----
        MNIST itself is recognised, and has its name and `similar_labels`. Deformations are in
        pixels, so images much smaller than MNIST's need a lower `DeformationParameters.alpha`.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> data = Dataset.from_arrays(*load_digits(return_X_y=True), test_size=0.25)
        >>> data, data.pixels.value_range
        (Dataset('arrays': 1,347 training and 450 test images of 9 x 9, 10 classes), (0.0, 16.0))
        """
        train, test = Part(X, y, "X", "y"), None
        if X_test is not None or y_test is not None:
            test = Part(X_test, y_test, "X_test", "y_test")
        parts = check_parts(train, test, test_size, seed)
        return _make(*parts, name, MEMORY, value_range, similar_labels)

    @property
    def train_images(self) -> Float32Array:
        """Training images (n, height, width), C-contiguous, in the range of `pixels`.

        That is [-1, 1] by default. Sides are odd, and the background of digits is -1. They are made
        from the pixels each time, and take four bytes per pixel; `train_set` makes some of them.
        """
        return self.train_set[:]

    @property
    def test_images(self) -> Float32Array:
        """Test images, likewise."""
        return self.test_set[:]

    @property
    def train_set(self) -> Images:
        """Training images, converted from pixels only when indexed."""
        return Images(self.train_pixels, self.pixels, self.drawn)

    @property
    def test_set(self) -> Images:
        """Test images, likewise."""
        return Images(self.test_pixels, self.pixels)

    @property
    def n_classes(self) -> int:
        """The number of classes; labels are below it."""
        return len(self.classes)

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of an image, in pixels."""
        return self.pixels.image_shape

    @property
    def n_inputs(self) -> int:
        """The number of pixels of an image: the size of a network's input layer."""
        height, width = self.image_shape
        return height * width

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the four arrays, in hexadecimal."""
        digest = hashlib.sha256()
        for array in (self.train_pixels, self.train_labels, self.test_pixels, self.test_labels):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            for batch in batches(len(array), math.prod(array.shape[1:])):
                digest.update(np.asarray(array[batch]).data)
        return digest.hexdigest()

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

        They allow comparing settings without a look at the test images. If the training images are
        grouped by class, as from a folder for each, they are the last ones of every class, in
        proportion.

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
        labels = self.train_labels
        kept: Any = slice(rest)
        held: Any = slice(rest, None)
        counts = np.bincount(labels)
        # In a random order, the next label is another one as often as two drawn ones differ.
        other = 1 - ((counts / len(labels)) ** 2).sum()
        if (labels[:-1] != labels[1:]).mean() < other / 2:
            by_class = np.argsort(labels, kind="stable")
            place = np.arange(rest + n) - np.searchsorted(labels[by_class], labels[by_class])
            order = by_class[np.argsort(place / counts[labels[by_class]], kind="stable")]
            kept, held = np.sort(order[kept]), np.sort(order[held])
        trained = np.unique(labels[kept])
        unknown = np.setdiff1d(labels[held], trained)
        if len(trained) < 2 or len(unknown):
            lost = f"the label {self.classes[unknown[0]]}" if len(unknown) else "a second class"
            raise InputError(
                f"{n:,} training images to hold out leave none with {lost}: expected fewer"
            )
        return dataclasses.replace(
            self,
            train_pixels=self.train_pixels[kept],
            train_labels=labels[kept],
            test_pixels=self.train_pixels[held],
            test_labels=labels[held],
            held_out=n,
            drawn=self.drawn and (self.drawn[0][kept], self.drawn[1]),
        )

    def all_for_test(self) -> Dataset:
        """Return all images as test images, to evaluate a network trained on other data."""
        if isinstance(self.train_pixels, BytesOnDisk):
            pixels: Any = self.train_pixels.joined(self.test_pixels)
        else:
            pixels = np.concatenate([self.train_pixels, self.test_pixels])
        labels = np.concatenate([self.train_labels, self.test_labels])
        notice = f"{self.name} has no test set: the test uses all {len(labels):,} images"
        notice += f"; {INVERTED}" * (INVERTED in self.notice)
        return dataclasses.replace(self, test_pixels=pixels, test_labels=labels, notice=notice)

    def with_strokes(self, share: float, seed: int) -> Dataset:
        """Return the data with `draw_strokes` on a share of the training images of 1, 7 and 0.

        An InputError is raised when the share is not 0, and the classes lack 1 or 7.
        """
        if not share:
            return self
        images, places = self.as_inputs().train_set, np.full(len(self.train_labels), -1, np.int32)
        numbers, drawn = draw_strokes(images, self.train_labels, self.classes, share, seed)
        places[numbers] = np.arange(len(numbers))
        return dataclasses.replace(self, drawn=(places, drawn))

    def as_inputs(self, input_range: InputRange = "signed") -> Dataset:
        """Return the data with images in a network's range; an InputError if there are none."""
        pixels = structs.replace(self.pixels, input_range=input_range)
        return dataclasses.replace(self, pixels=pixels)


def test_images_text(n_test: int, held_out: int) -> str:
    """Return the number and the kind of the images that errors are counted on."""
    return f"{n_test:,} {'held-out training' if held_out else 'test'} images"


def load(
    path: StrPath | None = None,
    *,
    name: str | None = None,
    download: bool = True,
    value_range: tuple[float, float] | PixelSpec | None = None,
) -> Dataset:
    """Load a data set: files of any format, MNIST, or the digits embedded in scikit-learn.

    The first of these that is there decides: `path`; the environment variable ``MLPCORE_DATA``;
    the folder ``data/mnist``; the user's cache; a download of MNIST into that cache, every file
    checked; the digits embedded in scikit-learn, with a `Dataset.notice`.

    Parameters
    ----------
    path : str or os.PathLike, optional
        One of these: a folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the
        same with ``t10k`` or ``test`` for the test set, where names may begin with that of the set;
        one of these files, where a folder holds several sets; a .npz file with arrays called
        x_train, y_train, x_test and y_test, as in Keras, or X, y, X_test and y_test, for
        `Dataset.from_arrays`; a folder with .npy files of these names; a .csv file; a folder of
        pictures by class (`mlpcore.data.class_folders`).
    name : {None, "mnist", "digits"}
        "mnist" accepts the published MNIST only, recognised by its checksums. "digits" loads the
        embedded digits.
    download : bool
        Whether to download MNIST when it is not on this machine.
    value_range : tuple of float or PixelSpec, optional
        The values that become -1 and 1, or the record of the network that is to see the files: its
        values, unless these are those of a type as a whole and so are the files'. Folders of
        pictures say themselves whether their ground is light. By default as for
        `Dataset.from_arrays`. The embedded digits have their own.

    Raises
    ------
    InputError
        When a named folder or file lacks what it should have, a file is damaged or does not fit
        the others, MNIST was asked for by name and is not available, or values are too far beyond
        their range (see `Dataset.from_arrays`).

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
    given = path if path is not None else os.environ.get("MLPCORE_DATA") or None
    source, lacking = mnist.locate(download) if given is None else (_absolute(given), "")
    if lacking and name == "mnist":
        expected = "its four files there, or in the folder MLPCORE_DATA"
        raise InputError(f"{lacking}; expected {expected}")
    if lacking:
        return _embedded_digits(
            f"{lacking}; using scikit-learn's 1,797 embedded 8x8 digits instead"
        )
    is_cached = given is None and source == mnist.cache_folder()
    hint = "; delete it and try again" if is_cached else ""
    if given is not path:
        hint = " (the environment variable MLPCORE_DATA names it)"
    try:
        source, reader = readers.locate(source)
        train, test = reader.read(source)
    except InputError as error:
        raise InputError(f"{error}{hint}") from None
    label, parts = shown(source), check_parts(train, test)
    data = _make(*parts, source.name.removesuffix(".npz"), os.fspath(source), value_range)
    if data.name != MNIST and (name == "mnist" or is_cached):
        raise InputError(f"{label} is not MNIST's: expected the published images{hint}")
    notices = [
        (train.ends == BYTES[::-1], INVERTED),
        (test is None, f"{label} has no test set: {TEST_SIZE:.0%} of each class is kept for it"),
        (
            data.name != MNIST and source.name.lower() == "mnist",
            f"{label} is not the published MNIST",
        ),
    ]
    notice = "; ".join(text for applies, text in notices if applies)
    return dataclasses.replace(data, notice=notice, divided=test is None)


def _absolute(path: StrPath) -> Path:
    """Return the absolute path of what a user names."""
    try:
        return Path(os.path.abspath(os.path.expanduser(os.fsdecode(path))))
    except TypeError:
        raise InputError(f"path is {brief(path)}, expected {FORMATS}") from None


def _make(
    train: Part,
    test: Part,
    classes: AnyArray,
    name: str,
    source: str,
    value_range: tuple[float, float] | PixelSpec | None = None,
    similar_labels: Sequence[Any] | None = None,
) -> Dataset:
    """Make a data set of what `check_parts` returns."""
    pixels = _pixels_of(train, test, value_range)
    if not pixels.whole:
        train, test = (part._replace(images=np.asarray(part.images)) for part in (train, test))
    for each in (train, test):
        pixels.check(each.images, each.images_name)
    labels = {label: place for place, label in enumerate(classes.tolist())}
    for label in similar_labels or ():
        if label not in labels:
            raise InputError(f"similar label {label!r}: expected one of the labels")
    similar = tuple(labels[label] for label in similar_labels or ())
    codes = [
        np.array([labels[label] for label in each.labels.tolist()], np.uint8)
        for each in (train, test)
    ]
    images: list[Any] = [
        each.images if isinstance(each.images, BytesOnDisk) else np.ascontiguousarray(each.images)
        for each in (train, test)
    ]
    arrays = images[0], codes[0], images[1], codes[1]
    as_mnist = SIMILAR_DIGITS if similar_labels is None else similar
    data = Dataset(MNIST, *arrays, tuple(classes.tolist()), source, pixels, as_mnist)
    shape, sha256 = mnist.IDENTITY
    if pixels.whole and images[0].shape == shape and data.sha256 == sha256:
        return data
    if name in (MNIST, EMBEDDED):
        name = f"{name}, another than the published"
    return dataclasses.replace(data, name=shown(name or source), similar_labels=similar)


def _pixels_of(
    train: Part, test: Part, value_range: tuple[float, float] | PixelSpec | None
) -> PixelSpec:
    """The `PixelSpec` with which the pixels of two parts become images."""
    height, width = train.images.shape[1:]

    def spec(ends: tuple[float, float]) -> PixelSpec:
        are_bytes = train.images.dtype == test.images.dtype == np.uint8
        are_bytes = are_bytes and ends in (BYTES, BYTES[::-1])
        return PixelSpec((height | 1, width | 1), (height, width), ends, whole=are_bytes)

    if value_range and not isinstance(value_range, PixelSpec):
        return spec(check_range(value_range, "value_range"))
    found = spec(train.ends or range_of(train.images, train.images_name))
    is_light = value_range and value_range.value_range == BYTES[::-1] and not train.ends
    if value_range and (is_light or value_range.rescaling(found) != (1, 0)):
        return spec(value_range.value_range)
    return found


def _embedded_digits(notice: str = "") -> Dataset:
    """Return scikit-learn's digits.

    Every fifth sample of each digit is a test image: always the same 1,442 images for training and
    355 for the test.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    test = np.zeros(len(labels), bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[4::5]] = True
    return Dataset(
        EMBEDDED,
        images[~test],
        labels[~test],
        images[test],
        labels[test],
        tuple(range(10)),
        "embedded in scikit-learn",
        DIGITS_PIXELS,
        SIMILAR_DIGITS,
        notice,
    )
