"""The activation of every neuron, a scaled tanh, and the targets that it can reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlpcore.checks import check_real
from mlpcore.errors import InputError

A, B = 1.7159, 0.6666
"""y(a) = A tanh(B a) (LeCun et al. 1998; paper, "Architectures")."""


def check_target(value: Any) -> None:
    """Check that an output can come arbitrarily close to a target and to its negative.

    Raises
    ------
    InputError
        When the target is not between 0 and `A`.
    """
    check_real("target", value)
    # The backends compute in float32, where 1e-50 is 0.
    if not (0 < value < A and 0 < np.float32(value) < np.float32(A)):
        raise InputError(f"target {value}: expected more than 0 and less than {A}")
