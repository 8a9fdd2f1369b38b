"""Slanted digits, turned back by half of their slant and by all of it.

A turn keeps the angles between strokes, which tell a 1 with an upstroke from a 7. Making digits
upright by moving their rows changes them.
"""

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.data.pixels import BACKGROUNDS
from mlpcore.typing import Float32Array

#: The shares of the slant that are taken out.
SHARES = (0.5, 1.0)


def turned_back(images: Float32Array, backend: Backend) -> list[Float32Array]:
    """Digits (n, h, w) as a `Dataset` holds them, turned about the middle by each of `SHARES`.

    The slant is that of the moments of second order, as is usual for digits.
    """
    n, *sides = images.shape
    background = BACKGROUNDS["signed"]
    ink = np.subtract(images, background, dtype=np.float64)
    y, x = (np.arange(side) - (side - 1) / 2 for side in sides)
    rows, columns = ink.sum(axis=2), ink.sum(axis=1)
    mass = np.maximum(rows.sum(axis=1), 1e-9)
    middle = rows @ y / mass
    product = np.einsum("nyx,y,x->n", ink, y, x) - middle * (columns @ x)
    slant = np.arctan2(product, rows @ y**2 - middle * (rows @ y))
    still = np.zeros((n, 2, *sides), np.float32)
    result = []
    for share in SHARES:
        cos, sin = np.cos(share * slant), np.sin(share * slant)
        affine = np.array([[cos, sin], [-sin, cos]], np.float32).transpose(2, 0, 1)
        result.append(backend.deform_by(images, affine, still, background))
    return result
