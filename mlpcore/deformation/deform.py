"""Elastic and affine deformation of images (paper, "Deforming images")."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mlpcore.backends.affine import N_LABELS, affine_maps
from mlpcore.backends.arguments import (
    TAPS,
    check_indices,
    check_place,
    check_range,
    check_shape,
    check_sides,
)
from mlpcore.backends.base import Backend
from mlpcore.data.pixels import PixelSpec
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.typing import AnyArray, BackendArray, Float32Array, UInt8Array

#: The greatest sigma that the paper smooths with.
GREATEST_PAPER_SIGMA = 6

#: A greater one spans so many cells of noise, or somewhat more.
SIGMA_IN_CELLS = 3


@lru_cache(maxsize=64)
def gaussian_taps(sigma: float) -> Float32Array:
    """Return the weights (cell, n_taps), float32, of a truncated Gaussian.

    The paper cuts it off at 10 pixels, and has a number of noise for each pixel: cell is 1. Beyond
    the paper's sigma, that would leave a box, whose edges tear images; so there it is cut off at
    4 sigma, as SciPy's `gaussian_filter` does. A number of noise for each cell of a third of sigma
    is enough there: weights for each of its pixels, which sum to 1, give the same variance and
    covariances as one for each pixel, to 1e-9, if alpha is divided by `cell`.
    """
    cell, radius = 1, TAPS // 2
    if sigma > GREATEST_PAPER_SIGMA:
        cell = int(sigma / SIGMA_IN_CELLS)
        radius = int(4 * sigma / cell + 0.5)
    places = (np.arange(cell) - (cell - 1) / 2) / cell  # of the pixels of a cell, about its centre
    offsets = np.arange(-radius, radius + 1) - places[:, None]
    taps = (offsets == 0) * 1.0 if sigma == 0 else np.exp(-0.5 * (offsets * cell / sigma) ** 2)
    result = (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)
    result.flags.writeable = False
    return result


def smoothing(parameters: DeformationParameters) -> tuple[Float32Array, float]:
    """Return the `taps` and the `alpha` of a backend."""
    taps = gaussian_taps(parameters.sigma)
    return taps, parameters.alpha / len(taps)


def draw_affine(
    parameters: DeformationParameters,
    labels: UInt8Array,
    seed: int,
    epoch: int,
    indices: AnyArray | None = None,
) -> Float32Array:
    """Return the random matrices, (n, 2, 2) float32, of images with these indices or 0, 1, ..."""
    labels = np.asarray(labels)
    whole = labels.dtype if labels.dtype.kind in "iu" else np.uint8
    check_shape("labels", labels, (None,), whole)
    check_range("labels", labels, N_LABELS)
    check_place(epoch, 0, len(labels))
    indices = check_indices(np.arange(len(labels)) if indices is None else indices, len(labels))
    angles, scale = parameters.greatest_angles(), parameters.gamma / 100
    return affine_maps(indices, labels, angles, scale, seed, epoch)


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
    pixels: PixelSpec | None = None,
) -> BackendArray:
    """Deform consecutive images of a training set, each with its own random map.

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
        (`mlpcore.data.pixels.BACKGROUNDS`).
    pixels
        How images come from bytes, if `images` are these, ``(n, *pixels.pixel_shape)`` uint8.

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
    drawing = *smoothing(parameters), seed, epoch
    return backend.deform(images, maps, *drawing, first, out, background, pixels)


def deform_selected(
    images: Float32Array,
    indices: AnyArray,
    labels: UInt8Array,
    parameters: DeformationParameters,
    seed: int,
    epoch: int,
    backend: Backend,
    background: float | Float32Array = -1.0,
    out: Float32Array | None = None,
) -> Float32Array:
    """Deform any images of a training set as `deform` does.

    Images with consecutive indices are deformed together, which takes less time for each.

    Parameters
    ----------
    images
        (n, h, w) or (n, channels, h, w) float32 on the host, as all arrays here. The channels of an
        image share its map.
    indices
        (n,) whole numbers from 0, in any order: which images of the training set these are.
    labels
        (n,) uint8, their classes.
    background
        The value of pixels outside an image, or (channels,) float32: of those of each channel.
    out
        float32 of the shape of `images`, for the result. Both may have any strides.

    Returns
    -------
    float32, of the shape of `images`.
    """
    images = np.asarray(images)
    out = np.empty_like(images) if out is None else out
    planes, shown = (a[:, None] if a.ndim == 3 else a for a in (images, out))
    maps = draw_affine(parameters, labels, seed, epoch, indices)
    drawing = *smoothing(parameters), seed, epoch
    backend.deform_selected(planes, maps, *drawing, indices, background, shown)
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
    result = backend.fields(height, width, *smoothing(parameters), seed, epoch, indices)
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    y, x = np.mgrid[:height, :width]
    offset = np.stack([x, y], axis=-1) - centre
    for field, matrix in zip(result, maps):
        field += np.moveaxis(offset @ matrix.T - offset, -1, 0)
    return result
