"""A picture of one digit in the format of MNIST's digits.

MNIST's digits were made from scans in two steps (LeCun, Bottou, Bengio, Haffner, *Gradient-Based
Learning Applied to Document Recognition*, Proc. IEEE 86, 1998, section III.A). They were "size
normalized to fit in a 20x20 pixel box while preserving their aspect ratio", with grey levels from
anti-aliasing, and "centered in a 28x28 image by computing the center of mass of the pixels, and
translating the image so as to position this point at the center". In the published files that
centre is pixel (14, 14), counted from 0, to the nearest whole pixel.

Those scans were black and white. Other scans and photographs have uneven light, and their ink may
be darker or lighter than the ground. So this module first separates the ink from the ground, which
the border of the picture shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy import ndimage

from mlpcore.data.pictures import read_grey
from mlpcore.data.scaling import to_images
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray, Float32Array, Float64Array, StrPath, UInt8Array

#: Sides of MNIST's image and of the digit's box, and the pixel of the centre of mass.
SIDE, BOX, CENTRE = 28, 20, 14

#: Smaller pictures show no digit. Larger ones are first reduced to so many pixels a side.
MIN_SIDE, WORKING_SIDE = 8, 256

#: The least share of the ground's light that ink takes.
MIN_CONTRAST = 0.12

#: Ink stands out by so many standard deviations of the ground's noise.
MIN_SIGNAL = 4.0

#: Levels between the ground (0) and the ink (1): a stroke reaches STROKE and ends at EDGE.
EDGE, STROKE = 0.35, 0.5

#: Percentile of the ink that is taken for the middle of a stroke; paler ink is its edge.
EDGE_SHARE = 75

#: A connected piece of ink with a smaller share of the largest piece is dirt.
MIN_PIECE = 0.05

#: The least share of the ink that is no dirt; noise has less.
MIN_DIGIT = 0.5

#: Pieces of ink side by side are several digits if each is so high, as a share of the highest, and
#: no more of its width is above or below the one before. Of 3,334 single digits of MNIST four seem
#: to be two; of 800 pairs, half of them slanted, three seem to be one.
MIN_HEIGHT, MAX_OVERLAP = 0.5, 0.2


class Digit(NamedTuple):
    """A digit in MNIST's format, and what the picture shows.

    Attributes
    ----------
    name : str
        The picture's, for messages.
    pixels : ndarray of uint8, shape (28, 28)
        0 for the ground, up to 255 for the ink.
    n_seen : int
        How many digits seem to stand side by side: connected pieces of ink of similar height. With
        more than one, `pixels` shows them all.
    """

    name: str
    pixels: UInt8Array
    n_seen: int

    @property
    def image(self) -> Float32Array:
        """The image (29, 29) in [-1, 1] that networks take, as a `Dataset` of MNIST holds it."""
        return to_images(self.pixels[None], SIDE + 1, SIDE + 1)[0]

    @property
    def warning(self) -> str:
        """A line about several digits; empty if there is one."""
        if self.n_seen == 1:
            return ""
        return f"{self.name} seems to show {self.n_seen} digits side by side: expected one"


def read_digit(path: StrPath) -> Digit:
    """Read the digit in a picture file.

    Raises
    ------
    InputError
        As `mlpcore.data.pictures.read_grey` and `find_digit`.
    """
    return find_digit(read_grey(path), shown(path))


def find_digit(grey: AnyArray, name: str = "the picture") -> Digit:
    """Find the digit in an image.

    Parameters
    ----------
    grey
        (h, w) brightness, 0 for black to 255 for white, of at least 8 x 8 pixels. It shows one
        digit on a lighter or darker ground. The light may be uneven.
    name
        For messages.

    Raises
    ------
    InputError
        When the image is too small, or no ink stands out from its ground.
    """
    height, width = grey.shape
    if min(height, width) < MIN_SIDE:
        raise InputError(
            f"{name}: {width} x {height} pixels, expected a digit on at least "
            f"{MIN_SIDE} x {MIN_SIDE}"
        )
    found = _digit(_ink(_reduced(grey)))
    if found is None:
        raise InputError(
            f"{name}: no digit found, expected one that stands out from an even ground"
        )
    ink, n_seen = found
    return Digit(name, from_ink(ink), n_seen)


def from_ink(ink: AnyArray) -> UInt8Array:
    """Bring the ink (h, w) of a digit, 0 to 1 and cropped to its strokes, to MNIST's format."""
    return _centred(_fitted(ink))


def _ink(image: AnyArray) -> Float64Array:
    """Return the share of the ground's light, 0 to 1, that each pixel lacks.

    An image with a dark ground is inverted first, as in a negative.
    """
    deviation = image - _plane(image)
    # Noise deviates to both sides, and uneven light deviates little. So the sign of a high odd
    # power tells whether the ink is lighter than the ground, even if it covers little.
    if np.sum(deviation**5) > 0:
        image = 255 - image
    return np.clip(1 - image / np.maximum(_ground(image), 1), 0, 1)


def _plane(image: AnyArray) -> Float64Array:
    """Return the plane that fits the border with the least absolute deviations."""
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
    """Return the light ground behind dark ink; what is narrower than 0.4 sides is filled.

    A grey closing keeps the edge of a shadow, which a smooth surface would blur. The padding keeps
    a slope of light from becoming flat at the border.
    """
    window = max(3, round(0.4 * min(image.shape)))
    image = ndimage.gaussian_filter(image, max(image.shape) / 128, mode="nearest")
    closed = ndimage.grey_closing(np.pad(image, window), (window, window))
    return closed[window:-window, window:-window]


def _contrasted(ink: AnyArray) -> Float64Array | None:
    """Stretch the ink so that the ground is 0 and a stroke is 1; None if nothing stands out."""
    threshold = _otsu(ink)
    strong = ink > threshold
    if strong.all() or not strong.any():
        return None
    ground, stroke = ink[~strong], ink[strong]
    level = np.median(ground)
    noise = 1.4826 * np.median(np.abs(ground - level))
    contrast = np.percentile(stroke, EDGE_SHARE) - level
    if contrast < max(MIN_CONTRAST, MIN_SIGNAL * noise):
        return None
    low = level + min(2 * noise, contrast / 2)
    return np.clip((ink - low) / (level + contrast - low), 0, 1)


def _otsu(values: AnyArray) -> float:
    """Return the threshold that splits values from 0 to 1 into the two most distinct classes.

    It maximises the variance between the classes (Otsu, *A Threshold Selection Method from
    Gray-Level Histograms*, 1979).
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


def _digit(ink: AnyArray) -> tuple[Float64Array, int] | None:
    """Crop the ink to its strokes, without specks of dirt, and count the digits side by side.

    It returns None if there is no digit.
    """
    stretched = _contrasted(ink)
    if stretched is None:
        return None
    ink = stretched
    labels, _ = ndimage.label(ink > EDGE, np.ones((3, 3)))
    mass = np.bincount(labels.ravel(), (ink * (ink > STROKE)).ravel())
    mass[0] = 0
    kept = (mass >= MIN_PIECE * mass.max()) & (mass > 0)
    if mass[kept].sum() <= MIN_DIGIT * mass.sum():
        return None
    rows, columns = np.nonzero(kept[labels])
    box = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
    dirt = ~kept & (np.arange(len(kept)) > 0)
    n_seen = _side_by_side(ndimage.find_objects(np.where(kept[labels], labels, 0)))
    return np.where(dirt[labels[box]], 0, ink[box]), n_seen


def _side_by_side(boxes: Sequence[tuple[slice, slice] | None]) -> int:
    """How many of the boxes that are about as high as the highest have columns of their own."""
    found = [box for box in boxes if box]
    highest = max(rows.stop - rows.start for rows, _ in found)
    large = [c for r, c in found if r.stop - r.start >= MIN_HEIGHT * highest]
    n, end = 0, 0
    for columns in sorted(large, key=lambda columns: columns.start):
        n += not n or columns.start >= end - MAX_OVERLAP * (columns.stop - columns.start)
        end = max(end, columns.stop)
    return n


def _fitted(ink: AnyArray) -> Float64Array:
    """Scale the ink until its longer side has 20 pixels."""
    height, width = (max(1, round(BOX * side / max(ink.shape))) for side in ink.shape)
    result = _resized(ink, height, width)
    return result / max(result.max(), 1e-9)


def _centred(ink: AnyArray) -> UInt8Array:
    """Put the ink into MNIST's image, its centre of mass as near to the middle as it fits."""
    corner = []
    for axis, side in enumerate(ink.shape):
        profile = ink.sum(axis=1 - axis)
        middle = profile @ np.arange(side) / profile.sum()
        corner.append(int(np.clip(np.floor(CENTRE - middle + 0.5), 0, SIDE - side)))
    result = np.zeros((SIDE, SIDE), np.uint8)
    top, left = corner
    result[top : top + ink.shape[0], left : left + ink.shape[1]] = np.rint(255 * ink)
    return result


def _reduced(values: AnyArray) -> Float64Array:
    """Reduce an image to at most `WORKING_SIDE` pixels a side."""
    scale = min(1.0, WORKING_SIDE / max(values.shape))
    height, width = (max(1, round(scale * side)) for side in values.shape)
    return _resized(values, height, width)


def _resized(values: AnyArray, height: int, width: int) -> Float64Array:
    """Resize by linear interpolation over the pixels that one of the result covers."""
    image = Image.fromarray(np.ascontiguousarray(values, np.float32))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), np.float64)
