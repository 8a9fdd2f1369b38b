"""Training with packed weights of 21 bits each: their precision, and when they are used."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore import backends
from mlpcore.backends.simd import SimdBackend
from mlpcore.network import Network
from oracle import (
    EPSILON,
    SEEDS,
    bits,
    random_network,
    training_set,
    uniform,
)

PACKING = [
    name
    for name in backends.INSTRUCTION_SETS
    if backends.available()[name] is None and backends.get(name).packs
]

#: The error of a packed weight below 1: half of the last of 21 bits, of which one is the sign, and
#: four roundings to float32. They round the scale, its inverse, the product of the weight and the
#: inverse, and the whole number.
PACKED_EPSILON = 2.0**-21 + 4 * EPSILON

#: Around one, two and three vectors of 8 and of 16 floats, and whole groups of them.
INPUTS = st.one_of(st.integers(1, 60), st.sampled_from([95, 96, 97, 127, 143, 144, 300]))

pytestmark = pytest.mark.skipif(not PACKING, reason="no instruction set here packs weights")


@pytest.fixture(params=PACKING, scope="module")
def name(request):
    return request.param


def matrix(network):
    """Weights and biases of the first layer, float64."""
    return np.hstack([network.weights[0], network.biases[0][:, None]]).astype(float)


def as_read(name, network):
    """The first layer's weights and biases as the passes up and down read them."""
    n_in, n_out = network.layer_sizes
    backend, n = SimdBackend(name, 1), max(n_in, n_out) + 1
    inputs, deltas = np.eye(n, n_in, dtype=np.float32), np.eye(n, n_out, dtype=np.float32)
    sums, below = backend.packed_passes(network, 0, inputs, deltas)
    bias = backend.packed_passes(network, 0, inputs[-1:] * 0, deltas[-1:])[0][0]
    return sums[:n_in].T, bias, below[:n_out]


@given(n_in=INPUTS, n_out=st.integers(1, 40), seed=SEEDS, size=st.sampled_from([1e-25, 1.0, 1e30]))
@settings(max_examples=15)
def test_a_weight_is_off_by_half_of_its_last_bit_at_most(name, n_in, n_out, seed, size):
    network = random_network((n_in, n_out), seed % 2**32)
    network.weights[0][...] *= size
    network.biases[0][...] *= size
    expected = matrix(network)
    sums, _, below = as_read(name, network)
    tolerance = PACKED_EPSILON * np.abs(expected).max(axis=1, keepdims=True)
    assert np.all(np.abs(below - expected) <= tolerance)
    assert below.any()
    # A sum of the forward pass is a weight plus the bias.
    assert np.all(np.abs(sums - expected[:, :-1] - expected[:, -1:]) <= 3 * tolerance)


def test_the_same_numbers_are_read_on_the_way_up_and_down(name):
    network = random_network((200, 50), 1)
    network.biases[0][...] = 0
    sums, bias, below = as_read(name, network)
    assert np.array_equal(sums, below[:, :-1])
    assert not bias.any() and not below[:, -1].any()
    assert len(np.unique(below)) > 9_000  # of 10,000: in 16 bits many would be the same


def test_small_deltas_are_as_precise(name):
    """The product of a scale and such a delta would be denormal. A power of two changes no bits."""
    network, n = random_network((200, 50), 4), 3
    inputs, deltas = uniform(1, n, 200), uniform(2, n, 50)
    _, below = SimdBackend(name, 1).packed_passes(network, 0, inputs, deltas)
    tiny = np.float32(2.0**-100)
    _, smaller = SimdBackend(name, 1).packed_passes(network, 0, inputs, deltas * tiny)
    assert np.array_equal(smaller, below * tiny) and smaller.any()


def test_a_rows_weights_share_its_scale_and_no_others(name):
    """Rows may differ in size; one of zeros stays so."""
    network = random_network((100, 20), 2)
    network.weights[0][3], network.biases[0][3] = 0, 0
    network.weights[0][4] *= 1e20
    network.weights[0][5] *= 1e-20
    network.weights[0][6] *= 1e-30  # where the inverse of a scale would be infinite
    network.biases[0][6] = 0
    expected, (_, _, below) = matrix(network), as_read(name, network)
    greatest = np.abs(expected).max(axis=1)
    assert not below[3].any()
    assert np.abs(below[6] - expected[6]).max() <= PACKED_EPSILON * 1e-28
    for row in (0, 4, 5, 7):
        assert np.abs(below[row] - expected[row]).max() <= PACKED_EPSILON * greatest[row]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_row_that_is_not_finite_is_not_a_number(name, value):
    network = random_network((50, 5), 1)
    network.weights[0][2, 7] = value
    sums, bias, below = as_read(name, network)
    assert np.isnan(sums[2]).all() and np.isnan(bias[2])
    assert np.isfinite(np.delete(sums, 2, axis=0)).all()
    assert np.isnan(below).all(axis=1).tolist() == [True] * 5  # 0 times NaN
    assert not np.isfinite(network.weights[0][2, 7])


#: Threads share layers of these widths, which are therefore packed.
WIDTHS = st.sampled_from([130, 144, 200, 257, 300])


def trained(sizes, backend, *cuts):
    """The bits after training in several calls, which end at these samples; without any, in one."""
    network, (images, labels, order) = Network(sizes, seed=1), training_set(sizes, 80)
    for begin, end in itertools.pairwise((0, *(cuts or (len(order),)))):
        backend.train(network, images, labels, order[begin:end], 0.01)
    return bits(network)


def test_blocks_of_few_samples_are_not_packed(name):
    """Few are less than half of a block, in a short call or at the end of a long one."""
    sizes = (100, 200, 200, 10)
    packed, deferred = (
        SimdBackend(name, 2, each, packed_from=0) for each in ("packed", "deferred")
    )
    for few, cuts in ((True, (15,)), (False, (16,)), (True, (1, 2, 3)), (False, (32, 47))):
        assert (trained(sizes, packed, *cuts) == trained(sizes, deferred, *cuts)) == few
    rest = Network(sizes, seed=1)  # the last 15 samples are trained in float32
    images, labels, order = training_set(sizes, 80)
    packed.train(rest, images, labels, order[:32], 0.01)
    deferred.train(rest, images, labels, order[32:47], 0.01)
    assert bits(rest) == trained(sizes, packed, 47)


def test_small_networks_are_not_packed(name):
    """They give the bits of the deferred schedule, as large ones do unless packing is chosen."""
    for sizes in ((100, 200, 200, 10), (100, 10)):
        deferred = trained(sizes, SimdBackend(name, 2, "deferred"))
        assert trained(sizes, SimdBackend(name, 2)) == deferred
        assert trained(sizes, SimdBackend(name, 2, "deferred", packed_from=0)) == deferred
    thin = (100, 20, 20, 10)  # one thread trains each layer
    one = SimdBackend(name, 2, packed_from=0)
    assert trained(thin, one) == trained(thin, SimdBackend(name, 2, "deferred"))


def test_who_has_no_packed_weights_says_so(name):
    for backend in (SimdBackend("scalar", 1), SimdBackend(name, 1, "deferred")):
        assert "packed" not in backend.description
    assert "packed weights of large networks" in SimdBackend(name, 1).description
