"""A sample's weight is a factor of its learning rate, in every schedule."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore import backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from oracle import SEEDS, assert_near, bits, training_set
from small_trainings import network_of

TANH, RELU = ("tanh", "squared"), ("relu", "cross-entropy")

#: Each schedule with the networks that it is made for.
each_schedule = pytest.mark.parametrize(
    "schedule, kind",
    [("sparse", RELU), ("packed", TANH), ("deferred", TANH)],
)

#: Whole numbers, some of them 0; tiny and huge ones together; all huge; all tiny; all 0.
MIXES = {
    "whole": [0, 1, 2, 3],
    "far apart": [0, 1e-30, 1e-8, 1, 1e8],
    "huge": [1e11, 3e11],
    "tiny": [1e-12, 3e-12],
    "none": [0],
}


def problem(sizes, n, seed):
    """Inputs of which half are 0, labels, and an order in which some images come twice."""
    images, labels, _ = training_set(sizes, n, seed, zeros=0.5)
    order = np.random.default_rng(seed).integers(0, n, 2 * n).astype(np.int32)
    return images, labels, order


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(
    sizes=st.lists(st.sampled_from([1, 16, 33, 130, 257]), min_size=2, max_size=4),
    n=st.integers(1, 20),
    mix=st.sampled_from(list(MIXES)),
    kind=st.sampled_from([TANH, RELU]),
    block=st.sampled_from([1, 3, 32]),
    seed=SEEDS,
)
@example([130, 257, 130, 10], 20, "whole", RELU, 32, 1)
@example([130, 257, 130, 10], 20, "far apart", TANH, 32, 2)
@settings(max_examples=8)
def test_weighted_steps_are_the_oracles(
    simd_name, reference, schedule, sizes, n, mix, kind, block, seed
):
    """With the same bits for any number of threads. The greatest step is a stable one."""
    weights = np.random.default_rng(seed).choice(np.array(MIXES[mix], np.float32), n)
    greatest = float(weights.max()) or 1.0
    arguments = *problem(sizes, n, seed), 0.1 / (max(sizes) + 1) / greatest
    several, one, expected = (network_of(kind, sizes, seed) for _ in range(3))
    wanted = reference.train(expected, *arguments, sample_weight=weights)
    result = SimdBackend(simd_name, 3, schedule, block).train(
        several, *arguments, sample_weight=weights
    )
    assert_near(several, expected)
    assert (result.samples, result.errors) == (2 * n, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-4, abs=1e-4 * greatest)
    SimdBackend(simd_name, 1, schedule, block).train(one, *arguments, sample_weight=weights)
    assert bits(one) == bits(several)


@each_schedule
def test_a_power_of_two_for_all_is_that_factor_of_the_rate(simd_name, schedule, kind):
    """To the bit: it rounds nothing. Weight 1 is no weight."""
    sizes, n = (150, 300, 140, 10), 40
    data = problem(sizes, n, 3)
    backend = SimdBackend(simd_name, 2, schedule, packed_from=0)
    plain = network_of(kind, sizes, 1)
    wanted = backend.train(plain, *data, 1e-3)
    for weight in (1.0, 4.0, 2.0**-20):
        network, weights = network_of(kind, sizes, 1), np.full(n, weight, np.float32)
        result = backend.train(network, *data, np.float32(1e-3) / weight, sample_weight=weights)
        assert bits(network) == bits(plain)
        assert (result.samples, result.errors) == (wanted.samples, wanted.errors)
        assert result.loss == pytest.approx(weight * wanted.loss, rel=1e-12)


def test_a_sample_of_weight_0_leaves_no_trace(cpu_name):
    """A stepper computes the same without it; a block rounds in other places."""
    sizes, n = (40, 300, 10), 30
    images, labels, _ = problem(sizes, n, 5)
    weights = np.arange(n, dtype=np.float32) % 3
    kept = weights > 0
    network, expected = (
        backends.get(cpu_name, 1).stepper(network_of(TANH, sizes, 1)) for _ in range(2)
    )
    network.train(images, labels, 0.001, sample_weight=weights)
    expected.train(images[kept], labels[kept], 0.001, sample_weight=weights[kept])
    assert bits(network.network) == bits(expected.network)


@each_schedule
def test_weights_of_0_alone_change_no_bit(simd_name, schedule, kind):
    """Errors are counted all the same, and the loss is that of no sample."""
    sizes = (40, 300, 10)
    data, backend = problem(sizes, 40, 6), SimdBackend(simd_name, 3, schedule)
    network, before, plain = (network_of(kind, sizes, 1) for _ in range(3))
    result = backend.train(network, *data, 0.01, sample_weight=np.zeros(40, np.float32))
    assert bits(network) == bits(before)
    guesses = backend.predict(plain, data[0]).argmax(axis=1)
    wrong = int(np.count_nonzero(guesses[data[2]] != data[1][data[2]]))
    assert (result.samples, result.errors, result.loss) == (80, wrong, 0.0)
