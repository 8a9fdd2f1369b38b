"""A page as if it lay flat before the camera: without its desk, its lines level and straight."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from scipy.spatial import KDTree

from mlpcore.data.ink import Ink, find_lines, page_ink, plane, reduced
from mlpcore.reading.boxes import drawn_boxes, find_quads, n_of_a_size, quantile, ruled_quads
from mlpcore.reading.lattice import FACING, Lattice, find_lattices
from mlpcore.typing import AnyArray, Float32Array, Float64Array, UInt8Array

#: So many boxes say where the page lies; fewer may say how it is turned.
MANY, FEW = 8, 4

#: The share of a box's side to which corners fit a homography, and smooth shifts from it. The least
#: share of them that do.
FITTED, FITTING = 0.15, 0.6

#: Pale lines count if their largest lattice has so many times as many boxes as strokes'.
PALER = 1.2

#: Writing on squared paper has so many times the ink of its lines, which have that of this
#: percentile in their middle.
WRITTEN, MIDDLE = 1.5, 90

#: Dots are no larger than this share of the page's longer side, and joined if they are nearer to
#: each other than so many times their usual distance.
DOT, REACH = 1 / 60, 1.5

#: The least lengths of long lines, as shares of the page's longer side.
RULED = 1 / 10, 1 / 20

#: The deviation of the Gaussian, in boxes, that smoothes by how much they are off.
SMOOTH = 0.7

#: A page whose boxes have a side of fewer pixels is enlarged twice, or three times, but to no more
#: pixels a side than the third.
SMALL, SMALLEST, LARGEST = 40, 28, 6144

#: A page whose sides have no more pixels is enlarged if it has lines, but no boxes are found.
SMALL_PAGE = 1000

#: Pixels between points of the map that are computed; it is linear between them. The most by which
#: the level page is longer than the picture.
STEP, LONGEST = 16, 1.6

#: Angles in degrees that are tried, in coarse and then in fine steps, and the side at which.
MAX_ANGLE, ANGLE, FINE_ANGLE, SKEW_SIDE = 7.0, 0.5, 0.1, 700

#: The side at which the sheet is looked for, and the least of a page that has ground around it.
SHEET_SIDE, LEAST = 600, 60

#: The least share of the border that is ground, and that the sheet covers of the picture, of its
#: convex hull, and with light within the hull. Beyond, light covers at most the last share.
GROUND, COVERED, CONVEX, LIGHT = 0.15, 0.2, 0.85, 0.5

#: The ground has at most this share of the sheet's light, also close to so large a share of
#: its edge. Light that falls off slowly is no edge.
DARK, SHARP = 0.65, 0.5

#: The value that light ground gets, from which darker ones rise to 255, and the most of it that is
#: darker than the sheet's edge may be.
TABLE, EMPTY = 40, 0.002

#: A streak is a column or a row that is darker than those beside it by so much of 255, also where
#: it is as light as this percentile. So many of its pixels are seen, and so many columns at a time.
DARKER, LIGHTEST, N_SEEN, STREAK = 20, 98, 256, 9

#: So many thresholds of light are tried.
THRESHOLDS = 6


class Level(NamedTuple):
    """A page whose lines are level."""

    ink: Ink  #: of the level page
    page: UInt8Array  #: (h, w), 0 where the page has ended
    source: Float32Array  #: (h, w, 2), the point of the picture that each of its pixels comes from
    #: (m, 4) int64: left, top, right and bottom of the boxes of the lattice that shows how the page
    #: lies.
    known: AnyArray
    is_pale: bool  #: whether the lines of boxes are paler than what is written
    boxes: AnyArray  #: (n, 4) int64, of all drawn boxes
    on_ground: bool  #: whether the ground around a sheet was taken off

    def to_picture(self, points: AnyArray) -> Float64Array:
        """Where points (n, 2) of the level page are in the picture."""
        x, y = np.clip(np.rint(points).astype(int), 0, np.array(self.page.shape[::-1]) - 1).T
        return self.source[y, x].astype(np.float64)

    @property
    def enlargement(self) -> int:
        """The factor by which the page must be enlarged to read its boxes.

        On a small page they may be too small to be found.
        """
        longest = max(self.page.shape)
        if not len(self.boxes):
            if len(self.known) or longest > SMALL_PAGE:
                return 1
            return 3 if find_lines(self.ink.faint.strokes, longest // 4, longest // 4).any() else 1
        side = np.median(np.min(self.boxes[:, 2:] - self.boxes[:, :2], axis=1))
        factor = 1 if side >= SMALL else 2 if side >= SMALLEST else 3
        return max(1, min(factor, LARGEST // longest))

    def turned(self, quarters: int, anew: bool = True) -> Level:
        """The page turned counter-clockwise, where boxes are looked for `anew` or turned, too."""

        def turned(image: AnyArray) -> AnyArray:
            return np.ascontiguousarray(np.rot90(image, quarters))

        known, boxes = self.known, self.boxes
        for k in range(quarters):
            width = self.page.shape[1 - k % 2]
            known, boxes = (
                np.stack([top, width - right, bottom, width - left], axis=1)
                for left, top, right, bottom in (known.T, boxes.T)
            )
        ink = self.ink._replace(values=turned(self.ink.values))
        page, source = turned(self.page), turned(self.source)
        if anew or not len(known):  # combs are seen only where they are level
            boxes = drawn_boxes(ink, known, self.is_pale)
        return self._replace(ink=ink, page=page, source=source, known=known, boxes=boxes)


def levelled(grey: UInt8Array) -> Level:
    """The page in a picture (h, w), enlarged if its boxes are small, with level lines.

    They are those of boxes if there are some, else of the writing.
    """
    sheet = find_sheet(grey)
    level = _levelled(grey, sheet)
    even = _without_streaks(grey)
    if even is not grey:
        other = _levelled(even, sheet)
        if n_of_a_size(other.boxes) >= max(1, n_of_a_size(level.boxes)):
            grey, level = even, other
    if (factor := level.enlargement) > 1:
        large = _levelled(grey, sheet, factor)
        level = large if len(large.boxes) else level
    return level


def _without_streaks(grey: UInt8Array) -> UInt8Array:
    """A picture (h, w) without the streaks from end to end that a scanner's dirty glass leaves."""
    for axis in (0, 1):
        some = np.moveaxis(grey, axis, 0)[:: grey.shape[axis] // N_SEEN + 1]
        light = np.percentile(some, LIGHTEST, axis=0).clip(1)
        beside = cv2.medianBlur(light.astype(np.uint8)[None], STREAK)[0]
        is_streak = light + DARKER < beside
        if is_streak.any():
            gain = np.expand_dims(np.where(is_streak, light / beside, 1), axis)
            grey = np.clip(grey / gain, 0, 255).astype(np.uint8)
    return grey


def _levelled(grey: UInt8Array, sheet: UInt8Array | None, factor: int = 1) -> Level:
    """The page in a picture (h, w), of which a mask (h, w) is 255 on the sheet if it is smaller."""
    page = np.full_like(grey, 255) if sheet is None else sheet
    if factor > 1:
        grey, page = (
            cv2.resize(each, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
            for each in (grey, page)
        )
    ink = page_ink(grey, None if sheet is None else page)
    # The lines of forms are often paler than what is written.
    found = find_quads(ink.strokes), find_quads(ink.pale)
    fits = [_fit(*each, grey.shape) for each in found]
    n_boxes, n_pale = (0 if each is None else len(each[1].boxes) for each in fits)
    is_pale = n_pale > PALER * n_boxes
    quads, angle = found[is_pale]
    fit = fits[is_pale]
    if fit is None:
        fit = _fit(*find_quads(_joined(ink.strokes)), grey.shape)
    for share in RULED:
        fit = fit or _fit(ruled_quads(ink.strokes, round(share * max(grey.shape))), 0, grey.shape)
    if fit is None:
        few = len(quads) < FEW
        matrix = _turning(_skew(ink.values)) if few else _squared(quads, _turning(angle))
        bend = None
    else:
        matrix, bend = fit
    corners = _corners(matrix, grey.shape)
    source = _source(matrix, bend, corners, max(grey.shape))
    values, page = (cv2.remap(each, source, None, cv2.INTER_LINEAR) for each in (ink.values, page))
    ink = ink._replace(values=values)
    known = np.zeros((0, 4), int)
    if bend is not None:
        # Quadrilaterals lie a pixel inside of lines, and end with their last pixel.
        ends = bend.boxes - np.tile(corners.min(axis=0), 2) + (-1, -1, 2, 2)
        known = np.clip(np.rint(ends), 0, page.shape[::-1] * 2).astype(int)
        known = known[(known[:, :2] < known[:, 2:]).all(axis=1)]
    boxes = drawn_boxes(ink, known, is_pale)
    if is_pale and len(known) and not len(boxes):  # squared paper, whose lines are no writing
        side = 2 * int(np.median(known[:, 2:] - known[:, :2]))
        lines = np.append(0, ink.values[find_lines(ink.pale, side, side) > 0])
        level = WRITTEN * float(np.percentile(lines, MIDDLE))
        ink = ink._replace(threshold=max(ink.threshold, level))
    on_ground = sheet is not None
    return Level(ink, page, source / np.float32(factor), known, is_pale, boxes, on_ground)


def _joined(dark: UInt8Array) -> UInt8Array:
    """Ink (h, w) whose dots and dashes are joined to level and upright lines."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(dark)
    is_dot = np.max(stats[:, 2:4], axis=1) <= DOT * max(dark.shape)
    if is_dot.sum() < 2:
        return dark
    dots = dark * is_dot[labels]
    pitch = np.median(KDTree(centres[is_dot]).query(centres[is_dot], 2)[0][:, 1])
    for size in ((1, round(REACH * pitch)), (round(REACH * pitch), 1)):
        dark = dark | cv2.morphologyEx(dots, cv2.MORPH_CLOSE, np.ones(size, np.uint8))
    return dark


class _Bend(NamedTuple):
    """By how much boxes lie off the places that a homography gives them."""

    x: Float64Array  #: (w,), where columns of the level lattice begin and end, in turn
    y: Float64Array  #: (h,), likewise, rows
    shifts: Float32Array  #: (h, w, 2)
    boxes: Float64Array  #: (n, 4): left, top, right and bottom on the level page


def _turning(angle: float) -> Float64Array:
    """The map (3, 3) that makes what is turned by an angle in degrees level."""
    return np.vstack([cv2.getRotationMatrix2D((0, 0), angle, 1), [0, 0, 1]])


def _moved(matrix: AnyArray, points: AnyArray) -> Float64Array:
    """Points (..., 2) after a projective map (3, 3)."""
    moved = cv2.perspectiveTransform(points.reshape(1, -1, 2), matrix)
    return np.reshape(moved, points.shape)


def _corners(matrix: Float64Array, shape: tuple[int, ...]) -> Float64Array:
    """Where a map puts the corners (4, 2) of a page of a shape."""
    height, width = shape
    return _moved(matrix, np.array([[0, 0], [width, 0], [width, height], [0, height]], float))


def _fit(
    quads: Float64Array, angle: float, shape: tuple[int, ...]
) -> tuple[Float64Array, _Bend] | None:
    """The map of a page of a shape onto one whose largest lattice is level, and the bend left."""
    if len(quads) < MANY:
        return None
    turning = _turning(angle)
    level = _moved(turning, quads)
    lattice = find_lattices(level)[0]
    if len(lattice.members) < MANY:
        return None
    page, level = quads[lattice.members], level[lattice.members]
    (x, y), side = _ends(lattice, level)
    (row, column), places = lattice.places.T, np.empty_like(level)
    places[..., 0] = x[column][:, [0, 1, 1, 0]]
    places[..., 1] = y[row][:, [0, 0, 1, 1]]
    if min(lattice.shape) > 1:
        points = page.reshape(-1, 2), places.reshape(-1, 2)
        matrix = cv2.findHomography(*points, cv2.RANSAC, max(3, FITTED * side))[0]
        if matrix is None or not cv2.isContourConvex(_corners(matrix, shape).astype(np.float32)):
            return None
    else:
        matrix = turning
        matrix[:2, 2] = np.median((places - level).reshape(-1, 2), axis=0)
    shifts = _moved(matrix, page) - places
    smooth = _smooth(lattice.places, shifts.reshape(-1, 8), lattice.shape)
    rest = shifts - smooth[row, column].reshape(-1, 4, 2)
    if np.mean(np.linalg.norm(rest, axis=2) < FITTED * side) < FITTING:
        return None
    nodes = smooth.reshape(*lattice.shape, 4, 2)[:, :, [[0, 1], [3, 2]]].transpose(0, 2, 1, 3, 4)
    nodes = nodes.reshape(2 * len(y), 2 * len(x), 2)
    return matrix, _Bend(x.ravel(), y.ravel(), nodes, places[:, [0, 2]].reshape(-1, 4))


def _squared(quads: Float64Array, turning: Float64Array) -> Float64Array:
    """A map (3, 3), mended so that the median sides of boxes are level and upright.

    A digit that touches two sides leaves only a part of its box.
    """
    level = _moved(turning, quads)
    directions = []
    for ends, begins in FACING:
        x, y = (level[:, ends] - level[:, begins]).reshape(-1, 2).T
        angle = quantile(np.arctan2(y, x), np.hypot(x, y), 0.5)
        directions.append((np.cos(angle), np.sin(angle)))
    return np.vstack([np.linalg.inv(np.transpose(directions)) @ turning[:2], [0, 0, 1]])


def _ends(lattice: Lattice, quads: Float64Array) -> tuple[list[Float64Array], float]:
    """Where columns (n, 2) and rows (n, 2) begin and end, and the usual side of a box."""
    at = np.full(lattice.shape, -1)
    at[tuple(lattice.places.T)] = np.arange(len(quads))
    result, sides = [], []
    for axis, (right, left) in enumerate((((1, 2), (0, 3)), ((3, 2), (0, 1)))):
        begin, end = quads[:, left].mean(axis=1), quads[:, right].mean(axis=1)
        size = np.linalg.norm(end - begin, axis=1)
        sides.append(float(np.median(size)))
        sizes = lattice.medians(size, 1 - axis)
        before, after = (at[:, :-1], at[:, 1:]) if axis == 0 else (at[:-1].T, at[1:].T)
        both = (before >= 0) & (after >= 0)
        gaps = np.where(both, np.linalg.norm(begin[after] - end[before], axis=2), np.nan)
        usual = np.nanmedian(gaps) if both.any() else 0.0
        between = [np.nanmedian(gap) if has.any() else usual for gap, has in zip(gaps.T, both.T)]
        begins = np.concatenate([[0], np.cumsum(sizes[:-1] + between)])
        result.append(np.stack([begins, begins + sizes], axis=1))
    return result, min(sides)


def _smooth(places: AnyArray, values: Float64Array, shape: tuple[int, int]) -> Float32Array:
    """Values (n, 8) at places of a lattice as an image (h, w, 8) without outliers and holes."""
    image = np.zeros((*shape, 9), np.float32)
    image[tuple(places.T)] = np.column_stack([values, np.ones(len(values))])
    near = cv2.GaussianBlur(image, (0, 0), 1, borderType=cv2.BORDER_CONSTANT)
    near = near[..., :8] / np.maximum(near[..., 8:], 1e-9)
    filled = np.where(image[..., 8:] > 0, image[..., :8], near)
    halves = [cv2.medianBlur(np.ascontiguousarray(filled[..., k : k + 4]), 3) for k in (0, 4)]
    smooth = cv2.GaussianBlur(
        np.concatenate(halves, axis=2), (0, 0), SMOOTH, borderType=cv2.BORDER_REPLICATE
    )
    return smooth


def _source(
    matrix: Float64Array, bend: _Bend | None, corners: Float64Array, side: int
) -> Float32Array:
    """The points (h, w, 2) of the picture that the pixels of the level page come from."""
    origin, size = corners.min(axis=0), np.ceil(np.ptp(corners, axis=0))
    width, height = np.minimum(size, LONGEST * side).astype(int).tolist()
    # Points lie in the middle between pixels, one beyond each border, as cv2.resize has them.
    x, y = (STEP * (np.arange(n // STEP + 3) - 0.5) - 0.5 for n in (width, height))
    points = np.stack(np.meshgrid(x, y), axis=2) + origin
    if bend is not None:
        at = [
            np.interp(points[..., k], ends, np.arange(len(ends))).astype(np.float32)
            for k, ends in enumerate((bend.x, bend.y))
        ]
        points += cv2.remap(bend.shifts, *at, cv2.INTER_LINEAR)
    source = _moved(np.linalg.inv(matrix), points).astype(np.float32)
    source = cv2.resize(source, None, fx=STEP, fy=STEP, interpolation=cv2.INTER_LINEAR)
    return source[STEP : STEP + height, STEP : STEP + width]


def _skew(ink: UInt8Array) -> float:
    """The angle in degrees, counter-clockwise, by which ink (h, w) must turn for level lines.

    The sums of the rows differ most from each to the next at the angle of the lines (projection
    profile: Postl, *Detection of linear oblique structures and skew scan in digitized documents*,
    1986), which is found to a tenth of a degree.
    """
    small = reduced(ink, SKEW_SIDE).astype(np.float32)
    height, width = small.shape

    def sharpness(angle: float) -> float:
        matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1)
        turned = cv2.warpAffine(small, matrix, (width, height))
        return float(np.square(np.diff(turned.sum(axis=1))).sum())

    coarse = max(np.arange(-MAX_ANGLE, MAX_ANGLE + ANGLE, ANGLE), key=sharpness)
    return float(max(coarse + np.arange(-ANGLE + FINE_ANGLE, ANGLE, FINE_ANGLE), key=sharpness))


def find_sheet(grey: UInt8Array) -> UInt8Array | None:
    """A mask (h, w) that is 255 on the sheet, if ground is around it in a picture (h, w).

    A shadow on it may be darker than Otsu's threshold. Of lower ones, too, the one that gives the
    sharpest edge is chosen. Of a sheet that is darker than its ground, nothing may lie outside.
    """
    if min(grey.shape) < LEAST:
        return None
    small = cv2.GaussianBlur(reduced(grey, SHEET_SIDE), (3, 3), 0)
    lit = cv2.threshold(small, 0, 255, cv2.THRESH_OTSU)[0]
    shaded = cv2.threshold(small[small <= lit], 0, 255, cv2.THRESH_OTSU)[0]
    sheets = [_lighter(small, threshold) for threshold in np.linspace(lit, shaded, THRESHOLDS)]
    sharp, sheet = max(sheets, key=lambda found: found[0])
    if sheet is None or sharp < SHARP:
        # One that is darker than its ground; the square makes the light of both differ more.
        dark = TABLE * np.square(plane(small).clip(1) / small.clip(1))
        sharp, sheet = _lighter(dark.clip(0, 255).astype(np.uint8), TABLE / DARK)
        if sheet is None or sharp < SHARP:
            return None
        outside = dark[cv2.dilate(sheet, np.ones((9, 9), np.uint8)) == 0]
        if np.mean(outside > TABLE / DARK) > EMPTY:
            return None
    sheet = cv2.erode(sheet, np.ones((5, 5), np.uint8))  # its edge is no ink
    return cv2.resize(sheet, grey.shape[::-1], interpolation=cv2.INTER_NEAREST)


def _lighter(small: UInt8Array, threshold: float) -> tuple[float, UInt8Array | None]:
    """The share of the edge that is sharp, and a mask, of a sheet lighter than a threshold."""
    light = cv2.threshold(small, threshold, 255, cv2.THRESH_BINARY)[1]
    border = np.concatenate([light[0], light[-1], light[:, 0], light[:, -1]])
    opened = cv2.morphologyEx(light, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(opened, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    contour = max(contours, key=cv2.contourArea, default=None)
    if np.mean(border == 0) < GROUND or contour is None:
        return 0.0, None
    hull = cv2.convexHull(contour)
    area = cv2.contourArea(hull)
    if area < COVERED * small.size or cv2.contourArea(contour) < CONVEX * area:
        return 0.0, None
    sheet = cv2.fillConvexPoly(np.zeros_like(small), hull, 255)
    edge = cv2.morphologyEx(sheet, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    if np.mean(light[sheet > 0] > 0) < LIGHT or not edge.any():
        return 0.0, None
    beyond = light[cv2.dilate(sheet, np.ones((9, 9), np.uint8)) == 0]
    if np.count_nonzero(beyond) > LIGHT * beyond.size:  # paper that a high digit parts
        return 0.0, None
    outside, inside = (_near(small, mask)[edge] for mask in (255 - sheet, sheet))
    return float(np.mean(outside <= DARK * inside)), sheet


def _near(grey: UInt8Array, mask: UInt8Array) -> Float32Array:
    """The mean light (h, w) of what is near, and in a mask."""
    sums = [cv2.boxFilter(np.float32(each), -1, (9, 9)) for each in (grey * (mask > 0), mask > 0)]
    return sums[0] / np.maximum(sums[1], 1e-3)
