"""A page as digits: what `mlpcore.read` gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlpcore.checks import check_whole
from mlpcore.data.digit import MIN_SIDE
from mlpcore.data.image_files import Source, read_picture
from mlpcore.data.ink import page_ink
from mlpcore.errors import InputError
from mlpcore.inference import TrainedClassifier, load
from mlpcore.inference.inputs import check_takes_digits, path_or_image
from mlpcore.reading.answers import ReadDigit, read_lines
from mlpcore.reading.boxes import find_boxes
from mlpcore.reading.cells import cell_fields
from mlpcore.reading.deskew import deskewed
from mlpcore.reading.grid import grid_boxes
from mlpcore.reading.numbers import number_fields
from mlpcore.typing import StrPath, UInt8Array

#: Larger pages are reduced by a whole factor, to fewer than twice as many pixels a side.
PAGE_SIDE = 2048

#: The most columns or rows of boxes.
MAX_LINES = 1000


@dataclass(frozen=True)
class Page:
    """The digits of a page.

    Attributes
    ----------
    name : str
        The picture's, for messages.
    lines : list of list of ReadDigit
        In reading order.
    boxed : bool
        Whether boxes were found, or digits without boxes.
    grey : ndarray of uint8, shape (h, w)
        The page, reduced if it is large.
    scale : float
        How many of the picture's pixels one of `grey` stands for, along a side.
    """

    name: str
    lines: list[list[ReadDigit]]
    boxed: bool
    grey: UInt8Array
    scale: float

    @property
    def digits(self) -> list[ReadDigit]:
        """All digits and empty boxes, in reading order."""
        return [each for line in self.lines for each in line]

    @property
    def text(self) -> str:
        """The digits as lines of text, with spaces between numbers."""
        return "\n".join(
            "".join(" " * (each.begins_number and k > 0) + each.text for k, each in enumerate(line))
            for line in self.lines
        )

    @property
    def warning(self) -> str:
        """A line about a page without digits, or on which most are in doubt; else empty."""
        answers = [each for each in self.digits if each.answer is not None]
        doubtful = sum(each.in_doubt for each in answers)
        if 2 * doubtful > len(answers):
            return f"{self.name}: {doubtful} of {len(answers)} in doubt, expected a page of digits"
        if answers:
            return ""
        if self.boxed:
            n = len(self.digits)
            empty = "the one box is empty" if n == 1 else f"{n} boxes are empty"
            return f"{self.name}: {empty}: expected digits in them"
        return f"{self.name}: nothing found, expected digits that stand out from their ground"


def read(
    picture: Source,
    network: TrainedClassifier | StrPath = "pretrained",
    *,
    columns: int | None = None,
    rows: int | None = None,
) -> Page:
    """Read the digits of a page, a field of a form, or a number on paper.

    Parameters
    ----------
    picture : str, os.PathLike, PIL.Image.Image or an open binary file
        A scan or a photograph of 150 to 600 dpi, turned by at most five degrees: digits in drawn
        boxes, or digits alone.
    network : TrainedClassifier or str
        What `mlpcore.load` gives, or takes.
    columns, rows : int, optional
        Of the page's one grid of boxes, whose lines may then be faint or broken.

    Returns
    -------
    Page

    Raises
    ------
    InputError
        When the picture cannot be read, or the network takes no digits in MNIST's format.
    """
    check_grid(columns, rows)
    classifier = network if isinstance(network, TrainedClassifier) else load(network)
    check_takes_digits(classifier.pixels, "the network")
    grey, name, scale = read_picture(path_or_image(picture, "a picture"), PAGE_SIDE)
    if min(grey.shape) < MIN_SIDE:
        height, width = grey.shape
        raise InputError(
            f"{name}: {width} x {height} pixels, expected a page of at least "
            f"{MIN_SIDE} x {MIN_SIDE}"
        )
    ink = page_ink(grey)
    level, matrix = deskewed(ink.values)
    ink = ink._replace(values=level)
    boxes = find_boxes(ink.strokes)
    if columns is not None or rows is not None:
        boxes = grid_boxes(ink.strokes, boxes, columns, rows, name)
    lines = cell_fields(ink, boxes) if boxes else number_fields(ink)
    to_picture = np.diag([scale, scale, 1]) @ np.linalg.inv(matrix)
    return Page(name, read_lines(lines, classifier, to_picture, name), bool(boxes), grey, scale)


def check_grid(columns: int | None, rows: int | None) -> None:
    """Raise InputError unless a grid may have so many columns and rows."""
    for name, number in (("columns", columns), ("rows", rows)):
        if number is not None:
            check_whole(name, number, 1, MAX_LINES)
