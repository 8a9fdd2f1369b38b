"""What belongs together in an image: two kinds of values, and connected pieces."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from mlpcore.typing import AnyArray, BoolArray, Int32Array

#: A piece of ink that is nowhere further from the border than this share of a side is along it.
RIM = 1 / 24


def otsu(values: AnyArray) -> float:
    """Return the threshold that splits values from 0 to 1 into the two most distinct classes.

    It maximises the variance between the classes (Otsu, *A Threshold Selection Method from
    Gray-Level Histograms*, 1979).
    """
    counts, edges = np.histogram(values, 256, (0, 1))
    middles = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    above = values.size - below
    sums = np.cumsum(counts * middles)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = sums / below - (sums[-1] - sums) / above
        between = np.nan_to_num(below * above * distance**2)
    return float(edges[1 + int(np.argmax(between))])


def pieces(mask: BoolArray) -> Int32Array:
    """Number the pieces of a mask (h, w) whose pixels touch at edges or corners; 0 is no piece."""
    labels: Int32Array = ndimage.label(mask, np.ones((3, 3)))[0]
    return labels


def reach_inside(labels: Int32Array) -> BoolArray:
    """Which numbers of `pieces`, from 0, are of pieces that are not only along the border.

    What is only there is the rest of a line along which somebody cut. The ground is no piece.
    """
    rows, columns = (int(RIM * side) for side in labels.shape)
    found = np.zeros(labels.max(initial=0) + 1, bool)
    found[labels[rows : len(labels) - rows, columns : labels.shape[1] - columns]] = True
    found[0] = False
    return found
