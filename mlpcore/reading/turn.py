"""By how many quarters a page must be turned until its digits are upright."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlpcore.data.digit import SIDE
from mlpcore.typing import Float64Array, UInt8Array

#: So many digits show it, and no more are looked at. Turned, they are surer than the first on
#: average, and by the second than as they are.
FEW, MANY, SURE, SURER = 8, 60, 0.75, 0.12


def quarter_turns(
    digits: Sequence[UInt8Array], sureness: Callable[[Sequence[UInt8Array]], Float64Array]
) -> int:
    """The number of quarter turns, counter-clockwise, that make digits (28, 28) upright.

    `sureness` gives how sure a network is of each.
    """
    if len(digits) < FEW:
        return 0
    some = digits[:: -(-len(digits) // MANY)]
    means = [float(np.mean(sureness(some)))]
    if means[0] <= 1 - SURER:
        means += [float(np.mean(sureness([_turned(each, k) for each in some]))) for k in (1, 2, 3)]
    best = int(np.argmax(means))
    return best if means[best] > max(SURE, means[0] + SURER) else 0


def _turned(digit: UInt8Array, quarters: int) -> UInt8Array:
    """A digit turned around its centre of mass, which is a pixel beside the middle."""
    return np.rot90(np.pad(digit, ((0, 1), (0, 1))), quarters)[:SIDE, :SIDE]
