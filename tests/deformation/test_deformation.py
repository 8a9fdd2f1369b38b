"""The deformation as the paper describes it, by SciPy, and on every backend."""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, map_coordinates

from mlpcore.backends import INSTRUCTION_SETS
from mlpcore.deformation.deform import (
    deform,
    deform_selected,
    displacements,
    draw_affine,
    gaussian_taps,
)
from mlpcore.deformation.parameters import IDENTITY, DeformationParameters
from mlpcore.errors import InputError

PAPER = DeformationParameters()

#: Coordinates of up to 40 pixels, their displacement the sum of 42 products: 64 roundings of
#: 2^-24 each.
OFF_PLACE = 64 * 2**-24 * 40

#: Between pixels from -1 to 1 the slope is at most 2 per pixel.
OFF = 2 * OFF_PLACE


def digits(n, height=29, width=29, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.uniform(-1, 1, (n, height, width)).astype(np.float32)
    return images, rng.integers(0, 10, n).astype(np.uint8)


@given(
    n=st.integers(1, 130),
    first=st.integers(0, 250),
    height=st.integers(1, 33),
    width=st.integers(1, 33),
    seed=st.integers(0, 2**64 - 1),
)
@settings(max_examples=6)
def test_equals_the_oracle(backend, reference, n, first, height, width, seed):
    images, labels = digits(n, height, width)
    result = backend.put(images)
    result = deform(result, labels, PAPER, seed, 2, backend, first)
    expected = deform(images, labels, PAPER, seed, 2, reference, first)
    assert np.abs(np.asarray(result) - expected).max() <= OFF


def test_the_oracle_equals_scipy(reference):
    """SciPy smooths the oracle's noise and looks pixels up in a grid of 100 images."""
    images, labels = digits(100)
    noise = reference.noise(3, 1, 0, 29, 29).astype(float)
    smooth = [PAPER.alpha * gaussian_filter(cells, PAPER.sigma, radius=10) for cells in noise]
    field = np.stack(smooth)[:, 10:-10, 10:-10].reshape(2, 10, 29, 10, 29)
    tiles = field.transpose(1, 3, 0, 2, 4).reshape(100, 2, 29, 29)
    y, x = np.mgrid[-14:15, -14:15]
    affine = draw_affine(PAPER, labels, 3, 1).astype(float)
    moved = np.einsum("nij,jyx->niyx", affine, [x, y]) - [x, y] + tiles
    arguments = labels, PAPER, 3, 1, reference
    found = displacements((29, 29), np.arange(100), *arguments)
    assert np.abs(found - moved).max() <= OFF_PLACE
    options = {"order": 1, "mode": "grid-constant", "cval": -1.0}
    for image, (dx, dy), result in zip(images, moved, deform(images, *arguments)):
        places = [y + 14 + dy, x + 14 + dx]
        expected = map_coordinates(image.astype(float), places, **options)
        assert np.abs(result - expected).max() <= OFF


def test_zero_parameters_are_the_identity(backend):
    images, labels = digits(120)
    result = deform(backend.put(images), labels, IDENTITY, 1, 1, backend)
    assert np.array_equal(np.asarray(result), images)


def test_any_image_can_be_deformed_alone(backend):
    images, labels = digits(230)
    whole = np.asarray(deform(backend.put(images), labels, PAPER, 9, 4, backend))
    for i in (0, 9, 10, 99, 100, 105, 229):
        alone = deform(backend.put(images[i : i + 1]), labels[i : i + 1], PAPER, 9, 4, backend, i)
        assert np.array_equal(np.asarray(alone)[0], whole[i])


def test_any_images_can_be_deformed_together(backend):
    images, labels = digits(230)
    whole = np.asarray(deform(backend.put(images), backend.put(labels), PAPER, 9, 4, backend))
    shuffled = np.random.default_rng(0).permutation(230)
    apart = np.array([229, 7, 5, 99, 100, 7, 0])
    for chosen, calls in ((shuffled, 1), (apart, 6), (apart[:0], 0)):
        counting = Mock(wraps=backend)
        some = deform_selected(images[chosen], chosen, labels[chosen], PAPER, 9, 4, counting)
        if backend.name in INSTRUCTION_SETS:
            assert np.array_equal(some, whole[chosen])
        else:  # a device draws its maps itself, with a sine of its own: as the oracle's tolerance
            assert np.abs(some - whole[chosen]).max(initial=0) <= OFF
        assert counting.deform.call_count == calls


def test_repeats_for_a_seed_and_differs_between_epochs(backend):
    images, labels = digits(20)
    resident = backend.put(images)
    first, again, *others = (
        np.asarray(deform(resident, labels, PAPER, seed, epoch, backend)).copy()
        for seed, epoch in [(1, 1), (1, 1), (1, 2), (2, 1)]
    )
    assert np.array_equal(first, again)
    assert not any(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize("sigma, alpha, rms", [(6.0, 36.0, 1.14), (5.0, 38.0, 1.33)])
def test_rms_displacement_is_the_papers(backend, sigma, alpha, rms):
    """1.14 to 1.33 pixels over the paper's ranges; two fields of 84,100 cells, correlated
    over about (2 sigma sqrt(pi))^2 = 450 of them, so a relative error of 1/sqrt(4 * 190)."""
    field = backend.displacement_field(backend.noise(5, 1, 0, 29, 29), gaussian_taps(sigma), alpha)
    assert np.sqrt(np.mean(field**2)) == pytest.approx(rms, rel=0.15)
    # What the kernel implies exactly: uniform noise has variance 1/3.
    implied = alpha * np.sum(gaussian_taps(sigma) ** 2) / np.sqrt(3)
    assert implied == pytest.approx(rms, abs=0.006)


def test_x_is_x_and_y_is_y(backend):
    """On a non-square image, a displacement of +2 in x fetches the pixel two to the right."""
    images, _ = digits(1, height=7, width=13)
    straight = np.eye(2, dtype=np.float32)[None]
    moved = np.zeros((1, 2, 7, 13), np.float32)
    moved[:, 0] = 2.0
    result = backend.deform_by(images, straight, moved)[0]
    assert np.array_equal(result[:, :-2], images[0][:, 2:])
    assert np.all(result[:, -2:] == -1.0)
    moved[:, 0], moved[:, 1] = 0.0, -3.0
    result = backend.deform_by(images, straight, moved)[0]
    assert np.array_equal(result[3:], images[0][:-3])
    assert np.all(result[:3] == -1.0)


def test_affine_matrix_maps_target_to_source_about_the_centre(backend):
    images, _ = digits(1, height=9, width=9)
    quarter_turn = np.array([[[0.0, -1.0], [1.0, 0.0]]], np.float32)  # (x, y) <- (-y, x)
    still = np.zeros((1, 2, 9, 9), np.float32)
    result = backend.deform_by(images, quarter_turn, still)[0]
    # Target (4 + u, 4 + v) looks up source (4 - v, 4 + u).
    assert result[4 + 2, 4 + 1] == images[0][4 + 1, 4 - 2]
    assert np.array_equal(result, np.rot90(images[0]))


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


def test_gaussian_sums_to_one_after_truncation():
    for sigma in (0.0, 0.5, 5.0, 6.0, 100.0):
        taps = gaussian_taps(sigma)
        assert taps.shape == (21,)
        assert taps.sum() == pytest.approx(1.0, abs=1e-6)
        assert np.array_equal(taps, taps[::-1])


@pytest.mark.parametrize(
    "name, value",
    [("sigma", -1.0), ("alpha", np.nan), ("sigma", np.inf), ("beta", 90.0), ("gamma", 100.0)],
)
def test_bad_parameters(name, value):
    with pytest.raises(InputError, match=f"^{name} "):
        DeformationParameters(**{name: value})


def test_bad_labels_and_sides(reference):
    for labels in (7, [256], ["7"]):
        with pytest.raises(InputError):
            DeformationParameters(similar_labels=labels).greatest_angles()
    with pytest.raises(InputError):
        deform(np.zeros((1, 3000, 2), np.float32), np.zeros(1), PAPER, 1, 1, reference)
