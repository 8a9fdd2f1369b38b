"""Every backend against the float64 oracle, operation by operation.

Tolerances. Single precision rounds each operation to 6e-8 of its size. A sum of n terms in
any order differs from the exact one by at most n * 6e-8 times the sum of the terms'
magnitudes; `sum_tolerance` allows that bound, so a failure is an error and not rounding.
"""

import functools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore import philox
from mlpcore.backends import affine
from mlpcore.network.activation import ACTIVATIONS, LOSSES, A, B
from oracle import (
    EPSILON,
    SEEDS,
    TANH_ERROR,
    WIDTHS,
    Problem,
    check_training,
    random_network,
    sum_tolerance,
    uniform,
)

TANH, SOFTMAX, RELU = ("tanh", "squared"), ("relu", "cross-entropy"), ("relu", "squared")


#: Around the edges of a device's strips, patches and blocks: with the bias, 31 inputs fill a strip.
#: The layers are a scaled tanh, a softmax and a rectifier.
EDGES = [
    *(((1, 1), TANH), ((31, 257), SOFTMAX), ((32, 255, 1), RELU), ((15, 33), TANH)),
    *(((16, 512), SOFTMAX), ((96, 31, 1), RELU), ((255, 256), TANH), ((257, 768), SOFTMAX)),
    *(((3, 999, 1), RELU), ((841, 1000), TANH), ((500, 10), SOFTMAX), ((1000, 500, 1), RELU)),
]


@pytest.mark.parametrize(("sizes", "kind"), EDGES)
def test_layers_at_the_edges_of_blocks(backend, reference, sizes, kind):
    """A layer's outputs, and a training."""
    network, n, (n_in, n_out) = random_network(sizes[:2], 5, 1.0, *kind), 2, sizes[:2]
    inputs, magnitude = A * uniform(5, n, n_in), np.abs(network.weights[0])
    outputs = backend.predict(backend.load(network), inputs)
    assert outputs.shape == (n, n_out) and outputs.dtype == np.float32
    terms = np.abs(inputs) @ magnitude.T + np.abs(network.biases[0])
    if network.loss == "cross-entropy":
        # A probability follows all sums, with slopes that add up to 1/2.
        terms = terms.max(axis=1, keepdims=True)
    # The activation's slope is at most A B.
    tolerance = A * B * sum_tolerance(terms, n_in + 1) + A * (TANH_ERROR + EPSILON)
    assert np.all(np.abs(outputs - reference.predict(network, inputs)) <= tolerance)
    problem = Problem(sizes, n, 5, 0.5 / (max(sizes) + 1), None, 1.0, 1.0, *kind)
    check_training(reference, problem, backend)


@given(
    sizes=st.lists(WIDTHS, min_size=2, max_size=4),
    n=st.sampled_from([1, 2, 63, 64, 65, 511, 512, 513]),
    seed=SEEDS,
    kind=st.tuples(st.sampled_from(ACTIVATIONS), st.sampled_from(LOSSES)),
)
@example(sizes=[17, 65, 64, 999], n=65, seed=1, kind=SOFTMAX)
@settings(max_examples=15)
def test_predict(backend, reference, sizes, n, seed, kind):
    network = random_network(sizes, seed % 2**32, 1.0, *kind)
    images = uniform(seed, n, sizes[0])
    loaded, resident = backend.load(network), backend.put(images)
    outputs = backend.predict(loaded, resident)
    # A sum's rounding, carried through at most two more layers of slope A B about 1.15.
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=0, atol=2e-5)
    labels = np.random.default_rng(seed).integers(0, min(sizes[-1], 256), n).astype(np.uint8)
    errors = backend.count_errors(loaded, resident, backend.put(labels))
    assert errors == np.count_nonzero(outputs.argmax(axis=1) != labels)


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
@example(height=3, width=33, indices=[0, 1], n_taps=43, cell=2, seed=2, epoch=5)
@example(height=3, width=5, indices=[2**31 - 1], n_taps=1, cell=1, seed=2**64 - 1, epoch=2**32 - 1)
@settings(max_examples=25)
def test_fields(backend, reference, height, width, indices, n_taps, cell, seed, epoch):
    taps = np.random.default_rng(seed).uniform(0, 2 / (n_taps + 1), (cell, n_taps))  # not symmetric
    drawing = height, width, taps.astype(np.float32), 36.0, seed, epoch, indices
    found, expected = backend.fields(*drawing), reference.fields(*drawing)
    assert found.shape == (len(indices), 2, height, width)
    # Two sums of n_taps products after each other, or one of their square.
    magnitude = 36.0 * taps.sum(axis=1).max() ** 2
    assert np.abs(found - expected).max() <= sum_tolerance(magnitude, n_taps**2)


@given(n=st.integers(0, 600), seed=SEEDS, epoch=st.integers(0, 2**32 - 1))
@example(n=256, seed=0, epoch=0)
@example(n=257, seed=1, epoch=1)
@settings(max_examples=20)
def test_permutation(backend, n, seed, epoch):
    expected = philox.permutation(n, seed, epoch)
    assert np.array_equal(np.asarray(backend.permutation(n, seed, epoch)), expected)
    out = backend.put(np.full(n, -1, np.int32))
    assert backend.permutation(n, seed, epoch, out=out) is out
    assert np.array_equal(np.asarray(out), expected)


@given(
    n=st.integers(0, 300),
    seed=SEEDS,
    epoch=st.integers(0, 2**32 - 1),
    first=st.integers(0, 2**31 - 300),
    scale=st.floats(0, 0.99),
)
@settings(max_examples=20)
def test_affine_maps(backend, n, seed, epoch, first, scale):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 256, n).astype(np.uint8)
    angles = rng.uniform(0, 1.5, 256)
    indices = np.arange(first, first + n)
    expected = affine.affine_maps(indices, labels, angles, scale, seed, epoch)
    out = backend.put(np.zeros((n, 2, 2), np.float32))
    maps = backend.affine_maps(backend.put(labels), angles, scale, seed, epoch, first, out)
    assert maps is out
    # Both round a double to a float; where the doubles differ in their last bits, so may these.
    np.testing.assert_allclose(np.asarray(maps), expected, rtol=2 * EPSILON, atol=0)


@given(
    n=st.integers(1, 5),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    seed=SEEDS,
    strength=st.sampled_from([0.0, 1.0, 5.0, 100.0]),
    background=st.sampled_from([-1.0, 0.0]),
)
@settings(max_examples=25)
def test_deform_by(backend, reference, n, height, width, seed, strength, background):
    images = uniform(seed, n, height, width)
    affine = (np.eye(2) + 0.3 * uniform(seed + 1, n, 2, 2)).astype(np.float32)
    displacement = strength * uniform(seed + 2, n, 2, height, width)
    result = backend.deform_by(images, affine, displacement, background)
    expected = reference.deform_by(images, affine, displacement, background)
    # A coordinate of up to `extent` pixels rounds by a few of its units in the last place,
    # and pixels differ by at most 2 from one to the next.
    extent = 2 * max(height, width) + strength
    assert np.abs(result - expected).max() <= 2 * 8 * EPSILON * extent + 1e-6


def test_a_count_asks_in_between(backend):
    """What is raised then ends it, and nothing is left behind."""
    network, n = random_network((60, 256, 10), 1), 2100
    images = uniform(2, n, 60)
    loaded, resident = backend.load(network), backend.put(images)
    labels = backend.predict(loaded, resident).argmax(axis=1).astype(np.uint8)
    labels[5::10] ^= 1
    wanted, labels, polls = len(labels[5::10]), backend.put(labels), []
    poll = functools.partial(polls.append, 1)
    assert backend.count_errors(loaded, resident, labels, poll) == wanted
    assert polls

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backend.count_errors(loaded, resident, labels, interrupt)
    assert backend.count_errors(loaded, resident, labels) == wanted


@pytest.mark.parametrize("size", [1.0, 1.3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_the_slope_of_the_error(reference, activation, loss, size):
    """Central differences of the error against the oracle's step, in float64."""
    sizes, rates, h = (5, 4, 3), [1e-3, 2e-3], 1e-3
    network = random_network(sizes, 3, 1.0, activation, loss)
    image, label = uniform(4, 1, 5), np.array([1], np.uint8)
    target = np.array([-size, size, -size])

    def error(net):
        layers = zip(net.weights, net.biases)
        hidden, a = image[0].astype(np.float64), None
        for w, b in layers:
            if a is not None:
                hidden = {"tanh": A * np.tanh(B * a), "relu": np.maximum(a, 0)}[activation]
                if activation == "relu":  # A step of h leaves every neuron on its side of 0.
                    assert np.abs(a).min() > 2 * h and a.min() < 0 < a.max()
            a = w.astype(np.float64) @ hidden + b
        if loss == "cross-entropy":
            return np.log(np.sum(np.exp(a))) - a[1]
        return 0.5 * np.sum((A * np.tanh(B * a) - target) ** 2)

    trained = network.copy()
    result = reference.train(trained, image, label, np.zeros(1, np.int32), rates, target=size)
    assert result.loss == pytest.approx(error(network), rel=1e-12)
    arrays = network.weights + network.biases, trained.weights + trained.biases
    for before, after, rate in zip(*arrays, rates * 2):
        for index in np.ndindex(before.shape):
            value = before[index]
            before[index] = value + h
            up, high = error(network), before[index]
            before[index] = value - h
            down, low = error(network), before[index]
            before[index] = value
            slope = (up - down) / (float(high) - float(low))
            step = (float(value) - float(after[index])) / rate
            # Truncation of the difference, h^2, and float32 weights: 6e-8 / rate.
            assert step == pytest.approx(slope, abs=2e-4)
