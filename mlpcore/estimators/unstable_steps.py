"""Steps that a weight makes too long."""

from __future__ import annotations

import warnings

#: A step eta w (1 + |x|^2) changes the answer to a sample x by so much that the error grows. It is
#: 2 / (p (1 - p)) for a softmax of two classes of probability p = 1/2, and networks with hidden
#: layers were found to fail between a half and twice of it, in ten passes over scikit-learn's sets.
UNSTABLE = 4.0


def warn_of_unstable_step(
    weight: float, step: float, sample: str, rate: str, stacklevel: int
) -> None:
    """Warns if a weight above 1 makes a step unstable.

    `step` is that of the sample with weight 1, and `sample` and `rate` say in the warning which
    sample and learning rate they are. `stacklevel` is as in `warnings.warn`, here.
    """
    if weight > 1 and weight * step > UNSTABLE:
        warnings.warn(
            f"{sample} the weight {weight:.4g}, which makes the step at {rate} unstable. Lower the "
            f"weight to {UNSTABLE / step:.2g}, or the learning rate.",
            stacklevel=stacklevel,
        )
