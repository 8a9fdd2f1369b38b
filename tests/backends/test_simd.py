"""Promises of the C backend alone: the same bits with any threads, and an end between samples."""

import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore import Network, backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from oracle import SEEDS, on_ground, random_network, trained, training_set, uniform


@given(
    # Around the vectors, the padding and the chunks that a background is left out by.
    n_in=st.sampled_from([1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 143, 144, 256, 257, 841]),
    widths=st.lists(st.sampled_from([1, 15, 16, 47, 130, 300]), min_size=1, max_size=3),
    n=st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 130, 200]),
    ground=st.booleans(),
    threads=st.sampled_from([2, 3, 16]),
    seed=SEEDS,
)
@settings(max_examples=25)
def test_predict_around_panels(simd_name, reference, n_in, widths, n, ground, threads, seed):
    """Near the oracle, with the same bits by more threads, and in batches of another ground."""
    network, images = random_network((n_in, *widths), seed % 2**32), uniform(seed, n, n_in)
    if ground:
        images = on_ground(images, uniform(seed + 1, n), seed)
    one = SimdBackend(simd_name, 1)
    outputs = one.predict(network, images)
    # A sum's rounding, carried through at most two more layers of slope A B about 1.15.
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=0, atol=2e-5)
    assert np.array_equal(SimdBackend(simd_name, threads).predict(network, images), outputs)
    for batch in (slice(n // 2, n), *(slice(i, i + 1) for i in range(0, n, 7))):
        assert np.array_equal(one.predict(network, images[batch]), outputs[batch])


@pytest.mark.parametrize("sizes", [(841, 100, 50, 10), (128, 129, 7, 300), (127, 65, 1), (5, 10)])
def test_predictions_of_many_have_the_bits_of_few(simd_name, sizes):
    """Predictions of many samples go by their active inputs."""
    images = on_ground(uniform(1, 1100, sizes[0]), uniform(2, 1100), 3)
    network = random_network(sizes, 5, activation="relu", loss="cross-entropy")
    one, more = SimdBackend(simd_name, 1), SimdBackend(simd_name, 3)
    outputs = np.concatenate([one.predict(network, half) for half in (images[:550], images[550:])])
    for backend in one, more:
        assert np.array_equal(backend.predict(network, images), outputs)


@pytest.mark.parametrize("n_in", [2, 3, 4, 5, 40])
def test_a_rare_value_is_no_ground(simd_name, reference, n_in):
    """Adding and subtracting 1,000 would leave little of the other terms, about 0.001 each."""
    network, images = random_network((n_in, 10), 1), uniform(2, 4, n_in) * 1e-3
    images[:, 0], network.weights[0][:, 0] = 1000.0, 0.0
    outputs = SimdBackend(simd_name, 1).predict(network, images)
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=0, atol=1e-6)


@pytest.mark.parametrize("value, count", [(np.nan, 1), (np.nan, 12), (np.inf, 12), (np.inf, 20)])
def test_predict_keeps_what_is_not_finite(simd_name, value, count):
    """A network that has diverged says so in every output, and only for its own samples."""
    network, images = random_network((20, 17, 5), 1), uniform(2, 3, 20)
    images[:, :12] = -1.0  # a ground, which is left out
    images[1, max(0, 12 - count) : max(12, count)] = value  # infinities of both signs are NaN
    backend = SimdBackend(simd_name, 1)
    outputs = backend.predict(network, images)
    assert np.isfinite(outputs).all(axis=1).tolist() == [True, False, True]
    assert np.isnan(outputs[1]).all()
    assert np.isnan(backend.predict(network, images[1:2])).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_network_that_has_diverged_can_be_drawn_anew(simd_name, schedule):
    """No NaN stays in the padding of its rows, because NaN times 0 is NaN."""
    images, labels, order = training_set((20, 17, 10), 40)
    images[3] = np.nan
    backend = backends.get(simd_name, 1, schedule)
    network, _ = trained(backend, Network((20, 17, 10), 1), images, labels, order, 0.1)
    assert not network.is_finite()
    network.initialise(1)
    assert network.is_finite()
    assert np.isfinite(backend.predict(network, uniform(3, 5, 20))).all()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
@pytest.mark.parametrize("sizes, most", [((20, 10, 10), 1), ((20, 1000, 10), 16)])
def test_no_thread_only_waits(sizes, most):
    """A layer is cut into 16 tiles at most. Fewer threads may follow where 16 find no room."""
    before, seen = len(os.listdir("/proc/self/task")), []

    def count(done):
        seen.append(len(os.listdir("/proc/self/task")) - before + 1)

    trained(SimdBackend("scalar", 64), Network(sizes, 1), *training_set(sizes, 50), progress=count)
    assert len(seen) > 1 and seen[0] == most == max(seen)
    assert seen == sorted(seen, reverse=True)
