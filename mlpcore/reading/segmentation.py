"""Segmentation of ink into digits: candidates that a network judges, and the best sequence.

Digits that touch are cut at several places, and broken ones are put together in several ways.
The network answers for each candidate, and the sequence with the greatest probability is kept:
heuristic over-segmentation (LeCun, Bottou, Bengio, Haffner, *Gradient-Based Learning Applied to
Document Recognition*, Proc. IEEE 86, 1998, section VII).
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

import cv2
import numpy as np
from scipy import ndimage, special

from mlpcore.data.digit import Glyph, to_glyph
from mlpcore.data.ink import Box, Components, Ink
from mlpcore.typing import AnyArray, Float64Array

#: The name of ink that is no digit and no known mark.
UNKNOWN = "*"

#: Shares of the height of digits. What is higher is no mark.
HIGHEST = 0.7

#: A minus sign is so many times as wide as high, from so wide to so wide, and its middle is
#: between these heights, from the top.
FLAT, DASH_WIDTH, DASH_HEIGHT, DASH_MIDDLE = 1.5, (0.25, 1.5), 0.45, (0.25, 0.8)

#: Points are at most so high and wide, and commas so wide. Both begin so far below the top, and
#: commas go so far below the bottom.
POINT, COMMA_WIDTH, LOW, TAIL = 0.3, 0.45, 0.55, 0.05

#: Points are at most so many times as long as broad, and small commas at least. Of no more pixels
#: than the last, each is as good as round.
ROUND, LONG, SHAPELESS = 1.5, 1.8, 10

#: Minus signs have so large a share of their convex hull. Low and wide digits have less.
SOLID = 0.8

#: Where a point begins that slanted digits reach over.
UNDER = 0.75

#: How many digits beside a mark tell the line of writing, how far they may be, in heights, and
#: how far the middle of a mark may be below them.
NEIGHBOURS, FAR, BELOW = 4, 1.0, 0.3

#: How much the network's probability counts compared with shape and distance. The other constants
#: were fitted to 500 numbers of MNIST's training digits, this one to other people's numbers, too.
NETWORK = 3.0

#: A digit is made of so many parts at most.
MAX_PARTS = 8

#: Shares of a digit's height: wider pieces may be cut, at this distance from their sides and from
#: another cut, and parts are not put together to wider ones.
CUT_FROM, CUT_APART, WIDEST = 0.5, 0.2, 2.0

#: The logarithm of the odds that two pieces are two digits: they are even if the pieces share this
#: part of the narrower one's width, and fall so steeply with it.
SHARED, SHARED_SLOPE = 1.4, 0.5

#: The logarithm of the odds that a cut parts two digits, for ink of height 0, and its fall with the
#: height of the ink that is cut.
CUT, CUT_SLOPE = -1.0, 6.0

#: With lower odds, a cut goes through so much ink that both digits are in doubt.
UNSURE = -2.2

#: Wider and lower digits than these shares of the usual height are improbable, by normal
#: distributions with these deviations.
USUAL_WIDTH, WIDTH_DEVIATION = 0.5, 0.3
USUAL_HEIGHT, HEIGHT_DEVIATION = 0.7, 0.1


class Segment(NamedTuple):
    """The parts from `first` to before `end` of a field, as one digit.

    `prior` is the logarithm of how probable that is by their shape and distance.
    """

    first: int
    end: int
    glyph: Glyph
    prior: float
    unsure: bool = False  #: whether it was cut off through much ink


class Field(NamedTuple):
    """A box with a digit, or a number of several digits."""

    box: Box  #: on the page
    n_parts: int  #: pieces of ink from left to right, of which digits are made; 0 if there is none
    segments: list[Segment]  #: what may be a digit, by `first`
    marks: Sequence[tuple[str, Box]] = ()  #: points, commas, minus signs, and ink of no known kind
    is_number: bool = False  #: whether there may be several digits
    doubt: float = 0.0  #: the least of its answers

    @property
    def likely(self) -> list[Segment]:
        """The digits that are the most probable by their shape and distance."""
        n = len(self.segments)
        return [self.segments[k] for k in best_sequence(self.n_parts, self.segments, [0] * n)]


class _Part(NamedTuple):
    """Ink between two cuts, or that of whole pieces.

    Positions are those of upright digits. `odds` is the logarithm of the odds that a digit ends
    before it.
    """

    begin: float
    end: float
    odds: float


def number_field(
    ink: Ink,
    components: Components,
    groups: Sequence[Sequence[int]],
    height: float,
    marks: Sequence[tuple[str, Box]] = (),
) -> Field:
    """The candidates for the digits of a number on a page, `height` pixels high, and its marks.

    Each group has the numbers of components that belong together.
    """
    if not groups:
        return Field(reduce(Box.union, (box for _, box in marks)), 0, [], marks, True)
    box = reduce(Box.union, (components.boxes[k] for group in groups for k in group))
    group_of = np.full(len(components.boxes), -1)
    for k, group in enumerate(groups):
        group_of[list(group)] = k
    groups_there = group_of[components.labels[box.slices]]
    y, x = np.nonzero(groups_there >= 0)
    slant = _slant(components, groups)
    upright = x - slant * (y - box.height / 2)
    parts, part_of_pixel = _parts(upright, groups_there[y, x], len(groups), height)
    numbers = np.zeros(groups_there.shape, np.int16)  # of parts, from 1
    numbers[y, x] = 1 + part_of_pixel
    inked = ink._replace(values=ink.values[box.slices])
    odds = [*(part.odds for part in parts), np.inf]
    segments = []
    for first in range(len(parts)):
        for end in range(first + 1, min(first + MAX_PARTS, len(parts)) + 1):
            width = max(each.end for each in parts[first:end]) - parts[first].begin
            if width > WIDEST * height and end > first + 1:
                break
            mask = (numbers > first) & (numbers <= end)
            glyph = to_glyph(inked, mask)
            if glyph is not None:
                left, top, *size = cv2.boundingRect(mask.astype(np.uint8))
                glyph = glyph._replace(box=Box.of_size(box.left + left, box.top + top, *size))
                prior = _prior(parts[first:end], width / height, glyph.box.height / height)
                unsure = min(odds[first], odds[end]) < UNSURE
                segments.append(Segment(first, end, glyph, prior, unsure))
    return Field(box, len(parts), segments, marks, True)


def best_sequence(
    n_parts: int, segments: Sequence[Segment], scores: Sequence[float] | AnyArray
) -> list[int]:
    """The numbers of the segments that cover all parts with the greatest sum (Viterbi).

    `scores` are the logarithms of the network's probabilities for the segments.
    """
    best = np.full(n_parts + 1, -np.inf)
    best[0] = 0
    last = np.full(n_parts + 1, -1)
    for k, (segment, score) in enumerate(zip(segments, scores)):
        total = best[segment.first] + segment.prior + NETWORK * score
        if total > best[segment.end]:
            best[segment.end], last[segment.end] = total, k
    sequence, end = [], n_parts
    while end > 0:
        sequence.append(int(last[end]))
        end = segments[sequence[-1]].first
    return sequence[::-1]


def mark_at(box: Box, top: float, bottom: float, elongation: float = 1) -> str:
    """The mark that ink is, between a top and a bottom of digits; `UNKNOWN` for none."""
    height = bottom - top
    wide, high, begin = box.width / height, box.height / height, (box.top - top) / height
    if wide >= FLAT * high and high <= DASH_HEIGHT:
        level = DASH_MIDDLE[0] <= begin + high / 2 <= DASH_MIDDLE[1]
        if level and DASH_WIDTH[0] <= wide <= DASH_WIDTH[1]:
            return "-"
    if begin >= LOW:
        below = (box.bottom - bottom) / height
        small = max(wide, high) <= POINT and below >= -POINT / 2
        if small and elongation <= ROUND:
            return "."
        if wide <= COMMA_WIDTH and below >= TAIL and (elongation >= LONG or not small):
            return ","
    return UNKNOWN


def marks_of_line(
    digits: Sequence[int], others: Iterable[int], components: Components, height: float
) -> dict[int, str]:
    """The marks of a line, among components that may be its digits and among others, lower ones.

    Ink above or below a digit is a part of it. Other ink is `UNKNOWN`.
    """
    boxes = components.boxes
    high = [k for k in digits if boxes[k].height >= HIGHEST * height]
    if not high:
        return {}
    left, top, right, bottom = np.array([boxes[k] for k in high]).T
    low, found = [*(each for each in digits if each not in high), *others], {}
    begin, end = np.reshape([boxes[k] for k in low], (-1, 4))[:, [1, 3]].T
    near_line = (begin + end > 2 * top.min()) & (begin + end < 2 * (bottom.max() + BELOW * height))
    for k in np.array(low, int)[near_line].tolist():
        box = boxes[k]
        apart = np.maximum(left - box.right, box.left - right)
        near = np.argsort(apart)[:NEIGHBOURS]
        upper, lower = np.median(top[near]), np.median(bottom[near])
        middle = (box.top + box.bottom) / 2
        if apart[near[0]] > FAR * height or not upper < middle < lower + BELOW * height:
            continue
        elongation = components.elongation(k) if components.areas[k] > SHAPELESS else 1.0
        mark = mark_at(box, upper, lower, elongation)
        if mark == "-" and components.solidity(k) < SOLID:
            mark = UNKNOWN
        if mark == UNKNOWN and k in digits:
            continue
        common = max((box.shared_width(boxes[each]) for each in digits if each != k), default=0)
        if common < 0.5 * box.width or (mark in ".," and box.top >= upper + UNDER * height):
            found[k] = mark
    return found


def _slant(components: Components, groups: Sequence[Sequence[int]]) -> float:
    """By how much upright strokes lean: the change of x with y, from the ink's moments."""
    products = squares = 0.0
    for number in (group[0] for group in groups):
        box = components.boxes[number]
        if box.width > 1.2 * box.height:
            continue
        inside = components.labels[box.slices] == number
        moments = cv2.moments(inside.astype(np.uint8))
        products += moments["mu11"]
        squares += moments["mu02"]
    return float(np.clip(products / squares, -0.6, 0.6)) if squares else 0.0


def _parts(
    upright: Float64Array, group: AnyArray, n_groups: int, height: float
) -> tuple[list[_Part], AnyArray]:
    """The parts from left to right, and the number of the part of each pixel."""
    found: list[tuple[_Part, AnyArray]] = []  # with its pixels
    for k in range(n_groups):
        pixels = np.flatnonzero(group == k)
        at = upright[pixels]
        cuts, odds = _cuts(at, height)
        edges = [float(at.min()), *cuts, float(at.max()) + 1]
        for part in map(_Part, edges, edges[1:], [np.nan, *odds]):
            found.append((part, pixels[(at >= part.begin) & (at < part.end)]))
    found.sort(key=lambda each: each[0].begin + each[0].end)
    parts: list[_Part] = []
    part_of_pixel = np.full(len(upright), -1)
    for number, (part, pixels) in enumerate(found):
        part_of_pixel[pixels] = number
        if not parts:
            part = part._replace(odds=np.inf)
        elif np.isnan(part.odds):
            narrower = min(parts[-1].end - parts[-1].begin, part.end - part.begin)
            shared = (parts[-1].end - part.begin) / narrower
            part = part._replace(odds=SHARED_SLOPE * (SHARED - shared))
        parts.append(part)
    return parts, part_of_pixel


def _cuts(at: Float64Array, height: float) -> tuple[list[float], list[float]]:
    """The places where ink at these positions may be cut, and the odds that a digit ends there."""
    low, width = float(at.min()), float(np.ptp(at))
    if width < CUT_FROM * height:
        return [], []
    profile = np.bincount((at - low).astype(int)).astype(float)
    profile = ndimage.gaussian_filter1d(profile, 0.03 * height, mode="constant")
    margin = round(CUT_APART * height)
    inner = profile[margin : len(profile) - margin]
    valleys = 1 + np.flatnonzero((inner[1:-1] < inner[:-2]) & (inner[1:-1] <= inner[2:]))
    places: list[int] = []
    for k in (margin + valleys[np.argsort(inner[valleys], kind="stable")]).tolist():
        if all(abs(k - place) >= margin for place in places):
            places.append(k)
    places = sorted(places[: int(np.ceil(2 * width / height))])
    odds = [CUT - CUT_SLOPE * float(profile[k]) / height for k in places]
    return [low + float(k) for k in places], odds


def _prior(parts: Sequence[_Part], width: float, height: float) -> float:
    """The logarithm of how probable it is that parts, and no others, are one digit.

    Its width and height are shares of the usual height.
    """
    wide = max(0.0, width - USUAL_WIDTH) / WIDTH_DEVIATION
    low = max(0.0, USUAL_HEIGHT - height) / HEIGHT_DEVIATION
    odds = [parts[0].odds, *(-part.odds for part in parts[1:])]
    return float(special.log_expit(odds).sum()) - (wide**2 + low**2) / 2
