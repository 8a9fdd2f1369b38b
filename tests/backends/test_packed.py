"""Training with packed weights of 21 bits each: their precision."""

import numpy as np
import pytest

from emulated import SIMD
from mlpcore import backends
from mlpcore.backends.simd import SimdBackend
from mlpcore.network.activation import A, B
from oracle import EPSILON, random_network, trained

pytestmark = pytest.mark.parametrize("name", [each for each in SIMD if backends.get(each).packs])

#: The error of a packed weight below 1: half of the last of 21 bits, of which one is the sign, and
#: four roundings to float32. They round the scale, its inverse, the product of the weight and the
#: inverse, and the whole number.
PACKED_EPSILON = 2.0**-21 + 4 * EPSILON


@pytest.mark.parametrize(
    ("n_in", "row", "above"),
    [
        *((n_in, 1, 1) for n_in in (1, 15, 16, 17, 47, 48, 95, 96, 97, 144)),
        *((97, row, 1) for row in (0, 1e-20, 1e-30, np.nan)),
        *((n_in, 1, 2.0**-100) for n_in in (17, 300)),
    ],
)
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
