"""Counting errors: of outputs, and of outputs most of which are computed roughly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mlpcore.network.activation import A, B
from mlpcore.typing import AnyArray, Float32Array, UInt8Array

#: Images on which rough outputs are tried first: a part of them, the closest calls, says how far
#: off they are.
PROBES, CLOSEST = 512, 64

#: An image is in doubt where its two greatest outputs are closer than so many standard deviations
#: of what their difference is off by: a normal deviate is beyond once in 400 billion times, and
#: clearer images are off by less.
DEVIATIONS = 7.0

#: With more of them in doubt, rough outputs save nothing.
MOST_IN_DOUBT = 0.25

#: Outputs so near the greatest possible are all alike.
SATURATED = A * (1 - 1e-5)


Predict: TypeAlias = Callable[[Float32Array], AnyArray]
"""Outputs (n, n_classes) of images (n, n_in), each independent of the others."""


def count_errors(outputs: AnyArray, labels: UInt8Array) -> int:
    """How many rows have their greatest output (the first such) elsewhere than at the label."""
    return int(np.count_nonzero(outputs.argmax(axis=1) != labels))


def close_calls(outputs: AnyArray, margin: float) -> AnyArray:
    """Indices of the rows whose two greatest numbers are less than `margin` apart, or infinite."""
    if outputs.shape[1] < 2:
        return np.empty(0, np.intp)
    second, first = np.partition(outputs, -2, axis=1)[:, -2:].T
    with np.errstate(invalid="ignore"):
        gaps = first - second
    return np.flatnonzero(~(gaps >= margin))  # also where a difference is not a number


def count_errors_by_both(
    roughly: Predict, exactly: Predict, images: Float32Array, labels: UInt8Array
) -> int:
    """How many errors there are by exact outputs, of which most are computed roughly.

    The exact ones are computed of images in doubt. How wrong the rough ones are is measured on the
    closest calls, and when that calls for it more images are in doubt. Both are seen in the
    outputs' weighted sums, not in the outputs, which are the less wrong the more they saturate.

    Parameters
    ----------
    roughly, exactly
        Rough outputs may be NaN for "in doubt".
    """
    if len(images) < 2 * PROBES:
        return count_errors(exactly(images), labels)
    sums, some = _sums(roughly(images[:PROBES])), exactly(images[:PROBES])
    margin = DEVIATIONS * _deviation(sums, _sums(some))
    if len(close_calls(sums, margin)) > MOST_IN_DOUBT * PROBES:
        return count_errors(some, labels[:PROBES]) + count_errors(
            exactly(images[PROBES:]), labels[PROBES:]
        )
    rest = roughly(images[PROBES:])
    outputs, sums = np.concatenate([some, rest]), np.concatenate([sums, _sums(rest)])
    known = np.arange(len(images)) < PROBES
    while True:
        doubted = close_calls(sums, margin)
        new = doubted[~known[doubted]]
        outputs[new] = exactly(images[new])
        known[new] = True
        needed = DEVIATIONS * _deviation(sums[known], _sums(outputs[known]))
        if needed <= margin:
            return count_errors(outputs, labels)
        margin = needed


def _sums(outputs: AnyArray) -> AnyArray:
    """The weighted sums that outputs are of, infinite where these are saturated."""
    with np.errstate(divide="ignore"):
        ratios = np.where(np.abs(outputs) < SATURATED, outputs / A, np.sign(outputs))
        return np.arctanh(ratios) / B


def _deviation(rough: AnyArray, exact: AnyArray) -> float:
    """Standard deviation of what the difference of the two greatest rough sums is off by, of the
    closest calls; 0 when there are none."""
    if rough.shape[1] < 2:
        return 0.0
    best = np.argsort(rough, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        gaps, exact_gaps = (
            np.diff(np.take_along_axis(each, best, axis=1), axis=1)[:, 0].astype(float)
            for each in (rough, exact)
        )
        off = gaps - exact_gaps
    off = off[np.argsort(gaps)]
    closest = off[np.isfinite(off)][:CLOSEST]
    return math.sqrt(np.mean(closest**2)) if len(closest) else 0.0
