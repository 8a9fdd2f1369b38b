"""Random rotations, shears and scalings of images (paper, "Deforming images")."""

from __future__ import annotations

import numpy as np

from mlpcore import philox
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: Labels are bytes.
N_LABELS = 256


def affine_maps(
    labels: AnyArray, angles: Float64Array, scale: float, seed: int, epoch: int, first: int = 0
) -> Float32Array:
    """Random matrices from target to source coordinates.

    An image is scaled and then, on the toss of a fair coin, rotated or sheared; the matrix
    inverts that, because the lookup goes backward. Coordinates are (x, y) about the centre, y
    pointing down. All is computed in float64 and rounded once.

    Parameters
    ----------
    labels
        (n,) uint8, of the images number `first` and on of the training set.
    angles
        (256,) float64, the greatest angle in radians for each label.
    scale
        Greatest change of width and of height, as a fraction.

    Returns
    -------
    (n, 2, 2) float32.
    """
    return affine_maps_of(np.arange(first, first + len(labels)), labels, angles, scale, seed, epoch)


def affine_maps_of(
    indices: AnyArray,
    labels: AnyArray,
    angles: Float64Array,
    scale: float,
    seed: int,
    epoch: int,
) -> Float32Array:
    """`affine_maps` for images of any numbers (n,) of the training set."""
    words = philox.philox4x32(philox.counters(indices, 0, epoch, philox.AFFINE), seed)
    drawn = philox.to_uniform(words)
    angle = angles[labels] * drawn[:, 0]
    shears = drawn[:, 1] < 0
    scale_x = 1 + scale * drawn[:, 2]
    scale_y = 1 + scale * drawn[:, 3]
    cosine = np.where(shears, 1.0, np.cos(angle))
    sine = np.where(shears, 0.0, np.sin(angle))
    shear = np.where(shears, np.tan(angle), 0.0)
    # (R S)^-1 = S^-1 R^-1, where R = [[cos, -sin + shear], [sin, cos]] has determinant 1.
    inverse = np.empty((len(labels), 2, 2))
    inverse[:, 0, 0], inverse[:, 0, 1] = cosine / scale_x, (sine - shear) / scale_x
    inverse[:, 1, 0], inverse[:, 1, 1] = -sine / scale_y, cosine / scale_y
    return inverse.astype(np.float32)
