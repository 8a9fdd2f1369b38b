"""Training with packed weights of 21 bits each: their precision, and when they are used."""

import numpy as np
import pytest

from emulated import SIMD
from mlpcore import backends
from mlpcore.backends.simd import SimdBackend
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from oracle import EPSILON, bits, random_network, trained, training_set

pytestmark = pytest.mark.parametrize("name", [each for each in SIMD if backends.get(each).packs])

#: The error of a packed weight below 1: half of the last of 21 bits, of which one is the sign, and
#: four roundings to float32. They round the scale, its inverse, the product of the weight and the
#: inverse, and the whole number.
PACKED_EPSILON = 2.0**-21 + 4 * EPSILON


@pytest.mark.parametrize(
    ("row", "above"), [(1, 1), (0, 1), (1e-20, 1), (1e-30, 1), (1, 2.0**-100), (np.nan, 1)]
)
@pytest.mark.parametrize("n_in", [1, 15, 16, 17, 47, 48, 95, 96, 97, 144, 300])
def test_a_packed_row_has_its_21_bits(name, reference, n_in, row, above):
    """Up and down, whatever the size of other rows, and of the deltas, some of them denormal.

    One neuron alone is connected to the output. A single step, the first of a block, shows in
    its loss what went up, and in the biases of the layer below what came down.
    """
    width = 300 + 15_000 // n_in  # a smaller layer is one thread's, and not packed
    network = random_network((1, n_in, width, 1), 1)
    for array in (network.weights[1], network.biases[1]):
        array[5] *= row
    network.weights[2][:, np.arange(width) != 5] = 0
    network.weights[2][:, 5] = above
    data = np.zeros((32, 1), np.float32), np.zeros(32, np.uint8), np.arange(32, dtype=np.int32)
    rates = [1e3 / (row or 1) / above if row == row else 1.0, 1e-3, 1e-3]
    once = np.eye(1, 32, dtype=np.float32)[0]
    engine = SimdBackend(name, 2, packed_from=0)
    got, result = trained(engine, network, *data, rates, sample_weight=once)
    wanted, expected = trained(reference, network, *data, rates, sample_weight=once)
    if np.isnan(row):
        assert np.isnan(result.loss)
        return
    # Of neuron 5's sum, and then of its state and the output, whose slopes are at most A B; each
    # tanh is off by up to 4e-7 (cpu_simd/layer_kernels.h). The slope of the loss is |y - t|.
    greatest = np.abs(np.append(network.weights[1][5], network.biases[1][5])).max()
    error = PACKED_EPSILON * greatest * (1 + A * np.abs(np.tanh(B * network.biases[0])).sum())
    error = A * B * above * (A * B * error + A * 4e-7) + A * 4e-7
    assert abs(result.loss - expected.loss) <= np.sqrt(2 * expected.loss) * error
    change, correct = (each.biases[0] - network.biases[0] for each in (got, wanted))
    # The slopes and the deltas above round as well; no scale is below 1e-28.
    tolerance = 3 * PACKED_EPSILON * max(1, 1e-27 / (row or 1))
    assert np.abs(change - correct).max() <= tolerance * np.abs(correct).max()
    assert change.any() == (row > 0)


def test_few_samples_and_small_networks_are_not_packed(name):
    """Few are less than half of a block, in a short call or at the end of a long one.

    Large networks are packed if that is chosen, and give the bits of the deferred schedule if not.
    """
    packed, usual = SimdBackend(name, 2, packed_from=0), SimdBackend(name, 2)
    deferred = SimdBackend(name, 2, "deferred", packed_from=0)

    def after(*calls, sizes=(100, 200, 200, 10)):
        """The bits after calls with so many samples of a set."""
        network, (images, labels, order) = Network(sizes, seed=1), training_set(sizes, 80)
        for backend, n in calls:
            backend.train(network, images, labels, order[:n], 0.01)
            order = order[n:]
        return bits(network)

    for few, *pieces in ((True, 15), (False, 16), (True, 1, 2), (False, 32)):
        one, other = (after(*((each, n) for n in pieces)) for each in (packed, deferred))
        assert (one == other) == few
    assert after((packed, 47)) == after((packed, 32), (deferred, 15))
    assert after((usual, 80)) == after((deferred, 80))
    thin = (100, 20, 20, 10)  # of which one thread trains each layer
    assert after((packed, 80), sizes=thin) == after((deferred, 80), sizes=thin)
