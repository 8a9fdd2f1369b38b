"""Numbers without boxes: lines of digits, and the candidates for digits in each number."""

from collections.abc import Container, Sequence
from functools import reduce

import cv2
import numpy as np
from scipy.sparse.csgraph import connected_components

from mlpcore.data.ink import (
    MIN_SHARE,
    Box,
    Components,
    Ink,
    find_components,
    find_lines,
    stroke_level,
    without_lines,
)
from mlpcore.reading.boxes import in_lines, quantile
from mlpcore.reading.segmentation import UNKNOWN, Field, marks_of_line, number_field
from mlpcore.typing import UInt8Array

#: The ink of a stroke is more than this share of the way from the ground to its middle. With much
#: less, the two lines of a steep hook become one.
STROKE = 0.45

#: Shares of the page's width and height: printed lines are at least so long. So are ones on a strip
#: of paper, but not more than the third, nor across a page whose other ink is lower than the last.
LEVEL_RULE, UPRIGHT_RULE, FEW_RULES, LOWER = 0.6, 0.9, 3, 0.75

#: The least height of ink in pixels, and the most pieces of a page.
MIN_HEIGHT, MAX_PIECES = 8, 5000

#: Shares of the usual height: lower pieces are dirt, higher or wider ones no digits.
LOWEST, HIGHEST = 0.4, 2.5

#: Lower pieces with less ink than this share of the square of the height are dirt, except for fine
#: points, which have more than the second share, and so many pixels.
SPECK, FINE_POINT, MIN_POINT = 0.005, 0.002, 6

#: Paler ink than this share of the usual is a pattern of the paper. What has less ink along its
#: longer side than the second share of the usual is the rest of a pale line. What fills more than
#: the third share of a square around it is a hole or a spot; none of MNIST's test digits does.
PALE, FINE, SOLID = 0.5, 0.09, 0.7

#: Neighbours share this part of the lower one's height, and are at most so many heights apart.
BESIDE, NEAR = 0.4, 2.5

#: Shares of the usual height of digits. A piece of a printed line is at most THIN high, or at least
#: LONG wide, and FLATTER times as wide as high. Together, the pieces of a level line are at least
#: LEVEL long, and those of an upright one UPRIGHT. Lines stay outside of the middle of digits, from
#: MIDDLE of a digit's own height to as much below its top.
THIN, LONG, LEVEL, UPRIGHT, FLATTER, MIDDLE = 0.15, 2.5, 1.0, 0.25, 1.5, 0.25

#: The steps of a printed line's angle, and how oblique it is at most, in radians.
TURN, SKEW = 0.003, 0.04

#: The number of lines that are tried, the strongest first. Noise lies on thousands.
MOST_LINES = 500

#: Ink that is nearer to a digit, in heights, is no mark, but a piece of it that broke off.
APART = 0.1

#: Digits further apart than so many heights belong to two numbers.
NUMBER_GAP = 1.0


def number_fields(ink: Ink) -> list[list[Field]]:
    """The numbers on a page, in lines from the top, each from left to right."""
    rows, columns = ink.values.shape
    rules = find_lines(ink.strokes, round(LEVEL_RULE * columns), rows + 1)  # no upright ones
    level = stroke_level(ink.values[ink.strokes > rules])  # printed lines may be much darker
    threshold = max(ink.threshold, round(STROKE * level))
    ink = ink._replace(threshold=threshold, edge=threshold / 2)
    dark = ink.strokes
    length = round(UPRIGHT_RULE * rows)
    # Beyond the border is no ink, or a digit on a strip's lower line would be an upright line.
    padded = cv2.copyMakeBorder(dark, length, length, 0, 0, cv2.BORDER_CONSTANT)
    rules = find_lines(padded, round(LEVEL_RULE * columns), length)[length:-length]
    upright = cv2.morphologyEx(rules, cv2.MORPH_OPEN, np.ones((length, 1), np.uint8))
    if cv2.connectedComponents(upright)[0] <= FEW_RULES:
        heights = [box.height for box in find_components(without_lines(dark, rules)).boxes[1:]]
        if 0 < max(heights, default=0) < LOWER * rows:
            upright &= ~cv2.morphologyEx(rules, cv2.MORPH_OPEN, np.ones((rows, 1), np.uint8))
        rules &= ~upright
    is_ruled = cv2.connectedComponents(rules)[0] > 2  # one line is no frame
    components = find_components(_without_frame(without_lines(dark, rules), is_ruled))
    digits, others, height = _digits(ink, components)
    if not digits:
        return []
    boxes, found = components.boxes, []
    for line in _text_lines([boxes[k] for k in digits], height):
        numbers = [digits[k] for k in line]
        marks = marks_of_line(numbers, others, components, height)
        dirt = [k for k in marks if components.areas[k] < SPECK * height**2]
        marks = {k: mark for k, mark in marks.items() if k not in dirt or mark == "."}
        for k in [k for k in marks if _is_near(k, numbers, components, APART * height)]:
            if k in numbers:
                del marks[k]
            else:
                marks[k] = UNKNOWN
        pieces = sorted({*numbers, *marks}, key=lambda k: boxes[k].left + boxes[k].right)
        fields = []
        for word in _words(pieces, boxes, height):
            # A point or a comma beyond a number may be the rest of a frame.
            marks |= {k: UNKNOWN for k in (word[0], word[-1]) if marks.get(k, UNKNOWN) in ".,"}
            own = [k for k in word if k not in marks]
            groups = _groups(own, components, marks) if own else []
            seen = [(marks[k], boxes[k]) for k in word if k in marks]
            fields.append(number_field(ink, components, groups, height, seen))
        found.append([field for field in fields if field.segments or field.marks])
    return [line for line in found if line]


def _without_frame(dark: UInt8Array, is_ruled: bool) -> UInt8Array:
    """A black and white page (h, w) without the frame of a number, or what is left of it.

    Upright lines are looked for if there are level ones, and where a page `is_ruled` twice.
    """
    rest = _without_rules(dark, LEVEL)
    if not is_ruled and (rest == dark).all():
        return dark
    return np.ascontiguousarray(_without_rules(np.ascontiguousarray(rest.T), UPRIGHT, True).T)


def _without_rules(dark: UInt8Array, least: float, at_ends: bool = False) -> UInt8Array:
    """A page (h, w) without printed level lines, whose pieces together have a least length.

    The pieces are flat and lie on one straight line, which crosses no digit in its middle. On a
    page turned upright, with digits side by side from top to bottom, a line is `at_ends` of them.
    """
    components = find_components(dark)
    left, top, right, bottom = np.array(components.boxes).T
    width, height = right - left, bottom - top
    high = width if at_ends else height
    large = high[1:][high[1:] >= MIN_HEIGHT]
    if not large.size:
        return dark
    usual = quantile(large, large, 0.5)
    flat = (height <= THIN * usual) & (width >= FLATTER * height)
    digits = (high >= LOWEST * usual) & (np.maximum(width, height) <= HIGHEST * usual)
    digits[0] = flat[0] = False  # the ground
    left, top, right, bottom = np.array(components.boxes)[digits].T
    pieces = 255 * components.mask(np.flatnonzero(flat).tolist()).astype(np.uint8)
    pieces |= find_lines(dark, round(LONG * usual), len(dark) + 1)
    edges = pieces & ~np.roll(pieces, 1, 0)
    angles = np.pi / 2 - SKEW, np.pi / 2 + SKEW
    found = cv2.HoughLines(edges, 1, TURN, round(least * usual), None, 0, 0, *angles)
    y, x = np.ogrid[: len(dark), : dark.shape[1]]
    places, drawn = np.argwhere(pieces), np.zeros_like(dark)
    for distance, angle in [] if found is None else found[:MOST_LINES, 0].tolist():
        off = places[:, 0] - (distance - places[:, 1] * np.cos(angle)) / np.sin(angle)
        is_on = np.abs(off) <= THIN * usual
        thick = np.bincount(places[is_on, 1])
        places = places[~is_on]
        if np.count_nonzero(thick) < least * usual:
            continue
        at = (distance - (left + right) / 2 * np.cos(angle)) / np.sin(angle)
        other = ~flat[digits] | (np.abs(2 * at - top - bottom) > 2 * THIN * usual)
        inside = np.minimum(at - top, bottom - at) > MIDDLE * (bottom - top)
        sides = np.unique((2 * at > top + bottom)[other])
        if inside[other].any() or (at_ends and len(sides) != 1):
            continue
        below = y - (distance - x * np.cos(angle)) / np.sin(angle)
        far = components.labels[np.abs(below) > THIN * usual]
        beyond = np.bincount(far, minlength=len(components.boxes))
        band = (below >= -1.5) & (below <= np.percentile(thick[thick > 0], 75) + 0.5)
        drawn |= dark * (band | (beyond[components.labels] == 0))
    return without_lines(dark, drawn)


def _digits(ink: Ink, components: Components) -> tuple[list[int], list[int], float]:
    """The components that may be digits, or several that touch; others; the usual height."""
    height = np.array([box.height for box in components.boxes])
    large = 1 + np.flatnonzero(height[1:] >= MIN_HEIGHT)
    if not 0 < len(large) <= MAX_PIECES:
        return [], [], 0.0
    usual = quantile(height[large], height[large], 0.5)  # high pieces count for more
    mass = np.bincount(components.labels.ravel(), ink.values.ravel())
    dark = mass / components.areas > PALE * mass[large].sum() / components.areas[large].sum()
    sides = np.array([max(box.width, box.height) for box in components.boxes])
    dirt = components.areas < SPECK * usual**2
    fine = dark & dirt & (components.areas >= max(MIN_POINT, FINE_POINT * usual**2))
    dark &= mass / sides > FINE * quantile((mass / sides)[large], mass[large], 0.5)
    solid = components.areas > SOLID * sides**2
    sized = (height >= LOWEST * usual) & (height <= HIGHEST * usual) & ~solid
    others = ((height < LOWEST * usual) | solid) & ((dark & ~dirt) | fine)
    return large[(sized & dark)[large]].tolist(), np.flatnonzero(others).tolist(), usual


def _is_near(k: int, digits: Sequence[int], components: Components, reach: float) -> bool:
    """Whether ink of other digits is within reach of a component."""
    box, r = components.boxes[k], round(reach)
    rows, columns = (slice(max(0, each.start - r), each.stop + r) for each in box.slices)
    labels = components.labels[rows, columns]
    ball = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * r + 1, 2 * r + 1))
    near = labels[cv2.dilate((labels == k).astype(np.uint8), ball) > 0]
    return bool(np.isin(near, [each for each in digits if each != k]).any())


def _text_lines(boxes: Sequence[Box], height: float) -> list[list[int]]:
    """The numbers of pieces in lines."""
    left, top, right, bottom = np.array(boxes).T
    middle = (left + right) / 2
    common = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    gap = np.subtract.outer(left, right).T  # of the second from the first
    beside = common >= BESIDE * np.minimum.outer(bottom - top, bottom - top)
    beside &= (np.subtract.outer(middle, middle) < 0) & (gap <= NEAR * height)
    nearest = np.where(beside, gap, np.inf)
    linked = beside & (nearest == nearest.min(axis=1, keepdims=True))
    n_chains, chain = connected_components(linked, directed=False)
    members = [np.flatnonzero(chain == k) for k in range(n_chains)]
    around = [
        Box(*map(int, (left[k].min(), np.median(top[k]), right[k].max(), np.median(bottom[k]))))
        for k in members
    ]
    result = []
    for line in in_lines(around):
        numbers = np.concatenate([members[k] for k in line])
        result.append(numbers[np.argsort(middle[numbers])].tolist())
    return result


def _words(line: Sequence[int], boxes: Sequence[Box], height: float) -> list[list[int]]:
    """The pieces of a line, parted where they are far apart."""
    left, _, right, _ = np.array([boxes[k] for k in line]).T
    apart = left[1:] - np.maximum.accumulate(right)[:-1] > NUMBER_GAP * height
    return [word.tolist() for word in np.split(line, np.flatnonzero(apart) + 1)]


def _groups(word: Sequence[int], components: Components, marks: Container[int]) -> list[list[int]]:
    """Each piece of a number with the low marks above, below or in it, such as the bar of a 5."""
    around = reduce(Box.union, [components.boxes[k] for k in word])
    groups = [[k] for k in word]
    left, top, right, bottom = np.array(components.boxes).T
    near = components.areas >= MIN_SHARE * max(components.areas[k] for k in word)
    near &= (left < around.right) & (right > around.left)
    near &= (top >= around.top - (bottom - top)) & (bottom <= around.bottom + (bottom - top))
    for number in np.flatnonzero(near).tolist():
        if number == 0 or number in word or number in marks:
            continue
        box = components.boxes[number]
        common = [box.shared_width(components.boxes[k]) for k in word]
        if max(common) >= 0.5 * box.width:
            groups[int(np.argmax(common))].append(number)
    return groups
