"""Pages of digits as scanners and cameras make them: boxed forms, and numbers on paper."""

import numpy as np
from PIL import Image
from scipy import ndimage

import mlpcore
from clear_digits import NETWORK
from mlpcore.data.ink import reduced
from pictures import as_bytes, compressed, lit, noisy, ruled, shadowed, vignetted


def written(digit, height):
    """The ink from 0 to 1, so high or wide, of a digit (h, w) uint8 as a pen writes it."""
    rows, columns = np.nonzero(digit > 40)
    crop = digit[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    scale = height / max(crop.shape)
    size = [max(2, round(scale * side)) for side in crop.shape[::-1]]
    ink = np.asarray(Image.fromarray(crop).resize(size, Image.Resampling.BICUBIC)) / 255
    return np.clip(2.5 * (ink - 0.5) + 0.5, 0, 1)  # strokes stay sharp when they grow


def read(image, **options):
    """By one thread: more would wait for each other where tests share the cores."""
    return mlpcore.read(Image.fromarray(as_bytes(image)), NETWORK, **options)


def put(sheet, ink, left, top):
    """Ink onto a sheet, in place."""
    part = sheet[top : top + ink.shape[0], left : left + ink.shape[1]]
    np.maximum(part, ink, out=part)


def rotated(image, angle, ground=0.0):
    """Turned counter-clockwise, on a sheet that holds it all."""
    return ndimage.rotate(image, angle, order=1, cval=ground)


def on_paper(ink, rng, paper=225, pen=50):
    """A scan: paper, ink from 0 to 1, and a little noise."""
    return noisy(paper + (pen - paper) * ink, rng, 3)


def form(digits, columns, rng, box=(50, 40), gap=(0, 0), line=2, height=0.6):
    """The ink (h, w) of boxes, 0 to 1, with the digits in them, and x and y of their middles."""
    rows = -(-len(digits) // columns)
    (width, high), (gap_x, gap_y), margin = box, gap, 60
    size = rows * (high + gap_y) + 2 * margin, columns * (width + gap_x) + 2 * margin
    ink, centres = np.zeros(size), []
    for k, digit in enumerate(digits):
        left = margin + k % columns * (width + gap_x)
        top = margin + k // columns * (high + gap_y)
        inside = np.zeros((high - line, width - line))
        put(ink, np.pad(inside, line, constant_values=1), left, top)
        centres.append((left + (width + line) / 2, top + (high + line) / 2))
        if digit is not None:
            strokes = written(digit, round(height * high))
            free = np.array((width, high)) - strokes.shape[::-1] - 2 * line - 4
            right, down = line + 2 + (rng.random(2) * free).astype(int)
            put(ink, strokes, left + right, top + down)
    return ink, np.array(centres)


def number(digits, rng, height=60, gap=(0.0, 0.5), slant=0.3, angle=5.0):
    """The ink of a number: digits (n, h, w) of unlike sizes and gaps, slanted and turned."""
    inks = [written(digit, round(height * rng.uniform(0.8, 1.2))) for digit in digits]
    sheet = np.zeros((2 * height, round(2 * height * (len(digits) + 1))))
    left = height
    for ink in inks:
        put(sheet, ink, left, round(height - ink.shape[0] / 2 + rng.uniform(-0.1, 0.1) * height))
        left += ink.shape[1] + round(rng.uniform(*gap) * height)
    sheet = sheet[:, : left + height]
    slant = rng.uniform(-slant, slant)
    sheet = np.pad(sheet, ((0, 0), [int(abs(slant) * 2 * height) + 1] * 2))
    lean = [[1, 0], [slant, 1]], (0, -slant * height)
    sheet = rotated(ndimage.affine_transform(sheet, *lean, order=1), rng.uniform(-angle, angle))
    return np.clip(np.pad(sheet, rng.integers(0, height, (2, 2))), 0, 1)


def photographed(ink, rng):
    """Ink from 0 to 1 on paper of any kind, in any light."""
    paper, pen = rng.uniform(170, 250), rng.uniform(20, 110)
    image = np.full(ink.shape, paper)
    if (kind := rng.choice(["plain", "plain", "plain", "ruled", "squared"])) != "plain":
        image = ruled(image, int(rng.integers(30, 80)), kind == "squared", rng.uniform(0.05, 0.2))
    image += (pen - image) * ink
    lights = (lit, 0.4, 0.8), (vignetted, 0.1, 0.4), (shadowed, 0.5, 0.9)
    if (light := rng.choice(4)) > 0:
        fall, *ends = lights[light - 1]
        image = fall(image, rng.uniform(*ends))
    image = ndimage.gaussian_filter(image, rng.uniform(0, 1.2))
    return compressed(noisy(image, rng, rng.uniform(0, 10)), 60)


def on_cheque(ink, rng):
    """Ink from 0 to 1 on a strip of paper with a wavy pattern and a printed line below."""
    rows = np.flatnonzero((ink > 0.5).any(axis=1))
    ink = ink[max(0, rows[0] - 3) : rows[-1] + 5]
    y, x = np.indices(ink.shape)
    waves = np.sin(2 * np.pi * (y + 4 * np.sin(x / rng.uniform(8, 25))) / rng.uniform(5, 9))
    paper = rng.uniform(160, 230) * (1 - rng.uniform(0.05, 0.2) * np.maximum(waves, 0))
    paper[-2:] = 60
    pen = rng.uniform(30, 90)
    return noisy(paper + (pen - paper) * ink, rng, 4)


def turned(image, points, angle, ground=225):
    """An image that is `rotated`, and points (n, 2), x and y, of it."""
    result = rotated(image, angle, ground)
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    middle, other = (np.array([s[1] - 1, s[0] - 1]) / 2 for s in (image.shape, result.shape))
    return result, (points - middle) @ [[cos, -sin], [sin, cos]] + other


def projected(image, points, corners, size=None, ground=0.0):
    """An image whose corners (4, 2) are elsewhere, as a camera sees it, and points (n, 2) of it.

    Beyond is ground, a number or an image.
    """
    import cv2

    height, width = image.shape
    if size is None:
        corners = corners - corners.min(axis=0)
        size = np.ceil(corners.max(axis=0)).astype(int).tolist()
    before = np.float32([[0, 0], [width, 0], [width, height], [0, height]])
    matrix = cv2.getPerspectiveTransform(before, np.float32(corners))
    seen, inside = (
        cv2.warpPerspective(each, matrix, size) for each in (image, np.ones(image.shape))
    )
    points = cv2.perspectiveTransform(points[None].astype(np.float32), matrix)[0]
    return seen + ground * (1 - inside), points


def waved(image, points, height, length):
    """Paper in waves of a height and a length, and where points (n, 2) of it are."""
    across = np.array([[0.6, 1.0], [1.0, 0.4]])  # how fast x and y change along x and y

    def shift(x, y):
        return [height * np.sin(2 * np.pi * (a * x + b * y) / length) for a, b in across]

    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    right, down = shift(x, y)
    moved = ndimage.map_coordinates(image, [y + down, x + right], order=1, mode="nearest")
    found = points
    for _ in range(20):  # where the shift leads back to the point
        found = points - np.stack(shift(*found.T), axis=1)
    return moved, found


def from_a_corner(image, centres):
    """Seen so that opposite edges converge by about three degrees."""
    height, width = image.shape
    corners = [[0.03 * height, 0.03 * width], [width - 0.03 * height, 0], [width, height]]
    corners = np.array([*corners, [0, height - 0.03 * width]])
    return projected(image, centres, corners, None, 225)


def on_desk(image, centres, angle):
    """Turned, seen from aside, on a dark desk."""
    height, width = image.shape
    corners = np.array([[0.04 * width, 30], [width, 0], [width - 20, height], [0, 0.95 * height]])
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    corners = corners @ [[cos, -sin], [sin, cos]]
    corners += 40 - corners.min(axis=0)
    size = tuple((corners.max(axis=0) + 60).astype(int).tolist())
    desk = np.random.default_rng(3).normal(60, 8, size[::-1])
    return projected(image, centres, corners, size, desk)


def in_uneven_light(image, centres):
    """A turned page; the paper around it is in the same light."""
    image, centres = turned(image, centres, 3)
    return lit(image), centres


#: What becomes of a scan (h, w), and of the middles of its boxes; and what is noted.
BROKEN = {
    "in uneven light": (in_uneven_light, None),
    "from a corner": (from_a_corner, None),
    "a scanner's border": (lambda image, at: (np.pad(image, 10), at + 10), "ground"),
    "a desk": (lambda image, at: on_desk(image, at, 4), "ground"),
    "a desk, much turned": (lambda image, at: on_desk(image, at, -33), "ground"),
    "a desk in a shadow": (lambda image, at: on_desk(shadowed(image), at, 4), "ground"),
    "streaks": (lambda image, at: (image * np.resize([*[1] * 299, 0.65], len(image[0])), at), None),
    "waves": (lambda image, at: waved(image, at, 9, 700), None),
    "turned": (lambda image, at: turned(image, at, 25), None),
    "upside down": (lambda image, at: (image[::-1, ::-1], image.shape[::-1] - at), "by 180°"),
    "on its side": (lambda image, at: turned(image, at, 90), "by 270°"),
    "cut at its grid": (lambda image, at: (image[68:-68, 68:-68], at - 68), None),
    "75 dpi": (lambda image, at: (reduced(as_bytes(image), max(image.shape) // 4), at / 4), None),
}
