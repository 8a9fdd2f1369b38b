"""Which ink is one digit: candidates that a network judges, and the best sequence of them.

Digits that touch are cut at several places, and broken ones are put together in several ways.
The network answers for each candidate, and the sequence with the greatest probability is kept:
heuristic over-segmentation (LeCun, Bottou, Bengio, Haffner, *Gradient-Based Learning Applied to
Document Recognition*, Proc. IEEE 86, 1998, section VII).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlpcore.reading.boxes import Box
from mlpcore.reading.strokes import Glyph
from mlpcore.typing import AnyArray

#: How much the network's probability counts beside shape and distance. This and the constants of
#: `mlpcore.reading.touching` were fitted to 500 numbers of MNIST's training digits.
NETWORK = 6.0


class Segment(NamedTuple):
    """The parts from `first` to before `end` of a field, as one digit.

    `prior` is the logarithm of how probable that is by their shape and distance.
    """

    first: int
    end: int
    glyph: Glyph
    prior: float


class Field(NamedTuple):
    """A box with a digit, or a number of several digits.

    Attributes
    ----------
    box : Box
        On the page.
    is_cell : bool
        Whether it is the box of one digit.
    n_parts : int
        The pieces of ink from left to right, of which digits are made; 0 if there is none.
    segments : list of Segment
        What may be a digit.
    """

    box: Box
    is_cell: bool
    n_parts: int
    segments: list[Segment]


def cell_field(box: Box, glyph: Glyph | None) -> Field:
    """The field of a box for one digit; None for an empty one."""
    segments = [] if glyph is None else [Segment(0, 1, glyph, 0.0)]
    return Field(box, True, len(segments), segments)


def best_sequence(field: Field, scores: Sequence[float] | AnyArray) -> list[int]:
    """The numbers of the segments that cover all parts with the greatest sum (Viterbi).

    Parameters
    ----------
    scores
        The logarithm of the network's probability for each segment.
    """
    best = np.full(field.n_parts + 1, -np.inf)
    best[0] = 0
    last = np.full(field.n_parts + 1, -1)
    for number in sorted(range(len(field.segments)), key=lambda k: field.segments[k].first):
        segment = field.segments[number]
        total = best[segment.first] + segment.prior + NETWORK * scores[number]
        if total > best[segment.end]:
            best[segment.end], last[segment.end] = total, number
    sequence, end = [], field.n_parts
    while end > 0:
        sequence.append(int(last[end]))
        end = field.segments[sequence[-1]].first
    return sequence[::-1]
