"""Images and labels from arrays of any type: checked, scaled, and divided into two sets.

`mlpcore.data.dataset` makes a `Dataset` of them. Functions take the name of what they check, which
is that of a parameter or of a file, and name it in the InputError that they raise.
"""

from __future__ import annotations

import math
import numbers
import reprlib
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from mlpcore import philox
from mlpcore.checks import check_real, check_whole
from mlpcore.data.idx import MAX_BYTES, MAX_SIDE, check_ratio
from mlpcore.errors import InputError, shown
from mlpcore.files import open_regular
from mlpcore.typing import AnyArray, ArrayLike

#: Training images, their labels, test images, their labels.
Four: TypeAlias = Sequence[AnyArray]

#: The share of the images that is drawn for the test.
TEST_SIZE = 0.2

#: A network's labels are bytes.
MAX_CLASSES = 256

#: The names of the four in a .npz file: those of Keras, or those of scikit-learn's documentation.
KEYS = (("x_train", "X_train", "X"), ("y_train", "y"), ("x_test", "X_test"), ("y_test",))

#: Kinds of NumPy's types.
TEXT, NUMBERS = "U", "buif"


def check_sets(arrays: Four, names: Sequence[str]) -> AnyArray:
    """Check that images and labels of two sets fit together; return the labels that there are.

    Parameters
    ----------
    arrays
        Training images (n, h, w), their labels (n,), test images (m, h, w), their labels (m,).
    names
        The names of the four in error messages.

    Returns
    -------
    numpy.ndarray
        The labels of the training set, each once, in order.
    """
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
    return trained


def to_array(values: ArrayLike, name: str) -> AnyArray:
    """Return an array; a sequence, also one of pictures of PIL, becomes one."""
    try:
        return np.asarray(values if hasattr(values, "__array__") else list(values))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} is no array: expected images of one size, or labels") from None


def to_images(values: ArrayLike, name: str, image_shape: tuple[int, int] | None) -> AnyArray:
    """Return images (n, h, w) of real numbers.

    Parameters
    ----------
    values
        Images (n, h, w), (n, h, w, 1) or (n, 1, h, w), or rows of their pixels (n, h w).
    image_shape
        Height and width of images in rows; those of a square if it is None.
    """
    images = to_array(values, name)
    if images.dtype.kind not in NUMBERS:
        raise InputError(f"{name} has the type {images.dtype}: expected real numbers")
    if images.ndim == 4 and 1 in (images.shape[1], images.shape[3]):
        images = images[:, 0] if images.shape[1] == 1 else images[..., 0]
    if images.ndim == 2:
        side = math.isqrt(images.shape[1])
        sides = image_shape or (side, side)
        if math.prod(sides) != images.shape[1]:
            expected = "x".join(map(str, sides)) if image_shape else "a square or image_shape"
            raise InputError(f"{name} has {images.shape[1]} pixels an image: expected {expected}")
        images = images.reshape(-1, *sides)
    if images.ndim != 3 or 0 in images.shape or max(images.shape[1:]) > MAX_SIDE:
        raise InputError(
            f"{name} has the shape {images.shape}: expected grey images (n, height, width) with "
            f"sides of at most {MAX_SIDE} pixels, or (n, pixels)"
        )
    if image_shape is not None and images.shape[1:] != tuple(image_shape):
        raise InputError(
            f"{name} has images of {images.shape[1:]}: expected {reprlib.repr(image_shape)}"
        )
    if images.dtype.kind == "f" and not np.isfinite(images).all():
        raise InputError(f"{name} holds values that are not finite: expected numbers")
    return images


def to_labels(values: ArrayLike, name: str) -> AnyArray:
    """Return labels (n,): numbers, or strings."""
    labels = to_array(values, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype == object:
        kinds = [kind for kind in (str, numbers.Real) if all(isinstance(v, kind) for v in labels)]
        if kinds:
            labels = np.array(labels.tolist())
    if labels.ndim != 1 or not len(labels) or labels.dtype.kind not in TEXT + NUMBERS:
        raise InputError(
            f"{name} has the shape {labels.shape} and the type {labels.dtype}: expected a label "
            "for each image, all numbers or all strings"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"{name} holds labels that are not finite: expected numbers")
    return labels


def range_of(images: AnyArray, name: str) -> tuple[float, float]:
    """Return the values that become -1 and 1, for images of which nobody has said it.

    uint8 has 0 ... 255, as in IDX files, and bool has 0 ... 1. Floats within 0 ... 1 or -1 ... 1
    have that range. Others have the least value, or 0 if that is less, and the greatest.
    """
    if images.dtype == np.uint8:
        return 0.0, 255.0
    low, high = images.min().item(), images.max().item()
    if images.dtype.kind == "b":
        return 0.0, 1.0
    if images.dtype.kind == "f" and low >= -1 and high <= 1:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    return check_range((min(low, 0), high), f"{name}: range of values")


def check_range(value: tuple[float, float], name: str) -> tuple[float, float]:
    """Check that a range has two finite ends, the lower one first."""
    try:
        low, high = value
        for end in (low, high):
            check_real(name, end)
    except (TypeError, ValueError):
        raise InputError(f"{name} {value!r}: expected two numbers") from None
    if not low < high or not math.isfinite(float(high) - float(low)):
        raise InputError(
            f"{name} {low} to {high}: expected two finite numbers, the lower one first"
        )
    return float(low), float(high)


def draw_test(labels: AnyArray, share: float, seed: int) -> AnyArray:
    """Return which samples (n,) are for the test: so large a share of every class.

    At least one of each class is left for training. The seed and the labels decide the draw.
    """
    check_real("test_size", share)
    if not 0 < share < 1:
        raise InputError(f"test_size {share}: expected a share of the images, between 0 and 1")
    check_whole("seed", seed, 0, 2**64 - 1)
    mask = np.zeros(len(labels), bool)
    order = philox.permutation(len(labels), seed, 0)
    for each in np.unique(labels):
        drawn = order[labels[order] == each]
        mask[drawn[: min(round(share * len(drawn)), len(drawn) - 1)]] = True
    if not mask.any():
        raise InputError(f"test_size {share} of {len(labels):,} images: expected at least one")
    return mask


def prepare(
    values: Sequence[Any],
    names: Sequence[str],
    image_shape: tuple[int, int] | None = None,
    test_size: float = TEST_SIZE,
    seed: int = 0,
) -> tuple[list[AnyArray], tuple[Any, ...]]:
    """Check images and labels, and count the classes.

    Parameters
    ----------
    values, names
        The four, and their names in error messages. If the last two are None, test images are
        drawn from the others.
    image_shape, test_size, seed
        As for `Dataset.from_arrays`.

    Returns
    -------
    list of numpy.ndarray
        Images (n, h, w) of real numbers and labels (n,) of uint8, for training and for the test.
    tuple
        The classes: what label k was.
    """
    images = [to_images(values[0], names[0], image_shape)]
    labels = [to_labels(values[1], names[1])]
    if (values[2] is None) != (values[3] is None):
        absent, there = names[2:] if values[2] is None else names[:1:-1]
        raise InputError(f"{there} without {absent}: expected both or none")
    if values[2] is not None:
        images.append(to_images(values[2], names[2], image_shape))
        labels.append(to_labels(values[3], names[3]))
        kinds = [each.dtype.kind in TEXT for each in labels]
        if kinds[0] != kinds[1]:
            expected = "strings" if kinds[0] else "numbers"
            raise InputError(f"{names[3]} has the type {labels[1].dtype}: expected {expected}")
    elif len(images[0]) == len(labels[0]):  # else it is refused below
        mask = draw_test(labels[0], test_size, seed)
        images, labels = ([each[0][~mask], each[0][mask]] for each in (images, labels))
    else:
        images, labels = 2 * images, 2 * labels
    classes = check_sets([images[0], labels[0], images[1], labels[1]], names)
    if len(classes) > MAX_CLASSES:
        raise InputError(
            f"{names[1]} holds {len(classes):,} different labels: expected at most {MAX_CLASSES}"
        )
    codes = [np.searchsorted(classes, each).astype(np.uint8) for each in labels]
    return [images[0], codes[0], images[1], codes[1]], tuple(classes.tolist())


def fields_of(
    values: Sequence[Any],
    names: Sequence[str],
    image_shape: tuple[int, int] | None = None,
    value_range: tuple[float, float] | None = None,
    test_size: float = TEST_SIZE,
    seed: int = 0,
    similar_labels: Sequence[Any] | None = None,
) -> tuple[list[AnyArray], dict[str, Any]]:
    """Return what `prepare` does, and fields of the `Dataset`.

    ``value_range`` is among them unless it is 0 ... 255 and the images are bytes, as in IDX files.
    """
    arrays, classes = prepare(values, names, image_shape, test_size, seed)
    fields: dict[str, Any] = {"classes": classes, "n_classes": len(classes)}
    ends = check_range(value_range, "value_range") if value_range else range_of(arrays[0], names[0])
    if ends != (0, 255) or arrays[0].dtype != np.uint8 or arrays[2].dtype != np.uint8:
        fields["value_range"] = ends
    if similar_labels is not None:
        unknown = [each for each in similar_labels if each not in classes]
        if unknown:
            raise InputError(f"similar label {unknown[0]!r}: expected one of the labels")
        fields["similar_labels"] = tuple(map(classes.index, similar_labels))
    return arrays, fields


def read_npz(path: Path) -> tuple[list[AnyArray | None], list[str]]:
    """Read the four arrays of a .npz file, and return them with their names in messages.

    The last two are None if the file has no test set. Objects of Python are refused, because
    reading them could run any code. The memory grows with the data that arrive.
    """
    try:
        with open_regular(path) as content, zipfile.ZipFile(content) as archive:
            members = set(archive.namelist())
            keys = [next((k for k in each if f"{k}.npy" in members), None) for each in KEYS]
            if keys[0] is None or keys[1] is None:
                found = ", ".join(sorted(members)[:9]) or "nothing"
                raise InputError(
                    f"{shown(path)} holds {found}: expected x_train, y_train, x_test, y_test, or "
                    "X, y, X_test, y_test"
                )
            names = [f"{shown(path)}: {key or each[0]}" for key, each in zip(keys, KEYS)]
            arrays: list[AnyArray | None] = []
            limit = 8 * MAX_BYTES
            for key, name in zip(keys, names):
                if key is None:
                    arrays.append(None)
                    continue
                compressed = archive.getinfo(f"{key}.npy").compress_size
                with archive.open(f"{key}.npy") as file:
                    array = _read_npy(file, name, limit, compressed)
                limit -= array.nbytes
                arrays.append(array)
            return arrays, names
    except OSError as error:
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from None
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{shown(path)} is not a readable .npz file: {reason}") from None


def _read_npy(file: IO[bytes], name: str, limit: int, compressed: int) -> AnyArray:
    """Read an array in NumPy's format, of at most so many bytes, from so many compressed ones."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise InputError(f"{name} has version {version} of NumPy's format: expected 1.0 or 2.0")
    if dtype.hasobject:
        raise InputError(f"{name} holds objects of Python: expected numbers, or strings as text")
    size = math.prod(shape) * dtype.itemsize
    if not 0 < size <= limit:
        raise InputError(f"{name} has {size:,} bytes: expected 1 to {limit:,}")
    check_ratio(size, compressed, name)
    content = file.read(size)
    if len(content) != size:
        raise InputError(f"{name} ends after {len(content):,} bytes: expected {size:,}")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")
