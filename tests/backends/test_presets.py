"""The paper's networks after many real samples: every instruction set and schedule.

The oracle takes up to 0.1 s for a step. So net1 sees 100 digits and net4 40: blocks of the default
size and a rest. The others have layers of the same kinds, and are left out, and so are all
instruction sets but the widest for net4.

Tolerance. A step rounds a weight by at most half a unit in the last place, 2^-24 of its size. The
sum of n such errors has a root mean square of at most sqrt(n / 3) of these units; the largest of
12 million such sums is 5.3 times that. 8 times leaves room for the rounding of activations and
deltas, which the learning rate scales down. A lost update would exceed it a thousandfold.
"""

import functools

import numpy as np
import pytest

from mlpcore import backends, dataset
from mlpcore.backends.simd import SimdBackend
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS
from oracle import EPSILON

RATE = 1e-3
SAMPLES = {"net1": 100, "net4": 40}

INSTRUCTION_SETS = [name for name in backends.INSTRUCTION_SETS if not backends.available()[name]]


@functools.cache
def digits():
    data = dataset.load(name="digits")
    return data.train_images.reshape(len(data.train_images), -1), data.train_labels


def train(backend, preset):
    """A network after the samples, and what it saw of them."""
    network = Network((29 * 29, *PRESETS[preset], 10), seed=1)
    order = np.arange(SAMPLES[preset], dtype=np.int32)
    return network, backend.train(network, *digits(), order, RATE)


@functools.cache
def oracle(preset):
    return train(backends.get("reference"), preset)


@pytest.mark.parametrize(
    ("name", "preset"),
    [*((name, "net1") for name in INSTRUCTION_SETS), (INSTRUCTION_SETS[-1], "net4")],
)
@pytest.mark.parametrize("schedule", ["deferred", "packed"])
def test_training_equals_the_oracle(name, schedule, preset):
    backend = SimdBackend(name, 2, schedule, packed_from=0)
    if schedule == "packed" and not backend.packs:
        pytest.skip(f"{name} packs no weights")
    n, (expected, wanted) = SAMPLES[preset], oracle(preset)
    network, result = train(backend, preset)
    largest = max(np.abs(array).max() for array in expected.weights + expected.biases)
    tolerance = 8 * np.sqrt(n / 3) * EPSILON * largest
    for got, right in zip(network.weights + network.biases, expected.weights + expected.biases):
        np.testing.assert_allclose(got, right, rtol=0, atol=tolerance)
    lost = RATE * np.abs(digits()[0][n - 1]).max()  # about what one sample changes
    assert tolerance < lost / 10
    assert result.samples == n
    assert result.loss == pytest.approx(wanted.loss, rel=1e-5)
    assert abs(result.errors - wanted.errors) <= 1  # two outputs may be as good as equal
