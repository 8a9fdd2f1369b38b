"""The boxes that lattices lack: a row has all of its boxes, also those that were not seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mlpcore.data.components import Box
from mlpcore.data.ink import Ink
from mlpcore.errors import InputError
from mlpcore.reading.boxes import painted
from mlpcore.reading.lattice import Lattice, find_lattices
from mlpcore.typing import BoolArray, Float64Array, UInt8Array

#: A lattice has so many boxes, and this share of its places. What so large a share of a row and of
#: a column has, the others have, too.
FEW, HALF = 4, 0.5

#: A line exceeds the inside of a box by this share of the ink's threshold, in the mean over a
#: quarter of a side, and by so much of 255. It is so near to the side, as a share of it.
FAINT, LEAST, REACH = 0.35, 6.0, 0.1

#: The share of a side's quarters that show a line, inside of a lattice and beyond it.
DRAWN, CLEAR = 0.5, 0.75

#: A box is another's place if this share of it is.
TAKEN = 0.25

#: The page ends if it does so many pixels outside of a box.
BORDER = 6


class Cell(NamedTuple):
    """A box of a page; `seen` is whether its sides were, or only its neighbours'."""

    box: Box
    seen: bool = True


def complete(
    boxes: Sequence[Box], ink: Ink, page: UInt8Array, columns: int | None, rows: int | None
) -> list[Cell]:
    """The boxes of a page whose lines are level, and those that their lattices lack.

    Parameters
    ----------
    boxes : sequence of Box
        That were found.
    ink : Ink
        Of the page.
    page : ndarray of uint8, shape (h, w)
        0 where the page has ended.
    columns, rows : int or None
        Of the page's one lattice, if they are known.

    Raises
    ------
    InputError
        When there is no lattice with so many columns and rows. Its text follows the page's name.
    """
    places = np.reshape(np.array(boxes, float), (-1, 4))
    lattices = find_lattices(places[:, [[0, 1], [2, 1], [2, 3], [0, 3]]])
    if columns is not None or rows is not None:
        if not lattices:
            raise InputError("shows no lines: expected a grid of drawn boxes")
        if lattices[0].shape == (1, 1) and columns and rows:
            return _divided(boxes[lattices[0].members[0]], columns, rows)
        return _completed(lattices[0], boxes, places, ink, page, (rows, columns))
    cells, taken = [], np.zeros_like(page)
    for lattice in lattices:
        if len(lattice.members) >= max(FEW, HALF * np.prod(lattice.shape)):
            found = _completed(lattice, boxes, places, ink, page, (None, None))
        else:
            found = [Cell(boxes[k]) for k in lattice.members]
        found = [cell for cell in found if taken[cell.box.slices].mean() < TAKEN]
        for cell in found:
            taken[cell.box.slices] = 1
        cells += found
    return cells


def _divided(frame: Box, columns: int, rows: int) -> list[Cell]:
    """The boxes of a frame without lines in it."""
    x = np.linspace(frame.left, frame.right, columns + 1).round().astype(int).tolist()
    y = np.linspace(frame.top, frame.bottom, rows + 1).round().astype(int).tolist()
    return [
        Cell(Box(left, top, right, bottom), False)
        for top, bottom in pairwise(y)
        for left, right in pairwise(x)
    ]


def _completed(
    lattice: Lattice,
    boxes: Sequence[Box],
    places: Float64Array,
    ink: Ink,
    page: UInt8Array,
    numbers: tuple[int | None, int | None],
) -> list[Cell]:
    """The boxes of a lattice, which has so many rows and columns if they are known."""
    known, shape = numbers != (None, None), lattice.shape
    margins = [1 if number is None else number - n for number, n in zip(numbers, shape)]
    if min(margins) < 0:
        raise _other_shape(shape, numbers)
    own = places[lattice.members]
    mine = set(lattice.members.tolist())
    others = painted([box for k, box in enumerate(boxes) if k not in mine], page.shape)
    y = _extended(lattice.medians(own[:, [1, 3]], 0), margins[0], known)
    x = _extended(lattice.medians(own[:, [0, 2]], 1), margins[1], known)
    grid = np.stack(np.broadcast_arrays(x[:, 0], y[:, :1], x[:, 1], y[:, 1:]), axis=2)
    found: BoolArray = np.zeros(grid.shape[:2], bool)
    at = tuple((lattice.places + margins).T)
    found[at], grid[at] = True, own
    there, free = found | _on_page(grid, page), np.ones_like(found)
    shares = np.where(found[..., None], np.ones(4), 0)
    for place in zip(*np.nonzero(there & ~found)):
        left, top, right, bottom = grid[place].clip(0).round().astype(int)
        free[place] = np.mean(others[top:bottom, left:right] > 0) < TAKEN
        shares[place] = _drawn(grid[place], ink, page)
    found |= there & free & (shares.min(axis=2) >= CLEAR)
    window = []
    for axis, (number, n, margin) in enumerate(zip(numbers, shape, margins)):
        across = slice(margins[1 - axis], margins[1 - axis] + shape[1 - axis])
        if number is None:
            lines = np.moveaxis(found, axis, 0)[:, across].mean(axis=1) >= HALF
            window.append(slice(int(not lines[0]), n + 1 + int(lines[-1])))
        else:
            drawn = np.where(there, shares.mean(axis=2), -np.inf)
            lines = np.moveaxis(drawn, axis, 0)[:, across].sum(axis=1)
            sums = [lines[k : k + number].sum() for k in range(margin + 1)]
            if max(sums) == -np.inf:
                raise _other_shape(shape, numbers)
            window.append(slice(int(np.argmax(sums)), int(np.argmax(sums)) + number))
    grid, found, there, free, shares = (
        each[tuple(window)] for each in (grid, found, there, free, shares)
    )
    n_drawn = np.sum(shares >= DRAWN, axis=2)
    most = (found.mean(axis=0) >= HALF) & (found.mean(axis=1, keepdims=True) >= HALF)
    found |= there & (known | (n_drawn == 4) | (free & (most | (n_drawn == 3))))
    height, width = page.shape
    ends = np.clip(np.rint(grid[found]), 0, (width, height) * 2).astype(int).tolist()
    return [Cell(Box(*each), seen) for each, seen in zip(ends, (n_drawn[found] == 4).tolist())]


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


def _on_page(boxes: Float64Array, page: UInt8Array) -> BoolArray:
    """Whether the middle of boxes (..., 4) is on a page (h, w)."""
    middle = (boxes[..., :2] + boxes[..., 2:]) / 2
    inside = np.all((middle >= 0) & (middle < page.shape[::-1]), axis=-1, keepdims=True)
    x, y = np.moveaxis(np.where(inside, middle, 0).astype(int), -1, 0)
    return inside[..., 0] & (page[y, x] > 0)


def _drawn(box: Float64Array, ink: Ink, page: UInt8Array) -> list[float]:
    """The share of each side of a box (4,) along which there is a line, or the page's end."""
    height, width = page.shape
    left, top, right, bottom = np.clip(np.rint(box), 0, (width, height) * 2).astype(int).tolist()
    inside = ink.values[top:bottom, left:right]
    if min(inside.shape) < 4:
        return [0.0] * 4
    least = np.median(inside) + max(LEAST, FAINT * ink.threshold)
    reach = max(2, round(REACH * min(inside.shape)))
    shares = []
    for upright, at, out in (
        (True, left, -1),
        (False, top, -1),
        (True, right, 1),
        (False, bottom, 1),
    ):
        values, border = (ink.values.T, page.T) if upright else (ink.values, page)
        along = slice(top, bottom) if upright else slice(left, right)
        beyond = at + out * BORDER
        if not 0 <= beyond < len(border) or not border[beyond, (along.start + along.stop) // 2]:
            shares.append(1.0)
            continue
        strip = values[max(0, at - reach) : at + reach, along]
        quarters = np.array_split(strip, 4, axis=1)
        shares.append(float(np.mean([each.mean(axis=1).max() >= least for each in quarters])))
    return shares
