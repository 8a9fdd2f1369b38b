"""A picture of one digit in the format of MNIST's digits.

MNIST's digits were made from scans in two steps (LeCun, Bottou, Bengio, Haffner, *Gradient-Based
Learning Applied to Document Recognition*, Proc. IEEE 86, 1998, section III.A). They were "size
normalized to fit in a 20x20 pixel box while preserving their aspect ratio", with grey levels from
anti-aliasing, and "centered in a 28x28 image by computing the center of mass of the pixels, and
translating the image so as to position this point at the center". In the published files that
centre is pixel (14, 14), counted from 0, to the nearest whole pixel.
"""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mlpcore.data.ink import (
    EDGE,
    MIN_SHARE,
    Box,
    Components,
    Ink,
    find_components,
    find_lines,
    picture_ink,
    reduced,
    stroke_level,
    without_lines,
)
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array, UInt8Array

#: Sides of MNIST's image and of the digit's box, and the pixel of the centre of mass.
SIDE, BOX, CENTRE = 28, 20, 14

#: Smaller pictures show no digit. Larger ones are first reduced to so many pixels a side.
MIN_SIDE, WORKING_SIDE = 8, 256

#: A smaller picture shows no lines beside a digit. Lines run along so large a share of a picture,
#: and are thinner than the next share of its shorter side. The edge of a table is thinner than the
#: last one.
MIN_RULED, RUN, THIN, DEPTH = 24, 0.9, 0.08, 0.2

#: The most ink beside an edge. More is there if what seems to be an edge is ground.
MAX_BESIDE = 0.25

#: Ink that is nowhere further from the border than this share of a side is the rest of a line.
RIM = 1 / 24

#: The least share of the ink that is no dirt; noise has less.
MIN_DIGIT = 0.5

#: Pieces of ink side by side are several digits if each is so high, as a share of the highest, and
#: no more of its width is above or below the one before. Of 3,334 single digits of MNIST four seem
#: to be two; of 800 pairs, half of them slanted, three seem to be one.
MIN_HEIGHT, MAX_OVERLAP = 0.5, 0.2


class Digit(NamedTuple):
    """A digit in MNIST's format, and what the picture shows."""

    name: str  #: of the picture, for messages
    pixels: UInt8Array  #: (28, 28), 0 for the background, up to 255 for the ink
    #: How many digits seem to stand side by side: connected pieces of ink of similar height. With
    #: more than one, `pixels` shows them all.
    n_seen: int

    @property
    def image(self) -> Float32Array:
        """The image (29, 29) in [-1, 1] that networks take, as a `Dataset` of MNIST holds it."""
        return MNIST_PIXELS.to_images(self.pixels[None])[0]

    @property
    def warning(self) -> str:
        """A line about several digits; empty if there is one."""
        if self.n_seen == 1:
            return ""
        return f"{self.name} seems to show {self.n_seen} digits: expected one, or mlpcore read"


def find_digit(grey: AnyArray, name: str = "the picture") -> Digit:
    """Find the digit in an image (h, w) of brightness, 0 for black to 255 for white.

    It shows one digit on a lighter or darker ground. The light may be uneven. An InputError, with
    the name, when the image is smaller than 8 x 8, or no ink stands out from its ground.
    """
    height, width = grey.shape
    if min(height, width) < MIN_SIDE:
        raise InputError(
            f"{name}: {width} x {height} pixels, expected a digit on at least "
            f"{MIN_SIDE} x {MIN_SIDE}"
        )
    if grey.dtype != np.uint8:
        grey = np.rint(grey).astype(np.uint8)
    ink = picture_ink(_between_edges(reduced(grey, WORKING_SIDE)))
    glyph = None
    if ink is not None:
        components, kept = pieces_inside(ink, _without_form(ink.strokes), RIM)
        glyph = to_glyph(ink, components.mask(kept))
    if glyph is None:
        raise InputError(
            f"{name}: no digit found, expected one that stands out from a plain background"
        )
    n_seen = len(side_by_side([components.boxes[k] for k in kept]))
    return Digit(name, glyph.pixels, n_seen)


class Glyph(NamedTuple):
    """Ink that may be a digit."""

    box: Box  #: around the ink, in the part of the picture that was searched
    pixels: UInt8Array  #: (28, 28), in MNIST's format


def _without_form(dark: UInt8Array) -> UInt8Array:
    """A black and white picture (h, w) without the lines of a form or of ruled paper.

    Somebody who cuts the cells out of a form cuts along its lines, and parts of them remain.
    """
    height, width = dark.shape
    if min(dark.shape) < MIN_RULED:
        return dark
    drawn = find_lines(dark, round(RUN * width), round(RUN * height))
    n = max(2, round(THIN * min(dark.shape)))
    around = cv2.copyMakeBorder(drawn, n, n, n, n, cv2.BORDER_REPLICATE)
    thick = cv2.morphologyEx(around, cv2.MORPH_OPEN, np.ones((n, n), np.uint8))
    return without_lines(dark, drawn & ~thick[n:-n, n:-n])


def _between_edges(grey: UInt8Array) -> UInt8Array:
    """The part of a picture (h, w) that lies inside lines, tables or toolbars along its sides.

    Where ink goes on from there to the opposite side, it is a digit that was cut along its strokes.
    """
    height, width = grey.shape
    dark = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY_INV | cv2.THRESH_OTSU)[1]
    rows, columns = (int(DEPTH * side) for side in grey.shape)
    if np.median(dark[rows : height - rows, columns : width - columns]):
        dark = 255 - dark
    if np.median(dark) or min(grey.shape) < MIN_RULED:
        return grey
    top = bottom = left = right = 0
    for _ in range(2):  # lines at two sides may hide those at the others
        inside = dark[top : height - bottom, left : width - right]
        views = zip((top, bottom, left, right), _views(inside))
        top, bottom, left, right = depths = [depth or _edge(view) for depth, view in views]
    inside = dark[top : height - bottom, left : width - right]
    if not inside.any() or inside.mean(axis=1).max() >= 255 * RUN:
        return grey
    for k, view in enumerate(_views(inside)):
        if depths[k] and not depths[k ^ 1] and view[0].any() and view[-1].any():
            return grey
    return grey[top : height - bottom, left : width - right]


def _views(image: UInt8Array) -> tuple[UInt8Array, ...]:
    """An image with its top, its bottom, its left and its right side first."""
    return image, image[::-1], image.T, image.T[::-1]


def _edge(dark: UInt8Array) -> int:
    """The number of rows at the top that end with the first line along the width; 0 without one."""
    share = dark.mean(axis=1) / 255
    rows = np.flatnonzero(share[: int(DEPTH * len(dark))] >= RUN)
    if not len(rows):
        return 0
    begin = int(rows[np.diff(rows, append=len(dark) + 1) > 1][0]) + 1
    beside = share[begin : begin + max(2, len(dark) // 32) + 1]  # the first rows may be its blur
    free = np.flatnonzero(beside < MAX_BESIDE)
    return begin + int(free[0]) + 1 if len(free) else 0


def pieces_inside(ink: Ink, dark: UInt8Array, rim: float) -> tuple[Components, list[int]]:
    """The ink in a picture or a box of a form, and the numbers of the pieces of a digit, if any.

    `dark` are the strokes of the ink that may belong to it. Dirt has no part in it, nor has what
    stays within a share `rim` of a side from the border.
    """
    components = find_components(dark)
    # Paler pieces than a digit are lines, or the pattern of the paper.
    inked = components.labels[ink.values > ink.middle]
    components = components._replace(areas=np.bincount(inked, minlength=len(components.boxes)))
    inside = components.inside(rim)
    most = max((int(components.areas[k]) for k in inside), default=0)
    kept = [k for k in inside if components.areas[k] >= MIN_SHARE * most]
    if components.areas[kept].sum() <= MIN_DIGIT * components.areas[inside].sum():
        return components, []
    return components, kept


def to_glyph(ink: Ink, mask: AnyArray) -> Glyph | None:
    """The ink in a mask (h, w) of strokes as a digit in MNIST's format; None if there is none."""
    if not mask.any():
        return None
    # The pale edges of strokes are outside of the mask.
    near = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8))
    stroke = stroke_level(ink.values[mask])
    levels = np.clip((ink.values * near - ink.edge) / max(stroke - ink.edge, 1), 0, 1)
    box = Box.of_size(*cv2.boundingRect((levels > EDGE).astype(np.uint8)))
    return Glyph(box, _as_mnist(levels[box.slices])) if box.width else None


def side_by_side(boxes: Sequence[Box]) -> list[list[int]]:
    """The numbers of boxes in groups with columns of their own, from left to right.

    Boxes much lower than the highest are in none.
    """
    highest = max((box.height for box in boxes), default=0)
    groups: list[list[int]] = []
    end = 0
    for k in sorted(range(len(boxes)), key=boxes.__getitem__):
        box = boxes[k]
        if box.height >= MIN_HEIGHT * highest:
            if groups and box.left < end - MAX_OVERLAP * box.width:
                groups[-1].append(k)
            else:
                groups.append([k])
            end = max(end, box.right)
    return groups


def _as_mnist(levels: AnyArray) -> UInt8Array:
    """Scale ink until its longer side has 20 pixels, and put it into MNIST's image.

    Its centre of mass is as near to the middle as it fits.
    """
    longest = max(levels.shape)
    size = [max(1, round(BOX * side / longest)) for side in levels.shape[::-1]]
    how = cv2.INTER_AREA if longest > BOX else cv2.INTER_LINEAR
    ink = cv2.resize(levels, size, interpolation=how)
    ink /= max(ink.max(), 1e-9)
    height, width = ink.shape
    mass, right, down = (cv2.moments(ink)[name] for name in ("m00", "m10", "m01"))
    top = int(np.clip(np.floor(CENTRE - down / mass + 0.5), 0, SIDE - height))
    left = int(np.clip(np.floor(CENTRE - right / mass + 0.5), 0, SIDE - width))
    result = np.zeros((SIDE, SIDE), np.uint8)
    result[top : top + height, left : left + width] = np.rint(255 * ink)
    return result
