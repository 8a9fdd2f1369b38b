"""Activations of the hidden neurons, losses, and the targets that the scaled tanh can reach.

The loss decides what the outputs are. With ``"squared"`` the output neurons are scaled tanh, as in
the paper. With ``"cross-entropy"`` they are a softmax, the probabilities of the classes. With
``"huber"``, for regression, they are linear, and with ``"binary-cross-entropy"`` sigmoids,
1 / (1 + exp(-a)), the probabilities of labels, any number of which may apply to a sample.
"""

from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from mlpcore.checks import check_real
from mlpcore.errors import InputError

A, B = 1.7159, 0.6666
"""y(a) = A tanh(B a) (LeCun et al. 1998; paper, "Architectures")."""

HUBER_THRESHOLD = 1.345
"""k of Huber's loss, whose efficiency is 95 % where errors are normal."""

Activation: TypeAlias = Literal["tanh", "relu"]
"""Of hidden neurons: the scaled tanh, or the rectifier max(0, a) (Glorot et al. 2011), in the order
of `cpu_simd/network.h`."""

Loss: TypeAlias = Literal["squared", "cross-entropy"]
"""1/2 sum (y - t)^2 over scaled tanh outputs, or -log y of the class over softmax outputs."""

AnyLoss: TypeAlias = Literal["squared", "cross-entropy", "huber", "binary-cross-entropy"]
"""Those of classifiers; that of regression, for targets of any numbers: over linear outputs the
sum of e^2 / 2 of errors e = y - t up to k, and of k (|e| - k / 2) of greater ones (Huber 1964,
"Robust estimation of a location parameter"); and the sum of -t log y - (1 - t) log(1 - y) over
sigmoids, for targets 0 and 1."""

Init: TypeAlias = Literal["uniform", "he", "glorot"]
"""Initial weights: uniform in [-0.05, 0.05] (paper), or scaled by the widths of the layers
(He et al. 2015, for rectifiers; Glorot and Bengio 2010)."""


ACTIVATIONS, LOSSES, INITS = (get_args(each) for each in (Activation, Loss, Init))

ALL_LOSSES = get_args(AnyLoss)
HUBER, BINARY = OF_TARGETS = ALL_LOSSES[2:]  # which learn numbers, one for each output

Each = TypeVar("Each")


def complete(where: str, table: dict[str, Each]) -> dict[str, Each]:
    """A table, which a module `where` has, of what belongs to each activation.

    A NotImplementedError, when the module is imported, if it lacks one.
    """
    for name in ACTIVATIONS:
        if name not in table:
            raise NotImplementedError(f"{where} lacks the activation {name!r}")
    return table


def check_target(value: Any) -> None:
    """Check that an output can come arbitrarily close to a target and to its negative.

    An InputError when the target is not between 0 and `A`.
    """
    check_real("target", value)
    # The backends compute in float32, where 1e-50 is 0.
    if not (0 < value < A and 0 < np.float32(value) < np.float32(A)):
        raise InputError(f"target {value}: expected more than 0 and less than {A}")
