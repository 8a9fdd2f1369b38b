"""Content of the boxes of a form: nothing, a mark, one digit, or a number of several digits."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import cv2
import numpy as np

from mlpcore.data.digit import pieces_inside, side_by_side, to_glyph
from mlpcore.data.ink import Box, Components, Ink, stroke_level
from mlpcore.reading.boxes import in_lines
from mlpcore.reading.lattice import Cell
from mlpcore.reading.numbers import number_fields
from mlpcore.reading.segmentation import (
    UNKNOWN,
    Field,
    Segment,
    mark_at,
    marks_of_line,
    number_field,
)
from mlpcore.typing import AnyArray, Float64Array, UInt8Array

#: Pixels that the inside of a box loses at each side, where a line's edge may be. Ink that stays
#: within the share of a side of the box is the line, or the neighbour's.
MARGIN, RIM = 1, 0.1

#: Less ink, as a share of the square of the usual height, is dust.
DUST = 0.002

#: Shares of a box's height: smaller ink is dirt, and smaller ink than the second is no digit. Pale
#: ink counts where no other is, if a piece has as many pixels as the third. Noise has many pieces.
DIRT, MIN_DIGIT, FAINT = 0.1, 0.15, 0.3

#: How marks are told from digits.
LOW = 0.45  #: the most of a mark's height, as a share of the usual height of digits
LOWEST = 0.3  #: the least of a digit's, likewise
FLAT = 2.5  #: the least width of a dash, as a multiple of its height; no digit is as wide
LARGE = 0.5  #: the least height of the digits that a minus sign belongs to, as a share of the box's

#: A minus sign is thinner than this share of the usual height, and a word of low letters is not.
THICK = 0.18

#: Which boxes hold numbers of several digits: those like which so large a share of boxes with ink,
#: in the column, show several pieces side by side. Where such boxes are few, those of the page
#: count, and where these are few, too, all boxes do.
NUMBERS = 0.25  #: the least of that share
SHORT = 4  #: fewer boxes are few
ALIKE = 0.8  #: the least ratio of their sides
WIDE = 1.1  #: wider boxes, by their heights, are numbers in any column if they hold two digits
LEVEL = 0.8  #: the least ratio of the heights of these digits

#: More pieces side by side are a printed word, in one of several boxes.
MAX_PIECES = 6

#: Ink paler than the first share of the strong is in doubt; strong is that of the second quantile.
#: So is a digit TALL times as high as usual, which may be a picture, such as a stamp.
PALE, STRONG, TALL = 0.35, 0.95, 2.0

#: A stroke through an unused box is so many times as long as broad, and takes so large a share of
#: its width and height. Ink that a line cuts off has so large a share of a side within the line and
#: beyond it, and a line at most the last.
STRAIGHT, ACROSS, BEYOND, LINE = 4.0, 0.85, 0.06, 0.18

#: The least doubt about pieces side by side that are read as one digit, and about ink cut off.
APART, CUT_OFF = 0.2, 0.11


class _Content(NamedTuple):
    """A box, the ink inside it, and those of its pieces that are no marks, and those that are."""

    box: Box
    ink: Ink
    components: Components
    pieces: list[int]
    marks: dict[int, str]

    @property
    def groups(self) -> list[list[int]]:
        """The pieces that stand side by side."""
        boxes = [self.components.boxes[k] for k in self.pieces]
        return [[self.pieces[k] for k in group] for group in side_by_side(boxes)]

    @property
    def extent(self) -> Box:
        """Around its pieces."""
        return reduce(Box.union, [self.components.boxes[k] for k in self.pieces])

    @property
    def sides(self) -> list[Box]:
        """Around the pieces of each group."""
        boxes = self.components.boxes
        return [reduce(Box.union, [boxes[k] for k in group]) for group in self.groups]

    @property
    def height(self) -> int:
        """The height of its digits; commas may reach below them."""
        return max(side.height for side in self.sides)

    @property
    def level(self) -> float:
        """The ink in the middle of its strokes, of 255; 0 without pieces."""
        inked = self.ink.values[self.components.mask(self.pieces)]
        return stroke_level(inked) if inked.size else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether it holds several pieces side by side that are wider than high."""
        return len(self.groups) > 1 and self.extent.width > self.extent.height

    @property
    def is_pair(self) -> bool:
        """Whether it is wide and holds two digits of one height, with a gap between them."""
        if len(self.groups) != 2 or self.box.width <= WIDE * self.box.height:
            return False
        left, right = self.sides
        return left.right < right.left and min(left.height, right.height) >= LEVEL * self.height

    @property
    def is_flat(self) -> bool:
        """Whether it holds a dash, or what is as flat."""
        return len(self.groups) == 1 and self.extent.width > FLAT * self.extent.height


def page_fields(ink: Ink, found: Sequence[Cell]) -> list[list[Field]]:
    """The fields of a page, in lines from the top, each from left to right.

    They are its cells, and what these hold, or the numbers on a page without cells.
    """
    if not found:
        return number_fields(ink)
    boxes = [cell.box for cell in found]
    cells = [_content(ink, box) for box in boxes]
    heights = [cell.height for cell in cells if cell.pieces and not cell.is_flat]
    usual = float(np.median(heights)) if heights else 0.0
    cells = [_with_marks(cell, usual) for cell in cells]
    several = np.array([len(cell.groups) + len(cell.marks) > 1 for cell in cells])
    numbers = np.zeros(len(cells), bool)
    sides = np.array([(box.width, box.height) for box in boxes])
    inked = np.flatnonzero([bool(cell.pieces or cell.marks) for cell in cells])
    for column in in_lines(boxes, upright=True):
        for k in column:
            among = _alike(k, np.intersect1d(column, inked), sides)
            if len(among) < SHORT:
                among = _alike(k, inked, sides)
            if len(among) < SHORT:
                among = inked
                numbers[k] = cells[k].is_wide
            numbers[k] |= among.size and several[among].mean() >= NUMBERS
    numbers |= [cell.is_pair for cell in cells]
    fields = [_field(*each, usual, len(cells) == 1) for each in zip(cells, numbers)]
    levels = np.array([cell.level for cell in cells])
    unsure = (levels > 0) & (levels < PALE * np.quantile(levels, STRONG))  # such as printed letters
    unsure |= [not cell.seen for cell in found]
    unsure |= [bool(cell.pieces) and cell.height > TALL * usual for cell in cells]
    strokes = ink.strokes
    cut = [bool(cell.pieces) and _is_cut_off(cell, strokes) for cell in cells]
    doubts = np.maximum(unsure, CUT_OFF * np.array(cut)).tolist()
    fields = [f._replace(doubt=max(f.doubt, each)) for f, each in zip(fields, doubts)]
    return [[fields[k] for k in line] for line in in_lines(boxes)]


def _is_cut_off(cell: _Content, dark: UInt8Array) -> bool:
    """Whether ink meets a line of its box and goes on beyond it, on a page (h, w)."""
    own = cell.components.mask(cell.pieces)
    height, width = own.shape
    length, reach = max(2, round(BEYOND * min(own.shape))), round(LINE * min(own.shape))
    rim = length + reach
    middle = cell.box.left + MARGIN + (width - 1) / 2, cell.box.top + MARGIN + (height - 1) / 2
    around = cv2.getRectSubPix(dark, (width + 2 * rim, height + 2 * rim), middle) > 0
    for quarters in range(4):
        inside = np.all(np.rot90(own, quarters)[:length], axis=0, keepdims=True)
        if not inside.any():
            continue
        outside = np.rot90(around, quarters)[rim - 1 :: -1, rim:-rim]
        begin = 1 + max(np.flatnonzero(outside[:reach].mean(axis=1) > 0.5), default=-1)
        beyond = outside[begin : begin + length].all(axis=0)
        if (cv2.dilate(np.uint8(inside), np.ones((1, 2 * length + 1))) * beyond).any():
            return True
    return False


def _alike(k: int, among: AnyArray, sides: Float64Array) -> AnyArray:
    """Those boxes whose sides are like those of a box."""
    ratio = sides[among] / sides[k]
    return among[np.all((ratio > ALIKE) & (ALIKE * ratio < 1), axis=1)]


def _content(ink: Ink, box: Box) -> _Content:
    """A cell, all of whose pieces may be digits."""
    inside = Box(box.left + MARGIN, box.top + MARGIN, box.right - MARGIN, box.bottom - MARGIN)
    ink = ink._replace(values=ink.values[inside.slices])
    for seen, least, most in (ink, 0, np.inf), (ink.faint, FAINT * box.height, MAX_PIECES):
        cell = _Content(box, seen, *pieces_inside(seen, seen.strokes, RIM), {})
        side = max(cell.extent.width, cell.extent.height) if cell.pieces else 0
        n_pixels = cell.components.areas[cell.pieces].max(initial=0)
        if side >= DIRT * box.height and n_pixels >= least and len(cell.pieces) <= most:
            return cell
    return cell._replace(pieces=[])


def _with_marks(cell: _Content, usual: float) -> _Content:
    """A cell whose marks are told from its digits, which have a usual height."""
    boxes, pieces = cell.components.boxes, cell.pieces
    if not pieces:
        return cell
    extent = cell.extent
    across = min(extent.width / cell.box.width, extent.height / cell.box.height) > ACROSS
    if across and len(pieces) == 1 and cell.components.elongation(pieces[0]) >= STRAIGHT:
        return cell._replace(pieces=[], marks={pieces[0]: UNKNOWN})  # of an unused box
    if (
        not cell.is_flat
        and extent.height >= LOW * usual
        and max(extent.width, extent.height) >= MIN_DIGIT * cell.box.height
    ):
        usual = min(usual, cell.height)  # numbers may be smaller than the digits of other boxes
        high = [k for k in pieces if boxes[k].height >= LOW * usual]
        others = [k for k in pieces if k not in high]
        if len(cell.groups) > 1:  # points are small beside strong digits
            unit = usual**2 * cell.level
            mass = np.bincount(cell.components.labels.ravel(), cell.ink.values.ravel()) / unit
            inside = set(cell.components.inside(RIM)).difference(high)
            others = [k for k in inside if mass[k] >= DUST]
        marks = marks_of_line(high, sorted(others), cell.components, usual)
        known = {k: mark for k, mark in marks.items() if mark != UNKNOWN}
        if len(cell.groups) == 1:
            return cell._replace(pieces=[k for k in pieces if k not in known], marks=known)
        order = sorted({*high, *marks}, key=lambda k: boxes[k].left + boxes[k].right)
        for k, mark in known.items():  # at an end of a number, it may have broken off a digit
            if mark in ".," and k in (order[0], order[-1]):
                marks[k] = UNKNOWN
        return cell._replace(pieces=[k for k in pieces if k not in known], marks=marks)
    middle = cell.box.height / 2 - MARGIN
    height = max(usual, LARGE * cell.box.height)
    mark = UNKNOWN  # as several pieces are, which may be a word
    if len(cell.groups) == 1:
        mark = mark_at(extent, middle - height / 2, middle + height / 2)
        strong = cell.components.mask(pieces) & (cell.ink.values > cell.ink.middle)
        spread = np.linalg.eigvalsh(np.cov(np.argwhere(strong), rowvar=False))
        if mark == "-" and 12 * spread[0] > (THICK * height) ** 2:
            mark = UNKNOWN
        if mark == UNKNOWN and extent.height >= LOWEST * usual:
            return cell
    # Alone, a point or a comma may be dirt.
    return cell._replace(pieces=[], marks={pieces[0]: mark if mark == "-" else UNKNOWN})


def _field(cell: _Content, holds_numbers: bool, usual: float, alone: bool) -> Field:
    """The content of a cell, which may be the page's only one, on the page."""
    box, groups, components = cell.box, cell.groups, cell.components
    left, top = box.left + MARGIN, box.top + MARGIN

    def on_page(place: Box) -> Box:
        return Box.of_size(place.left + left, place.top + top, place.width, place.height)

    if len(groups) > MAX_PIECES and not alone:
        return Field(box, 0, [], [(UNKNOWN, box)])
    if holds_numbers and groups:
        for k in set(cell.pieces).difference(*groups):  # such as the bar of a 5
            piece = components.boxes[k]
            shared = [max(piece.shared_width(components.boxes[j]) for j in each) for each in groups]
            groups[int(np.argmax(shared))].append(k)
        marks = [(mark, on_page(components.boxes[k])) for k, mark in cell.marks.items()]
        found = number_field(cell.ink, components, groups, usual, marks)
        segments = [
            each._replace(glyph=each.glyph._replace(box=on_page(each.glyph.box)))
            for each in found.segments
        ]
        return found._replace(box=box, segments=segments)
    glyph = to_glyph(cell.ink, components.mask(cell.pieces)) if cell.pieces else None
    if glyph is None:
        return Field(box, 0, [], [(mark, box) for mark in cell.marks.values()], holds_numbers)
    doubt = 1.0 if cell.marks else APART if len(groups) > 1 else 0.0
    return Field(box, 1, [Segment(0, 1, glyph._replace(box=box), 0.0)], doubt=doubt)
