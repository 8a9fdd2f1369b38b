"""The ink in a picture, separated from a ground that is lighter or darker, and in uneven light.

MNIST's digits come from scans in black and white. Other scans and photographs have shades, and
their ink may be darker or lighter than the ground, which the border of the picture shows.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from mlpcore.data.segmentation import otsu, pieces
from mlpcore.typing import AnyArray, BoolArray, Float64Array

#: The least share of the ground's light that ink takes.
MIN_CONTRAST = 0.12

#: Ink stands out by so many standard deviations of the ground's noise.
MIN_SIGNAL = 4.0

#: Percentile of the ink that is taken for the middle of a stroke; paler ink is its edge.
EDGE_SHARE = 75

#: In a picture of two values, the one that has so large a share of the border is the ground.
MIN_BORDER = 0.75

#: The plane of the ground is found when it moves by less than so many grey levels.
MAX_CHANGE = 1e-3

#: Pieces of ink or of ground count if they have so large a share of the largest piece.
MIN_SHARE = 0.05


def ink_of(image: AnyArray) -> Float64Array | None:
    """Return the ink in an image (h, w), 0 for black to 255 for white; None if nothing stands out.

    The ink is 0 for the ground and 1 for a stroke.
    """
    low, high = image.min(), image.max()
    if low < high and ((image == low) | (image == high)).all():
        return _ink_of_two(image == low).astype(np.float64)
    return _contrasted(_lack_of_light(image))


def _ink_of_two(dark: BoolArray) -> BoolArray:
    """Return the ink of a picture of two values.

    Such pictures are often cut so closely that ink is at the whole border. Then a digit has fewer
    pieces than the ground, which it divides into corners, bays and holes.
    """
    ends = dark[0], dark[-1], dark[1:-1, 0], dark[1:-1, -1]
    share = np.mean(np.concatenate(ends))
    if share > 1 - MIN_BORDER and share < MIN_BORDER:
        n_dark, n_light = _count(dark), _count(~dark)
        is_ink = n_dark < n_light or (n_dark == n_light and 2 * dark.sum() <= dark.size)
    else:
        is_ink = share < 0.5
    return dark if is_ink else ~dark


def _count(mask: BoolArray) -> int:
    """How many pieces of a mask are not much smaller than the largest."""
    sizes = np.bincount(pieces(mask).ravel())[1:]
    return int(np.count_nonzero(sizes >= MIN_SHARE * sizes.max()))


def _lack_of_light(image: AnyArray) -> Float64Array:
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
    terms = np.stack([np.ones_like(x), x, y])
    border = np.ones(image.shape, bool)
    margin = max(1, min(image.shape) // 12)
    border[margin:-margin, margin:-margin] = False
    values, at_border = image[border], terms[:, border]
    weights = np.ones(len(values))
    slopes: AnyArray = np.zeros(3)
    for _ in range(20):  # iteratively reweighted least squares, by their normal equations
        weighted, before = weights * at_border, slopes
        slopes = np.linalg.solve(weighted @ at_border.T, weighted @ values)
        if np.abs(slopes - before).max() < MAX_CHANGE:
            break
        weights = 1 / np.maximum(np.abs(values - slopes @ at_border), 1)
    return np.tensordot(slopes, terms, 1)


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
    threshold = otsu(ink)
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
