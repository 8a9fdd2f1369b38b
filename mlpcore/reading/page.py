"""A page as digits: what `mlpcore.read` gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlpcore.checks import check_whole
from mlpcore.data.components import Box
from mlpcore.data.digit import MIN_SIDE, SIDE
from mlpcore.data.image_files import Source, read_picture
from mlpcore.data.ink import page_ink
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.errors import InputError
from mlpcore.evaluation.copies import Copies
from mlpcore.inference import TrainedClassifier, load
from mlpcore.inference.inputs import check_takes_digits, path_or_image
from mlpcore.reading.boxes import box_fields, find_boxes
from mlpcore.reading.deskew import deskewed
from mlpcore.reading.grid import grid_boxes
from mlpcore.reading.numbers import number_fields
from mlpcore.reading.segmentation import Field, best_sequence
from mlpcore.typing import Float64Array, StrPath, UInt8Array

#: An answer whose probability exceeds the second's by less is in doubt.
MIN_MARGIN = 0.9

#: Boxes that are further apart than this share of their height begin another number.
NUMBER_GAP = 0.5

#: Candidates for digits are judged by the mean over so many deformed copies, because a network is
#: sure of the copy that it is given, also of half a digit.
N_COPIES = 16

#: Larger pages are reduced by a whole factor, to fewer than twice as many pixels a side.
PAGE_SIDE = 2048

#: The most candidates for digits on a page, and columns or rows of boxes.
MAX_GLYPHS, MAX_LINES = 20_000, 1000


class ReadDigit(NamedTuple):
    """A digit of a page, or an empty box.

    Attributes
    ----------
    answer : object
        The class of the greatest probability; None in an empty box.
    probabilities : ndarray of float64, shape (n_classes,)
        Of the classes; empty in an empty box.
    doubt : float
        0 for a sure answer to 1: by how much the greatest probability fails to exceed the second.
        It is 1 for what hardly shows a digit (`TrainedClassifier.doubtful`).
    corners : ndarray of float64, shape (4, 2)
        Of the box, or around a digit without a box: x and y in pixels of the picture as it was
        held, upper left, upper right, lower right, lower left.
    begins_number : bool
        Whether there is a space before it.
    """

    answer: Any
    probabilities: Float64Array
    doubt: float
    corners: Float64Array
    begins_number: bool = False

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of an upright rectangle around the corners, as PIL's crop."""
        low, high = np.floor(self.corners.min(axis=0)), np.ceil(self.corners.max(axis=0))
        return int(low[0]), int(low[1]), int(high[0]), int(high[1])

    @property
    def in_doubt(self) -> bool:
        """Whether the answer should be checked by somebody."""
        return self.doubt > 1 - MIN_MARGIN

    @property
    def text(self) -> str:
        """The answer, with a ``?`` behind it if it is in doubt; ``_`` for an empty box."""
        if self.answer is None:
            return "_"
        return f"{self.answer}?" if self.in_doubt else str(self.answer)


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
    lines = box_fields(ink, boxes) if boxes else number_fields(ink)
    to_picture = np.diag([scale, scale, 1]) @ np.linalg.inv(matrix)
    digits = _read_lines(lines, bool(boxes), classifier, to_picture, name)
    return Page(name, digits, bool(boxes), grey, scale)


def check_grid(columns: int | None, rows: int | None) -> None:
    """Raise InputError unless a grid may have so many columns and rows."""
    for name, number in (("columns", columns), ("rows", rows)):
        if number is not None:
            check_whole(name, number, 1, MAX_LINES)


def _read_lines(
    lines: list[list[Field]],
    boxed: bool,
    classifier: TrainedClassifier,
    to_picture: Float64Array,
    name: str,
) -> list[list[ReadDigit]]:
    """The digits of the fields of each line; the network is asked about all of them at once."""
    glyphs = [each.glyph.pixels for line in lines for field in line for each in field.segments]
    if len(glyphs) > MAX_GLYPHS:
        raise InputError(f"{name} shows {len(glyphs):,} digits: expected at most {MAX_GLYPHS:,}")
    pixels = np.reshape(np.array(glyphs, np.uint8), (-1, SIDE, SIDE))
    images = MNIST_PIXELS.to_images(pixels)
    if classifier.copies is None and not boxed:
        classifier = TrainedClassifier(classifier.networks, classifier.backend, Copies(N_COPIES))
    probabilities = classifier.to_probabilities(classifier.outputs_of_digits(images))
    second, first = np.sort(np.pad(probabilities, ((0, 0), (1, 0))), axis=1).T[-2:]
    doubts = np.where(classifier.doubtful(images), 1.0, 1 - first + second)
    scores = np.log(np.maximum(first, 1e-9))

    def digit(box: Box, begins: bool, k: int | None = None) -> ReadDigit:
        left, top, right, bottom = box
        corners = [left, right, right, left], [top, top, bottom, bottom], [1] * 4
        at = (to_picture @ corners)[:2].T
        if k is None:
            return ReadDigit(None, np.zeros(0), 0.0, at, begins)
        answer = classifier.classes[probabilities[k].argmax()].item()
        return ReadDigit(answer, probabilities[k], float(doubts[k]), at, begins)

    result, n = [], 0
    for line in lines:
        digits, end = [], -np.inf
        for box, n_parts, segments in line:
            begins = not boxed or box.left - end > NUMBER_GAP * box.height
            end = box.right
            for k in best_sequence(n_parts, segments, scores[n:]):
                digits.append(digit(segments[k].glyph.box, begins, n + k))
                begins = False
            if not segments:
                digits.append(digit(box, begins))
            n += len(segments)
        result.append(digits)
    return result
