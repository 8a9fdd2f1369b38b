"""The deformation as the paper describes it, by SciPy, and on every backend; masks and points."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, map_coordinates

from mlpcore import DeformationParameters, backends, philox
from mlpcore.backends.arguments import noise_shape
from mlpcore.deformation import IDENTITY, deform, deform_selected, displacements
from mlpcore.deformation.deform import draw_affine, gaussian_taps
from mlpcore.deformation.targets import move_boxes, move_masks, move_points

PAPER = DeformationParameters()

#: A number of noise for each 3 x 3 pixels.
SMOOTH = DeformationParameters(sigma=9.0, alpha=60.0)

#: One for each 33 x 33 pixels, more than an image has.
SMOOTHEST = DeformationParameters(sigma=100.0, alpha=600.0)

#: Coordinates of up to 40 pixels, their displacement the sum of 42 products: 64 roundings of
#: 2^-24 each. With more taps most products are near 0, and round by less.
OFF_PLACE = 64 * 2**-24 * 40

#: SciPy's Gaussian ends a pixel before or after that of SMOOTH, at each of four ends. There a cell
#: has 3e-5 of the weights, and its noise is up to 20 pixels.
CUT_OFF = 4 * 3e-5 * 20

#: Between pixels from -1 to 1 the slope is at most 2 per pixel.
OFF = 2 * OFF_PLACE


def digits(n, height, width):
    rng = np.random.default_rng(0)
    images = rng.uniform(-1, 1, (n, height, width)).astype(np.float32)
    return images, rng.integers(0, 10, n).astype(np.uint8)


@pytest.mark.parametrize("parameters, cell, radius", [(PAPER, 1, 10), (SMOOTH, 3, 37)])
def test_the_oracle_equals_scipy(reference, parameters, cell, radius):
    """SciPy smooths the oracle's noise and looks pixels up in a grid of 100 images.

    A number of noise for a cell of pixels is in the middle of them, times the side of the cell:
    so it has as much variance as those of all pixels would have.
    """
    h, w = 23, 31
    images, labels = digits(100, h, w)
    taps = gaussian_taps(parameters.sigma)
    shape, purposes = noise_shape(h, w, taps.shape), (philox.NOISE_X, philox.NOISE_Y)
    drawn = np.stack([philox.noise(3, 1, 0, purpose, *shape) for purpose in purposes])
    noise = np.zeros((2, cell * drawn.shape[1], cell * drawn.shape[2]))
    noise[:, cell // 2 :: cell, cell // 2 :: cell] = cell * drawn
    options = {"radius": radius, "axes": (1, 2)}
    smooth = parameters.alpha * gaussian_filter(noise, parameters.sigma, **options)
    margin = cell * (taps.shape[1] // 2)
    inside = smooth[:, margin : margin + 10 * h, margin : margin + 10 * w]
    field = inside.reshape(2, 10, h, 10, w)
    tiles = field.transpose(1, 3, 0, 2, 4).reshape(100, 2, h, w)
    y, x = np.mgrid[:h, :w]
    centred = x - (w - 1) / 2, y - (h - 1) / 2
    affine = draw_affine(parameters, labels, 3, 1).astype(float)
    moved = np.einsum("nij,jyx->niyx", affine, centred) - centred + tiles
    arguments = labels, parameters, 3, 1, reference
    found = displacements((h, w), np.arange(100), *arguments)
    assert np.abs(found - moved).max() <= OFF_PLACE + CUT_OFF * (cell > 1)
    options = {"order": 1, "mode": "grid-constant", "cval": -1.0}
    for image, (dx, dy), result in zip(images, moved, deform(images, *arguments)):
        expected = map_coordinates(image.astype(float), [y + dy, x + dx], **options)
        assert np.abs(result - expected).max() <= OFF + 2 * CUT_OFF * (cell > 1)


@given(
    indices=st.lists(st.integers(0, 130), max_size=20),
    height=st.integers(1, 24),
    width=st.integers(1, 24),
    epoch=st.integers(0, 2**32 - 1),
    parameters=st.sampled_from([PAPER, SMOOTH, SMOOTHEST]),
)
# Larger than GPU blocks; a longer strip of tiles below another, and the ends of a grid; cells of
# noise; one that is larger than an image.
@example(indices=[0, 10, 11, 99, 100], height=40, width=30, epoch=1, parameters=PAPER)
@example(indices=[9, 10], height=5, width=9, epoch=1, parameters=SMOOTH)
@example(indices=[9, 10], height=30, width=9, epoch=1, parameters=SMOOTHEST)
@example(indices=[0, 30], height=29, width=29, epoch=1, parameters=IDENTITY)
@settings(max_examples=6)
def test_any_images_of_a_set(backend, reference, indices, height, width, epoch, parameters):
    """They are deformed as the whole set is, to the bit on a CPU, and as by the oracle.

    Only the tiles that they need are computed, once for all channels.
    """
    images, labels = digits(max(indices, default=0) + 1, height, width)
    drawing = parameters, 9, epoch
    on_device = backend.put(images), backend.put(labels)
    whole = np.asarray(deform(*on_device, *drawing, backend, background=0.0))
    if parameters is IDENTITY:
        assert np.array_equal(whole, images)
    chosen = np.array(indices, int)
    arguments = chosen, labels[chosen], *drawing
    colours = np.stack([images[chosen], images[chosen], images[chosen]], axis=-1)
    colours[..., 1] *= -1
    some = deform_selected(np.moveaxis(colours, -1, 1), *arguments, backend, 0.0)
    # A device draws its maps itself, with a sine of its own: as the oracle's tolerance.
    off = OFF if "cuda" in backend.name else 0
    for channel, sign in enumerate((1, -1, 1)):
        assert np.abs(some[:, channel] - sign * whole[chosen]).max(initial=0) <= off
    expected = deform_selected(images[chosen, None], *arguments, reference, 0.0)
    assert np.abs(some[:, :1] - expected).max(initial=0) <= OFF
    moved, expected = (displacements((height, width), *arguments, b) for b in (backend, reference))
    assert np.abs(moved - expected).max(initial=0) <= OFF_PLACE


def test_affine_draws_are_the_papers():
    labels = np.tile(np.arange(10), 3000)
    matrices = draw_affine(PAPER, labels, seed=1, epoch=1).astype(np.float64)
    forward = np.linalg.inv(matrices)
    shears = forward[:, 1, 0] == 0
    # A fair coin: 30,000 tosses lie within 5 standard deviations of 15,000.
    assert abs(np.count_nonzero(shears) - 15000) < 5 * np.sqrt(30000) / 2
    scale_x = np.hypot(forward[:, 0, 0], forward[:, 1, 0])
    scale_y = np.where(shears, forward[:, 1, 1], np.hypot(forward[:, 0, 1], forward[:, 1, 1]))
    for scale in (scale_x, scale_y):
        assert 0.85 - 1e-6 <= scale.min() < 0.851
        assert 1.149 < scale.max() <= 1.15 + 1e-6
    assert abs(np.corrcoef(scale_x, scale_y)[0, 1]) < 0.05
    rotation = np.degrees(np.arctan2(forward[:, 1, 0], forward[:, 0, 0]))[~shears]
    shear = np.degrees(np.arctan2(forward[:, 0, 1], forward[:, 1, 1]))[shears]
    for angles, kept in ((rotation, labels[~shears]), (shear, labels[shears])):
        similar = np.isin(kept, (1, 7))
        for group, beta in ((angles[similar], 7.5), (angles[~similar], 15.0)):
            assert beta * 0.99 < group.max() <= beta + 1e-4
            assert -beta - 1e-4 <= group.min() < -beta * 0.99


@pytest.mark.parametrize(
    ("sigma", "cell", "n"), [(0, 1, 21), (6, 1, 21), (6.1, 2, 25), (8.9, 2, 37), (200, 66, 25)]
)
def test_cells_of_noise_give_the_covariances_of_a_number_for_each_pixel(sigma, cell, n):
    """Of pixels any distance apart, and wherever they are in a cell, down or across."""
    taps = gaussian_taps(sigma).astype(float)
    assert taps.shape == (cell, n)
    assert taps.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
    assert taps == pytest.approx(taps[::-1, ::-1], abs=1e-7)
    if cell == 1:
        return
    response = np.zeros((4 * cell, n + 3))  # of four cells of pixels to the noise
    for pixel, row in enumerate(response):
        row[pixel // cell : pixel // cell + n] = taps[pixel % cell]
    distance = np.subtract.outer(range(4 * cell), range(4 * cell))
    expected = np.exp(-(distance**2) / (4 * sigma**2)) / (2 * np.sqrt(np.pi) * sigma)
    # Each of the two directions has the factor cell ** -0.5 of the displacements.
    assert response @ response.T / cell == pytest.approx(expected, rel=3e-4)


def field(n=1, height=48, width=64, seed=3, **settings):
    arguments = np.arange(n), np.zeros(n, np.uint8), DeformationParameters(**settings)
    return displacements((height, width), *arguments, seed, 0, backends.get("cpu", 1))


def source(points, displacement):
    """The points that the deformed image shows at points (k, 2), as SciPy computes them."""
    at = points[:, ::-1].T
    shift = [map_coordinates(d.astype(float), at, order=1, mode="nearest") for d in displacement]
    return points + np.stack(shift, axis=-1)


@pytest.mark.parametrize("alpha", [0, 36, 300])  # the last one folds the image everywhere
def test_points_are_where_the_deformed_image_shows_them(alpha):
    rng = np.random.default_rng(0)
    for displacement in field(20, alpha=alpha):
        points = rng.uniform(-5, [69, 53], (50, 2))
        off = source(move_points(points, displacement), displacement) - points
        # Float64 of cells up to 200 pixels long; the root of a quadratic keeps half of the digits.
        assert np.hypot(*off.T).max() <= 200 * 2**-26


def test_boxes_surround_what_they_held():
    """The box around a moved mask of the box, which misses less than a pixel of the edges."""
    boxes = np.array([[12, 10, 30, 22], [40, 20, 41, 40]])
    for displacement in field(10):
        for box, moved in zip(boxes, move_boxes(boxes, displacement)):
            left, top, right, bottom = box
            mask = np.zeros((1, 1, 48, 64), bool)
            mask[0, 0, top:bottom, left:right] = True
            rows, columns = np.nonzero(move_masks(mask, displacement[None], False)[0, 0])
            found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert np.abs(moved - found).max() < 1
