"""Boxes in rows and columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import KDTree

from mlpcore.typing import AnyArray, Float64Array

#: Neighbours are so near, as a share of a box's shorter side. Their facing sides are displaced by
#: so much of the shorter one, and are so alike.
GAP, OFFSET, ALIKE = 0.8, 0.35, 0.75

#: A box with a smaller share of the height of its row, or of the width of its column, is another.
UNLIKE = 0.6

#: Corners of the right side and of the left one that faces it; of the lower and the upper one.
FACING = ((1, 2), (0, 3)), ((3, 2), (0, 1))

#: By how many rows and columns a neighbour to the right, and one below, are away.
STEPS = np.array([[0, 1], [1, 0]])


class Lattice(NamedTuple):
    """Boxes in rows and columns.

    Attributes
    ----------
    members : ndarray of int64, shape (n,)
        The numbers of its boxes.
    places : ndarray of int64, shape (n, 2)
        The row and the column of each, from 0; no two boxes have the same.
    """

    members: AnyArray
    places: AnyArray

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""
        rows, columns = self.places.max(axis=0) + 1
        return int(rows), int(columns)

    def medians(self, values: Float64Array, axis: int) -> Float64Array:
        """Medians of values (n, ...) of its boxes, for each row (axis 0) or column (1)."""
        place = self.places[:, axis]
        return np.stack([np.median(values[place == k], axis=0) for k in range(place.max() + 1)])


def find_lattices(quads: Float64Array) -> list[Lattice]:
    """Lattices of boxes on a page whose lines are nearly level, the largest first.

    The corners (n, 4, 2) of a box begin at its upper left and go on clockwise.
    """
    n = len(quads)
    if not n:
        return []
    after = np.full((2, n + 1), n)  # to the right and below; n for none
    for k in (0, 1):
        own, other = _links(quads, k).T
        after[k, own] = other
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
            beside = way[1 - k, other]
            square |= (beside < n) & (beside == after[k, way[1 - k, own]])
        ratio = sides[own, k] / sides[other, k]
        ratio = np.minimum(ratio, 1 / ratio)
        linked = square | (ratio > UNLIKE)
        pairs.append(np.stack([own, other], axis=1)[linked])
        weights.append(np.where(square, 1.0, 3 - ratio)[linked])
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
        lattice = Lattice(np.array(order)[chosen], taken - taken.min(axis=0))
        own = sides[lattice.members]
        usual = [lattice.medians(own[:, k], 1 - k)[lattice.places[:, 1 - k]] for k in (0, 1)]
        ratio = own / np.stack(usual, axis=1)
        fits = np.all((ratio > UNLIKE) & (ratio < 1 / UNLIKE), axis=1)
        for chosen in (np.flatnonzero(fits), *np.flatnonzero(~fits)[:, None]):
            if len(chosen):
                taken = lattice.places[chosen]
                lattices.append(Lattice(lattice.members[chosen], taken - taken.min(axis=0)))
    return sorted(lattices, key=lambda lattice: -len(lattice.members))


def _links(quads: Float64Array, axis: int) -> AnyArray:
    """The pairs (n, 2) of neighbours from left to right (axis 0) or from top to bottom (1).

    Their facing sides are nearest to each other.
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
    linked &= apart[:, axis] <= GAP * np.minimum(shorter, _sides(quads)[:, axis])
    return np.stack([k, nearest], axis=1)[linked]


def _sides(quads: Float64Array) -> Float64Array:
    """Widths and heights (n, 2)."""
    return np.linalg.norm(quads[:, [1, 3]] - quads[:, [0]], axis=2)
