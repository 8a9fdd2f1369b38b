"""Images in tables: CSV files with a label and the pixels of a square image in each line.

A header names the columns. If none of its names is one of `LABELS`, the labels are in the first
column or in the last one, whichever holds what labels can be.
"""

import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlpcore.data.arrays import MAX_CLASSES, Part, classes_of, most_bytes
from mlpcore.data.idx import TRANSPOSED
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import read_bounded
from mlpcore.typing import AnyArray

#: They may be followed by ``.gz``.
SUFFIXES = ".csv", ".tsv"

#: Heads of the column of labels.
LABELS = "label", "labels", "class", "target", "y"

#: The ground has a greater share of the lines at a corner; hardly any label has.
MOST = 0.9


def recognises(path: Path) -> bool:
    """Whether a path is that of a file whose name ends as a table's."""
    return path.is_file() and path.name.lower().removesuffix(".gz").endswith(SUFFIXES)


def read(path: Path) -> tuple[Part, Part | None]:
    """Read a table and, if its name has "train" in it, the one that has "test" instead.

    A table of test images that lacks the labels, as some competitions have it, is left out.
    """
    train, names, place = _read(path)
    head, train_word, tail = path.name.rpartition("train")
    other = path.with_name(f"{head}test{tail}")
    if not train_word or not other.is_file():
        return train, None
    test, test_names, _ = _read(other, place)
    if len(test_names) != len(names):
        return train, None
    if "" not in (*names, *test_names) and names != test_names:
        expected = f"expected those of {shown(path)}, in the same order"
        raise InputError(f"{shown(other)} names other columns: {expected}")
    return train, test


def _read(path: Path, place: int | None = None) -> tuple[Part, list[str], int]:
    """The images and labels of a table, the names of its columns, and which has the labels.

    Names are empty without a header. Unless one names it, the labels are those at `place`.
    """
    name = shown(path)
    try:
        lines = _lines(path)
        delimiter = max(",;\t", key=lines[0].count)
        header = [field.strip(' "\r\n').lower() for field in lines[0].split(delimiter)]
        if _is_header(header):
            del lines[0]
            named = [field for field in header if field in LABELS]
            if len(named) > 1:
                raise ValueError(f"its columns {named[0]!r} and {named[1]!r} may both hold labels")
            place = header.index(named[0]) if named else place
        else:
            header = [""] * len(header)
        if place is None:
            place = _place_of_labels(lines, delimiter)
        place %= len(header)
        codes: dict[str, int] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty table, which is refused
            table = np.loadtxt(
                lines,
                delimiter=delimiter,
                converters={place: lambda label: codes.setdefault(label.strip(), len(codes))},
                quotechar='"',
                comments=None,
                ndmin=2,
            )
        images: AnyArray = np.delete(table, place, axis=1)
        with np.errstate(invalid="ignore"):  # NaN, which is refused later
            whole = images.clip(0, 255).astype(np.uint8)
        images = whole if np.array_equal(images, whole) else images
        if not images.size:
            raise ValueError("it has no pixels")
        if "" in codes:
            row = 1 + np.flatnonzero(table[:, place] == codes[""])[0]
            raise ValueError(f"its row {row} holds no label")
    except (ValueError, IndexError, MemoryError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        reason = printable(_of_rows(str(error)), 150)
        raise InputError(
            f"{name} is not a table of images: {reason}; expected a label and pixels in each line"
        ) from None
    labels = classes_of(list(codes), f"{name}: labels")[table[:, place].astype(int)]
    side = round(images.shape[1] ** 0.5)
    if path.name.lower().startswith(TRANSPOSED) and images.shape[1] == side * side:
        images = images.reshape(-1, side, side).swapaxes(1, 2)
    return Part(images, labels, f"{name}: pixels", f"{name}: labels"), header, place


def _lines(path: Path) -> list[str]:
    """The lines of a file, gzipped or not, that are not blank."""
    most = most_bytes() // 4  # a number takes two characters or more, and eight bytes as an array
    content = read_bounded(path, most)
    if content.startswith(b"\x1f\x8b"):
        content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(most + 1)
        if len(content) > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes")
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig")
    lines = [line for line in text if not line.isspace()]
    if not lines:
        raise ValueError("it is empty")
    return lines


def _is_header(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line name columns: by different words, or by numbers in order.

    A line of data with a pixel that is no number is none, so that it is refused and not left out.
    """
    names = [field for field in fields if field not in LABELS]
    if any(map(_is_number, names)):
        return len(names) > 3 and names in [[str(k + n) for k in range(len(names))] for n in (0, 1)]
    return len(set(names)) == len(names)


def _place_of_labels(lines: Sequence[str], delimiter: str) -> int:
    """The column of the labels: 0 or -1.

    Labels are text or whole numbers, of 2 to `MAX_CLASSES` values, fewer than lines, and none of
    them in more than `MOST` of the lines. A ValueError if both columns may be labels.
    """
    found = []
    for place, split in ((0, str.split), (-1, str.rsplit)):
        counts = Counter(split(line, delimiter, 1)[place].strip(' "\r\n') for line in lines)
        numbers = [*map(float, filter(_is_number, counts))]
        is_likely = 2 <= len(counts) <= min(MAX_CLASSES, len(lines) - 1)
        if is_likely and max(counts.values()) <= MOST * len(lines):
            if not numbers:
                return place  # no pixel is text
            if all(number % 1 == 0 for number in numbers):
                found.append(place)
    if len(found) > 1:
        raise ValueError(
            "its labels may be in the first or in the last column; name the columns in a first "
            "line, and that of the labels 'label'"
        )
    return found[0] if found else 0


def _of_rows(message: str) -> str:
    """A message of NumPy's about a table, with its rows counted from 1 and without its advice."""
    if found := re.match(r"could not convert string (.*) to float64 at row (\d+), column", message):
        return f"its row {int(found[2]) + 1} holds {found[1]}, which is no number"
    return message.split("; use")[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
