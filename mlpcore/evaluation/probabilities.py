"""A network's outputs as estimates of the classes' probabilities."""

from __future__ import annotations

import numpy as np

from mlpcore.typing import AnyArray, Float64Array


def of_outputs(outputs: AnyArray, target: float = 1.0) -> Float64Array:
    """Probabilities (n, n_classes) of the classes, from the outputs y of a trained network.

    Training on 1/2 |y - t|^2 draws an output to the mean of its target given the input, which
    for targets of +1 and -1 is 2 P - 1, P being the class's probability (Richard and Lippmann
    1991, "Neural network classifiers estimate Bayesian a posteriori probabilities", Neural
    Computation 3). So (y + 1) / 2 estimates P, but may be negative, and its sum is not 1. The
    result is the point nearest to it that is a distribution; the true P being one, it is never
    farther from P than (y + 1) / 2 is. The greatest output has the greatest probability.
    For targets of +t and -t, `target` being t, the mean is t (2 P - 1): y / t takes y's place.
    """
    return nearest_distributions((outputs.astype(np.float64) / target + 1) / 2)


def nearest_distributions(points: Float64Array) -> Float64Array:
    """The nearest points (n, k) whose coordinates are at least 0 and have a sum of 1.

    Such a point is the given one less a constant, but 0 where that is negative (Duchi et al.
    2008, "Efficient projections onto the l1-ball for learning in high dimensions", Figure 1).
    """
    descending = -np.sort(-points, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    counts = np.arange(1, points.shape[1] + 1)
    positive = np.count_nonzero(descending * counts > excess, axis=1)
    constant = excess[np.arange(len(points)), positive - 1] / positive
    return np.maximum(points - constant[:, None], 0)
