"""Tests that need a GPU. `make gpu-check` runs this and keeps the figures it records."""

import functools

import numpy as np
import pytest

from mlpcore import Network, backends
from mlpcore.backends.cuda.backend import SCHEDULES
from mlpcore.backends.cuda.plan import DoesNotFit, make_plan
from mlpcore.network.architecture import PRESETS
from oracle import bits, trained, training_set

pytestmark = pytest.mark.gpu

TANH, RELU = ("tanh", "squared"), ("relu", "cross-entropy")


def start(preset, kind=TANH):
    return Network((29 * 29, *PRESETS[preset], 10), 1, *kind)


def train(network, n, schedule="resident", rates=1e-3, target=1.0):
    """The network after training on the device."""
    backend, data = backends.get("cuda", schedule=schedule), training_set(network.layer_sizes, n)
    got, _ = trained(backend, network, *data, rates, target=target)
    if backend.notice:  # it streams: correctly but slowly, which nothing else would show
        with pytest.raises(DoesNotFit):
            make_plan(network.layer_sizes, backend.driver.limits)
        pytest.skip(backend.notice)
    return got


@functools.cache
def expected_network(preset, kind, n, rates, target):
    """The same after training in float64."""
    network, reference = start(preset, kind), backends.get("reference")
    data = training_set(network.layer_sizes, n)
    return trained(reference, network, *data, list(rates), target=target)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("preset, kind", [*((each, TANH) for each in PRESETS), ("net1", RELU)])
def test_accuracy(schedule, preset, kind, record_property):
    """Weights after 100 samples agree with those of the float64 oracle.

    A step rounds a weight by at most half a unit in its last place, 2^-24 of its size, up or
    down. After n steps the root mean square of the sums is sqrt(n / 3) of that. The largest of 12
    million such sums is 5.3 times as large; 8 leaves room for the rounding of activations and
    deltas, which the learning rate scales down.
    """
    n, target = 100, 0.5  # not the default target: a kernel that loses it would pass
    network = start(preset, kind)
    rates = tuple(1e-3 / 2**layer for layer in range(network.n_layers))  # to tell layers apart
    expected = expected_network(preset, kind, n, rates, target)
    got = train(network, n, schedule, list(rates), target)
    pairs = [*zip(expected.weights, got.weights), *zip(expected.biases, got.biases)]
    error = max(np.abs(a - b).max() for a, b in pairs)
    tolerance = 8 * np.sqrt(n / 3) * 2.0**-24 * max(np.abs(a).max() for a, _ in pairs)
    record_property("largest_error", error)
    record_property("tolerance", tolerance)
    assert error <= tolerance


@pytest.mark.parametrize("preset", PRESETS)
def test_repeats_have_the_same_bits(preset):
    """Twenty times the same training: blocks that exchange sums in another order would differ."""
    results = [b"".join(bits(train(start(preset), 2000))) for _ in range(20)]
    assert len(set(results)) == 1
