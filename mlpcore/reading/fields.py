"""Fields of a form by name: drawn once on a sample page, found on each page, a record a page."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import cv2
import msgspec
import numpy as np
from PIL import Image
from scipy.spatial import cKDTree

from mlpcore.checks import Record
from mlpcore.data.digit import MIN_SIDE
from mlpcore.data.image_files import Source
from mlpcore.errors import InputError, shown
from mlpcore.inference import TrainedClassifier, load
from mlpcore.reading.answers import ReadDigit
from mlpcore.reading.boxes import corners
from mlpcore.reading.page import Page, read
from mlpcore.store.documents import read_document, write_document
from mlpcore.typing import AnyArray, Float64Array, StrPath

#: Boxes of a page are those of the sample if at least this share of them, or of the mean number of
#: both, lies so near to one, as a share of a box's side, after so many rounds of fitting.
ALIKE, NEAR, ROUNDS = 0.8, 0.4, 4

#: Shares of a box: what a page may lack of its height, the width of room for another box, and how
#: far apart, along lines, middles of boxes of one column are.
CUT, ROOM, BELOW = 0.1, 0.5, 0.2

#: Features of a page's print and lines that are compared, how many must agree on one map, and how
#: far from it, in pixels, they may be.
FEATURES, AGREE, TOLERANCE = 4000, 30, 4.0

#: The columns of a table of pages that are no fields.
COLUMNS = FILE, DOUBT = "file", "in doubt"


class FormFile(Record, frozen=True):
    """A file of fields.

    Attributes
    ----------
    sample : str
        The picture of a page, beside the file: an empty form, or a filled one.
    fields : dict of str to tuple of 4 float
        Left, top, right and bottom of each, in pixels of that picture.
    """

    sample: str
    fields: Annotated[dict[str, tuple[float, float, float, float]], msgspec.Meta(min_length=1)]


class Form:
    """A form whose fields have names.

    Parameters
    ----------
    path : str or os.PathLike
        A JSON file: ``{"sample": "page.png", "fields": {"date": [left, top, right, bottom]}}``, in
        pixels of the sample, which lies next to the file.
    network : TrainedClassifier or str
        As for `mlpcore.read`.

    Raises
    ------
    InputError
        When the file or its sample cannot be read, or a field is none.
    """

    def __init__(self, path: StrPath, network: TrainedClassifier | StrPath = "pretrained"):
        document = read_document(path, FormFile)
        self.classifier = network if isinstance(network, TrainedClassifier) else load(network)
        self.sample = read(Path(path).parent / document.sample, self.classifier)
        height, width = (round(self.sample.scale * n) for n in self.sample.grey.shape)
        self.fields = {}
        for name, given in document.fields.items():
            if name in COLUMNS:
                expected = "another name, because the table has a column of this one"
                raise InputError(f"{shown(path)}: field {name!r}: expected {expected}")
            left, top, right, bottom = field = np.clip(given, 0, (width, height) * 2)
            if right - left < MIN_SIDE or bottom - top < MIN_SIDE:
                raise InputError(
                    f"{shown(path)}: field {name!r} is {list(given)}: expected left, top, right "
                    f"and bottom of {MIN_SIDE} x {MIN_SIDE} pixels or more of the sample's "
                    f"{width} x {height}"
                )
            self.fields[name] = field.tolist()
        lines = self.sample.lines if self.sample.boxed else []
        self.boxes = {
            name: _boxes(_inside(field, lines, np.eye(3))) for name, field in self.fields.items()
        }

    def record(self, picture: Source | Page) -> dict[str, str]:
        """A row of a table: the text of each field, and the names of those in doubt.

        A field in which nothing is found is empty and in doubt. So is one that the page cuts, or
        whose boxes are not as many as on the sample.
        ``pandas.DataFrame(map(form.record, pictures))`` is the table of many pages.

        Raises
        ------
        InputError
            When the page cannot be read, or is no such form.
        """
        page = picture if isinstance(picture, Page) else read(picture, self.classifier)
        to_sample = _registration(page, self.sample)
        values, unsure = {}, []
        for name, field in self.fields.items():
            lines = _inside(field, page.lines if page.boxed else [], to_sample)
            wanted = np.concatenate(self.boxes[name] or [corners(np.array([field]))])
            is_other = self.boxes[name] and len(wanted) != sum(map(len, _boxes(lines)))
            if is_other or not _shows(page, wanted, to_sample):
                unsure.append(name)
            values[name] = lines or _cut(field, page, to_sample, self.classifier).lines
        return _row(values, unsure)

    @property
    def missing(self) -> dict[str, str]:
        """The record of a page that cannot be read: empty fields, all in doubt."""
        return _row({name: [] for name in self.fields}, self.fields)


def _row(values: Mapping[str, list[list[ReadDigit]]], unsure: Container[str]) -> dict[str, str]:
    """The text of each value, given as lines, and the names of those in doubt.

    Those without anything are, too, and the `unsure` ones.
    """
    doubtful = [
        name
        for name, lines in values.items()
        if name in unsure or not any(lines) or any(e.in_doubt for line in lines for e in line)
    ]
    return {name: _text(lines) for name, lines in values.items()} | {DOUBT: "; ".join(doubtful)}


def _text(lines: Sequence[Sequence[ReadDigit]]) -> str:
    """The digits of lines, with ``_`` for each empty box; nothing if all are empty.

    Boxes of which most hold one digit are one number, also where they are far apart.
    """
    if all(each.answer is None for line in lines for each in line):
        return ""
    texts = []
    for line in lines:
        alone = [each.corners is each.cell for each in line]
        space = " " * (2 * sum(alone) < len(line))
        texts.append("".join(space * each.begins_number + each.text for each in line))
    return " ".join(text.replace("?", "").strip() for text in texts if text)


def _inside(
    field: Sequence[float], lines: Sequence[Sequence[ReadDigit]], to_sample: Float64Array
) -> list[list[ReadDigit]]:
    """The lines of a page with digits in a field of the sample, of which only these are left."""
    inside = ([each for each in line if _is_in(field, each, to_sample)] for line in lines)
    return [line for line in inside if line]


def _is_in(field: Sequence[float], digit: ReadDigit, to_sample: Float64Array) -> bool:
    """Whether the middle of a digit lies in a field of the sample."""
    x, y, w = to_sample @ [*digit.corners.mean(axis=0), 1]
    return bool(field[0] * w < x < field[2] * w and field[1] * w < y < field[3] * w)


def _shows(page: Page, area: AnyArray, to_sample: Float64Array) -> bool:
    """Whether boxes (n, 4, 2) of a sample lie on a page, but for a share of a height."""
    mapped = cv2.perspectiveTransform(area.reshape(1, -1, 2), np.linalg.inv(to_sample))[0]
    beyond = np.maximum(-mapped, mapped - page.scale * np.array(page.grey.shape[::-1]))
    return bool(beyond.max() < CUT * np.linalg.norm(mapped[3] - mapped[0]))


def _cut(
    field: Sequence[float], page: Page, to_sample: Float64Array, classifier: TrainedClassifier
) -> Page:
    """A field without boxes, cut out of a page and read by itself."""
    left, top, right, bottom = field
    move = np.array([[1, 0, -left], [0, 1, -top], [0, 0, 1]])
    matrix = move @ to_sample @ np.diag([page.scale, page.scale, 1])
    size = round(right - left), round(bottom - top)
    cut = cv2.warpPerspective(page.grey, matrix, size, borderMode=cv2.BORDER_REPLICATE)
    return read(Image.fromarray(cut), classifier)


def write_fields(path: StrPath, page: Page, sample: StrPath) -> None:
    """Write a first file of fields: each number, or row of boxes without a gap, is one."""
    fields = {}
    for k, run in enumerate(numbers(page), 1):
        corners = np.concatenate([each.cell for each in run])
        low, high = np.floor(corners.min(axis=0)), np.ceil(corners.max(axis=0))
        fields[f"field {k}"] = (*low.tolist(), *high.tolist())
    write_document(path, FormFile(str(sample), fields))


def numbers(page: Page) -> list[list[ReadDigit]]:
    """The numbers of a page, in reading order; boxes without a gap are one."""
    result: list[list[ReadDigit]] = []
    for line in page.lines:
        for k, each in enumerate(line):
            if k == 0 or each.begins_number:
                result.append([])
            result[-1].append(each)
    return result


def line_rows(page: Page) -> list[dict[str, str]]:
    """A row of a table for each line of a page: its boxes or numbers, and which are in doubt."""
    rows = []
    for n, (line, gaps) in enumerate(zip(page.lines, _gaps(page)), 1):
        cells = [each for gap, cell in zip(gaps, _cells(line)) for each in [*[[]] * gap, cell]]
        row = _row({str(k): [cell] for k, cell in enumerate(cells or [[]], 1)}, ())
        rows.append({"line": str(n), DOUBT: ""} | row)
    return rows


def _gaps(page: Page) -> list[list[int]]:
    """How many boxes are missing before each box, or number, of each line.

    There is room for them, and another line has as many, without gaps, in the same place.
    """
    boxes, rooms, result = _boxes(page.lines), [], []
    for own in boxes:
        far, width = np.linalg.norm([own[1:, 0] - own[:-1, 1], own[1:, 1] - own[1:, 0]], axis=2)
        rooms.append(np.append(True, far > ROOM * width))
    for own, room in zip(boxes, rooms):
        gaps = np.zeros(len(own), int)
        diagonals = np.stack([own[:, 2] - own[:, 0], own[:, 1] - own[:, 3]], axis=2)[:, None]
        for other, ends in zip(boxes, rooms) if page.boxed else ():
            away = other.mean(axis=1) - own.mean(axis=1)[:, None]
            beside = np.abs(np.linalg.solve(diagonals, away[..., None]).sum(axis=(2, 3)))
            column, near = beside.argmin(axis=1), beside.min(axis=1) < BELOW
            near &= np.append(True, near[:-1]) & (np.diff(np.cumsum(ends)[column], prepend=1) == 0)
            gaps = np.maximum(gaps, near * room * (np.diff(column, prepend=-1) - 1))
        result.append(gaps.tolist())
    return result


def _registration(page: Page, sample: Page) -> Float64Array:
    """The map (3, 3) of a page's points onto a sample's, by their boxes or else their features."""
    if page.boxed and sample.boxed:
        boxes = _boxes(page.lines), _boxes(sample.lines)
        outermost = (np.concatenate([*each[0][[0, -1]], *each[-1][[-1, 0]]]) for each in boxes)
        matrix = _by_boxes(*boxes, cv2.findHomography(*outermost, cv2.LMEDS)[0])
        if matrix is None:
            matrix = _by_boxes(*boxes, _by_features(page, sample))
    else:
        matrix = _by_features(page, sample)
    if matrix is None:
        raise InputError(
            f"{page.name} does not show the form of {sample.name}: expected its boxes or its print"
        )
    return matrix


def _cells(line: Sequence[ReadDigit]) -> list[list[ReadDigit]]:
    """The values in the boxes of a line, or of its numbers."""
    return [list(each) for _, each in groupby(line, lambda each: id(each.cell))]


def _boxes(lines: Sequence[Sequence[ReadDigit]]) -> list[AnyArray]:
    """The corners of the boxes of each line, (n, 4, 2)."""
    return [np.reshape([cell[0].cell for cell in _cells(line)], (-1, 4, 2)) for line in lines]


def _by_boxes(
    lines: Sequence[AnyArray], wanted: Sequence[AnyArray], matrix: Float64Array | None
) -> Float64Array | None:
    """The map of boxes onto others, fitted from another map; None if they do not fit."""
    boxes, others = np.concatenate(lines), np.concatenate(wanted)
    side = np.median(np.linalg.norm(others - np.roll(others, 1, axis=1), axis=2).min(axis=1))
    tree = cKDTree(others.mean(axis=1))
    for _ in range(ROUNDS):
        if matrix is None:
            return None
        mapped = cv2.perspectiveTransform(boxes.mean(axis=1)[None], matrix)[0]
        far, nearest = tree.query(mapped)
        near = far < NEAR * side
        if len(np.unique(nearest[near])) < ALIKE * min(len(boxes), (len(boxes) + len(others)) / 2):
            return None
        points = boxes[near].reshape(-1, 2), others[nearest[near]].reshape(-1, 2)
        matrix, _ = cv2.findHomography(*points, cv2.RANSAC, NEAR * side)
    return matrix


def _by_features(page: Page, sample: Page) -> Float64Array | None:
    """The map of a page's features onto those of a sample; None if too few agree."""
    finder = cv2.ORB_create(FEATURES)
    found = [finder.detectAndCompute(each.grey, None) for each in (page, sample)]
    if any(descriptors is None for _, descriptors in found):
        return None
    (points, one), (others, other) = found
    pairs = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(one, other)
    start = np.array([points[each.queryIdx].pt for each in pairs]) * page.scale
    end = np.array([others[each.trainIdx].pt for each in pairs]) * sample.scale
    if len(pairs) < AGREE:
        return None
    matrix, agree = cv2.findHomography(start, end, cv2.RANSAC, TOLERANCE * sample.scale)
    return matrix if matrix is not None and agree.sum() >= AGREE else None
