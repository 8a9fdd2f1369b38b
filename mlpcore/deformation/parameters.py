"""The strength of the deformation of images."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, structs

from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.arguments import MAX_SIGMA
from mlpcore.checks import Record, check_whole, convert_fields
from mlpcore.errors import InputError
from mlpcore.typing import Float64Array


class DeformationParameters(Record, frozen=True):
    """The strength of the deformation of images. The defaults are within the paper's ranges.

    It has scikit-learn's `get_params` and `set_params`, so that a search finds its parameters by
    names such as ``deformation__alpha``. Since an instance never changes, `set_params` returns a
    new one.

    Parameters
    ----------
    sigma
        Standard deviation, in pixels, of the Gaussian that smooths the displacement noise, at most
        512 (paper: 5.0 to 6.0). 0 does not smooth. Up to 6, the Gaussian is cut off at 10 pixels,
        as in the paper, and beyond at 4 sigma.
    alpha
        Scale of the displacement in pixels (paper: 36.0 to 38.0). It multiplies uniform noise in
        [-1, 1] after the convolution with the Gaussian, whose weights sum to 1. The RMS
        displacement is 1.14 to 1.33 pixels over the paper's ranges, and alpha / (6.1 sigma) beyond.
    beta
        Greatest angle, in degrees, of the rotation or the horizontal shear (paper: 15). The toss
        of a fair coin decides which of them an image gets.
    gamma
        Greatest change of width and of height in percent, drawn independently
        (paper: 15 to 20).
    similar_labels
        Labels whose images turn or shear by at most half of beta (paper: digits 1 and 7).

    Raises
    ------
    InputError
        When a number is not finite, negative or too large. `label_bytes` checks the labels.
    """

    sigma: Annotated[float, Meta(ge=0, le=MAX_SIGMA)] = 6.0
    alpha: Annotated[float, Meta(ge=0, lt=1e6)] = 36.0
    # Maps with beta 90 or gamma 100 cannot be inverted.
    beta: Annotated[float, Meta(ge=0, lt=90)] = 15.0
    gamma: Annotated[float, Meta(ge=0, lt=100)] = 15.0
    similar_labels: Any = (1, 7)

    def __post_init__(self) -> None:
        convert_fields(self)

    def greatest_angles(self) -> Float64Array:
        """Return (256,) float64: the greatest angle in radians for each label."""
        return _greatest_angles(self.beta, self.label_bytes())

    def label_bytes(self) -> tuple[int, ...]:
        """Return the similar labels as ints; raise an InputError unless they fit into bytes."""
        try:
            labels = tuple(self.similar_labels)
        except TypeError:
            shown = repr(self.similar_labels)
            raise InputError(f"similar labels {shown}: expected a list of labels") from None
        for label in labels:
            check_whole("similar label", label, 0, N_LABELS - 1)
        return tuple(map(int, labels))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. `deep` changes nothing: none of them has parameters itself."""
        return structs.asdict(self)

    def set_params(self, **params: Any) -> DeformationParameters:
        """An instance with different values of these parameters; this one stays as it is.

        Raises
        ------
        InputError
            When there is no such parameter, or its value cannot be used.
        """
        names = list(self.get_params())
        for name in params:
            if name not in names:
                raise InputError(f"deformation parameter {name}: expected {', '.join(names)}")
        return structs.replace(self, **params)

    @property
    def is_identity(self) -> bool:
        """True if every image stays as it is."""
        return self.alpha == self.beta == self.gamma == 0


@functools.lru_cache(maxsize=64)  # it takes longer than to deform an image
def _greatest_angles(beta: float, similar_labels: tuple[int, ...]) -> Float64Array:
    similar = np.isin(np.arange(N_LABELS), similar_labels)
    result = np.radians(np.where(similar, 0.5, 1.0) * beta)
    result.flags.writeable = False
    return result


IDENTITY = DeformationParameters(alpha=0.0, beta=0.0, gamma=0.0)
"""No deformation at all."""
