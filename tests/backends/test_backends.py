"""Every backend against the float64 oracle, operation by operation.

Single precision rounds each operation to 6e-8 of its size. A sum of n terms in any order differs
from the exact one by at most n * 6e-8 times the sum of the terms' magnitudes.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore import philox
from mlpcore.backends import affine
from mlpcore.data.pixels import PixelSpec
from mlpcore.deformation.deform import gaussian_taps
from mlpcore.network.activation import BINARY, HUBER, OF_TARGETS
from oracle import EPSILON, KINDS, SEEDS, random_network, trained, uniform


def test_predictions_and_counts_of_any_length(backend, reference):
    """An exception in between ends a count, and nothing is left behind."""
    network, images = random_network((17, 65, 64, 99), 1, activation="relu"), uniform(2, 2100, 17)
    loaded, expected, polls = backend.load(network), reference.predict(network, images), []

    def interrupt():
        raise KeyboardInterrupt

    for n in (1, 2, 63, 64, 65, 511, 512, 513, 2100):
        resident = backend.put(images[:n])
        outputs = backend.predict(loaded, resident)
        # A sum's rounding, carried through at most two more layers of slope A B about 1.15.
        np.testing.assert_allclose(outputs, expected[:n], rtol=0, atol=2e-5)
        labels = outputs.argmax(axis=1).astype(np.uint8)
        labels[5::10] ^= 1
        wrong, labels = len(labels[5::10]), backend.put(labels)
        assert backend.count_errors(loaded, resident, labels) == wrong
    with pytest.raises(KeyboardInterrupt):
        backend.count_errors(loaded, resident, labels, interrupt)
    assert backend.count_errors(loaded, resident, labels, lambda: polls.append(1)) == wrong
    assert polls


@given(
    height=st.integers(1, 14),
    width=st.integers(1, 14),
    indices=st.lists(st.integers(0, 250) | st.integers(0, 2**31 - 1), min_size=1, max_size=5),
    n_taps=st.sampled_from([1, 21, 22, 50]),
    cell=st.sampled_from([1, 2, 7]),
    seed=SEEDS,
    epoch=st.integers(0, 2**32 - 1),
)
# A device's whole blocks, and some pixels more. One tap leaves the random numbers as they are.
@example(height=16, width=32, indices=[0, 99], n_taps=21, cell=1, seed=1, epoch=5)
@example(height=13, width=13, indices=[9, 90], n_taps=21, cell=1, seed=2, epoch=5)
@example(height=3, width=33, indices=[0, 138], n_taps=43, cell=2, seed=2, epoch=5)
@example(height=3, width=5, indices=[2**31 - 1], n_taps=1, cell=1, seed=2**64 - 1, epoch=2**32 - 1)
@settings(max_examples=12)
def test_fields(backend, reference, height, width, indices, n_taps, cell, seed, epoch):
    taps = np.random.default_rng(seed).uniform(0, 2 / (n_taps + 1), (cell, n_taps))  # not symmetric
    smallest = np.array(indices, np.min_scalar_type(max(indices)))
    drawing = height, width, taps.astype(np.float32), 36.0, seed, epoch, smallest
    found, expected = backend.fields(*drawing), reference.fields(*drawing)
    assert found.shape == (len(indices), 2, height, width)
    # Two sums of n_taps products after each other, or one of their square.
    magnitude = 36.0 * taps.sum(axis=1).max() ** 2
    assert np.abs(found - expected).max() <= (n_taps**2 + 2) * EPSILON * magnitude + 1e-30


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 600])
@pytest.mark.parametrize(
    ("seed", "epoch", "first", "scale"),
    [(0, 0, 0, 0.5), (2**33 + 5, 7, 99, 0.0), (2**64 - 1, 2**32 - 1, 2**31 - 600, 0.99)],
)
def test_what_an_epoch_draws(backend, n, seed, epoch, first, scale):
    rng = np.random.default_rng(seed)
    labels, angles = rng.integers(0, 256, n).astype(np.uint8), rng.uniform(0, 1.5, 256)
    out = backend.put(np.zeros((n, 2, 2), np.float32))
    maps = backend.affine_maps(backend.put(labels), angles, scale, seed, epoch, first, out)
    assert maps is out
    expected = affine.affine_maps(first + np.arange(n), labels, angles, scale, seed, epoch)
    # Both round a double to a float; where the doubles differ in their last bits, so may these.
    np.testing.assert_allclose(np.asarray(maps), expected, rtol=2 * EPSILON, atol=0)


@pytest.mark.parametrize("background", [-1.0, 0.0])
@pytest.mark.parametrize("strength", [0.0, 1.0, 5.0, 100.0])
@pytest.mark.parametrize(("n", "height", "width"), [(1, 1, 1), (5, 40, 33), (2, 3, 29), (3, 17, 1)])
def test_deform_by(backend, reference, n, height, width, strength, background):
    seed = 7 * height
    images = uniform(seed, n, height, width)
    affine = (np.eye(2) + 0.3 * uniform(seed + 1, n, 2, 2)).astype(np.float32)
    displacement = strength * uniform(seed + 2, n, 2, height, width)
    result = backend.deform_by(images, affine, displacement, background)
    expected = reference.deform_by(images, affine, displacement, background)
    # A coordinate of up to `extent` pixels rounds by a few of its units in the last place,
    # and pixels differ by at most 2 from one to the next.
    extent = 2 * max(height, width) + strength
    assert np.abs(result - expected).max() <= 2 * 8 * EPSILON * extent + 1e-6


@pytest.mark.parametrize("shape", [(3, 6), (4, 7), (17, 19), (2, 2)])
@pytest.mark.parametrize("value_range, input_range", [((0, 255), "signed"), ((-3, 16), "unit")])
def test_bytes_in_an_order_become_inputs(backend, reference, shape, value_range, input_range):
    """With the bits of `PixelSpec`; deformed ones are what the oracle looks up in the bytes."""
    pixels = PixelSpec((17, 19), shape, value_range, input_range=input_range)
    pictures = np.random.default_rng(5).integers(0, 256, (40, *shape)).astype(np.uint8)
    rows = philox.permutation(40, 1, 0)[:30]
    taken = backend.take(backend.put(pictures), backend.put(rows))
    assert np.array_equal(np.asarray(taken), pictures[rows])
    expected = pixels.to_inputs(pixels.to_images(pictures[rows])).reshape(30, 17, 19)
    assert np.array_equal(np.asarray(backend.to_inputs(taken, pixels)), expected)
    maps = (np.eye(2) + 0.3 * uniform(6, 30, 2, 2)).astype(np.float32)
    drawing = gaussian_taps(6.0), 36.0, 1, 2, 95
    deformed = [
        np.asarray(each.deform(data, each.put(maps), *drawing, background=-0.5, pixels=pixels))
        for each, data in ((backend, taken), (reference, pictures[rows]))
    ]
    # Coordinates of up to 60 pixels, as in `test_deform_by`; pixels differ by their range.
    width = np.ptp(pixels.inputs_of_bytes) + 1
    assert np.abs(deformed[0] - deformed[1]).max() <= width * (21**2 + 60) * EPSILON
    still = np.tile(np.eye(2, dtype=np.float32), (30, 1, 1)), drawing[0], 0.0, *drawing[2:]
    found = np.asarray(backend.deform(taken, *still, pixels=pixels))
    np.testing.assert_allclose(found, expected, rtol=0, atol=width * 60 * EPSILON)


@pytest.mark.parametrize("size", [1.0, 1.3])
@pytest.mark.parametrize(("activation", "loss"), [*KINDS, ("tanh", HUBER), ("relu", BINARY)])
def test_gradient_is_the_slope_of_the_error(reference, activation, loss, size):
    """Central differences of the loss against the oracle's step, in float64."""
    network, rates, h = random_network((5, 4, 3), 3, 1.0, activation, loss), [1e-3, 2e-3], 1e-3
    labels = np.array([1], np.uint8)
    if loss in OF_TARGETS:
        labels = np.array([[0, 1, 1]], np.float32)
    data = uniform(4, 1, 5), labels, np.zeros(1, np.int32), rates
    after, _ = trained(reference, network, *data, target=size)
    arrays = network.weights + network.biases, after.weights + after.biases
    for before, changed, rate in zip(*arrays, rates * 2):
        for index in np.ndindex(before.shape):
            value, found = before[index], []
            for place in (value + h, value - h):
                before[index] = place
                error = trained(reference, network, *data, target=size)[1].loss
                found.append((error, float(before[index])))
            before[index] = value
            rise, run = np.subtract(*found)
            # Truncation of the difference, h^2, and float32 weights: 6e-8 / rate.
            step = (float(value) - float(changed[index])) / rate
            assert step == pytest.approx(rise / run, abs=2e-4)
