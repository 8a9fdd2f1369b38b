"""Boxes in rows and columns: a row has all of its boxes, also those that were not seen."""

from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import KDTree

from mlpcore.data.ink import Box, Ink, find_lines
from mlpcore.errors import InputError
from mlpcore.reading.boxes import corners, painted
from mlpcore.typing import AnyArray, BoolArray, Float64Array, UInt8Array

#: Neighbours are so near, as a share of a box's shorter side. Their facing sides are displaced by
#: so much of the shorter one, and are so alike.
GAP, OFFSET, ALIKE = 0.8, 0.35, 0.75

#: Boxes whose widths (or heights, one above the other) differ by more are no neighbours. A box less
#: alike than facing sides to the height of its row, or the width of its column, is another.
UNLIKE = 0.6

#: A wider gap than that beside it, by so much of a side, parts groups of boxes, unless neighbours
#: across from it have it, too.
EVEN = 0.15

#: A lattice has so many boxes, and this share of its places. What so large a share of a row and of
#: a column has, the others have, too.
FEW, HALF = 4, 0.5

#: A line is so near to the side of a box, and is at least so long, as shares of the side.
REACH, LONG = 0.1, 0.25

#: The share of a side that shows a line, inside of a lattice and beyond it.
DRAWN, CLEAR = 0.5, 0.75

#: An outermost row or column that is open is at most so many times as wide as the one beside it.
FAR = 2.0

#: So many boxes tell whether the lines of a lattice are seen.
SOME = 20

#: A box is another's place if this share of it is.
TAKEN = 0.25

#: The least side of a box in pixels, and how many pixels beside a box the page may end.
LEAST, BORDER = 3, 6

#: Corners of the right side and of the left one that faces it; of the lower and the upper one.
FACING = ((1, 2), (0, 3)), ((3, 2), (0, 1))

#: By how many rows and columns a neighbour to the right, and one below, are away.
STEPS = np.array([[0, 1], [1, 0]])


class Lattice(NamedTuple):
    """Boxes in rows and columns."""

    members: AnyArray  #: (n,) int64, the numbers of its boxes
    places: AnyArray  #: (n, 2) int64, row and column of each, from 0; no two boxes have the same

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""
        rows, columns = self.places.max(axis=0) + 1
        return int(rows), int(columns)

    def medians(self, values: Float64Array, axis: int) -> Float64Array:
        """Medians of values (n, ...) of its boxes, for each row (axis 0) or column (1).

        Those of one without boxes are between its neighbours'.
        """
        place = self.places[:, axis]
        filled = np.unique(place)
        medians = np.stack([np.median(values[place == k], axis=0) for k in filled])
        every = np.arange(place.max() + 1)
        return np.apply_along_axis(lambda known: np.interp(every, filled, known), 0, medians)


def find_lattices(quads: Float64Array) -> list[Lattice]:
    """Lattices of boxes on a page whose lines are nearly level, the largest first.

    The corners (n, 4, 2) of a box begin at its upper left and go on clockwise.
    """
    n = len(quads)
    if not n:
        return []
    after = np.full((2, n + 1), n)  # to the right and below; n for none
    gaps = np.full((2, n + 1), np.inf)  # to these, as shares of a side
    for k in (0, 1):
        (own, other), gap = _links(quads, k)
        after[k, own], gaps[k, own] = other, gap
    before = np.full_like(after, n)
    for k in (0, 1):
        before[k, after[k]] = np.arange(n + 1)
    before[:, n] = n
    sides = _sides(quads)
    pairs, weights, steps = [], [], {}
    for k in (0, 1):
        own = np.flatnonzero(after[k, :n] < n)
        other = after[k, own]
        # Two boxes that lost the line between them have no neighbours above and below.
        square = np.zeros(len(own), bool)
        for way in (after, before):
            beside, also = way[1 - k, other], way[1 - k, own]
            square |= (
                (beside < n)
                & (beside == after[k, also])
                & (np.abs(gaps[k, own] - gaps[k, also]) < EVEN)
            )
        ratio = sides[own, k] / sides[other, k]
        ratio = np.minimum(ratio, 1 / ratio)
        usual = np.minimum(gaps[k, before[k, own]], gaps[k, other])
        linked = square | ((ratio > UNLIKE) & (gaps[k, own] < usual + EVEN))
        pairs.append(np.stack([own, other], axis=1)[linked])
        weights.append(np.where(square & (ratio > UNLIKE), 1.0, 3 - ratio)[linked])
        for one, next_one in pairs[k].tolist():
            steps[one, next_one], steps[next_one, one] = STEPS[k], -STEPS[k]
    graph = coo_array((np.concatenate(weights), tuple(np.concatenate(pairs).T)), (n, n))
    tree = minimum_spanning_tree(graph.tocsr())
    group = connected_components(tree, directed=False)[1]
    lattices = []
    for first in np.unique(group, return_index=True)[1].tolist():
        order, origin = (each.tolist() for each in breadth_first_order(tree, first, directed=False))
        places = {first: np.zeros(2, int)}
        for k in order[1:]:
            places[k] = places[origin[k]] + steps[origin[k], k]
        taken, chosen = np.unique([places[k] for k in order], axis=0, return_index=True)
        rest = np.delete(order, chosen)[:, None]  # in places of others
        lattices += [Lattice(each, np.zeros((1, 2), int)) for each in rest]
        lattice = Lattice(np.array(order)[chosen], taken - taken.min(axis=0))
        own = sides[lattice.members]
        usual = [lattice.medians(own[:, k], 1 - k)[lattice.places[:, 1 - k]] for k in (0, 1)]
        ratio = own / np.stack(usual, axis=1)
        fits = np.all((ratio > ALIKE) & (ratio < 1 / ALIKE), axis=1)
        for chosen in (np.flatnonzero(fits), *np.flatnonzero(~fits)[:, None]):
            if len(chosen):
                taken = lattice.places[chosen]
                lattices.append(Lattice(lattice.members[chosen], taken - taken.min(axis=0)))
    return sorted(lattices, key=lambda lattice: -len(lattice.members))


def _links(quads: Float64Array, axis: int) -> tuple[AnyArray, Float64Array]:
    """The pairs (2, n) of neighbours from left to right (axis 0) or from top to bottom (1).

    Their facing sides are nearest to each other. The gaps (n,) between these are shares of a side.
    """
    ends = [quads[:, corners] for corners in FACING[axis]]
    own, other = (each.mean(axis=1) for each in ends)
    lengths = [np.linalg.norm(each[:, 0] - each[:, 1], axis=1) for each in ends]
    nearest, back = KDTree(other).query(own)[1], KDTree(own).query(other)[1]
    shorter, longer = (how(lengths[0], lengths[1][nearest]) for how in (np.minimum, np.maximum))
    apart = np.abs(other[nearest] - own)
    k = np.arange(len(quads))
    linked = (back[nearest] == k) & (nearest != k) & (shorter > ALIKE * longer)
    linked &= apart[:, 1 - axis] <= OFFSET * shorter
    side = np.minimum(shorter, _sides(quads)[:, axis])
    linked &= apart[:, axis] <= GAP * side
    return np.stack([k, nearest])[:, linked], (apart[:, axis] / side)[linked]


def _sides(quads: Float64Array) -> Float64Array:
    """Widths and heights (n, 2)."""
    return np.linalg.norm(quads[:, [1, 3]] - quads[:, [0]], axis=2)


class Cell(NamedTuple):
    """A box of a page; `seen` is whether its sides were, or only its neighbours'."""

    box: Box
    seen: bool = True


def complete(
    boxes: AnyArray, ink: Ink, page: UInt8Array, columns: int | None = None, rows: int | None = None
) -> list[Cell]:
    """The boxes of a page whose lines are level, and those that their lattices lack.

    `boxes` (n, 4), int64, are left, top, right and bottom of those that were found, and `page`
    (h, w) is 0 where the page has ended. An InputError, whose text follows the page's name, when
    there is no lattice with so many columns and rows, if these are known of the page's one lattice.
    """
    is_known = columns is not None or rows is not None
    if not len(boxes):
        if is_known:
            raise InputError("shows no lines: expected a grid of drawn boxes")
        return []
    lattices = find_lattices(corners(boxes))
    lines = _lines(boxes, ink, page)
    if is_known:
        if lattices[0].shape == (1, 1) and {rows, columns} - {1, None}:
            raise _other_shape((1, 1), (rows, columns))
        return _completed(lattices[0], boxes, lines, page, (rows, columns))
    cells, taken, gaps = [], np.zeros_like(page), np.zeros_like(page)
    inner = cv2.erode(page, np.ones([3] * 2), borderValue=0)
    for lattice in lattices:
        own = boxes[lattice.members]
        if len(own) >= max(FEW, HALF * np.prod(lattice.shape)):
            found = _completed(lattice, boxes, lines, page, (None, None))
            ends = lattice.medians(own[:, [1, 3]], 0).astype(int)
            for (_, begin), (end, _) in pairwise(ends.tolist()):
                gaps[begin:end, own[:, 0].min() : own[:, 2].max()] = 1
        else:  # few that are empty between the rows of others, or that the page cuts, are none
            found = [Cell(Box(*box)) for box in own.tolist()]
            found = [cell for cell in found if not _is_gap(cell.box, gaps, ink.strokes)]
            if lattice is not lattices[0]:
                found = [cell for cell in found if inner[cell.box.slices].all()]
        for cell in found:
            if _side(cell) >= LEAST and taken[cell.box.slices].mean() < TAKEN:
                cells.append(cell)
        for cell in found:
            taken[cell.box.slices] = 1
    return cells


def _is_gap(box: Box, gaps: UInt8Array, dark: UInt8Array) -> bool:
    """Whether a box is empty and lies between the rows of a lattice."""
    inside = tuple(slice(each.start + LEAST, each.stop - LEAST) for each in box.slices)
    return bool(gaps[box.slices].mean() > 1 - TAKEN and not dark[inside].any())


def _side(cell: Cell) -> int:
    """The shorter side of a cell."""
    return min(cell.box.width, cell.box.height)


def _completed(
    lattice: Lattice,
    boxes: AnyArray,
    lines: UInt8Array,
    page: UInt8Array,
    numbers: tuple[int | None, int | None],
) -> list[Cell]:
    """The boxes of a lattice, which has so many rows and columns if they are known."""
    known, shape = numbers != (None, None), lattice.shape
    margins = [1 if number is None else number - n for number, n in zip(numbers, shape)]
    if min(margins) < 0:
        raise _other_shape(shape, numbers)
    own, reach = boxes[lattice.members].astype(float), (len(lines) - len(page)) // 2
    y, x = lattice.medians(own[:, [1, 3]], 0), lattice.medians(own[:, [0, 2]], 1)
    may_open = np.zeros((2, 2), bool)
    if known:
        y, x = _extended(y, margins[0], known), _extended(x, margins[1], known)
    else:
        (y, may_open[0]), (x, may_open[1]) = (
            _run_on(y, x, lines, reach),
            _run_on(x, y, lines.T, reach),
        )
    grid = np.stack(np.broadcast_arrays(x[:, 0], y[:, :1], x[:, 1], y[:, 1:]), axis=2)
    found: BoolArray = np.zeros(grid.shape[:2], bool)
    at = tuple((lattice.places + margins).T)
    found[at], grid[at] = True, own
    there, whole, free = found | _on_page(grid, page), np.ones_like(found), np.ones_like(found)
    grid = np.rint(np.where(there[..., None], grid, 0)).astype(int)
    others = painted(np.delete(boxes, lattice.members, axis=0), page.shape)
    shares, near = np.where(found[..., None], np.ones(4), 0), len(lines) - len(page)
    for place in zip(*np.nonzero(there & ~found)):
        left, top, right, bottom = grid[place].clip(0, page.shape[::-1] * 2)
        inside = others[top:bottom, left:right]
        whole[place] = np.mean(inside != np.median(inside)) < TAKEN  # in one box, or in none
        within = lines[top + near : bottom, left + near : right]
        free[place] = np.mean(inside > 0) < TAKEN and within.sum() <= 255 * CLEAR * within.size
        shares[place] = _drawn(Box(left, top, right, bottom), lines, page)
    closed = shares.copy()  # the outer sides of open rows and columns count as drawn
    for axis, end in np.argwhere(may_open).tolist():
        np.moveaxis(closed, axis, 0)[-end, :, 1 - axis + 2 * end] = 1
    clear = there & free & (closed.min(axis=2) >= CLEAR)
    found, shares = found | clear, np.where(clear[..., None], closed, shares)
    window = []
    for axis, (number, n, margin) in enumerate(zip(numbers, shape, margins)):
        across = slice(margins[1 - axis], margins[1 - axis] + shape[1 - axis])
        if number is None:
            outer = np.moveaxis(found, axis, 0)[[0, -1], across].mean(axis=1) >= HALF
            window.append(slice(1 - int(outer[0]), n + 1 + int(outer[1])))
        else:
            drawn = np.where(there, shares.mean(axis=2), -np.inf)
            sums = np.moveaxis(drawn, axis, 0)[:, across].sum(axis=1)
            sums = [sums[k : k + number].sum() for k in range(margin + 1)]
            if max(sums) == -np.inf:
                raise _other_shape(shape, numbers)
            window.append(slice(int(np.argmax(sums)), int(np.argmax(sums)) + number))
    grid, found, there, whole, free, shares = (
        each[tuple(window)] for each in (grid, found, there, whole, free, shares)
    )
    n_drawn = np.sum(shares >= DRAWN, axis=2)
    most = (found.mean(axis=0) >= HALF) & (found.mean(axis=1, keepdims=True) >= HALF)
    # Where lines are seen at all, a box shows one of the sides that it shares with no other.
    alone = ~_shared(grid, found, near)
    some = boxes[lattice.members[:: len(own) // SOME + 1]]
    sides = [max(_drawn(Box(*box), lines, page)) for box in some.tolist()]
    seen = np.median(sides) >= LONG
    shown = np.where(alone, shares, 0).max(axis=2) >= DRAWN
    shown |= ~alone.any(axis=2) | ~seen
    likely = free & shown & (most | (n_drawn == 3))
    found |= there & (known | (whole & (n_drawn == 4)) | likely)
    ends = np.clip(grid[found], 0, page.shape[::-1] * 2).tolist()
    return [Cell(Box(*each), seen) for each, seen in zip(ends, (n_drawn[found] == 4).tolist())]


def _shared(grid: AnyArray, found: BoolArray, most: int) -> BoolArray:
    """Which sides (h, w, 4) of places lie next to a box that was found, at most so far away."""
    shared = np.zeros(grid.shape, bool)
    for axis, (begin, end) in enumerate(((1, 3), (0, 2))):
        places, boxes, sides = (np.moveaxis(each, axis, 0) for each in (grid, found, shared))
        near = places[1:, :, begin] - places[:-1, :, end] <= most
        sides[1:, :, begin], sides[:-1, :, end] = boxes[:-1] & near, boxes[1:] & near
    return shared


def _other_shape(shape: tuple[int, int], numbers: tuple[int | None, int | None]) -> InputError:
    """The error for a lattice that lacks the rows and columns that are known."""
    (rows, columns), (n_rows, n_columns) = shape, numbers
    expected = [
        f"{n} {what}" for n, what in ((n_columns, "columns"), (n_rows, "rows")) if n is not None
    ]
    return InputError(
        f"shows a grid of {columns} columns and {rows} rows: expected {' and '.join(expected)}"
    )


def _extended(ends: Float64Array, n: int, known: bool) -> Float64Array:
    """Begins and ends (k, 2) with so many more at both sides, as far apart as the outermost.

    The distance of a single one is known if there are others.
    """
    first = last = float(np.ptp(ends[0])) if known else np.inf
    if len(ends) > 1:
        first, last = ends[1, 0] - ends[0, 0], ends[-1, 1] - ends[-2, 1]
    k = np.arange(1, n + 1)[:, None]
    return np.concatenate([ends[0] - k[::-1] * first, ends, ends[-1] + k * last])


def _run_on(
    ends: Float64Array, across: Float64Array, lines: UInt8Array, reach: int
) -> tuple[Float64Array, list[bool]]:
    """Begins and ends (k, 2) with one more at both sides, and whether each of these may be open.

    It reaches to where the lines at the begins and ends `across` stop, or another crosses them.
    """
    ends, begins = _extended(ends, 1, False), across.astype(int).ravel()
    on = np.stack([lines[:, k : k + 2 * reach].any(axis=1) for k in begins], axis=1)
    on &= lines[:, begins[0] : begins[-1]].mean(axis=1, keepdims=True) < 255 * CLEAR
    may_open = []
    for k, way in ((0, -1), (-1, 1)):
        inner, is_single = ends[k - way], np.isinf(ends[k, k])
        usual = np.ptp(inner) if is_single else abs(ends[k, k] - inner[k])
        beyond = max(0, int(inner[k]) + reach + 2 * reach * way)
        off = ~on[min(beyond, len(on) - 1) :: way]
        run = 2 * reach + np.median(off.argmax(axis=0).reshape(-1, 2).min(axis=1))
        may_open.append(bool(run <= FAR * usual))
        if CLEAR * usual <= run <= FAR * usual:
            ends[k, k] = inner[k] + way * run
            if is_single:
                ends[k, -1 - k] = inner[k] + way * reach
    return ends, may_open


def _on_page(boxes: Float64Array, page: UInt8Array) -> BoolArray:
    """Whether the middle of boxes (..., 4) is on a page (h, w)."""
    middle = (boxes[..., :2] + boxes[..., 2:]) / 2
    inside = np.all((middle >= 0) & (middle < page.shape[::-1]), axis=-1, keepdims=True)
    x, y = np.moveaxis(np.where(inside, middle, 0).astype(int), -1, 0)
    return inside[..., 0] & (page[y, x] > 0)


def _lines(boxes: AnyArray, ink: Ink, page: UInt8Array) -> UInt8Array:
    """The lines of a page (h, w), also pale ones, and its ends, with a margin around it."""
    width, height = np.median(boxes[:, 2:] - boxes[:, :2], axis=0)
    lines = find_lines(ink.faint.strokes, round(LONG * width), round(LONG * height))
    ended = 255 - cv2.erode(page, np.ones([2 * BORDER + 1] * 2), borderValue=0)
    reach = [max(2, round(REACH * min(width, height)))] * 4
    return cv2.copyMakeBorder(lines | ended, *reach, cv2.BORDER_CONSTANT, value=255)


def _drawn(box: Box, lines: UInt8Array, page: UInt8Array) -> list[float]:
    """The share of each side of a box on a page along which there is a line."""
    reach = (len(lines) - len(page)) // 2
    rows, columns = (slice(each.start + reach, each.stop + reach) for each in box.slices)
    upright = [lines[rows, x : x + 2 * reach] for x in (box.left, box.right)]
    level = [lines[y : y + 2 * reach, columns].T for y in (box.top, box.bottom)]
    sides = upright[0], level[0], upright[1], level[1]
    return [float(each.any(axis=1).mean()) if each.size else 0.0 for each in sides]
