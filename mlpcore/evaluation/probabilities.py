"""Class probabilities from a network's outputs."""

from __future__ import annotations

import numpy as np

from mlpcore.network.network import Network
from mlpcore.typing import AnyArray, Float64Array


def of_network(
    network: Network, outputs: AnyArray, target: float = 1.0, n_samples: int | None = None
) -> Float64Array:
    """Probabilities (n, n_classes) of the classes, from a network's outputs (n, n_classes).

    With the loss "cross-entropy" they are the outputs. With "squared" they are `of_outputs`, and
    `unsure` by the number of samples that the network has learned from, if it is given.
    """
    if network.loss != "squared":
        return outputs.astype(np.float64)
    found = of_outputs(outputs, target)
    return found if n_samples is None else unsure(found, n_samples)


def unsure(probabilities: Float64Array, n_samples: int) -> Float64Array:
    """Probabilities (n, n_classes) that are never 0 or 1, because n samples cannot prove that.

    The result is (n_samples P + 1) / (n_samples + n_classes): Laplace's rule of succession, which
    counts one more sample of each class.
    """
    return (n_samples * probabilities + 1) / (n_samples + probabilities.shape[1])


def of_outputs(outputs: AnyArray, target: float = 1.0) -> Float64Array:
    """Probabilities (n, n_classes) of the classes, from outputs (n, n_classes).

    Training on 1/2 |y - t|^2 draws each output y to the mean of its target given the input. For
    targets of +t and -t, t being `target`, this mean is t (2 P - 1), where P is the probability
    of the class (Richard and Lippmann 1991, "Neural network classifiers estimate Bayesian a
    posteriori probabilities", Neural Computation 3). So (y / t + 1) / 2 estimates P, but it may
    be negative, and its sum over the classes is not 1. The result is the nearest distribution.
    Since P is a distribution, the result is never farther from P than the estimate is. The
    greatest output has the greatest probability.
    """
    return nearest_distributions((outputs.astype(np.float64) / target + 1) / 2)


def nearest_distributions(points: Float64Array) -> Float64Array:
    """The nearest points (n, k) whose coordinates are not negative and have a sum of 1.

    The nearest point is max(point - c, 0), with the constant c that makes the sum 1. It is the
    greatest of the k constants that do so for the 1, 2 ... k greatest coordinates alone (Duchi et
    al. 2008, "Efficient projections onto the l1-ball for learning in high dimensions", Figure 1).
    """
    descending = -np.sort(-points, axis=1)
    constants = (np.cumsum(descending, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    return np.maximum(points - constants.max(axis=1, keepdims=True), 0)
