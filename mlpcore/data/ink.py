"""The ink in a picture or on a page, its lines, and its connected components.

The ground is lighter or darker than the ink, and the light may be uneven.
MNIST's digits come from scans in black and white. Other scans and photographs have shades.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mlpcore.typing import AnyArray, Float64Array, UInt8Array

#: The ground is found in a picture, or a page, of at most so many pixels a side.
PICTURE_SIDE, PAGE_SIDE = 128, 512

#: What is narrower than this share of the shorter side is a stroke on the ground of a picture, or
#: of a page.
PICTURE_STROKE, PAGE_STROKE = 0.4, 0.3

#: Ground darker than this share of the lightest is a table or a shadow in which nothing is written.
DARKEST = 0.25

#: The least ink, of 255, and by how many standard deviations of the ground's noise it stands out.
MIN_INK, MIN_SIGNAL = 31, 4.0

#: Shares of the way from the ground to the ink of strokes: paler ink is at their edge, and what is
#: nowhere darker than the second is none.
EDGE, STROKE = 0.35, 0.5

#: Strong strokes exceed this share of the strongest ink of a page. Ink that the paper's pattern
#: hides needs no more than the second share of what stands out from noise.
STRONG, PATTERN = 0.5, 0.3

#: Shaded ground is paler than the share SHADE of the strongest ink. It is wider than strokes, at
#: least SHADE_WIDTH pixels and SHADE_SHARE of the longer side. SHADE_EDGE pixels of its edge stay
#: ink. Light ground spreads over at most SPREAD pixels of the reduced page.
SHADE, SHADE_WIDTH, SHADE_SHARE, SHADE_EDGE, SPREAD = 0.6, 9, 1 / 150, 3, 5

#: Squares that shade and the writing on it fill cover at least the share FILLED of the shade. They
#: cover less of the strokes of a pale pen. Their side is SQUARE times the root of the page's longer
#: side, because larger pages are finer scans, and also larger sheets. Shade is longer than LONG
#: squares, or more than the share EVEN is within a quarter of its median, unlike blurred strokes.
FILLED, SQUARE, EVEN, LONG = 0.75, 0.7, 0.65, 2

#: Noise leaves fewer pixels out of a line than this share of its length, from 3 to 7.
HOLE = 1 / 12

#: Pale lines: the least ink, of 255; the least length; a width that none has; and over how many
#: pixels along a line the ink is averaged.
PALE, PALE_LENGTH, PALE_WIDTH, PALE_MEAN = 4, 33, 9, 7

#: A component with a smaller share of the largest one's pixels is dirt.
MIN_SHARE = 0.05


class Ink(NamedTuple):
    """The share of the ground's light that each pixel lacks."""

    values: UInt8Array  #: (h, w), 0 for the ground to 255
    edge: float  #: where the edge of a stroke begins; what is below may be noise
    threshold: float  #: what exceeds it belongs to a stroke

    @property
    def middle(self) -> float:
        """The brightness that the middle of a stroke exceeds."""
        inked = self.values[self.values > self.threshold]
        return self.edge + STROKE * (stroke_level(inked) - self.edge) if inked.size else 255.0

    @property
    def faint(self) -> Ink:
        """The same ink, of which paler strokes are seen."""
        return self._replace(threshold=self.edge)

    @property
    def pale(self) -> UInt8Array:
        """A black and white image (h, w) of faint strokes, and paler level and upright lines."""
        block = np.ones([PALE_WIDTH] * 2, np.uint8)
        thin = cv2.morphologyEx(self.values, cv2.MORPH_TOPHAT, block)
        thin = cv2.min(thin, 2 * PALE)  # or the mean of a pen's stroke would reach beyond it
        found = self.faint.strokes
        for way in (np.array([1, 0]), np.array([0, 1])):
            along = cv2.blur(thin, 1 + way * (PALE_MEAN - 1))
            line = np.ones((1 + way * (PALE_LENGTH - 1))[::-1], np.uint8)
            found |= cv2.threshold(
                cv2.morphologyEx(along, cv2.MORPH_OPEN, line), PALE - 1, 255, cv2.THRESH_BINARY
            )[1]
        return found

    @property
    def strokes(self) -> UInt8Array:
        """A black and white image (h, w): 255 where a stroke is, else 0."""
        return cv2.threshold(self.values, self.threshold, 255, cv2.THRESH_BINARY)[1]


def picture_ink(grey: UInt8Array) -> Ink | None:
    """The ink in a picture (h, w) of one digit; None if nothing stands out."""
    small = reduced(grey, PICTURE_SIDE)
    if _ink_is_light(small, plane(small)):
        grey, small = 255 - grey, 255 - small
    darkest, lightest = grey.min(), grey.max()
    dark = grey == darkest
    if darkest < lightest and (dark | (grey == lightest)).all():
        # Two values are often cut along the ink, without ground.
        return Ink(255 * dark.astype(np.uint8), 0.0, EDGE * 255)
    small = cv2.GaussianBlur(small, (0, 0), max(small.shape) / PICTURE_SIDE)
    ink = _missing_light(grey, small, PICTURE_STROKE)
    split, _ = cv2.threshold(ink, 0, 255, cv2.THRESH_OTSU)
    ground, strokes = ink[ink <= split], ink[ink > split]
    level = float(np.median(ground))
    noise = 1.4826 * float(np.median(np.abs(ground - level)))
    stroke = stroke_level(strokes) if len(strokes) else 0.0
    if stroke - level < max(MIN_INK, MIN_SIGNAL * noise):
        return None
    edge = level + min(2 * noise, (stroke - level) / 2)
    return Ink(ink, edge, edge + EDGE * (stroke - edge))


def page_ink(grey: UInt8Array, sheet: UInt8Array | None = None) -> Ink:
    """The ink on a page (h, w), or on a sheet whose mask (h, w) is 255."""
    if sheet is not None:
        grey = grey & sheet
    small = reduced(grey, PAGE_SIDE)
    window = max(3, round(PAGE_STROKE * small.size**0.5)) | 1  # a strip's digits are as high as it
    half = window // 2  # reflected, so that a dark border of the page is not taken for its ground
    around = cv2.copyMakeBorder(small, half, half, half, half, cv2.BORDER_REFLECT)
    ground = cv2.medianBlur(around, window)[half:-half, half:-half]
    lighter, darker = cv2.subtract(small, ground).max(), cv2.subtract(ground, small).max()
    # Boxes may be lighter than tinted paper, which ink is darker than.
    if sheet is None and lighter >= darker and _ink_is_light(small, ground):
        grey, small = 255 - grey, 255 - small
    spread = min(SPREAD, 1 + 2 * round(len(grey) / len(small)))
    ink = _missing_light(grey, small, PAGE_STROKE, spread)
    inside = slice(None) if sheet is None else sheet[::3, ::5] > 0
    if sheet is not None:
        ink &= sheet
    ink = _without_shades(cv2.subtract(ink, int(np.median(ink[::3, ::5][inside]))))
    some = ink[::3, ::5][inside]
    # Half of the noise is negative, and has become 0. Squared paper may have lines on a quarter.
    noise = min(np.percentile(some, 75) / 0.674, np.percentile(some, 62.5) / 0.319)
    noisy = max(MIN_INK, MIN_SIGNAL * float(noise))
    # The pattern of printed paper is no noise: strokes may be paler than four times its deviation.
    level = cv2.blur(ink, (3, 3))
    strong = level[level >= STRONG * np.percentile(level, 99.9)]
    threshold = round(np.clip(STROKE * np.median(strong), max(MIN_INK, PATTERN * noisy), noisy))
    return Ink(ink, threshold / 2, threshold)


def _without_shades(ink: UInt8Array) -> UInt8Array:
    """Ink (h, w) of strokes on shaded ground, such as that of every other row of a table.

    Of the ground, whose light is the mean of what is near, only edges are left.
    """
    level = cv2.blur(ink, (3, 3))
    side = max(SHADE_WIDTH, int(SHADE_SHARE * max(ink.shape)))
    flat = cv2.inRange(level, MIN_INK // 2, int(SHADE * np.percentile(level, 99.9)))
    flat = cv2.morphologyEx(flat, cv2.MORPH_OPEN, np.ones([side] * 2))
    if not flat.any():
        return ink
    square = np.ones([int(SQUARE * max(ink.shape) ** 0.5)] * 2)
    filled = cv2.morphologyEx(cv2.inRange(level, MIN_INK // 2, 255), cv2.MORPH_OPEN, square)
    components = find_components(flat)
    inside = np.bincount(components.labels[filled > 0], minlength=len(components.boxes))
    shades = []
    for k in np.flatnonzero(inside > FILLED * components.areas).tolist():
        box = components.boxes[k]
        values = level[box.slices][components.labels[box.slices] == k]
        is_even = np.mean(np.abs(values / np.median(values) - 1) < 0.25) > EVEN
        if is_even or max(box.width, box.height) > LONG * len(square):
            shades.append(k)
    flat *= components.mask(shades)
    shade = cv2.morphologyEx(flat, cv2.MORPH_CLOSE, np.ones([4 * side + 1] * 2))
    shade = cv2.erode(shade, np.ones([2 * SHADE_EDGE + 1] * 2)) > 0
    near = [cv2.blur(np.float32(each), [4 * side + 1] * 2) for each in (level & flat, flat)]
    ground = np.where(shade, 255 * near[0] / np.maximum(near[1], 1e-3), 0)
    return np.clip((ink - ground) / (1 - ground / 255), 0, 255).astype(np.uint8)


def stroke_level(inked: UInt8Array) -> float:
    """The ink in the middle of strokes; the values (n,) are those of whole strokes."""
    return float(np.searchsorted(np.cumsum(np.bincount(inked)), 0.75 * inked.size))


def reduced(image: UInt8Array, side: int) -> UInt8Array:
    """An image (h, w) with at most so many pixels a side."""
    scale = min(1.0, side / max(image.shape))
    size = [max(1, round(scale * n)) for n in image.shape[::-1]]
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def _ink_is_light(grey: UInt8Array, ground: AnyArray) -> bool:
    """Whether brightness (h, w) deviates mainly to the light side of a ground (h, w).

    Noise deviates to both sides, and uneven light deviates little. So the sign of a high odd power
    tells on which side the ink is, even if it covers little. No ink is lighter than white paper.
    """
    if np.median(ground) > 255 - MIN_INK:
        return False
    deviation = grey - ground.astype(np.float64)
    return bool(np.sum(deviation * np.square(np.square(deviation))) > 0)  # `** 5` takes 10 times


def _missing_light(
    grey: UInt8Array, small: UInt8Array, stroke: float, spread: int = 1
) -> UInt8Array:
    """The share of the ground's light that each pixel (h, w) of dark ink lacks, 0 to 255.

    The ground is found in the reduced picture: a grey closing fills what is narrower than the
    share `stroke` of the shorter side, and keeps the edge of a shadow. Spread by so many pixels,
    light ground leaves an edge of ink on darker ground beside it, as boxes on tinted paper have.
    """
    n = max(3, round(stroke * min(small.shape)))
    # Dark padding keeps a slope of light from becoming flat at the border.
    padded = cv2.copyMakeBorder(small, n, n, n, n, cv2.BORDER_CONSTANT, value=0)
    closed = cv2.morphologyEx(padded, cv2.MORPH_CLOSE, np.ones((n, n), np.uint8))[n:-n, n:-n]
    closed = cv2.dilate(closed, np.ones((spread, spread)))
    ground = cv2.resize(closed, grey.shape[::-1], interpolation=cv2.INTER_LINEAR)
    light = cv2.max(ground, max(1, int(DARKEST * ground.max())))
    return cv2.divide(cv2.subtract(ground, grey), light, scale=255)


def plane(grey: UInt8Array) -> Float64Array:
    """The plane (h, w) that fits the border of a picture (h, w) by least squares."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in grey.shape), indexing="ij")
    terms = np.stack([np.ones_like(x), x, y])
    border = np.ones(grey.shape, bool)
    margin = max(1, min(grey.shape) // 12)
    border[margin:-margin, margin:-margin] = False
    slopes = np.linalg.lstsq(terms[:, border].T, grey[border])[0]
    return np.tensordot(slopes, terms, 1)


def find_lines(dark: UInt8Array, width: int, height: int) -> UInt8Array:
    """The level and upright lines in a black and white image (h, w), 255 where one is.

    Level ones have at least a width, and upright ones a height; there are none longer than `dark`.
    """
    found = np.zeros_like(dark)
    for length, shape in (width, (1, -1)), (height, (-1, 1)):
        if length > dark.shape[shape.index(-1)]:
            continue

        def along(n: int, shape: tuple[int, int] = shape) -> UInt8Array:
            return np.ones(n, np.uint8).reshape(shape)

        line = cv2.dilate(dark, along(3).T)  # which is not quite straight
        line = cv2.morphologyEx(line, cv2.MORPH_CLOSE, along(int(np.clip(HOLE * length, 3, 7))))
        found |= cv2.morphologyEx(line, cv2.MORPH_OPEN, along(max(2, length)))
    return found


def without_lines(dark: UInt8Array, drawn: UInt8Array) -> UInt8Array:
    """A black and white image (h, w) without lines, where strokes that cross them stay whole."""
    if not drawn.any():
        return dark
    half = cv2.distanceTransform(drawn, cv2.DIST_L1, 3)[drawn > 0]
    bridge = 2 * round(min(float(np.percentile(half, 90)), *dark.shape)) + 1  # of ink alone: far
    rest = dark & ~drawn
    whole = cv2.morphologyEx(rest, cv2.MORPH_CLOSE, np.ones((bridge, bridge), np.uint8))
    return rest | (whole & dark)


class Box(NamedTuple):
    """A rectangle in pixels; `right` and `bottom` are the first pixels outside."""

    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def of_size(cls, left: int, top: int, width: int, height: int) -> Box:
        """A rectangle as OpenCV has it."""
        return cls(left, top, left + width, top + height)

    @property
    def width(self) -> int:
        """In pixels."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """In pixels."""
        return self.bottom - self.top

    @property
    def slices(self) -> tuple[slice, slice]:
        """The index of its pixels in an image (h, w)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def union(self, other: Box) -> Box:
        """The box that holds both."""
        return Box(*map(min, self[:2], other[:2]), *map(max, self[2:], other[2:]))

    def shared_width(self, other: Box) -> int:
        """The number of columns that both take; below 0 for those between them."""
        return min(self.right, other.right) - max(self.left, other.left)


class Components(NamedTuple):
    """The connected components of a black and white image; number 0 is the ground."""

    labels: AnyArray  #: (h, w) int32, the number of the component that each pixel belongs to
    boxes: list[Box]  #: around each component
    areas: AnyArray  #: (n,) int32, the pixels of each component

    def inside(self, rim: float) -> list[int]:
        """The components that are not only along the border, by this share of the shorter side.

        Others are rests of a line along which somebody cut, or of a neighbour.
        """
        height, width = self.labels.shape
        rim = int(rim * min(height, width))
        counts = np.bincount(self.labels[rim : height - rim, rim : width - rim].ravel())
        return (1 + np.flatnonzero(counts[1:])).tolist()

    def mask(self, numbers: Sequence[int]) -> AnyArray:
        """A mask (h, w) of the pixels of some components."""
        chosen = np.zeros(len(self.boxes), bool)
        chosen[list(numbers)] = True
        return chosen[self.labels]

    def elongation(self, number: int) -> float:
        """How many times a component is as long as broad, by the deviations of its pixels."""
        places = np.argwhere(self.labels[self.boxes[number].slices] == number)
        spread = np.cov(places, rowvar=False, bias=True) + np.eye(2) / 12  # of a pixel
        broad, long = np.sqrt(np.linalg.eigvalsh(spread))
        return float(long / broad)

    def solidity(self, number: int) -> float:
        """The area of a component as a share of that of its convex hull."""
        inside = (self.labels[self.boxes[number].slices] == number).astype(np.uint8)
        hull = cv2.convexHull(cv2.findNonZero(inside))
        return float(self.areas[number]) / max(1.0, cv2.contourArea(hull))


def find_components(dark: UInt8Array) -> Components:
    """The components of what is not 0 in an image (h, w); pixels touch at edges or corners."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(dark, connectivity=8)
    boxes = [Box.of_size(*each) for each in stats[:, :4].tolist()]
    return Components(labels, boxes, stats[:, 4])
