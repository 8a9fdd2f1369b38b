"""Steps that read and write the weights of active inputs only."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore.backends.simd import SCHEDULES, SimdBackend
from oracle import SEEDS, assert_near, bits, random_network, training_set

#: Widths that two threads share, around the tiles of 128 neurons and the vectors.
WIDE = st.sampled_from([129, 130, 143, 255, 256, 257, 300])


def rectifiers(sizes, seed):
    return random_network(sizes, seed % 2**32, 2.0, activation="relu", loss="cross-entropy")


@given(
    n_in=st.integers(128, 200),
    widths=st.lists(WIDE, min_size=1, max_size=3),
    n=st.integers(1, 40),
    zeros=st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]),
    block=st.sampled_from([1, 3, 32]),
    threads=st.sampled_from([2, 3]),
    seed=SEEDS,
)
@settings(max_examples=12)
def test_sparse_steps_are_the_oracles(
    simd_name, reference, n_in, widths, n, zeros, block, threads, seed
):
    """Whatever is active, with the same bits for any number of threads."""
    sizes = (n_in, *widths, 10)
    arguments = *training_set(sizes, n, seed, zeros, low=0), 0.1 / max(sizes)
    one, several, expected = (rectifiers(sizes, seed) for _ in range(3))
    wanted = reference.train(expected, *arguments)
    result = SimdBackend(simd_name, 1, block=block).train(one, *arguments)
    assert_near(one, expected)
    assert (result.samples, result.errors) == (wanted.samples, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-4)
    SimdBackend(simd_name, threads, block=block).train(several, *arguments)
    assert bits(several) == bits(one)


@pytest.mark.parametrize("layer, neurons", [(0, 0), (1, 0), (0, 1), (0, 2)])
def test_no_or_few_neurons_are_active(simd_name, reference, layer, neurons):
    """Below a dead layer all keep their weights; the layers above learn their biases."""
    sizes = (150, 300, 200, 10)
    arguments = *training_set(sizes, 40, 1, 0.7, low=0), 0.001
    network = rectifiers(sizes, 1)
    network.biases[layer][neurons:] = -1000
    before, expected = network.copy(), network.copy()
    SimdBackend(simd_name, 2).train(network, *arguments)
    reference.train(expected, *arguments)
    assert_near(network, expected)
    for below in range(layer + 1 if neurons == 0 else 0):
        assert np.array_equal(network.weights[below], before.weights[below])
    assert not np.array_equal(network.biases[-1], before.biases[-1])


def test_an_infinite_weight_of_an_inactive_input_stays_unseen(simd_name):
    """The dense pass multiplies it with zero, which gives NaN; the sparse pass does not."""
    sizes = (150, 300, 10)
    images, labels, order = training_set(sizes, 20, 5, 0.7, low=0)
    images[:, 7] = 0
    network = rectifiers(sizes, 5)
    network.weights[0][:, 7] = np.inf
    result = SimdBackend(simd_name, 2).train(network, images, labels, order, 0.001)
    assert np.isfinite(result.loss)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("place, value", [("image", np.nan), ("image", np.inf), ("weight", np.nan)])
def test_what_is_not_finite_is_seen(simd_name, schedule, place, value):
    """In the loss: rectifiers and lists of active inputs keep NaN."""
    sizes = (150, 300, 200, 10)
    images, labels, order = training_set(sizes, 20, 6, 0.7, low=0)
    network = rectifiers(sizes, 6)
    if place == "image":
        images[order[10], 5] = value
    else:
        network.weights[1][3] = value
    result = SimdBackend(simd_name, 2, schedule).train(network, images, labels, order, 0.001)
    assert not (np.isfinite(result.loss) and network.is_finite())


@example(classes=300, n_in=200)
@given(classes=st.sampled_from([2, 10, 127, 129, 256, 300]), n_in=st.sampled_from([20, 150]))
@settings(max_examples=5)
def test_any_number_of_classes(simd_name, reference, classes, n_in):
    """Few output neurons are one thread's, many are shared."""
    sizes = (n_in, 140, classes)
    images, labels, order = training_set(sizes, 30, 8, 0.5, low=0)
    network = rectifiers(sizes, 8)
    expected = network.copy()
    SimdBackend(simd_name, 3).train(network, images, labels, order, 0.0005)
    reference.train(expected, images, labels, order, 0.0005)
    assert_near(network, expected)
    outputs = SimdBackend(simd_name, 3).predict(network, images)
    # The greatest sums are about ten, and rounding changes exp of them by some 1e-6.
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs.sum(axis=1), 1, rtol=0, atol=1e-5)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_loss_of_more_outputs_than_a_tile_has_neurons(simd_name, reference, schedule):
    """Two tiles: of three threads the first owns none of them, and counts all the same."""
    sizes = (130, 257, 200)
    arguments = *training_set(sizes, 10, 1, 0.5, low=0), 1e-3
    result = SimdBackend(simd_name, 3, schedule).train(rectifiers(sizes, 1), *arguments)
    expected = reference.train(rectifiers(sizes, 1), *arguments)
    assert result.loss == pytest.approx(expected.loss, rel=1e-5)
