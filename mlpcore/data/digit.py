"""A picture of one digit in the format of MNIST's digits.

MNIST's digits were made from scans in two steps (LeCun, Bottou, Bengio, Haffner, *Gradient-Based
Learning Applied to Document Recognition*, Proc. IEEE 86, 1998, section III.A). They were "size
normalized to fit in a 20x20 pixel box while preserving their aspect ratio", with grey levels from
anti-aliasing, and "centered in a 28x28 image by computing the center of mass of the pixels, and
translating the image so as to position this point at the center". In the published files that
centre is pixel (14, 14), counted from 0, to the nearest whole pixel.

The picture comes here after `mlpcore.data.frame` and `mlpcore.data.ink`, which leave the lines at
its sides and its ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PIL import Image
from scipy import ndimage

from mlpcore.data.frame import without_frame
from mlpcore.data.ink import ink_of
from mlpcore.data.pictures import read_grey
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.data.segmentation import pieces, reach_inside
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray, Float32Array, Float64Array, StrPath, UInt8Array

#: Sides of MNIST's image and of the digit's box, and the pixel of the centre of mass.
SIDE, BOX, CENTRE = 28, 20, 14

#: Smaller pictures show no digit. Larger ones are first reduced to so many pixels a side.
MIN_SIDE, WORKING_SIDE = 8, 256

#: Levels between the ground (0) and the ink (1): a stroke reaches STROKE and ends at EDGE.
EDGE, STROKE = 0.35, 0.5

#: A connected piece of ink with a smaller share of the largest piece is dirt.
MIN_PIECE = 0.05

#: The least share of the ink that is no dirt; noise has less.
MIN_DIGIT = 0.5

#: Pieces of ink side by side are several digits if each is so high, as a share of the highest, and
#: no more of its width is above or below the one before. Of 3,334 single digits of MNIST four seem
#: to be two; of 800 pairs, half of them slanted, three seem to be one.
MIN_HEIGHT, MAX_OVERLAP = 0.5, 0.2


@dataclass(frozen=True)
class Digit:
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

    @cached_property
    def image(self) -> Float32Array:
        """The image (29, 29) in [-1, 1] that networks take, as a `Dataset` of MNIST holds it."""
        return MNIST_PIXELS.to_images(self.pixels[None])[0]

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
    ink = ink_of(without_frame(_reduced(grey)))
    found = None if ink is None else _digit(ink)
    if found is None:
        raise InputError(
            f"{name}: no digit found, expected one that stands out from an even ground"
        )
    ink, n_seen = found
    return Digit(name, from_ink(ink), n_seen)


def from_ink(ink: AnyArray) -> UInt8Array:
    """Bring the ink (h, w) of a digit, 0 to 1 and cropped to its strokes, to MNIST's format."""
    return _centred(_fitted(ink))


def _digit(ink: AnyArray) -> tuple[Float64Array, int] | None:
    """Crop the ink to its strokes, without dirt and rests of lines, and count the digits in a row.

    It returns None if there is no digit.
    """
    labels = pieces(ink > EDGE)
    mass = np.bincount(labels.ravel(), (ink * (ink > STROKE)).ravel())
    mass[~reach_inside(labels)] = 0
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
