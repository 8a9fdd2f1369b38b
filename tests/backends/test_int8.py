"""Batches by 8-bit integers, and errors counted with their help."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore.backends import counting
from mlpcore.backends.simd import SimdBackend, unavailable_reason
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from oracle import SEEDS, on_ground, random_network, uniform


def _with_int8(name):
    has = unavailable_reason(name) is None and SimdBackend(name).int8
    reason = f"no 8-bit integers by {name} here"
    return pytest.param(name, marks=pytest.mark.skipif(not has, reason=reason))


WITH_INT8 = pytest.mark.parametrize("name", [_with_int8("avx2"), _with_int8("avx512")])

#: Around quads, pairs of them, 32 inputs and a chunk of 1,024.
WIDTHS = st.sampled_from([256, 257, 260, 263, 287, 841, 1023, 1025, 1033])
#: Around blocks of 4 neurons and chunks of 64.
HIDDEN = st.sampled_from([1, 3, 4, 5, 63, 64, 65, 131])
#: Around groups of 16 samples and batches of 64.
NUMBERS = st.sampled_from([0, 1, 15, 17, 63, 64, 65, 130])


def rounded(network, images):
    """What int8.c computes for two layers, from its description and in integers."""
    weights, one = network.weights[0], np.float32(1)
    greatest = np.abs(weights).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.rint(weights * (63 * one / greatest)[:, None])
        least, most = images.min(axis=1), images.max(axis=1)
        x = np.rint((images - least[:, None]) * (127 * one / (most - least))[:, None])
    w, x = np.nan_to_num(w).astype(np.int64), np.nan_to_num(x).astype(np.int64)
    assert np.abs(w).max(initial=0) <= 63
    assert x.min(initial=0) >= 0
    assert x.max(initial=0) <= 127
    scale = np.outer((most - least) / 127.0, greatest / 63.0)
    sums = (x @ w.T) * scale + np.outer(least, weights.sum(axis=1, dtype=float))
    states = A * np.tanh(B * (sums + network.biases[0]))
    return A * np.tanh(B * (states @ network.weights[1].T.astype(float) + network.biases[1]))


@WITH_INT8
@given(n_in=WIDTHS, hidden=HIDDEN, n_out=st.integers(1, 33), n=NUMBERS, seed=SEEDS)
@example(n_in=841, hidden=1, n_out=10, n=64, seed=0)
@settings(max_examples=60)
def test_sums_of_integers_are_exact(name, n_in, hidden, n_out, n, seed):
    """What is left is float32's rounding: of some tens of terms in the first layer's three, and of
    the last layer's sum, of up to 131 terms below 2."""
    network = random_network((n_in, hidden, n_out), seed % 2**32)
    images = on_ground(uniform(seed, n, n_in), -1.0, seed % 2**32)
    got = SimdBackend(name, 2).predict_by_int8(network, images)
    np.testing.assert_allclose(got, rounded(network, images), rtol=0, atol=1e-4)


@WITH_INT8
def test_an_odd_number_of_quads_with_foreground(name):
    """The last is one of them, and the place of the next holds what the last batch but one left."""
    network, images = random_network((256, 20, 3), 1), uniform(2, 192, 256)
    images[128:, 8:252] = images[128:].min(axis=1, keepdims=True)
    got = SimdBackend(name, 1).predict_by_int8(network, images)
    np.testing.assert_allclose(got, rounded(network, images), rtol=0, atol=1e-4)


@WITH_INT8
@given(sizes=st.lists(WIDTHS, min_size=2, max_size=4), n_out=st.integers(2, 33), seed=SEEDS)
@settings(max_examples=20)
def test_several_layers(name, sizes, n_out, seed):
    """A weight is off by 1/126 of the greatest at most, an input by 1/254 of the range: all layers
    together, whose errors are as good as independent, by 0.4 at most, and by 0.05 as a rule."""
    network, images = random_network((*sizes, n_out), seed % 2**32), uniform(seed, 140, sizes[0])
    want = SimdBackend(name, 1).predict(network, images)
    got = SimdBackend(name, 1).predict_by_int8(network, images)
    assert np.abs(got - want).max() <= 0.4
    assert np.sqrt(np.mean((got - want) ** 2)) <= 0.05
    assert np.array_equal(SimdBackend(name, 3).predict_by_int8(network, images), got)
    part = SimdBackend(name, 2).predict_by_int8(network, images[5:38])
    assert np.array_equal(part, got[5:38])


@WITH_INT8
def test_equal_inputs_and_weights_of_zero(name):
    """An image of one value has no range, a neuron without weights no greatest."""
    network, images = random_network((256, 20, 3), 1), uniform(2, 40, 256)
    images[3:20] = 0.25
    images[20] = 0.0
    network.weights[0][:5] = 0.0
    backend = SimdBackend(name, 2)
    got = backend.predict_by_int8(network, images)
    np.testing.assert_allclose(got, backend.predict(network, images), rtol=0, atol=0.1)
    np.testing.assert_allclose(got, rounded(network, images), rtol=0, atol=1e-4)


@WITH_INT8
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sizes", [(256, 300, 10), (256, 300, 300, 10)])
def test_what_is_not_finite_is_not_a_number(name, sizes, value):
    network, images = random_network(sizes, 1), uniform(2, 40, 256)
    backend = SimdBackend(name, 2)
    whole = backend.predict_by_int8(network, images)
    images[7, 3] = value
    got = backend.predict_by_int8(network, images)
    assert np.isnan(got[7]).all()
    assert np.array_equal(np.delete(got, 7, 0), np.delete(whole, 7, 0))
    network.weights[0][299, 5] = value
    assert np.isnan(backend.predict_by_int8(network, images)).all()


@WITH_INT8
def test_only_networks_that_it_suits(name):
    assert not SimdBackend("scalar").int8
    with pytest.raises(ValueError, match="scalar"):
        SimdBackend("scalar").predict_by_int8(Network((300, 5, 2), 1), uniform(1, 3, 300))
    for sizes in ((255, 300, 2), (300, 255, 300, 2), (300, 10)):
        with pytest.raises(ValueError, match=name):
            SimdBackend(name).predict_by_int8(Network(sizes, 1), uniform(1, 3, sizes[0]))


@WITH_INT8
@pytest.mark.parametrize("spread", [1e-3, 0.03, 1.0])
def test_errors_are_counted_as_in_float32(name, spread):
    """Also where outputs are as good as equal; with `spread` 1 many saturate."""
    network, images = random_network((300, 256, 10), 1), uniform(2, 3000, 300)
    rng = np.random.default_rng(3)
    network.weights[1][:] = network.weights[1][0]
    network.weights[1][:] += spread * rng.normal(0, 0.3, network.weights[1].shape)
    network.biases[1][:] = network.biases[1][0]
    backend = SimdBackend(name, 2)
    labels = backend.predict(network, images).argmax(axis=1).astype(np.uint8)
    off = backend.predict_by_int8(network, images).argmax(axis=1) != labels
    assert off.any()  # integers alone would miscount
    assert backend.count_errors(network, images, labels) == 0
    labels[:7] = (labels[:7] + 1) % 10
    assert backend.count_errors(network, images, labels) == 7


class Outputs:
    """Outputs that are there already, by the images' first number; and how many were asked for."""

    def __init__(self, values):
        self.values, self.asked = values, 0

    def __call__(self, images):
        self.asked += len(images)
        return self.values[images[:, 0].astype(int)]


def counted(sums, error):
    """Of how many images exact outputs are asked for, and rough ones; the count is right."""
    numbers = np.arange(len(sums), dtype=np.float32)[:, None]
    exactly, roughly = (
        Outputs((A * np.tanh(B * each)).astype(np.float32)) for each in (sums, sums + error)
    )
    labels = exactly.values.argmax(axis=1).astype(np.uint8)
    labels[::100] ^= 1
    count = counting.count_errors_by_both(roughly, exactly, numbers, labels)
    assert count == len(labels[::100])
    return exactly.asked, roughly.asked


def sums_with_gaps(gaps, seed):
    """Weighted sums (n, 4) whose two greatest are so far apart."""
    rng = np.random.default_rng(seed)
    sums = rng.uniform(-4, -3, (len(gaps), 4))
    sums[:, 2] = rng.uniform(0, 3, len(gaps))
    sums[:, 1] = sums[:, 2] - gaps
    return rng.permuted(sums, axis=1)


@given(
    n=st.sampled_from([1, 1023, 1024, 5000]),
    off=st.sampled_from([0.0, 1e-3, 0.02, 0.2]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_counting_by_both(n, off, seed):
    """Whatever the rough ones are off by, the count is that of the exact ones."""
    rng = np.random.default_rng(seed)
    exact = sums_with_gaps(rng.exponential(1, n), seed)
    asked, roughly = counted(exact, rng.normal(0, off, exact.shape) if off else 0.0)
    if n < 1024:
        assert (asked, roughly) == (n, 0)
    elif off <= 1e-3:
        assert asked <= counting.PROBES + 0.05 * n
        assert roughly == n


def test_counting_where_close_calls_are_the_most_wrong():
    """The error is 30 times as great as that of clear images where outputs are as good as equal:
    a deviation of all images' would leave out some of which the guess is wrong."""
    rng = np.random.default_rng(1)
    gaps = rng.uniform(0, 2, 20000)
    exact = sums_with_gaps(gaps, 1)
    error = rng.normal(0, 1, exact.shape) * np.where(gaps < 0.15, 0.03, 0.001)[:, None]
    assert ((exact + error).argmax(axis=1) != exact.argmax(axis=1)).sum() > 100
    assert counted(exact, error)[0] < 0.4 * len(exact)


def test_counting_where_the_clearest_images_are_the_most_wrong():
    """How wrong these are does not matter: what is measured is measured on the closest."""
    rng = np.random.default_rng(1)
    gaps = rng.permutation(np.repeat([0.05, 1.0, 4.0], [3000, 7000, 10000]))
    exact = sums_with_gaps(gaps, 1)
    error = rng.normal(0, 1, exact.shape) * np.where(gaps < 3, 0.01, 0.3)[:, None]
    asked, _ = counted(exact, error)
    assert asked < 3000 + counting.PROBES


def test_counting_where_outputs_saturate():
    """One that does, by a unit in the last place more or less, is clear of one that does not; where
    two do, their sums say nothing, and exact outputs are asked for."""
    n, clear = 3000, np.array([-20.0, 20.0, 0.5, -0.5])
    exact = np.random.default_rng(1).permuted(np.tile(clear, (n, 1)), axis=1)
    numbers = np.arange(n, dtype=np.float32)[:, None]
    outputs = (A * np.tanh(B * exact)).astype(np.float32)
    labels = outputs.argmax(axis=1).astype(np.uint8)
    for more in (np.float32(1), np.nextafter(np.float32(1), np.float32(2))):
        exactly, roughly = Outputs(outputs), Outputs(outputs * more)
        assert counting.count_errors_by_both(roughly, exactly, numbers, labels) == 0
        assert exactly.asked == counting.PROBES
    wrong = outputs.copy()
    np.put_along_axis(wrong[::10], (labels[::10, None] + 1) % 4, np.float32(2 * A), axis=1)
    exactly, roughly = Outputs(outputs), Outputs(wrong)
    assert counting.count_errors_by_both(roughly, exactly, numbers, labels) == 0
    assert exactly.asked == counting.PROBES + len(range(520, n, 10))


def test_counting_where_most_is_in_doubt():
    """Nothing is computed roughly any more, and nothing exactly twice."""
    exact = sums_with_gaps(np.random.default_rng(1).uniform(0, 1, 5000), 1)
    error = np.random.default_rng(2).normal(0, 0.3, exact.shape)
    assert counted(exact, error) == (5000, counting.PROBES)


def test_counting_where_the_first_images_are_the_least_wrong():
    """What is measured on them is too little, and is measured again."""
    rng = np.random.default_rng(1)
    exact = sums_with_gaps(rng.uniform(0, 2, 20000), 1)
    error = rng.normal(0, 0.05, exact.shape)
    error[: counting.PROBES] *= 0.01
    counted(exact, error)


def test_counting_with_rough_outputs_that_are_not_numbers():
    exact = sums_with_gaps(np.full(2000, 1.0), 1)
    error = np.zeros_like(exact)
    error[5:300:7] = np.nan
    error[600:900:7] = np.nan
    assert counted(exact, error) == (counting.PROBES + 43, len(exact))
    assert counted(exact, np.full_like(exact, np.nan)) == (len(exact), counting.PROBES)
