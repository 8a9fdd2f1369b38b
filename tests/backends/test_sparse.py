"""Steps that read and write the weights of active inputs only."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore import backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.cpu import available_cores
from oracle import EPSILON, SEEDS, bits, random_network

SIMD = [name for name in backends.INSTRUCTION_SETS if backends.available()[name] is None]

#: Widths that two threads share, around the tiles of 128 neurons and the vectors.
WIDE = st.sampled_from([129, 130, 143, 255, 256, 257, 300])


@pytest.fixture(params=SIMD, scope="module")
def name(request):
    return request.param


def rectifiers(sizes, seed):
    return random_network(sizes, seed % 2**32, 2.0, activation="relu", loss="cross-entropy")


def problem(sizes, n, zeros, seed):
    """Inputs in [0, 1], of which the fraction `zeros` is zero; labels; an order."""
    rng = np.random.default_rng(seed)
    images = rng.random((n, sizes[0]), dtype=np.float32)
    images[rng.random(images.shape) < zeros] = 0
    labels = rng.integers(0, sizes[-1], n).astype(np.uint8)
    return images, labels, rng.permutation(n).astype(np.int32)


def assert_near(network, expected):
    """As in `check_training`: some roundings of weights of about 1 in each of some steps."""
    for got, oracle in zip(network.weights + network.biases, expected.weights + expected.biases):
        size = max(1.0, np.abs(oracle).max())
        np.testing.assert_allclose(got, oracle, rtol=0, atol=32 * EPSILON * size)


@given(
    n_in=st.integers(128, 200),
    widths=st.lists(WIDE, min_size=1, max_size=3),
    n=st.integers(1, 50),
    zeros=st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]),
    block=st.sampled_from([1, 3, 32]),
    threads=st.sampled_from([2, 3]),
    seed=SEEDS,
)
@settings(max_examples=25)
def test_sparse_steps_are_the_oracles(
    name, reference, n_in, widths, n, zeros, block, threads, seed
):
    """Whatever is active, with the same bits for any number of threads."""
    sizes = (n_in, *widths, 10)
    arguments = *problem(sizes, n, zeros, seed), 0.1 / max(sizes)
    one, several, expected = (rectifiers(sizes, seed) for _ in range(3))
    wanted = reference.train(expected, *arguments)
    result = SimdBackend(name, 1, block=block).train(one, *arguments)
    assert_near(one, expected)
    assert (result.samples, result.errors) == (wanted.samples, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-4)
    SimdBackend(name, threads, block=block).train(several, *arguments)
    assert bits(several) == bits(one)


@pytest.mark.parametrize("dead", [0, 1])
def test_a_dead_layer_passes_nothing(name, reference, dead):
    """Its neurons and all below keep their weights; the layers above learn their biases."""
    sizes = (150, 300, 200, 10)
    arguments = *problem(sizes, 40, 0.7, 1), 0.001
    network = rectifiers(sizes, 1)
    network.biases[dead][:] = -1000
    before, expected = network.copy(), network.copy()
    SimdBackend(name, 2).train(network, *arguments)
    reference.train(expected, *arguments)
    assert_near(network, expected)
    for layer in range(dead + 1):
        assert np.array_equal(network.weights[layer], before.weights[layer])
    assert not np.array_equal(network.biases[-1], before.biases[-1])


@pytest.mark.parametrize("neurons", [1, 2])
def test_few_neurons_are_active(name, reference, neurons):
    sizes = (150, 300, 200, 10)
    arguments = *problem(sizes, 40, 0.7, 2), 0.001
    network = rectifiers(sizes, 2)
    network.biases[0][neurons:] = -1000
    expected = network.copy()
    SimdBackend(name, 2).train(network, *arguments)
    reference.train(expected, *arguments)
    assert_near(network, expected)


@pytest.mark.parametrize("cuts", [(32,), (64, 96)])
def test_a_call_may_be_cut_at_the_end_of_a_block(name, cuts):
    sizes = (150, 300, 200, 10)
    images, labels, order = problem(sizes, 120, 0.7, 3)
    backend = SimdBackend(name, 2)
    whole, pieces = (rectifiers(sizes, 3) for _ in range(2))
    backend.train(whole, images, labels, order, 0.01)
    for begin, end in zip((0, *cuts), (*cuts, 120)):
        backend.train(pieces, images, labels, order[begin:end], 0.01)
    assert bits(whole) == bits(pieces)


def test_schedules_differ_in_rounding_only(name, reference):
    sizes = (150, 300, 200, 150, 10)
    arguments = *problem(sizes, 60, 0.7, 4), 0.001
    expected, seen = rectifiers(sizes, 4), set()
    reference.train(expected, *arguments)
    for schedule in SCHEDULES:
        network = rectifiers(sizes, 4)
        SimdBackend(name, 2, schedule).train(network, *arguments)
        assert_near(network, expected)
        seen.add(b"".join(bits(network)))
    assert len(seen) == 3  # so small a network is not packed


def test_an_infinite_weight_of_an_inactive_input_stays_unseen(name):
    """The dense pass multiplies it with zero, which gives NaN; the sparse pass does not."""
    sizes = (150, 300, 10)
    images, labels, order = problem(sizes, 20, 0.7, 5)
    images[:, 7] = 0
    network = rectifiers(sizes, 5)
    network.weights[0][:, 7] = np.inf
    result = SimdBackend(name, 2).train(network, images, labels, order, 0.001)
    assert np.isfinite(result.loss)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_seen(name, schedule, value):
    """In the loss: rectifiers and lists of active inputs keep NaN."""
    sizes = (150, 300, 200, 10)
    images, labels, order = problem(sizes, 20, 0.7, 6)
    for spoil in ("image", "weight"):
        network = rectifiers(sizes, 6)
        if spoil == "image":
            images[order[10], 5] = value
        else:
            network.weights[1][3] = value
        result = SimdBackend(name, 2, schedule).train(network, images, labels, order, 0.001)
        assert not (np.isfinite(result.loss) and network.is_finite())


@example(classes=300, n_in=200)
@given(classes=st.sampled_from([2, 10, 127, 129, 256, 300]), n_in=st.sampled_from([20, 150]))
@settings(max_examples=8)
def test_any_number_of_classes(name, reference, classes, n_in):
    """Few output neurons are one thread's, many are shared."""
    sizes = (n_in, 140, classes)
    images, labels, order = problem((n_in, min(classes, 256)), 30, 0.5, 8)
    network = rectifiers(sizes, 8)
    expected = network.copy()
    SimdBackend(name, 3).train(network, images, labels, order, 0.0005)
    reference.train(expected, images, labels, order, 0.0005)
    assert_near(network, expected)
    outputs = SimdBackend(name, 3).predict(network, images)
    # The greatest sums are about ten, and rounding changes exp of them by some 1e-6.
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs.sum(axis=1), 1, rtol=0, atol=1e-5)


def test_bits_beside_busy_processes():
    """Training goes on with fewer threads there, from the end of a block on."""
    name = backends.get("cpu").name  # what notices the others is the same for all
    sizes = (150, 300, 200, 10)
    arguments = *problem(sizes, 20_000, 0.7, 9), 0.001
    alone, crowded = rectifiers(sizes, 9), rectifiers(sizes, 9)
    SimdBackend(name, 1).train(alone, *arguments)
    spinning = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spinning) for _ in range(2 * available_cores())]
    try:
        SimdBackend(name, 2 * available_cores()).train(crowded, *arguments)
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert bits(crowded) == bits(alone)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_loss_of_more_outputs_than_a_tile_has_neurons(name, reference, schedule):
    """Two tiles: of three threads the first owns none of them, and counts all the same."""
    sizes = (130, 257, 200)
    arguments = *problem(sizes, 10, 0.5, 1), 1e-3
    result = SimdBackend(name, 3, schedule).train(rectifiers(sizes, 1), *arguments)
    expected = reference.train(rectifiers(sizes, 1), *arguments)
    assert result.loss == pytest.approx(expected.loss, rel=1e-5)
