"""Pictures of digits as scanners and cameras make them, and the difference of two digits."""

import io

import numpy as np
from PIL import Image
from scipy import ndimage

from mlpcore import dataset

PAPER, INK = 210, 50
SIDE = 112  # of a picture's digit with its margin


def as_bytes(image):
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


#: The embedded digits' test set, as light ink on dark ground.
LABELS = dataset.load(name="digits").test_labels
DIGITS = as_bytes((dataset.load(name="digits").test_images + 1) * 127.5)


def difference(a, b):
    """Of two digits, as a share of the ink: another digit is at 1 or so, one pixel off at 0.3."""
    a, b = a.astype(float), b.astype(float)
    return np.abs(a - b).sum() / max(a.sum(), b.sum())


def difference_nearby(a, b):
    """The least `difference` of digits a pixel off, which a centre of mass between two may be."""
    shifts = np.ndindex(3, 3)
    return min(difference(np.roll(a, (y - 1, x - 1), (0, 1)), b) for y, x in shifts)


def enlarged(digit, side=SIDE):
    """A digit (h, w) uint8, light on dark, as float."""
    image = Image.fromarray(digit).resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(image, np.float64)


def written(ink, paper=PAPER, pen=INK):
    """Ink from 0 to 255 on paper."""
    return paper + (pen - paper) * ink / 255


def lit(image, darkest=0.4):
    """Light that falls off from the right to the left, and a little upwards."""
    y, x = (np.linspace(0, 1, side) for side in image.shape)
    return image * (darkest + (1 - darkest) * (0.7 * x + 0.3 * y[:, None]))


def vignetted(image, loss=0.3):
    """As a lens does, which darkens the corners."""
    y, x = (np.linspace(-1, 1, side) for side in image.shape)
    return image * (1 - loss * (x**2 + y[:, None] ** 2) / 2)


def shadowed(image, light=0.6):
    """A shadow with a soft edge across the picture."""
    y, x = (np.linspace(0, 1, side) for side in image.shape)
    return image * (light + (1 - light) / (1 + np.exp(-(x + 0.5 * y[:, None] - 0.7) / 0.02)))


def noisy(image, rng, deviation=10):
    return np.clip(image + rng.normal(0, deviation, image.shape), 0, 255)


def ruled(image, step, squared=False, strength=0.2):
    """On ruled or squared paper."""
    image = image.copy()
    for line in range(2):
        image[step // 2 + line :: step] *= 1 - strength
        if squared:
            image[:, step // 2 + line :: step] *= 1 - strength
    return image


def encoded(image, kind="PNG", **options):
    """The bytes of a file of an image (h, w) or (h, w, channels), or of one of Pillow's."""
    if not isinstance(image, Image.Image):
        image = Image.fromarray(as_bytes(image))
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def compressed(image, quality=25):
    """With the artefacts of JPEG."""
    with Image.open(io.BytesIO(encoded(image, "JPEG", quality=quality))) as picture:
        return np.asarray(picture, np.float64)


def photographs(digit, rng):
    """A digit in every way in which a picture of it may come, by name."""
    paper = written(enlarged(digit))
    top, left = rng.integers(0, SIDE), rng.integers(0, 2 * SIDE)
    corner = np.full((2 * SIDE, 3 * SIDE), float(PAPER))
    corner[top : top + SIDE, left : left + SIDE] = paper
    return {
        "enlarged": paper,
        "inverted": 255 - paper,
        "rotated": ndimage.rotate(paper, rng.uniform(-8, 8), reshape=False, cval=PAPER),
        "off-centre": corner,
        "gradient": lit(paper),
        "dark on light, vignetted": noisy(vignetted(corner), rng, 5),
        "light on dark, vignetted": 255 - noisy(vignetted(corner), rng, 5),
        "shadow": shadowed(paper),
        "noise": noisy(paper, rng, 15),
        "faint": noisy(lit(written(enlarged(digit), 200, 140)), rng, 5),
        "jpeg": compressed(noisy(lit(corner), rng)),
        "squared paper": noisy(ruled(corner, 20, True), rng, 5),
        "out of focus": ndimage.gaussian_filter(paper, 3),
    }


def framed(image, thick=3, sides="tblr", line=INK):
    """In a cell of a form, with its lines at some sides, cut a little outside of them."""
    result = np.pad(image, 12, mode="edge")
    for side, view in zip("tblr", (result, result[::-1], result.T, result.T[::-1])):
        if side in sides:
            view[4 : 4 + thick] = line
    return result


def tight(digit, side=32):
    """A digit in two values, cut along its ink."""
    ink = np.asarray(Image.fromarray(digit).resize((4 * side, 4 * side))) > 100
    rows, columns = (np.flatnonzero(ink.any(axis=k)) for k in (1, 0))
    box = Image.fromarray(ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    small = box.resize((max(8, side * box.width // box.height), side), Image.Resampling.NEAREST)
    return np.where(np.asarray(small), INK, PAPER).astype(np.uint8)
