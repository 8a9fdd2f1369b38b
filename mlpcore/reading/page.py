"""A page as digits: what `mlpcore.read` gives."""

from __future__ import annotations

from dataclasses import dataclass

from mlpcore.checks import check_whole
from mlpcore.data.components import Box
from mlpcore.data.digit import MIN_SIDE
from mlpcore.data.image_files import Source, read_picture
from mlpcore.errors import InputError
from mlpcore.inference import TrainedClassifier, load
from mlpcore.inference.inputs import check_takes_digits, path_or_image
from mlpcore.reading.answers import ReadDigit, read_lines, sureness
from mlpcore.reading.boxes import find_boxes
from mlpcore.reading.cells import MARGIN, cell_fields
from mlpcore.reading.comb import comb_boxes
from mlpcore.reading.completion import complete
from mlpcore.reading.level import Level, levelled
from mlpcore.reading.numbers import number_fields
from mlpcore.reading.segmentation import Field
from mlpcore.reading.sheet import find_sheet
from mlpcore.reading.turn import quarter_turns
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
    notes : tuple of str
        What was done to the page before it was read.
    n_unseen : int
        How many boxes were not seen, but must be there by those around them.
    """

    name: str
    lines: list[list[ReadDigit]]
    boxed: bool
    grey: UInt8Array
    scale: float
    notes: tuple[str, ...] = ()
    n_unseen: int = 0

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
        """A line about boxes not seen, no digits, or most of them in doubt; else empty."""
        answers = [each for each in self.digits if each.answer is not None]
        doubtful, n = sum(each.in_doubt for each in answers), len(self.digits)
        found = [f"{self.n_unseen} of {n} cells were not seen"] * (self.n_unseen > 0)
        if 2 * doubtful > len(answers):
            found.append(f"{doubtful} of {len(answers)} in doubt, expected a page of digits")
        elif self.boxed and not answers:
            empty = "the one box is empty" if n == 1 else f"{n} boxes are empty"
            found.append(f"{empty}: expected digits in them")
        elif not answers:
            found.append("nothing found, expected digits that stand out from their ground")
        return f"{self.name}: {'; '.join(found)}" if found else ""


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
        A scan or a photograph of 75 to 600 dpi, turned by any angle: digits in drawn boxes, or
        digits alone.
    network : TrainedClassifier or str
        What `mlpcore.load` gives, or takes.
    columns, rows : int, optional
        Of the page's one grid of boxes, which is completed to that size.

    Returns
    -------
    Page

    Raises
    ------
    InputError
        When the picture cannot be read, the network takes no digits in MNIST's format, or the grid
        is larger than it should be.
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
    sheet = find_sheet(grey)
    level = levelled(grey, sheet)
    boxes = _boxes(level)
    if (factor := level.enlargement(boxes)) > 1:
        large = levelled(grey, sheet, factor)
        if found := _boxes(large):
            level, boxes = large, found
    lines, n_unseen = _fields(level, boxes)
    fields = [field for line in lines for field in line]
    digits = [each.glyph.pixels for field in fields for each in field.likely]
    quarters = quarter_turns(digits, lambda some: sureness(some, classifier))
    if quarters or columns or rows:
        level = level.turned(quarters)
        try:
            lines, n_unseen = _fields(level, _boxes(level), columns, rows)
        except InputError as error:
            raise InputError(f"{name} {error}") from None
    notes = ["a dark ground was taken off"] * (sheet is not None)
    notes += [f"the page was turned by {90 * quarters}°"] * (quarters > 0)
    read = read_lines(lines, classifier, lambda points: scale * level.to_picture(points), name)
    return Page(name, read, n_unseen is not None, grey, scale, tuple(notes), n_unseen or 0)


def _boxes(level: Level) -> list[Box]:
    """The boxes of a page, or the places of its combs."""
    return find_boxes(level.ink.strokes, level.boxes) or comb_boxes(level.ink)


def _fields(
    level: Level, boxes: list[Box], columns: int | None = None, rows: int | None = None
) -> tuple[list[list[Field]], int | None]:
    """The fields of each line, and how many boxes were not seen; None where there are no boxes."""
    found = complete(boxes, level.ink, level.page, columns, rows)
    cells = [cell for cell in found if min(cell.box.width, cell.box.height) > 2 * MARGIN]
    if len(cells) < len(found) and (columns or rows):
        raise InputError("shows a grid of boxes without pixels: expected fewer columns or rows")
    if not cells:
        return number_fields(level.ink), None
    unseen = {cell.box for cell in cells if not cell.seen}
    lines = cell_fields(level.ink, [cell.box for cell in cells])
    lines = [[f._replace(doubt=1.0) if f.box in unseen else f for f in line] for line in lines]
    return lines, len(unseen)


def check_grid(columns: int | None, rows: int | None) -> None:
    """Raise InputError unless a grid may have so many columns and rows."""
    for name, number in (("columns", columns), ("rows", rows)):
        if number is not None:
            check_whole(name, number, 1, MAX_LINES)
