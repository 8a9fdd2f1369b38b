"""Images in tables: CSV files with a label and the pixels of a square image in each line."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np

from mlpcore.data.arrays import MAX_BYTES, Part
from mlpcore.data.idx import TRANSPOSED
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import read_bounded
from mlpcore.typing import AnyArray

SUFFIXES = ".csv", ".tsv"

#: A number takes two characters or more, and eight bytes as an array.
MAX_TEXT = MAX_BYTES // 4

#: Heads of the column of labels; without such a head it is the first one.
LABELS = "label", "labels", "class", "target", "y"


def recognises(path: Path) -> bool:
    """Whether a path is that of a file whose name ends as a table's."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def read(path: Path) -> tuple[Part, Part | None]:
    """Read a table and, if its name has "train" in it, the one that has "test" instead.

    A table of test images that lacks the labels, as some competitions have it, is left out.
    """
    train, columns = _read(path)
    head, train_word, tail = path.name.rpartition("train")
    other = path.with_name(f"{head}test{tail}")
    if not train_word or not other.is_file():
        return train, None
    test, test_columns = _read(other)
    return train, test if test_columns == columns else None


def _read(path: Path) -> tuple[Part, int]:
    """The images and labels of a table, and how many columns it has."""
    name = shown(path)
    try:
        content = read_bounded(path, MAX_TEXT)
        first = content[: content.find(b"\n") + 1 or None].decode("utf-8-sig")
        delimiter = max(",;\t", key=first.count)
        head = [field.strip(' "\r\n').lower() for field in first.split(delimiter)]
        has_head = not all(map(_is_number, head[1:]))
        place = next((k for k, field in enumerate(head) if has_head and field in LABELS), 0)
        codes: dict[str, int] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty table, which is refused
            table = np.loadtxt(
                io.TextIOWrapper(io.BytesIO(content), "utf-8-sig"),
                delimiter=delimiter,
                skiprows=int(has_head),
                converters={place: lambda label: codes.setdefault(label.strip(), len(codes))},
                quotechar='"',
                comments=None,
                ndmin=2,
            )
        images = _whole(np.delete(table, place, axis=1))
        if not images.size:
            raise ValueError("it has no pixels")
    except (ValueError, IndexError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        reason = printable(str(error), 150)
        raise InputError(
            f"{name} is no table of images: {reason}; expected a label and pixels in each line"
        ) from None
    labels = _numbers(np.array(list(codes)))[table[:, place].astype(int)]
    side = round(images.shape[1] ** 0.5)
    if path.name.lower().startswith(TRANSPOSED) and images.shape[1] == side * side:
        images = images.reshape(-1, side, side).swapaxes(1, 2)
    return Part(images, labels, f"{name}: pixels", f"{name}: labels"), table.shape[1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole(values: AnyArray) -> AnyArray:
    """Numbers as bytes, if they all are."""
    with np.errstate(invalid="ignore"):  # NaN, which is refused later
        whole = values.clip(0, 255).astype(np.uint8)
    return whole if np.array_equal(values, whole) else values


def _numbers(labels: AnyArray) -> AnyArray:
    """Labels as numbers if all are: "01" is 1."""
    for kind in (np.int64, np.float64):
        try:
            return labels.astype(kind)
        except ValueError:
            continue
        except OverflowError:  # float64 would round them
            break
    return labels
