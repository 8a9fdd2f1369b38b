"""Random rotations, shears and scalings of images (paper, "Deforming images")."""

import numpy as np

from mlpcore import philox
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: Labels are bytes.
N_LABELS = 256


def affine_maps(
    indices: AnyArray, labels: AnyArray, angles: Float64Array, scale: float, seed: int, epoch: int
) -> Float32Array:
    """Draw random matrices from target to source coordinates.

    An image is scaled and then, on the toss of a fair coin, rotated or sheared. The matrix is the
    inverse of that, because each target pixel looks up its source. Coordinates are (x, y) about
    the centre; y points down. The arithmetic is in float64 and rounds once, at the end.

    `indices` (n,) are the places of the images in the training set, and `labels` (n,), uint8, their
    classes; `angles` (256,), float64, has the greatest angle in radians for each label, and `scale`
    is the greatest change of width and of height, as a fraction. Returns (n, 2, 2) float32.
    """
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
