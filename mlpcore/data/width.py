"""Width normalisation: the ink of an image brought to a width, and its mass to the centre.

Ciresan, Meier, Gambardella and Schmidhuber average networks that see digits of different widths
(*Convolutional Neural Network Committees for Handwritten Character Classification*, ICDAR 2011).
Their errors differ more than those of networks that see the same images.

The rule is geometric. It knows no labels, and treats training and test images alike:

- **Ink** is what is brighter than the background.
- **The box** of the ink ends where the greatest ink of a column, or of a row, crosses `THRESHOLD`
  of the greatest of the image. In between columns the ink is interpolated, so that the box has
  no whole number of pixels, and a small change of the image changes it little.
- **The stretch** is the wanted width divided by the width of the box, and at most `MAX_STRETCH`.
  So a narrow box stays narrower than the others: an upright 1, whose box is 3 to 6 pixels wide,
  does not become as wide as a 0. The height stays.
- **The shift** brings the centre of mass to the centre of the image, as that of MNIST's digits is,
  or as near to it as the box fits into the image. It is no whole number of pixels either.
- **A pixel** is the mean of the ink around its source, weighted by a tent. The tent reaches to the
  next pixel of the source, or of the result if these are further apart. So no ink is skipped.

Sums are of whole numbers in float64. They are exact, so no processor, library or number of threads
changes a bit of the result. Background stays exactly background.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mlpcore.checks import check_whole
from mlpcore.cpu import cores_beside_others
from mlpcore.data.scaling import BACKGROUNDS, batches
from mlpcore.typing import Float32Array, Float64Array

#: The ink at the edge of the box, as a share of the greatest.
THRESHOLD = 0.25

#: No box becomes wider by more than this factor.
MAX_STRETCH = 1.5

#: Ink and weights are whole multiples of 1 / UNIT.
UNIT = 2.0**20

#: Memory for an image in a batch, as a multiple of its pixels: a batch fits into the cache.
_WORK = 16


def normalise_width(images: Float32Array, width: int) -> Float32Array:
    """Bring the ink of each image to a width and its centre of mass to the centre.

    Parameters
    ----------
    images : numpy.ndarray of float32, shape (n, h, w)
        In [-1, 1]; -1 is the background. What is darker becomes background.
    width : int
        The width of the ink in pixels, 1 to w.

    Returns
    -------
    numpy.ndarray of float32, shape (n, h, w)

    Raises
    ------
    InputError
        When the width is out of range.

    Examples
    --------
    >>> image = np.full((1, 5, 9), -1, np.float32)
    >>> image[0, 1:4, 1:7] = 1  # 3 x 6 pixels of ink
    >>> print(normalise_width(image, 3)[0, 2].round(1))
    [-1.  -1.  -0.9  0.6  1.   0.6 -0.9 -1.  -1. ]
    """
    _, height, image_width = images.shape
    check_whole("width", width, 1, image_width)
    result: Float32Array = np.empty_like(images)

    def convert(batch: slice) -> None:
        result[batch] = _normalised(images[batch], width)

    parts = list(batches(len(images), _WORK * height * image_width))
    # A few images need no threads, nor what counts the cores.
    with ThreadPoolExecutor(cores_beside_others() if len(parts) > 1 else 1) as pool:
        list(pool.map(convert, parts))
    return result


def _normalised(images: Float32Array, width: int) -> Float32Array:
    """Images (n, h, w), as many as fit into a cache, with ink of a width."""
    ink = np.subtract(images, BACKGROUNDS["signed"], dtype=np.float64)
    np.maximum(ink, 0, out=ink)
    ink *= UNIT
    np.rint(ink, out=ink)
    columns, rows = _matrices(ink, width)
    ink = _means(rows, ink)
    ink = _means(columns, ink.swapaxes(1, 2)).swapaxes(1, 2)
    ink /= UNIT
    ink += BACKGROUNDS["signed"]
    return ink.astype(np.float32)


def _means(weights: Float64Array, ink: Float64Array) -> Float64Array:
    """The means (n, h, w) of rows of ink (n, h, w), by weights (n, h, h + 2 p); see `_tents`."""
    total = weights @ np.ones((weights.shape[2], 1))
    np.maximum(total, 1, out=total)
    beyond = (weights.shape[2] - weights.shape[1]) // 2
    within: Float64Array = weights[:, :, beyond : beyond + weights.shape[1]] @ ink
    within /= total
    return np.rint(within, out=within)


def _matrices(ink: Float64Array, width: int) -> tuple[Float64Array, Float64Array]:
    """The weights of the columns and of the rows of images (n, h, w)."""
    least = THRESHOLD * ink.max(axis=(1, 2))
    left, right = _box(ink.max(axis=1), least)
    top, bottom = _box(ink.max(axis=2), least)
    stretch = np.minimum(width / (right - left), MAX_STRETCH)
    columns = _tents(ink.sum(axis=1), left, right, stretch)
    return columns, _tents(ink.sum(axis=2), top, bottom, np.ones(len(ink)))


def _box(profile: Float64Array, least: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Where profiles (n, w) first and last cross a value (n,); at the ends without ink."""
    return _first(profile, least), profile.shape[1] - 1 - _first(profile[:, ::-1], least)


def _first(profile: Float64Array, least: Float64Array) -> Float64Array:
    """Where profiles (n, w), 0 outside and linear between pixels, first exceed a value (n,)."""
    images = np.arange(len(profile))
    inner = (profile > least[:, None]).argmax(axis=1)
    high, low = profile[images, inner], np.where(inner, profile[images, inner - 1], 0)
    rise = np.where(high > least, high - low, 1)  # no ink, no rise
    return inner - (high - least) / rise


def _tents(
    mass: Float64Array, begin: Float64Array, end: Float64Array, stretch: Float64Array
) -> Float64Array:
    """The weight of each source for each result, with `p` sources beyond each end of the image.

    Parameters
    ----------
    mass : numpy.ndarray, shape (n, w)
        The ink of each column, or of each row.
    begin, end, stretch : numpy.ndarray, shape (n,)
        The box, and by how much it becomes longer.

    Returns
    -------
    numpy.ndarray of float64, shape (n, w, w + 2 p)
        Whole numbers. `p` is so large that a tent which reaches into the image is complete.
    """
    side = mass.shape[1]
    pixels, centre = np.arange(side), (side - 1) / 2
    total = mass.sum(axis=1)
    middle = np.where(total > 0, mass @ pixels / np.maximum(total, 1), centre)
    # A box that touches the border of an image is nowhere nearer to it than this.
    margin = THRESHOLD - 1
    to_begin, to_end = stretch * (begin - middle), stretch * (end - middle)
    target = centre + np.maximum(0, margin - (centre + to_begin))
    target -= np.maximum(0, target + to_end - (side - 1 - margin))
    source = middle[:, None] + (pixels - target[:, None]) / stretch[:, None]
    slope = np.minimum(stretch, 1)[:, None]
    beyond = math.ceil(2 / slope.min()) - 1
    sources = np.arange(-beyond, side + beyond) * (slope * UNIT)
    weights: Float64Array = np.subtract(sources[:, None], (source * (slope * UNIT))[:, :, None])
    np.abs(weights, out=weights)
    np.subtract(UNIT, weights, out=weights)
    np.maximum(weights, 0, out=weights)
    return np.rint(weights, out=weights)
