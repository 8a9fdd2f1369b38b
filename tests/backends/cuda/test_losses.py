"""Activations and losses in both schedules, under the emulation: odd sizes and odd weights.

Tolerances are those of resident training: n steps round a weight by n 2^-24.
"""

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from mlpcore.backends.cuda.backend import SCHEDULES
from mlpcore.network import Network
from oracle import EPSILON, uniform
from small_trainings import CASES, KINDS, assert_same_weights, network_of, problem, trained

pytestmark = needs_emulation

RATE = 0.01

#: No hidden layer, one neuron, one class, and outputs by the block of threads and more.
SIZES = [(37, 5), (1, 1), (3, 999), (1, 1, 1), (6, 1, 3), (11, 7, 1), (5, 9, 64), (4, 3, 130)]

#: A network and a device whose resident kernels are compiled for `test_resident.py` as well.
COMMON, LIMITS = CASES["two hidden layers"]

every_kind = pytest.mark.parametrize("kind", KINDS, ids="-".join)

every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


@pytest.mark.parametrize(
    ("schedule", "sizes", "kind"),
    [
        *(("streaming", sizes, kind) for sizes, kind in zip(SIZES, KINDS * 2)),
        ("resident", (1, 1, 1), ("tanh", "cross-entropy")),
        ("resident", (4, 3, 130), ("relu", "cross-entropy")),
    ],
    ids=str,
)
def test_weights_and_losses_are_those_of_the_oracle(reference, schedule, sizes, kind):
    network, data, n = network_of(kind, sizes, 1), problem(sizes, 20, 2), 20
    got, result = trained(emulated_backend(schedule), network, *data, RATE)
    expected, wanted = trained(reference, network, *data, RATE)
    assert_same_weights(got, expected, n * EPSILON)
    assert (result.samples, result.errors) == (n, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-5)


@every_schedule
@pytest.mark.parametrize("gap, label", [(0, 0), (15, 0), (15, 1), (90, 1), (700, 1), (1e30, 0)])
def test_losses_of_sure_outputs(schedule, gap, label):
    """-log p of sums gap, 0, 0, 0 and 0, where p rounds to 1 or is too small for a float."""
    emulated = emulated_backend(schedule, limits=LIMITS)
    network = Network(COMMON, loss="cross-entropy")
    network.biases[-1][0] = gap
    images, labels = uniform(1, 1, COMMON[0]), np.full(1, label, np.uint8)
    got, result = trained(emulated, network, images, labels, np.zeros(1, np.int32), RATE)
    expected = np.log1p(4 * np.exp(-float(gap))) + (gap if label else 0)
    assert result.loss == pytest.approx(expected, rel=1e-5)
    assert got.is_finite()
    outputs = emulated.predict(emulated.load(network), images)
    assert outputs.sum() == pytest.approx(1, abs=4 * EPSILON)


@every_schedule
@every_kind
def test_of_equal_outputs_the_first_counts(schedule, kind):
    """A rate too small to tell the outputs apart leaves all of them equal."""
    network = Network(COMMON, None, *kind)
    labels, order = np.array([0, 0, 1, 2, 4], np.uint8), np.arange(5, dtype=np.int32)
    data = np.zeros((5, COMMON[0]), np.float32), labels, order
    _, result = trained(emulated_backend(schedule, limits=LIMITS), network, *data, 1e-30)
    assert (result.samples, result.errors) == (5, 3)
    loss = {"squared": 5 / 2, "cross-entropy": np.log(5)}[network.loss]
    assert result.loss == pytest.approx(5 * loss)


@every_schedule
def test_a_dead_layer_passes_nothing_down(reference, schedule):
    """All states of the second hidden layer are 0: below, and at its weights, no bit changes."""
    n = 66
    network, data = network_of(("relu", "cross-entropy"), COMMON, 1), problem(COMMON, n, 2)
    network.biases[1][...] = -10
    got, result = trained(emulated_backend(schedule, limits=LIMITS), network, *data, RATE)
    expected, wanted = trained(reference, network, *data, RATE)
    assert_same_weights(got, expected, n * EPSILON)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-5)
    got.biases[-1][...] = network.biases[-1]  # all that learns
    assert_same_weights(got, network)


@every_schedule
@every_kind
@pytest.mark.parametrize("layer, value", [(0, np.nan), (1, -np.nan), (1, np.inf)])
def test_weights_that_are_not_finite_show(schedule, kind, layer, value):
    """In the loss or in the weights. Clamping makes a number of a NaN before the tanh."""
    network, data = network_of(kind, COMMON, 1), problem(COMMON, 70, 2)
    network.weights[layer][2, 1] = value
    got, result = trained(emulated_backend(schedule, limits=LIMITS), network, *data, RATE)
    assert not np.isfinite(result.loss) or not got.is_finite()
    if np.isnan(value) and kind == ("relu", "cross-entropy"):
        assert np.isnan(result.loss)
