"""The network's answers for the fields of a page."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from mlpcore.data.digit import SIDE
from mlpcore.data.ink import Box
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.errors import InputError
from mlpcore.inference import TrainedClassifier, rejector
from mlpcore.reading.boxes import in_lines
from mlpcore.reading.segmentation import UNKNOWN, Field, best_sequence
from mlpcore.typing import AnyArray, Float64Array

#: An answer whose probability exceeds the second's by less is in doubt.
MIN_MARGIN = 0.88

#: Boxes that are further apart than this share of their height begin another number.
NUMBER_GAP = 0.5

#: So many digits without boxes of which so large a share is in doubt are print, and all in doubt.
#: So are those in boxes whose mean doubt is so great: on a page, and in a row or a column.
WORDS, PRINT, TABLE, ROW = 8, 0.35, 0.65, 0.5

#: Which way is up.
SURE = 0.9  #: with a greater mean margin of its digits, a page is not turned
MANY = 60  #: the most digits that are looked at
MORE, FEW = 1.1, 2  #: turned, more digits are sure by this factor, and by more than so many
MOST = 0.65  #: the least share of them that is sure
STROKE = 0.4  #: the width of a stroke, such as a one or a dash, as a share of its length

#: The most candidates for digits on a page.
MAX_GLYPHS = 20_000


class ReadDigit(NamedTuple):
    """A digit of a page, a mark, or an empty box.

    Attributes
    ----------
    answer : object
        The class of the greatest probability; ``.``, ``,`` or ``-`` for a mark, ``*`` for ink that
        is neither; None in an empty box.
    probabilities : ndarray of float64, shape (n_classes,)
        Of the classes, by the network and the second opinion of `rejector`; empty without a digit.
    doubt : float
        0 for a sure answer to 1: by how much its probability fails to exceed those of others and of
        no digit. It is 1 beside a piece of ink that belongs to no digit and is no mark, and in a
        box that was not seen.
    corners : ndarray of float64, shape (4, 2)
        Of the box, or around a digit without a box: x and y in pixels of the picture as it was
        held, upper left, upper right, lower right, lower left.
    begins_number : bool
        Whether there is a space before it.
    cell : ndarray of float64, shape (4, 2)
        The corners of its box, or around its number: one array for all that is in it.
    """

    answer: Any
    probabilities: Float64Array
    doubt: float
    corners: Float64Array
    begins_number: bool = False
    cell: Float64Array = np.zeros((4, 2))

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of an upright rectangle around the corners, as in PIL."""
        low, high = np.floor(self.corners.min(axis=0)), np.ceil(self.corners.max(axis=0))
        return int(low[0]), int(low[1]), int(high[0]), int(high[1])

    @property
    def in_doubt(self) -> bool:
        """Whether the answer should be checked by somebody."""
        return self.doubt > 1 - MIN_MARGIN

    @property
    def text(self) -> str:
        """The answer, with a ``?`` after it if it is in doubt; ``_`` for an empty box."""
        answer = "_" if self.answer is None else str(self.answer)
        return f"{answer}?" if self.in_doubt else answer

    def to_json(self) -> dict[str, Any]:
        """The digit as a part of a JSON document."""
        return {
            "box": self.box,
            "answer": self.answer,
            "probabilities": [round(float(p), 4) for p in self.probabilities],
            "doubt": round(self.doubt, 4),
            "in_doubt": self.in_doubt,
        }


def read_lines(
    lines: list[list[Field]],
    classifier: TrainedClassifier,
    to_picture: Callable[[AnyArray], Float64Array],
    name: str,
) -> list[list[ReadDigit]]:
    """The digits and marks of the fields of each line, and its empty boxes.

    `to_picture` maps points (n, 2) of the fields to the picture. The network is asked about all
    candidates at once.
    """
    fields = list(chain.from_iterable(lines))
    glyphs = [each.glyph.pixels for field in fields for each in field.segments]
    if len(glyphs) > MAX_GLYPHS:
        raise InputError(f"{name} shows {len(glyphs):,} digits: expected at most {MAX_GLYPHS:,}")
    pixels = np.reshape(np.array(glyphs, np.uint8), (-1, SIDE, SIDE))
    probabilities, doubts = _judged(pixels, classifier)
    result: list[list[ReadDigit]] = []  # of each field
    n = 0
    for line in lines:
        end = -np.inf
        for field in line:
            last = n + len(field.segments)
            chosen = probabilities[n:last], doubts[n:last]
            found = _read(field, *chosen, classifier.classes, to_picture)
            if field.is_number or field.box.left - end > NUMBER_GAP * field.box.height:
                found[0] = found[0]._replace(begins_number=True)
            result.append(found)
            n, end = last, -np.inf if field.is_number else field.box.right
    every, ends = range(len(fields)), accumulate(map(len, lines))
    rows = [every[end - len(line) : end] for line, end in zip(lines, ends)]
    boxed = not all(field.is_number for field in fields)
    columns = in_lines([field.box for field in fields], upright=True) if boxed else []
    known = [[] if field.doubt == 1 else each for field, each in zip(fields, result)]
    for some in (*rows, *columns, every):  # boxes are judged before any are put in doubt
        least = 0 if not boxed else TABLE if some is every else ROW
        if _is_print([each for k in some for each in (known if boxed else result)[k]], least):
            for k in some:
                result[k] = [e if e.answer is None else e._replace(doubt=1.0) for e in result[k]]
    return [[each for k in row for each in result[k]] for row in rows]


def quarter_turns(
    lines: list[list[Field]],
    turned: Callable[[int], list[list[Field]]],
    classifier: TrainedClassifier,
) -> int:
    """The number of quarter turns, counter-clockwise, that make the digits of a page upright.

    `lines` are its fields, and `turned` finds those of the page after so many turns.
    """
    if _sure_digits(lines, classifier)[2] > SURE:
        return 0
    found = [_sure_digits(turned(k), classifier)[:2] for k in range(4)]
    n_sure, n = max(found)
    is_clear = n_sure > MORE * found[0][0] + FEW and n_sure >= MOST * n
    return found.index((n_sure, n)) if is_clear else 0


def _sure_digits(
    lines: list[list[Field]], classifier: TrainedClassifier
) -> tuple[float, int, float]:
    """The number of digits in fields that are sure, that of all, and the mean of their margins.

    Strokes do not count: a one may be a dash of a page on its side.
    """
    likely = [each.glyph.pixels for line in lines for field in line for each in field.likely]
    sides = np.array([(each.any(axis=0).sum(), each.any(axis=1).sum()) for each in likely])
    broad = [each for each, (w, h) in zip(likely, sides) if STROKE * max(w, h) < min(w, h)]
    if not broad:
        return 0.0, 0, 0.0
    margins = 1 - _judged(np.stack(broad[:: -(-len(broad) // MANY)]), classifier)[1]
    return len(broad) * float(np.mean(margins > MIN_MARGIN)), len(broad), float(margins.mean())


def _is_print(digits: list[ReadDigit], least: float) -> bool:
    """Whether so many of some digits are in doubt, or marks, that they are a text or noise.

    Those in boxes are if their mean doubt is at least so great.
    """
    if least:
        doubts = [each.doubt for each in digits if each.answer is not None]
        return len(doubts) >= WORDS and sum(doubts) >= least * len(doubts)
    doubtful = sum(each.in_doubt for each in digits)
    n_marks = sum(not len(each.probabilities) for each in digits)
    return len(digits) >= WORDS and (doubtful >= PRINT * len(digits) or 2 * n_marks > len(digits))


def _judged(pixels: AnyArray, classifier: TrainedClassifier) -> tuple[Float64Array, Float64Array]:
    """The probabilities (n, n_classes) of the classes of candidates (n, 28, 28), and the doubt.

    What the sum of a row lacks of 1 is the probability of no digit. Answers that depend on where a
    digit lies are less sure, so it is also moved a pixel each way, which counts for half.
    """
    images = MNIST_PIXELS.to_images(pixels)
    moved = [np.roll(images, step, axis) for axis in (1, 2) for step in (-1, 1)]
    mean = np.mean([classifier.outputs(each) for each in moved], axis=0)
    probabilities = classifier.to_probabilities((classifier.outputs_of_digits(images) + mean) / 2)
    none = np.zeros(len(images))
    if classifier.reads_digits:
        pooled = rejector.with_opinion(probabilities, [images, *moved], classifier.backend)
        probabilities, none = pooled[:, :-1], pooled[:, -1]
    second, best = np.sort(probabilities, axis=1)[:, -2:].T
    return probabilities, 1 - (best - np.maximum(second, none))


def _read(
    field: Field,
    probabilities: Float64Array,
    doubts: Float64Array,
    classes: AnyArray,
    to_picture: Callable[[AnyArray], Float64Array],
) -> list[ReadDigit]:
    """The most probable digits of a field, and its marks, from left to right."""
    scores = np.log(np.maximum(probabilities.max(axis=1, initial=0), 1e-9))
    sequence = best_sequence(field.n_parts, field.segments, scores)
    found = [(field.segments[k].glyph.box, k) for k in sequence]
    least = {k: max(field.doubt, float(field.segments[k].unsure)) for k in sequence}
    read: list[tuple[Box, Any, Float64Array, float]] = []
    for mark, box in field.marks:
        shared = [each.shared_width(box) for each, _ in found]
        if mark == UNKNOWN and found:
            least[found[int(np.argmax(shared))][1]] = 1.0
        else:  # above or below a digit, it may be a piece of it
            unsure = mark == UNKNOWN or 2 * max(shared, default=0) > box.width
            read.append((box, mark, np.zeros(0), max(field.doubt, float(unsure))))
    for box, k in found:
        answer = classes[probabilities[k].argmax()].item()
        own = probabilities[k] / probabilities[k].sum()
        read.append((box, answer, own, min(1.0, least[k] + float(doubts[k]))))
    read = sorted(read, key=lambda each: each[0].left + each[0].right)
    cell, result = _corners(field.box, to_picture), []
    for box, answer, own, doubt in read or [(field.box, None, np.zeros(0), field.doubt)]:
        corners = cell if box == field.box else _corners(box, to_picture)
        result.append(ReadDigit(answer, own, doubt, corners, cell=cell))
    return result


def _corners(box: Box, to_picture: Callable[[AnyArray], Float64Array]) -> Float64Array:
    """The corners (4, 2) of a box, in the picture."""
    left, top, right, bottom = box
    return to_picture(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]))
