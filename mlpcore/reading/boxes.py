"""Drawn boxes: what lines enclose, on a page turned by any angle or level, and combs.

Their order is found here, too.
"""

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
from scipy.spatial import KDTree

from mlpcore.data.ink import Box, Ink, find_lines, without_lines
from mlpcore.typing import AnyArray, BoolArray, Float64Array, Int32Array, UInt8Array

#: The least side of a quadrilateral in pixels.
MIN_SIDE = 10

#: The least share of its hull that is light, of its hull that its corners span, and of the longer
#: of two opposite sides.
FILLED, STRAIGHT, OPPOSITE = 0.6, 0.85, 0.7

#: Shares of a small box's side: a line is longer than the first. What is thicker than the second is
#: no line, but a bar or writing. A box whose side is below the third is a gap between two lines.
LINE, THICK, SMALLEST = 0.9, 0.35, 0.5

#: Boxes beside a lattice, whose boxes are the largest of the page.
SEVERAL = 4  #: the least number of one size; fewer may be parts of boxes
SMALLER = 0.33  #: their least side as a share of the shorter side of the lattice's boxes
BOTH = 0.85  #: what both sides stay below, as a share of the lattice's, if one is below `SMALLEST`
CORNER = 0.1  #: where three corners are light, as a share of a side; loops of letters are round

#: Small boxes are those that cover this share of the area of all.
SMALL = 0.1

#: A box that an edge of the picture cuts has at least this share of the area of a whole one.
WHOLE = 0.75

#: The parts of a box are at most so far apart, as a line is thick, and their sides at most so far
#: off, as a share of its side. Boxes of one size differ by less than the second share in each side.
PARTED, AS_LARGE = 0.15, 0.1

#: So many boxes near one tell how large it is.
NEAR = 25

#: Ink is in a box if it reaches beyond by less than this share of a side. That is found out where
#: sides have so many pixels.
OVER, SMALL_SIDE = 0.2, 24

#: Strokes that cross boxes lie in one half of each: the least difference from the other half, as a
#: share of their ink.
ASIDE = 0.48

#: What overlaps a line of boxes by this share of the lower of both belongs to it.
SAME_LINE = 0.5

#: A base line is thinner than this share of a place, and dark along the second of its length.
FLAT, SOLID = 0.2, 0.95

#: A tick reaches at least so many pixels beyond its line, and is no wider than the line is high by
#: the second.
TICK, WIDER = 3, 2

#: Ticks part a line into so many places, two only if it has ticks at its ends, too. Their width is
#: at least the third as a share of the page's longer side.
FEWEST, MOST, NARROWEST = 2, 40, 0.008

#: Ticks lie so near to even places, as a share of a place, or of an eighth of the line. They are
#: alike in height by the second share. The least share of places that have one, and of what is as
#: narrow that are ticks.
EVEN, EQUAL, PLACED, EXPLAINED = 0.1, 0.2, 0.75, 0.5

#: The height of a place as a share of its width, and the least of a tick.
HIGH, LOWEST = 1.3, 0.08

#: Boxes in a shade are seen at so many times the threshold of strokes.
SHADED = 1, 2, 4

#: Combs are further away from boxes than this share of a side, which may be the width of a line.
APART = 0.25


def find_quads(dark: UInt8Array) -> tuple[Float64Array, float]:
    """The corners (n, 4, 2) of quadrilaterals on a page turned by any angle, and that angle.

    They are what ink encloses that has four straight sides. Their corners begin at the upper left
    of a page whose lines are level, and go on clockwise. The angle, in degrees from -45 to 45, is
    how far the page must turn counter-clockwise until they are. `dark` (h, w), uint8, is 255 where
    there is ink, else 0.
    """
    rows, columns = dark.shape
    light = 255 - cv2.dilate(dark, np.ones((3, 3), np.uint8))
    contours, tree = cv2.findContours(light, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    hulls, n_cut = [], []
    for contour, (_, _, _, parent) in zip(contours, [] if tree is None else tree[0]):
        left, top, width, height = cv2.boundingRect(contour)
        cut = (left == 0) + (top == 0) + (left + width == columns) + (top + height == rows)
        if parent < 0 and min(width, height) >= MIN_SIDE and cut < 2:
            hull = cv2.convexHull(contour)
            if cv2.contourArea(contour) > FILLED * cv2.contourArea(hull):
                hulls.append(hull)
                n_cut.append(cut)
    areas, is_whole = np.array([*map(cv2.contourArea, hulls)]), np.array(n_cut) == 0
    # One that an edge of the picture cuts counts if it is about as large as a whole one.
    whole = np.sort(areas[is_whole])
    is_whole |= np.searchsorted(whole, areas * WHOLE) < np.searchsorted(whole, areas / WHOLE)
    hulls, areas = [hulls[k] for k in np.flatnonzero(is_whole)], areas[is_whole]
    if not hulls:
        return np.zeros((0, 4, 2)), 0.0
    # The fourth power of a side's direction is the same for all sides of a rectangle.
    _, sizes, turns = zip(*map(cv2.minAreaRect, hulls))
    angle = np.angle(np.sum(np.sum(sizes, axis=1) * np.exp(4j * np.radians(turns)))) / 4
    turning = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = []
    for hull, area in zip(hulls, areas):
        x, y = points = (hull[:, 0] @ turning).T
        ends = (x + y).argmin(), (x - y).argmax(), (x + y).argmax(), (x - y).argmin()
        spanned, (left, top), (right, bottom) = hull[list(ends), 0], points.min(1), points.max(1)
        if cv2.contourArea(spanned) < STRAIGHT * area:  # corners are round
            spanned = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
            spanned = spanned @ turning.T
        corners.append(spanned)
    quads = np.array(corners, float)
    sides = np.linalg.norm(np.roll(quads, -1, axis=1) - quads, axis=2)
    (x, y), (u, v) = (quads[:, 2] - quads[:, 0]).T, (quads[:, 3] - quads[:, 1]).T
    alike = np.minimum(sides[:, :2], sides[:, 2:]) > OPPOSITE * np.maximum(
        sides[:, :2], sides[:, 2:]
    )
    chosen = alike.all(axis=1) & (sides.min(axis=1) >= MIN_SIDE)
    ratio = (x * v - y * u) / 2 / areas
    chosen &= (ratio >= STRAIGHT) & (STRAIGHT * ratio <= 1)
    return quads[chosen], float(np.degrees(angle))


def ruled_quads(dark: UInt8Array, length: int) -> Float64Array:
    """The corners (n, 4, 2) of boxes on a page whose lines are nearly level and have a length.

    Shorter strokes, of digits as high as their boxes, part none.
    """
    return corners(_joined(_rectangles(find_lines(dark, length, length))))


def corners(boxes: AnyArray) -> Float64Array:
    """The corners (n, 4, 2) of boxes (n, 4), from the upper left and clockwise."""
    result: Float64Array = boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]].astype(float)
    return result


def drawn_boxes(ink: Ink, known: AnyArray, is_pale: bool) -> AnyArray:
    """The insides (n, 4) of the boxes on a page whose lines are level, or the places of combs.

    They are left, top, right and bottom, in no order. A box that holds others is left out. There
    are none where most of the ink crosses their lines, which are those of squared paper. Squared
    paper without ink is taken for a form, whose boxes are empty.

    The lines of the `known` boxes (m, 4), int64, of a lattice may be paler; `is_pale` tells that
    lines are looked for that are paler than what is written.
    """
    dark = ink.pale if is_pale else ink.strokes
    first, share = _rectangles(dark), SMALL
    frames = first
    others = first[:0]
    if len(known):  # the page's largest lattice
        others, is_beside = _several(first, known, dark)
        known = first = np.concatenate([known, others[is_beside]])
        share = 0 if is_beside.any() else 0.5
    else:  # a frame around boxes has another size
        first = first[_n_held(first, first, dark.shape) < 2]
    if not len(first):
        return _comb_places(ink, first[:0], frames)
    sides = first[:, 2:] - first[:, :2]
    width, height = (quantile(each, _areas(first), share) for each in sides.T)
    side = min(width, height)
    drawn = find_lines(dark, round(LINE * width), round(LINE * height))
    block = np.ones([max(5, round(THICK * side))] * 2, np.uint8)
    lines = drawn & ~cv2.morphologyEx(dark, cv2.MORPH_OPEN, block)
    boxes = _joined(_rectangles(drawn))
    boxes = boxes[_sides(boxes) >= SMALLEST * side]
    for most in (FEWEST, 1):  # first frames, whose middle may be in a box
        n_held = np.maximum(*(_n_held(boxes, each, dark.shape) for each in (boxes, known)))
        boxes = boxes[n_held <= most]
    if len(known):  # a digit's stroke may part a box like a line
        owner = painted(known, dark.shape)[_middles(boxes)]
        off = np.abs(_size(boxes) - _size(known)[owner - 1]).max(axis=1)
        boxes = boxes[(off < AS_LARGE) | (owner == 0)]
    is_taken = painted(boxes, dark.shape)[_middles(known)] > 0
    boxes = np.concatenate([boxes, known[~is_taken]])
    if not len(boxes) or _are_crossed(
        boxes, without_lines(ink.strokes, lines), side, len(known) > 0
    ):
        return _comb_places(ink, first[:0], frames)
    boxes = _with_shaded(_grown(boxes, drawn), ink)
    whole = np.concatenate([known, others])
    width, height = (boxes[:, 2:] - boxes[:, :2]).T
    is_whole = (_n_alike(boxes, whole) > 0) | (HIGH * width < FEWEST * height)
    places = _comb_places(ink, np.concatenate([boxes[is_whole], whole]), frames)
    boxes = boxes[_n_held(boxes, places, dark.shape) <= FEWEST]
    is_free = painted(boxes, dark.shape)[_middles(places)] == 0
    is_free &= _n_held(places, boxes, dark.shape) == 0
    return np.concatenate([boxes, places[is_free]])


def _with_shaded(boxes: AnyArray, ink: Ink) -> AnyArray:
    """Boxes (n, 4), and others as large as several of them: in a shade, pale, or parted by strokes.

    Loops of digits in these go.
    """
    shape = ink.values.shape
    shades = [ink._replace(threshold=times * ink.threshold).strokes for times in SHADED]
    for dark in (ink.pale, *shades):
        others, n_alike = _rectangles(dark), _n_alike(boxes, boxes)
        several = boxes[n_alike >= SEVERAL]
        is_new = _n_alike(others, boxes) >= SEVERAL
        is_new &= painted(several, shape)[_middles(others)] == 0
        if not is_new.any():
            continue
        for each, most in ((several, 0), (boxes, 1), (others, FEWEST)):
            is_new &= _n_held(others, each, shape) <= most
        is_loop = (painted(others[is_new], shape)[_middles(boxes)] > 0) & (n_alike < SEVERAL)
        boxes = np.concatenate([boxes[~is_loop], others[is_new]])
    return boxes


def _several(boxes: AnyArray, known: AnyArray, dark: UInt8Array) -> tuple[AnyArray, BoolArray]:
    """Those of the boxes (n, 4) of which several have one size, and which lie beside a lattice.

    The rest are in the `known` boxes (m, 4) of the lattice, hold others, or are too small.
    """
    sides, (high, wide) = boxes[:, 2:] - boxes[:, :2], dark.shape
    inset = np.tile(1 + (CORNER * sides).round().astype(int), 2) * (1, 1, -1, -1)
    at = corners(boxes + inset).astype(int).clip(0, (wide - 1, high - 1))
    n_light = np.sum(dark[at[..., 1], at[..., 0]] == 0, axis=1)
    is_one = _n_alike(boxes, boxes) >= SEVERAL
    several = boxes[is_one & (n_light >= 3)]
    sides, usual = several[:, 2:] - several[:, :2], np.median(known[:, 2:] - known[:, :2], axis=0)
    is_small = (sides < BOTH * usual).all(axis=1)  # or it is between two lines
    is_beside = _sides(several) >= np.where(is_small, SMALLER, SMALLEST) * min(usual)
    is_beside &= painted(known, dark.shape)[_middles(several)] == 0
    is_beside &= _n_held(several, np.concatenate([known, boxes]), dark.shape) < 2
    return several, is_beside


def _joined(boxes: AnyArray) -> AnyArray:
    """Boxes (n, 4) of which none is parted by a stroke from side to side.

    Neighbours are joined where more boxes are as large as both together than as either of them.
    """
    if not len(boxes):
        return boxes
    for axis in (0, 1):
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        begin, end = middles.copy(), middles.copy()
        begin[:, axis], end[:, axis] = boxes[:, axis], boxes[:, 2 + axis]
        after = KDTree(begin).query(end)[1]
        others = boxes[after]
        both = np.concatenate(
            [np.minimum(boxes, others)[:, :2], np.maximum(boxes, others)[:, 2:]], 1
        )
        off = np.abs(others - boxes)[:, [1 - axis, 3 - axis]].max(axis=1)
        off = np.maximum(off, np.abs(others[:, axis] - boxes[:, 2 + axis]))
        near = off <= PARTED * np.min(both[:, 2:] - both[:, :2], axis=1)
        own = np.flatnonzero(near)
        one, other, whole = (_n_alike(each[own], boxes) for each in (boxes, others, both))
        own = own[whole > np.maximum(one, other)]
        own = own[~np.isin(own, after[own])]  # of three parts, two are joined
        boxes[own] = both[own]
        boxes = np.delete(boxes, after[own], axis=0)
    return boxes


def _grown(boxes: AnyArray, lines: UInt8Array) -> AnyArray:
    """Boxes (n, 4), of which those that a digit's stroke cuts reach the line beyond it.

    They are smaller than most of the boxes near them that are as wide, or as high.
    """
    grown, block = boxes.copy(), np.ones([round(PARTED * np.median(_sides(boxes)))] * 2)
    lines = cv2.dilate(lines, block) // 255
    for edge in range(4):
        axis, sizes, begin = edge % 2, grown[:, 2:] - grown[:, :2], grown[:, [edge - 2]]
        across = sizes[:, [1 - axis]]
        key = np.concatenate([begin, across / AS_LARGE], axis=1)
        near = KDTree(key).query(key, range(1, min(NEAR, len(boxes)) + 1))[1]
        is_alike = np.abs(across[near, 0] - across) <= AS_LARGE * across
        usual = np.nanmedian(np.where(is_alike, sizes[near, axis], np.nan), axis=1)[:, None]
        end = begin + (usual if edge > 1 else -usual).astype(int)
        end = end.clip(0, lines.shape[1 - axis] - 1)
        whole, side = grown.copy(), grown.copy()
        whole[:, [edge]], side[:, [axis, axis + 2]] = end, end + np.arange(2)
        cut = sizes[:, axis] < (1 - PARTED) * usual[:, 0]
        cut &= _sums(lines, side) >= WHOLE * across[:, 0]
        cut &= _n_alike(whole, grown) > _n_alike(grown, grown)
        grown[cut] = whole[cut]
    changed = np.flatnonzero((grown != boxes).any(axis=1))
    owner = np.append(-1, changed)[painted(grown[changed], lines.shape)[_middles(grown)]]
    return grown[(owner < 0) | (owner == np.arange(len(grown)))]


def _size(boxes: AnyArray) -> Float64Array:
    """The logarithms (n, 2) of the width and the height of boxes."""
    result: Float64Array = np.log(boxes[:, 2:] - boxes[:, :2])
    return result


def _n_alike(boxes: AnyArray, others: AnyArray) -> AnyArray:
    """The number of others (m, 4) that are as large as each box (n, 4)."""
    sizes = KDTree(_size(others))
    return sizes.query_ball_point(_size(boxes), AS_LARGE, np.inf, return_length=True)


def n_of_a_size(boxes: AnyArray) -> int:
    """The most boxes of (n, 4) that are as large as one of them."""
    return int(_n_alike(boxes, boxes).max()) if len(boxes) else 0


def _rectangles(dark: UInt8Array) -> AnyArray:
    """The rectangles (n, 4) that level ink encloses: left, top, right and bottom."""
    quads = find_quads(dark)[0]
    # They lie a pixel inside of lines, and end with their last pixel.
    ends = np.concatenate([quads.min(axis=1) - 1, quads.max(axis=1) + 2], axis=1).astype(int)
    return ends.clip(0, dark.shape[::-1] * 2)


def in_lines(boxes: Sequence[Box], upright: bool = False) -> list[list[int]]:
    """The numbers of boxes, in lines from the top to the bottom, each from left to right.

    Upright lines are columns, from left to right, each from the top to the bottom.
    A line is what all its boxes have in common, so a high box stands in the line of its top.
    """
    if upright:
        boxes = [Box(box.top, box.left, box.bottom, box.right) for box in boxes]
    found: list[list[int]] = []
    top = bottom = 0
    for number in sorted(range(len(boxes)), key=lambda k: boxes[k].top):
        box = boxes[number]
        common = min(bottom, box.bottom) - max(top, box.top)
        if found and common >= SAME_LINE * min(bottom - top, box.height):
            found[-1].append(number)
            top, bottom = max(top, box.top), min(bottom, box.bottom)
        else:
            found.append([number])
            top, bottom = box.top, box.bottom
    return [sorted(line, key=lambda k: boxes[k].left) for line in found]


def quantile(values: AnyArray, weights: AnyArray, share: float) -> float:
    """The value (n,) at which those up to it have a share of the weights (n,)."""
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


def _n_held(boxes: AnyArray, others: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """The number of others (m, 4) that each box (n, 4) has the middle of inside."""
    image = np.zeros(shape, np.uint8)
    image[_middles(others)] = 1
    return _sums(image, boxes)


def _sums(image: UInt8Array, boxes: AnyArray) -> AnyArray:
    """The sum of the values of an image in each box (n, 4)."""
    sums = cv2.integral(image)
    left, top, right, bottom = boxes.T
    return sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]


def _sides(boxes: AnyArray) -> AnyArray:
    """The shorter side of boxes (n, 4)."""
    return np.min(boxes[:, 2:] - boxes[:, :2], axis=1)


def _areas(boxes: AnyArray) -> AnyArray:
    """The pixels of boxes (n, 4)."""
    return np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)


def _middles(boxes: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The rows (n,) and columns (n,) of the middles of boxes (n, 4)."""
    left, top, right, bottom = boxes.T
    return (top + bottom) // 2, (left + right) // 2


def painted(boxes: AnyArray, shape: tuple[int, ...]) -> Int32Array:
    """An image (h, w) of the numbers of boxes (n, 4), from 1, and 0 elsewhere."""
    image = np.zeros(shape, np.int32)
    for number, (left, top, right, bottom) in enumerate(boxes.tolist(), 1):
        image[top:bottom, left:right] = number
    return image


def _are_crossed(boxes: AnyArray, strokes: UInt8Array, side: float, in_lattice: bool) -> bool:
    """Whether most of the strokes (h, w) that lie in boxes (n, 4) reach far beyond one.

    Those of large digits in a lattice do, too, where they touch, but fill both halves of a box.
    """
    scale = min(1.0, SMALL_SIDE / side)
    small = cv2.resize(strokes, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    _, labels, stats, _ = cv2.connectedComponentsWithStats((small > 64).astype(np.uint8))
    left, top, width, height = (stats[:, :4].T / scale).astype(int)
    reach = np.stack([left, top, left + width, top + height], axis=1)
    reach = reach.clip(0, strokes.shape[::-1] * 2)
    owner = painted(boxes, strokes.shape)
    number = owner[_middles(reach)]
    over = (reach - boxes[number - 1]) * (-1, -1, 1, 1)
    inside = (number > 0) & (over.max(axis=1) < OVER * side)
    is_owned = (owner > 0).astype(np.uint8)
    beyond = ~inside & (_sums(is_owned, reach) > 0)
    # Of ink as large as a table, what is far from boxes does not count.
    near = cv2.dilate(cv2.resize(is_owned, small.shape[::-1]), np.ones([SMALL_SIDE // 2] * 2))
    area = np.bincount(labels.ravel(), near.ravel(), len(stats))
    area[0] = 0  # the ground's
    far = bool(area[beyond].sum() > area[inside].sum())
    if not (far and in_lattice):
        return far
    begin, end, (y, x) = boxes[:, :2].T, boxes[:, 2:].T, _middles(boxes)
    parts = (*begin, *end), (*begin, x, end[1]), (*begin, end[0], y)
    n, n_left, n_upper = (_sums(strokes // 255, np.stack(each, axis=1)) for each in parts)
    return bool(np.hypot(2 * n_left - n, 2 * n_upper - n).sum() >= ASIDE * n.sum())


def _comb_places(ink: Ink, boxes: AnyArray, frames: AnyArray) -> AnyArray:
    """The places (n, 4) of combs outside of boxes, without ticks and base lines.

    The side of one of the frames (m, 4) around combs may be a base line.
    """
    dark = ink.strokes
    for left, top, right, bottom in boxes.tolist():
        apart = round(APART * min(right - left, bottom - top))
        dark[max(0, top - apart) : bottom + apart, max(0, left - apart) : right + apart] = 0
    narrowest = max(MIN_SIDE, round(NARROWEST * max(dark.shape)))
    base = find_lines(dark, FEWEST * narrowest, len(dark) + 1)  # no upright ones
    base &= cv2.dilate(dark, np.ones([3 * TICK, 1]))  # without printed points near them
    contours, _ = cv2.findContours(base, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    found: list[Box] = []
    for left, y, length, high in sorted(map(cv2.boundingRect, contours), key=lambda line: line[1]):
        filled = base[y : y + high, left : left + length].sum(axis=1, dtype=float)
        rows = np.flatnonzero(filled > filled.max() / 2)  # not those of a digit's foot on it
        y, thick = y + int(rows[0]), int(np.ptp(rows)) + 1
        line = Box.of_size(left, y, length, thick)
        if dark[line.slices].any(axis=0).mean() < SOLID:
            continue
        up, down = (_standing(each, line) for each in (dark[:y][::-1], dark[line.bottom :]))
        most = min(MOST, int(length / max(narrowest, thick / FLAT)))
        near = 2 * thick + TICK
        begin, top, end, _ = frames.T
        below = (begin < line.right) & (end > left) & (np.abs(top - line.bottom) <= near)
        lines = np.flatnonzero(base[:, left : line.right].mean(axis=1) > WHOLE * 255)
        hangs = lines[(lines > line.bottom + near) & (lines <= line.bottom + down.max())]
        ways = [(up, down), (down, up)][: 1 if below.any() or len(hangs) else 2]
        ticks = max((_ticks(*each, thick, most) for each in ways), key=len)
        above = [box.bottom for box in found if box.right > left and box.left < line.right]
        tops = [each + thick for each in above] + (lines[lines < y - near] + 2).tolist()
        ends = np.rint(left + ticks).clip(0, dark.shape[1]).astype(int).tolist()
        inset = thick // 2 + 2
        for begin, end in pairwise(ends):
            top = max([0, round(y - HIGH * (end - begin)), *tops])
            found.append(Box(begin + inset, top, end - inset, y - 1))
    found = [box for box in found if min(box.width, box.height) >= MIN_SIDE]
    return np.reshape(np.array(found, int), (-1, 4))


def _standing(side: UInt8Array, line: Box) -> AnyArray:
    """The height (w,) of the ink that stands on each pixel of a line, in rows that begin at it.

    It is 0 where there is no tick, and ends above the ticks of combs.
    """
    most = int((1 + EQUAL) * HIGH * line.width / FEWEST) + TICK
    side, heights = side[1 : 1 + most, line.left : line.right], np.zeros(line.width, int)
    if len(side) >= TICK:
        near = cv2.dilate(side[:TICK], np.ones((1, 3), np.uint8))  # a tick may lean a little
        at = np.flatnonzero(near.all(axis=0))
        upright = side[:, (at[:, None] + (-1, 0, 1)).clip(0, line.width - 1)].any(axis=2)
        heights[at] = np.logical_and.accumulate(upright, axis=0).sum(axis=0)
    return heights


def _ticks(heights: AnyArray, across: AnyArray, thick: int, most: int) -> Float64Array:
    """Where the places of a comb begin and end, by the ink on its line and across from it.

    There are none on a line without even ticks of one height, or whose ticks go on across from it.
    """
    width, n_best = len(heights), 0
    best: Float64Array = np.zeros(0)
    runs = np.flatnonzero(np.diff(np.pad(heights >= TICK, 1).astype(np.int8))).reshape(-1, 2)
    runs = runs[np.ptp(runs, axis=1) <= thick + WIDER]
    high = np.array([heights[begin:end].max() for begin, end in runs.tolist()])
    at = runs.mean(axis=1)
    for n in range(FEWEST, most + 1):
        pitch = width / n
        k = np.rint(at / pitch)
        inner = (k > 0) & (k < n)
        at_place = np.abs(at - k * pitch) <= max(3, thick, EVEN * min(pitch, width / 8))
        even = inner & at_place
        tick = np.median(high[even]) if even.any() else 0
        slack = max(2, EQUAL * tick)
        at_place &= high >= tick - slack  # strokes may stand on one
        n_ticks = len(np.unique(k[inner & at_place]))
        is_comb = LOWEST * pitch <= tick <= HIGH * pitch and n_ticks >= PLACED * (n - 1)
        is_comb &= n > 2 or len(np.unique(k[at_place])) == n + 1
        is_comb &= at_place.sum() >= EXPLAINED * len(runs)
        if is_comb and n_ticks > n_best:
            slope, begin = np.polyfit(k[at_place], at[at_place], 1)
            best = begin + slope * np.arange(n + 1)
            n_best = n_ticks
    near = np.rint(best[1:-1]).astype(int)[:, None] + np.arange(-3, 4)
    n_across = np.sum(across[near.clip(0, width - 1)].max(axis=1) >= TICK)
    return best if 2 * n_across < len(near) else best[:0]
