"""Images and labels from arrays of any type: checked, and divided into training and test.

`mlpcore.data.dataset` makes a `Dataset` of them. Messages name an array as its `Part` does: by a
parameter or by a file.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlpcore import philox
from mlpcore.checks import (
    NUMBERS,
    check_array_like,
    check_real,
    check_unicode,
    check_whole,
    real_array,
)
from mlpcore.cpu import total_memory
from mlpcore.data.on_disk import BytesOnDisk
from mlpcore.data.pixels import MAX_SIDE
from mlpcore.errors import InputError, brief
from mlpcore.typing import AnyArray, ArrayLike

#: What a path of data may lead to, in messages.
FORMATS = "a folder of IDX files, .npy files or pictures CLASS/*.png, or a .npz or .csv file"

#: The share of the images that is drawn for the test.
TEST_SIZE = 0.2

#: A network's labels are bytes.
MAX_CLASSES = 256

#: The kind of NumPy's texts.
TEXT = "U"


class Part(NamedTuple):
    """Images and labels of the training or the test set, and their names in messages.

    `ends` are the values of background and ink, if the reader has found which is which.
    """

    images: Any
    labels: Any
    images_name: str
    labels_name: str
    ends: tuple[float, float] | None = None


def most_bytes() -> int:
    """The most bytes of arrays that are read into memory, a third of it: they may be copied."""
    return total_memory() // 3


def check_parts(
    train: Part, test: Part | None, test_size: float = TEST_SIZE, seed: int = 0
) -> tuple[Part, Part, AnyArray]:
    """Check two parts, or divide the first one; return both, and the labels, each once."""
    train = _check_part(train)
    train, test = _divide(train, test_size, seed) if test is None else (train, _check_part(test))
    if test.images.shape[1:] != train.images.shape[1:]:
        sizes = ["x".join(map(str, each.images.shape[1:])) for each in (test, train)]
        raise InputError(f"{test.images_name} holds images of {sizes[0]}, expected {sizes[1]}")
    classes = np.unique(train.labels)
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise InputError(
            f"{train.labels_name} has {len(classes):,} classes, such as {classes[0]}: expected 2 "
            f"to {MAX_CLASSES}"
        )
    # A network could not learn such a class, so the files hardly belong together.
    # Python compares: NumPy rounds whole numbers of two types, from 2^53 on.
    unknown = set(np.unique(test.labels).tolist()).difference(classes.tolist())
    if unknown:
        raise InputError(
            f"{test.labels_name} holds the label {min(unknown)!r}, which is out of range: "
            f"expected only labels that {train.labels_name} holds"
        )
    return train, test, classes


def _check_part(part: Part) -> Part:
    """Return a part whose images are (n, h, w) real numbers, with as many labels (n,)."""
    images = _to_images(part.images, part.images_name)
    labels = _to_labels(part.labels, part.labels_name)
    if len(labels) != len(images):
        raise InputError(
            f"{part.labels_name} holds {len(labels)} labels, expected {len(images)} for the images "
            f"of {part.images_name}"
        )
    return part._replace(images=images, labels=labels)


def _to_images(values: ArrayLike, name: str) -> AnyArray:
    """Return images (n, h, w) of real numbers.

    They may have an axis of one channel, (n, h, w, 1) or (n, 1, h, w), or be rows of the pixels of
    squares, (n, h h).
    """
    images: Any = values
    if not isinstance(values, BytesOnDisk):
        images = real_array(name, values)
    if images.ndim == 4 and 1 in (images.shape[1], images.shape[3]):
        sides = images.shape[2:] if images.shape[1] == 1 else images.shape[1:3]
        images = images.reshape(-1, *sides)
    if images.ndim == 2 and (side := math.isqrt(images.shape[1])) ** 2 == images.shape[1]:
        images = images.reshape(-1, side, side)
    sides = images.shape[1:]
    if images.ndim != 3 or not len(images) or not 2 <= min(sides) <= max(sides) <= MAX_SIDE:
        raise InputError(
            f"{name} has the shape {images.shape}: expected grey images (n, height, width) with "
            f"sides of 2 to {MAX_SIDE} pixels, or (n, pixels) of squares"
        )
    return images


def _to_labels(values: ArrayLike, name: str) -> AnyArray:
    """Return labels (n,): numbers, or strings."""
    given: Any = values
    check_array_like(name, given)
    try:
        labels = np.asarray(given)
        if labels.dtype == object:
            labels = np.array(labels.tolist())
    except ValueError:  # nested lists of different lengths
        raise InputError(f"{name} is not an array: expected a label for each image") from None
    if labels.ndim and not (isinstance(given, np.ndarray) and labels.dtype == given.dtype):
        check_lossless(name, labels, given)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 2 and labels.dtype.kind in NUMBERS and (labels.sum(axis=1) == 1).all():
        raise InputError(
            f"{name} has the shape {labels.shape}: expected a label for each image, as "
            "y.argmax(axis=1) makes them from one-hot rows"
        )
    if labels.ndim != 1 or not len(labels) or labels.dtype.kind not in TEXT + NUMBERS:
        raise InputError(
            f"{name} has the shape {labels.shape} and the type {labels.dtype}: expected a label "
            "for each image, all numbers or all strings"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"{name} holds labels that are not finite: expected numbers")
    if labels.dtype.kind == TEXT:  # in a file, any numbers may stand for characters
        codes = np.frombuffer(labels.astype(labels.dtype.newbyteorder("=")).tobytes(), np.uint32)
        if codes.max(initial=0) > sys.maxunicode:
            raise InputError(f"{name} holds no characters but {codes.max():,}: expected text")
    for label in np.unique(labels).tolist() if labels.dtype.kind == TEXT else ():
        check_unicode(f"{name}: the label", label)
    return labels


def check_lossless(name: str, labels: AnyArray, given: Iterable[Any]) -> None:
    """Check that an array has the labels it is made of: NumPy makes "1" of 1 beside another text.

    It also rounds large whole numbers beside others, and leaves out zeros at the end of a text.
    """
    for kept, label in zip(labels.tolist(), given):
        if kept != label and kept == kept:  # not NaN
            raise InputError(
                f"{name} holds the label {brief(label)}, which becomes "
                f"{brief(kept)} among the others: expected all numbers or all strings"
            )


def classes_of(names: Sequence[str], where: str) -> AnyArray:
    """The classes (n,) that different texts stand for: whole or real numbers if all are, or texts.

    "01" is 1. Digits of other scripts and underscores make no number. An InputError when two texts
    would be one class, such as "01" and "1".
    """
    classes = np.array(names)
    kinds = (np.int64, np.float64) if all(t.isascii() and "_" not in t for t in names) else ()
    for kind in kinds:
        try:
            classes = classes.astype(kind)
            break
        except ValueError:
            continue
        except OverflowError:  # float64 would round them
            break
    first: dict[Any, str] = {}
    for label, name in zip(classes.tolist(), names):
        if first.setdefault(label, name) != name:
            raise InputError(
                f"{where}: {first[label]!r} and {name!r} would be one class: expected one spelling"
            )
    return classes


def _divide(part: Part, test_size: float, seed: int) -> tuple[Part, Part]:
    """Divide a part: so large a share of every class is for the test.

    At least one sample of each class is left for training. The seed and the labels decide.
    """
    check_real("test_size", test_size)
    if not 0 < test_size < 1:
        raise InputError(f"test_size {test_size}: expected a share of the images, between 0 and 1")
    check_whole("seed", seed, 0, 2**64 - 1)
    labels = part.labels
    test = np.zeros(len(labels), bool)
    order = philox.permutation(len(labels), seed, 0)
    for each in np.unique(labels):
        drawn = order[labels[order] == each]
        test[drawn[: min(round(test_size * len(drawn)), len(drawn) - 1)]] = True
    if not test.any():
        raise InputError(
            f"{len(labels):,} images: {test_size:g} of each class leave none to test on; "
            "expected a test set, or more images of a class"
        )
    first, second = (
        part._replace(images=part.images[drawn], labels=labels[drawn]) for drawn in (~test, test)
    )
    return first, second
