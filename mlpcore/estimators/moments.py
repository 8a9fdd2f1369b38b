"""The mean and the deviation of targets, by which a regression standardises them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlpcore.typing import AnyArray, Float64Array


@dataclass(frozen=True)
class Moments:
    """Moments of targets: the sums of their weights, and of weighted differences and squares."""

    origin: Float64Array  #: (k,), near the targets: differences are those from it
    sums: Float64Array  #: (1 + 2 k,): of the weights, the differences and their squares

    @classmethod
    def of(cls, targets: Float64Array, weights: AnyArray | None) -> Moments:
        """The moments of all targets (n, k), with weights (n,), which are 1 by default."""
        centre = targets[0] + np.average(targets - targets[0], axis=0, weights=weights)
        return cls(centre, _terms(targets - centre, weights).sum(axis=0))

    def after(
        self, targets: Float64Array, weights: AnyArray | None
    ) -> tuple[Float64Array, Moments]:
        """The targets (n, k), each standardised by all up to itself, and what is known then.

        The same bits however the targets are cut into calls.
        """
        terms = np.vstack([self.sums, _terms(targets - self.origin, weights)])
        sums = np.cumsum(terms, axis=0)[1:]
        return _standardised(targets, *_scale(self.origin, sums)), Moments(self.origin, sums[-1])

    def standardised(self, targets: Float64Array) -> Float64Array:
        """The targets (n, k), standardised by all that are known."""
        return _standardised(targets, *self.scale)

    @property
    def scale(self) -> tuple[Float64Array, Float64Array]:
        """Mean and standard deviation (k,), which is 0 of equal targets."""
        mean, deviation = _scale(self.origin, self.sums[None])
        return mean[0], deviation[0]


def _terms(differences: Float64Array, weights: AnyArray | None) -> Float64Array:
    """The terms of the sums for each target, (n, 1 + 2 k)."""
    terms = np.column_stack([np.ones(len(differences)), differences, differences**2])
    return terms if weights is None else terms * weights[:, None].astype(np.float64)


def _scale(origin: Float64Array, sums: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Mean and deviation (n, k) of sums (n, 1 + 2 k)."""
    means = sums[:, 1:] / np.maximum(sums[:, :1], np.finfo(np.float64).tiny)
    shift, square = np.hsplit(means, 2)
    variance = square - shift**2
    # Less is what rounding leaves of equal targets.
    return origin + shift, np.sqrt(np.where(variance > 1e-14 * square, variance, 0.0))


def _standardised(
    targets: Float64Array, mean: Float64Array, deviation: Float64Array
) -> Float64Array:
    return (targets - mean) / np.where(deviation > 0, deviation, 1.0)
