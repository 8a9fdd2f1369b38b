"""Elastic and affine deformation of images (paper, "Deforming images")."""

from __future__ import annotations

import numpy as np

from mlpcore.backends.affine import affine_maps_of
from mlpcore.backends.base import GRID, IMAGES_PER_GRID, TAPS, Backend, check_sides
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.typing import AnyArray, BackendArray, Float32Array, UInt8Array


def gaussian_taps(sigma: float) -> Float32Array:
    """Return the 21 weights, float32, of a truncated Gaussian. They sum to 1."""
    offsets = np.arange(TAPS) - TAPS // 2
    if sigma == 0:
        return (offsets == 0).astype(np.float32)
    taps = np.exp(-0.5 * (offsets / sigma) ** 2)
    return (taps / taps.sum()).astype(np.float32)


def draw_affine(
    parameters: DeformationParameters,
    labels: UInt8Array,
    seed: int,
    epoch: int,
    indices: AnyArray | None = None,
) -> Float32Array:
    """Return the random matrices, (n, 2, 2) float32, of images with these indices or 0, 1, ..."""
    indices = np.arange(len(labels)) if indices is None else indices
    angles, scale = parameters.greatest_angles(), parameters.gamma / 100
    return affine_maps_of(indices, labels, angles, scale, seed, epoch)


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
    background: float = -1.0,
) -> BackendArray:
    """Deform consecutive images of a training set, each by its own random map.

    The seed, the epoch and the number of an image determine its map. So deforming a part of the
    training set gives the same bits as deforming all of it.

    Parameters
    ----------
    images
        (n, h, w) float32 on the backend's device, from number `first` of the training set on.
    labels
        (n,) uint8 on the device, their classes.
    out, maps
        (n, h, w) and (n, 2, 2) float32 on the device, for the result and for the random
        matrices. New arrays by default.
    background
        The value of pixels outside an image: -1 for images in [-1, 1], 0 for those in [0, 1]
        (`mlpcore.data.scaling.BACKGROUNDS`).

    Returns
    -------
    (n, h, w) float32.

    Examples
    --------
    >>> import numpy as np
    >>> from mlpcore import backends
    >>> backend, parameters = backends.get("scalar"), DeformationParameters(sigma=5.0, alpha=36.0)
    >>> images, labels = np.eye(29, dtype=np.float32)[None].repeat(5, 0), np.zeros(5, np.uint8)
    >>> whole = deform(images, labels, parameters, seed=1, epoch=0, backend=backend)
    >>> part = deform(images[3:], labels[3:], parameters, 1, 0, backend, first=3)
    >>> np.array_equal(part, whole[3:])
    True
    """
    check_sides(*images.shape[1:])
    angles, scale = parameters.greatest_angles(), parameters.gamma / 100
    maps = backend.affine_maps(labels, angles, scale, seed, epoch, first, maps)
    taps = gaussian_taps(parameters.sigma)
    outside = {} if background == -1 else {"background": background}
    return backend.deform(images, maps, taps, parameters.alpha, seed, epoch, first, out, **outside)


def deform_selected(
    images: Float32Array,
    indices: AnyArray,
    labels: UInt8Array,
    parameters: DeformationParameters,
    seed: int,
    epoch: int,
    backend: Backend,
) -> Float32Array:
    """Deform any images of a training set as `deform` does.

    Images with consecutive indices are deformed together. Each other image takes several times
    as long.

    Parameters
    ----------
    images
        (n, h, w) float32 on the host, as all arrays here.
    indices
        (n,) whole numbers from 0, in any order: which images of the training set these are.
    labels
        (n,) uint8, their classes.

    Returns
    -------
    (n, h, w) float32.
    """
    check_sides(*images.shape[1:])
    maps = draw_affine(parameters, labels, seed, epoch, indices)
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
    """Return the distance from each pixel to the source that `deform_selected` looks up for it.

    Parameters
    ----------
    shape
        Height and width (h, w) of the images.
    indices, labels
        As for `deform_selected`.

    Returns
    -------
    (n, 2, h, w) float32 in pixels, x before y.
    """
    height, width = shape
    maps = draw_affine(parameters, labels, seed, epoch, indices)
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
