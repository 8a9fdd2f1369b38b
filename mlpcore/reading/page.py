"""A page as digits: what `mlpcore.read` gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlpcore.checks import check_whole
from mlpcore.data.digit import MIN_SIDE
from mlpcore.data.image_files import MAX_PAGES, Source, read_picture
from mlpcore.data.ink import Box
from mlpcore.errors import InputError
from mlpcore.inference import TrainedClassifier, load
from mlpcore.inference.inputs import check_takes_digits, path_or_image
from mlpcore.reading.answers import ReadDigit, quarter_turns, read_lines
from mlpcore.reading.cells import page_fields
from mlpcore.reading.lattice import Cell, complete
from mlpcore.reading.level import Level, levelled
from mlpcore.reading.segmentation import Field
from mlpcore.typing import StrPath, UInt8Array

#: Larger pages are reduced by a whole factor, to fewer than twice as many pixels a side.
PAGE_SIDE = 2048

#: About so many boxes show which way is up.
SOME = 100

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
        How many boxes were not seen, but must be there, judging by those around them.
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
        """A line about boxes not seen, no digits, or most boxes or numbers in doubt; else empty."""
        n, answers = len(self.digits), [each for each in self.digits if each.answer is not None]
        cells = {id(each.cell) for each in answers}
        doubtful = len(cells - {id(each.cell) for each in answers if not each.in_doubt})
        found = [f"{self.n_unseen} of {n} cells were not seen"] * (self.n_unseen > 0)
        if 2 * doubtful > len(cells):
            found.append(f"{doubtful} of {len(cells)} in doubt, expected a page of digits")
        elif self.boxed and not answers:
            empty = "the one box is empty" if n == 1 else f"{n} boxes are empty"
            found.append(f"{empty}: expected digits in them")
        elif not answers:
            found.append("nothing found, expected digits that stand out from their ground")
        return f"{self.name}: {'; '.join(found)}" if found else ""

    def to_json(self) -> dict[str, Any]:
        """The page as a part of a JSON document."""
        lines = [[each.to_json() for each in line] for line in self.lines]
        warning = {"warning": self.warning} if self.warning else {}
        return {"text": self.text, "lines": lines, "notes": self.notes} | warning


def read(
    picture: Source,
    network: TrainedClassifier | StrPath = "pretrained",
    *,
    columns: int | None = None,
    rows: int | None = None,
    page: int | None = None,
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
        The size to which the page's one grid of boxes is completed.
    page : int, optional
        The number, from 1, of a page of a TIFF file of several. Without it such a file is refused.

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
    if page is not None:
        check_whole("page", page, 1, MAX_PAGES)
    classifier = network if isinstance(network, TrainedClassifier) else load(network)
    check_takes_digits(classifier.pixels, "the network")
    source = path_or_image(picture, "a path or an image of PIL")
    grey, name, scale = read_picture(source, PAGE_SIDE, page)
    if min(grey.shape) < MIN_SIDE:
        height, width = grey.shape
        raise InputError(
            f"{name}: {width} x {height} pixels, expected a page of at least "
            f"{MIN_SIDE} x {MIN_SIDE}"
        )
    level = levelled(grey)
    cells = complete(level.boxes, level.ink, level.page)
    lines = page_fields(level.ink, cells)
    if quarters := quarter_turns(lines, lambda k: _some_fields(level.turned(k, False)), classifier):
        level = level.turned(quarters)
    if quarters or columns or rows:
        try:
            cells = complete(level.boxes, level.ink, level.page, columns, rows)
        except InputError as error:
            raise InputError(f"{name} {error}") from None
        lines = page_fields(level.ink, cells)
    notes = ["the ground around the page was taken off"] * level.on_ground
    notes += [f"the page was turned by {90 * quarters}°"] * (quarters > 0)
    read = read_lines(lines, classifier, lambda points: scale * level.to_picture(points), name)
    n_unseen = sum(not cell.seen for cell in cells)
    return Page(name, read, bool(cells), grey, scale, tuple(notes), n_unseen)


def _some_fields(level: Level) -> list[list[Field]]:
    """The fields of some boxes of a page, or all numbers on one without boxes."""
    boxes = level.boxes[:: len(level.boxes) // SOME + 1]
    return page_fields(level.ink, [Cell(Box(*box)) for box in boxes.tolist()])


def check_grid(columns: int | None, rows: int | None) -> None:
    """Raise InputError unless a grid may have so many columns and rows."""
    for name, number in (("columns", columns), ("rows", rows)):
        if number is not None:
            check_whole(name, number, 1, MAX_LINES)
