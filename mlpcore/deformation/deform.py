"""Elastic and affine deformation of images (paper, "Deforming images")."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mlpcore.backends import affine
from mlpcore.backends.base import GRID, IMAGES_PER_GRID, TAPS, Backend, check_sides
from mlpcore.checks import check_real, check_whole
from mlpcore.errors import InputError
from mlpcore.typing import (
    AnyArray,
    ArrayLike,
    BackendArray,
    Float32Array,
    Float64Array,
    UInt8Array,
)


@dataclass(frozen=True)
class DeformationParameters:
    """How strongly images are deformed; the defaults are within the paper's ranges.

    Parameters
    ----------
    sigma
        Standard deviation, in pixels, of the Gaussian that smooths the displacement noise
        (paper: 5.0 to 6.0). 0 does not smooth.
    alpha
        Scale of the displacement in pixels (paper: 36.0 to 38.0): alpha times uniform noise
        in [-1, 1] convolved with the 21 x 21 Gaussian, whose weights sum to 1. An RMS
        displacement of 1.14 to 1.33 pixels over the paper's ranges.
    beta
        Greatest angle in degrees of rotation or, on the toss of a fair coin, horizontal
        shear (paper: 15).
    gamma
        Greatest change of width and of height in percent, drawn independently
        (paper: 15 to 20).
    similar_labels
        Labels that are turned or sheared by half of beta (paper: digits 1 and 7).

    Raises
    ------
    InputError
        When a value is not a finite number, negative, or beyond what can be inverted or, as
        alpha of a million pixels, computed. Labels are looked at where they are used.
    """

    sigma: float = 6.0
    alpha: float = 36.0
    beta: float = 15.0
    gamma: float = 15.0
    similar_labels: tuple[int, ...] = (1, 7)

    def __post_init__(self) -> None:
        limits = {"sigma": math.inf, "alpha": 1e6, "beta": 90.0, "gamma": 100.0}
        for name, limit in limits.items():
            value = getattr(self, name)
            check_real(name, value)
            if not (math.isfinite(value) and 0 <= value < limit):
                below = f" and less than {limit:g}" if math.isfinite(limit) else ""
                raise InputError(f"{name} {value}: expected a finite number, 0 or more{below}")
            object.__setattr__(self, name, float(value))

    def greatest_angles(self) -> Float64Array:
        """(256,) float64: the greatest angle in radians for each label."""
        similar = np.isin(np.arange(affine.N_LABELS), list(self.label_bytes()))
        return np.radians(np.where(similar, 0.5, 1.0) * self.beta)

    def label_bytes(self) -> tuple[int, ...]:
        """The similar labels, as bytes of a data set; an InputError unless they are."""
        try:
            labels = tuple(self.similar_labels)
        except TypeError:
            shown = repr(self.similar_labels)
            raise InputError(f"similar labels {shown}: expected a list of labels") from None
        for label in labels:
            check_whole("similar label", label, 0, affine.N_LABELS - 1)
        return tuple(map(int, labels))

    @property
    def is_identity(self) -> bool:
        """Whether every image is left as it is."""
        return self.alpha == self.beta == self.gamma == 0


IDENTITY = DeformationParameters(alpha=0.0, beta=0.0, gamma=0.0)
"""No deformation at all."""


def gaussian_taps(sigma: float) -> Float32Array:
    """The 21 weights, float32, of a Gaussian that sum to 1 after truncation."""
    offsets = np.arange(TAPS) - TAPS // 2
    if sigma == 0:
        return (offsets == 0).astype(np.float32)
    taps = np.exp(-0.5 * (offsets / sigma) ** 2)
    return (taps / taps.sum()).astype(np.float32)


def draw_affine(
    parameters: DeformationParameters,
    labels: ArrayLike,
    seed: int,
    epoch: int,
    first: int = 0,
) -> Float32Array:
    """The random matrices of `affine.affine_maps` for these parameters, (n, 2, 2) float32."""
    angles, scale = parameters.greatest_angles(), parameters.gamma / 100
    return affine.affine_maps(np.asarray(labels), angles, scale, seed, epoch, first)


def deform(
    images: BackendArray,
    labels: BackendArray,
    parameters: DeformationParameters,
    seed: int,
    epoch: int,
    backend: Backend,
    first: int = 0,
    out: BackendArray | None = None,
    maps: BackendArray | None = None,
) -> BackendArray:
    """The images as an epoch shows them, each deformed by its own random map.

    Image i of epoch e depends on the seed, e and i alone: any part of a training set can be
    deformed by itself, to the same bits.

    Parameters
    ----------
    images
        (n, h, w) float32, number `first` and on of the training set, where the backend's
        `put` has put them.
    labels
        (n,) uint8, their classes, likewise.
    out
        Where the result goes, if not into a new array.
    maps
        (n, 2, 2) float32, where the random matrices go, if not into a new array.

    Returns
    -------
    (n, h, w) float32.

    Examples
    --------
    Five images of a training set, and then the last two of them alone:

    >>> import numpy as np
    >>> from mlpcore import backends
    >>> backend, parameters = backends.get("scalar"), DeformationParameters(sigma=5.0, alpha=36.0)
    >>> images = np.full((5, 29, 29), -1, np.float32)
    >>> images[:, 10:19, 13:16] = 1
    >>> labels = np.array([3, 1, 4, 1, 5], np.uint8)
    >>> shown = deform(images, labels, parameters, seed=1, epoch=0, backend=backend)
    >>> shown.shape
    (5, 29, 29)
    >>> alone = deform(images[3:], labels[3:], parameters, 1, 0, backend, first=3)
    >>> np.array_equal(alone, shown[3:])
    True
    """
    check_sides(*images.shape[1:])
    maps = backend.affine_maps(
        labels, parameters.greatest_angles(), parameters.gamma / 100, seed, epoch, first, maps
    )
    taps = gaussian_taps(parameters.sigma)
    return backend.deform(images, maps, taps, parameters.alpha, seed, epoch, first, out)


def deform_selected(
    images: Float32Array,
    indices: AnyArray,
    labels: UInt8Array,
    parameters: DeformationParameters,
    seed: int,
    epoch: int,
    backend: Backend,
) -> Float32Array:
    """Some images of a training set as an epoch shows them: those that `deform` gives.

    Consecutive indices are deformed together; others one by one, at several times the cost.

    Parameters
    ----------
    images
        (n, h, w) float32, in memory like all arrays here.
    indices
        (n,) whole numbers from 0, which images of the training set they are, in any order.
    labels
        (n,) uint8, their classes.

    Returns
    -------
    (n, h, w) float32.
    """
    check_sides(*images.shape[1:])
    maps = affine.affine_maps_of(
        indices, labels, parameters.greatest_angles(), parameters.gamma / 100, seed, epoch
    )
    taps = gaussian_taps(parameters.sigma)
    out = np.empty_like(images)
    ascending = np.argsort(indices, kind="stable")
    gaps = np.flatnonzero(np.diff(indices[ascending]) != 1) + 1
    for run in np.split(ascending, gaps) if len(ascending) else ():
        resident = backend.put(images[run]), backend.put(maps[run])
        first = int(indices[run[0]])
        out[run] = backend.deform(*resident, taps, parameters.alpha, seed, epoch, first)
    return out


def displacements(
    shape: tuple[int, int],
    indices: AnyArray,
    labels: UInt8Array,
    parameters: DeformationParameters,
    seed: int,
    epoch: int,
    backend: Backend,
) -> Float32Array:
    """Where `deform_selected` looks each pixel up, as the distance from that pixel.

    Parameters
    ----------
    shape
        Height and width (h, w) of the images.
    indices
        (n,) whole numbers from 0, which images of the training set they are, in any order.
    labels
        (n,) uint8, their classes.

    Returns
    -------
    (n, 2, h, w) float32 in pixels, x before y.
    """
    height, width = shape
    maps = affine.affine_maps_of(
        indices, labels, parameters.greatest_angles(), parameters.gamma / 100, seed, epoch
    )
    taps = gaussian_taps(parameters.sigma)
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    y, x = np.mgrid[:height, :width]
    offset = np.stack([x, y], axis=-1) - centre
    result = np.empty((len(maps), 2, height, width), np.float32)
    grids, tiles = np.divmod(indices, IMAGES_PER_GRID)
    for grid in np.unique(grids):
        noise = backend.noise(seed, epoch, int(grid), height, width)
        field = backend.displacement_field(noise, taps, parameters.alpha)
        for i in np.flatnonzero(grids == grid):
            top, left = tiles[i] // GRID * height, tiles[i] % GRID * width
            result[i] = field[:, top : top + height, left : left + width]
            result[i] += np.moveaxis(offset @ maps[i].T - offset, -1, 0)
    return result
