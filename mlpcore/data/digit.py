"""A picture of one digit brought to the format of MNIST's digits.

MNIST's digits were made from scanned ones in two steps (LeCun, Bottou, Bengio, Haffner,
*Gradient-Based Learning Applied to Document Recognition*, Proc. IEEE 86, 1998, section III.A):
"size normalized to fit in a 20x20 pixel box while preserving their aspect ratio", with grey
levels from anti-aliasing, and "centered in a 28x28 image by computing the center of mass of
the pixels, and translating the image so as to position this point at the center". In the
published files that centre is pixel (14, 14), counted from 0, to the nearest whole pixel.

NIST's scans were black and white. What else a scanner or a camera delivers has to be told
apart first: the ground, which the border shows, from the ink, whatever the light and
whichever of them is the darker one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from scipy import ndimage

from mlpcore.data.pictures import read_grey
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray, Float64Array, UInt8Array

#: MNIST's image, the box of its digit, and where its centre of mass lies.
SIDE, BOX, CENTRE = 28, 20, 14

#: Smaller pictures show no digit; larger ones are reduced to so many pixels a side at first.
MIN_SIDE, WORKING_SIDE = 8, 256

#: Ink takes this much of the ground's light at least, or there is none.
MIN_CONTRAST = 0.12

#: Standard deviations of the ground's noise by which ink stands out.
MIN_SIGNAL = 4.0

#: From the ground (0) to the ink (1): a stroke reaches the second, and ends at the first.
EDGE, STROKE = 0.35, 0.5

#: Percent of the ink that is paler than the middle of a stroke: edges.
EDGE_SHARE = 75

#: Share of the largest connected piece of ink below which another one is dirt.
MIN_PIECE = 0.05

#: Share of the ink that is no dirt; noise has less.
MIN_DIGIT = 0.5

NO_DIGIT = "no digit found, expected one that stands out from an even ground"


def read_digit(path: Path) -> UInt8Array:
    """MNIST's picture, (28, 28) uint8, of the digit in a file.

    Raises
    ------
    InputError
        As `read_grey` and `normalise_digit`.
    """
    grey = read_grey(path)
    try:
        return normalise_digit(grey)
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None


def normalise_digit(grey: AnyArray) -> UInt8Array:
    """MNIST's picture of the one digit in an image.

    Parameters
    ----------
    grey
        (h, w) finite brightness, 0 black to 255 white, of a digit on a lighter or darker
        ground without anything else: any size from 8 x 8, the light may be uneven.

    Returns
    -------
    (28, 28) uint8, the ground 0, the ink up to 255.

    Raises
    ------
    InputError
        When the image is too small, or no ink stands out from its ground.
    """
    height, width = grey.shape
    if min(height, width) < MIN_SIDE:
        raise InputError(
            f"{width} x {height} pixels, expected a digit on at least {MIN_SIDE} x {MIN_SIDE}"
        )
    return _centred(_fitted(_digit(_contrasted(_ink(_reduced(grey, WORKING_SIDE))))))


def _ink(image: AnyArray) -> Float64Array:
    """How much of the ground's light each pixel lacks, 0 to 1, when the ground is light.

    A dark ground is inverted first, as in a negative.
    """
    deviation = image - _plane(image)
    # Noise is to both sides and light changes little; a high odd power tells to which side the
    # ink is, even if it covers little: here to the light one.
    if np.sum(deviation**5) > 0:
        image = 255 - image
    return np.clip(1 - image / np.maximum(_ground(image), 1), 0, 1)


def _plane(image: AnyArray) -> Float64Array:
    """The plane that fits the border best, by least absolute deviations."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in image.shape), indexing="ij")
    terms = np.stack([np.ones_like(x), x, y], axis=-1)
    border = np.ones(image.shape, bool)
    margin = max(1, min(image.shape) // 12)
    border[margin:-margin, margin:-margin] = False
    values, at_border = image[border], terms[border]
    weights = np.ones(len(values))
    for _ in range(20):  # iteratively reweighted least squares
        root = np.sqrt(weights)
        slopes = np.linalg.lstsq(at_border * root[:, None], values * root, rcond=None)[0]
        weights = 1 / np.maximum(np.abs(values - at_border @ slopes), 1)
    return terms @ slopes


def _ground(image: AnyArray) -> Float64Array:
    """The light ground behind dark ink: what is narrower than two fifths of a side is filled.

    The edge of a shadow stays, which a smooth surface would blur. Without room around the image,
    a slope of light would become flat at the border.
    """
    window = max(3, round(0.4 * min(image.shape)))
    image = ndimage.gaussian_filter(image, max(image.shape) / 128, mode="nearest")
    closed = ndimage.grey_closing(np.pad(image, window), (window, window))
    return closed[window:-window, window:-window]


def _contrasted(ink: AnyArray) -> Float64Array:
    """Ink stretched so that the ground is 0 and a stroke 1."""
    threshold = _otsu(ink)
    strong = ink > threshold
    if strong.all() or not strong.any():
        raise InputError(NO_DIGIT)
    ground, stroke = ink[~strong], ink[strong]
    level = np.median(ground)
    noise = 1.4826 * np.median(np.abs(ground - level))
    contrast = np.percentile(stroke, EDGE_SHARE) - level
    if contrast < max(MIN_CONTRAST, MIN_SIGNAL * noise):
        raise InputError(NO_DIGIT)
    low = level + min(2 * noise, contrast / 2)
    return np.clip((ink - low) / (level + contrast - low), 0, 1)


def _otsu(values: AnyArray) -> float:
    """The threshold that splits values from 0 to 1 into the two most distinct classes.

    Otsu, *A Threshold Selection Method from Gray-Level Histograms*, 1979: the variance
    between the classes is the greatest.
    """
    counts, edges = np.histogram(values, 256, (0, 1))
    middles = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    above = values.size - below
    sums = np.cumsum(counts * middles)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = sums / below - (sums[-1] - sums) / above
        between = np.nan_to_num(below * above * distance**2)
    return float(edges[1 + int(np.argmax(between))])


def _digit(ink: AnyArray) -> Float64Array:
    """The ink cropped to its strokes, specks of dirt taken out."""
    labels, _ = ndimage.label(ink > EDGE, np.ones((3, 3)))
    mass = np.bincount(labels.ravel(), (ink * (ink > STROKE)).ravel())
    mass[0] = 0
    kept = (mass >= MIN_PIECE * mass.max()) & (mass > 0)
    if mass[kept].sum() <= MIN_DIGIT * mass.sum():
        raise InputError(NO_DIGIT)
    rows, columns = np.nonzero(kept[labels])
    box = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
    dirt = ~kept & (np.arange(len(kept)) > 0)
    return np.where(dirt[labels[box]], 0, ink[box])


def _fitted(ink: AnyArray) -> Float64Array:
    """Scaled until the longer side is 20 pixels, with anti-aliasing."""
    height, width = (max(1, round(BOX * side / max(ink.shape))) for side in ink.shape)
    result = _resized(ink, height, width)
    return result / max(result.max(), 1e-9)


def _centred(ink: AnyArray) -> UInt8Array:
    """In MNIST's image, the centre of mass in the middle as far as the ink does not leave."""
    corner = []
    for axis, side in enumerate(ink.shape):
        profile = ink.sum(axis=1 - axis)
        middle = profile @ np.arange(side) / profile.sum()
        corner.append(int(np.clip(np.floor(CENTRE - middle + 0.5), 0, SIDE - side)))
    result = np.zeros((SIDE, SIDE), np.uint8)
    top, left = corner
    result[top : top + ink.shape[0], left : left + ink.shape[1]] = np.rint(255 * ink)
    return result


def _reduced(values: AnyArray, longest: int) -> Float64Array:
    """With a side of no more than `longest` pixels."""
    scale = min(1.0, longest / max(values.shape))
    height, width = (max(1, round(scale * side)) for side in values.shape)
    return _resized(values, height, width)


def _resized(values: AnyArray, height: int, width: int) -> Float64Array:
    """Linear interpolation, over as many pixels as one of the result covers."""
    image = Image.fromarray(np.ascontiguousarray(values, np.float32))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), np.float64)
