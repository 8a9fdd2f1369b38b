"""Resident training against the oracle, under the emulation: plans, exchanges, schedules, faults.

Tolerance: a step rounds a weight below 1 by at most 2^-25, and its change, which the learning
rate makes small, by less than that; n steps by n 2^-24.
"""

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest

from emulated import LIMITS, emulated_backend
from mlpcore.backends.cuda import plan as planning
from mlpcore.backends.cuda import resident as resident_module
from mlpcore.backends.cuda.plan import DeviceLimits, DoesNotFit, make_plan
from mlpcore.backends.cuda.sources import SOURCES
from mlpcore.errors import InputError
from mlpcore.network.architecture import PRESETS
from oracle import CASES, assert_near, bits, random_network, trained, training_set

RATE = 0.01

#: The multiprocessors and shared memory of a block are from NVIDIA's tables.
H200, RTX_4090 = DeviceLimits(132, 232448), DeviceLimits(128, 101376, capability=89)


def resident(limits, files=()):
    return emulated_backend("resident", limits=limits, resident_files=files)


@pytest.fixture(scope="module")
def ready():
    """A backend, a network and data."""
    sizes, limits = CASES["rows beyond threads"]
    return resident(limits), random_network(sizes, 1), training_set(sizes, 150, 2)


def weights_of(backend, loaded, like):
    """A network with the weights of a loaded one."""
    result = like.copy()
    backend.store(loaded, result)
    return result


def cut_into(monkeypatch, sizes, limits, *grid):
    """Lets networks have a grid of so many even and odd parts."""
    plans = planning._plans(sizes, limits, 64)
    plan = next(plan for plan in plans if (plan.even_parts, plan.odd_parts) == grid)
    monkeypatch.setattr("mlpcore.backends.cuda.backend.make_plan", lambda *arguments: plan)


def test_more_members_than_words_at_a_time(reference, monkeypatch):
    sizes, limits = (38, 40, 21, 3), DeviceLimits(19, 48 << 10, 64 * 96, threads=(32,))
    assert limits.multiprocessors > planning.WORDS_AT_A_TIME
    cut_into(monkeypatch, sizes, limits, 1, 19)
    network, data = random_network(sizes, 1), training_set(sizes, 70, 2)
    got, _ = trained(resident(limits), network, *data, RATE)
    expected, _ = trained(reference, network, *data, RATE)
    assert_near(got, expected)


def test_the_order_of_threads_and_blocks_changes_no_bit():
    sizes, limits = CASES["four hidden layers"]
    backend, network, data = resident(limits), random_network(sizes, 1), training_set(sizes, 70, 2)
    images, labels, order = map(backend.put, data)
    results = []
    for seed in range(4):
        loaded = backend.load(network)
        loaded._kernel.driver.seed(seed)
        result = backend.train(loaded, images, labels, order, RATE)
        results.append((bits(weights_of(backend, loaded, network)), result))
    assert results.count(results[0]) == 4


def test_launches_of_any_length_give_the_same_bits(ready, monkeypatch):
    """Training ends after the first one whose weights are not finite."""
    backend, network, (images, labels, order) = ready
    whole, _ = trained(backend, network, images, labels, order, RATE)
    monkeypatch.setattr(resident_module.ResidentNetwork, "max_chunk", resident_module.BLOCK)
    calls = []
    got, result = trained(backend, network, images, labels, order, RATE, calls.append)
    assert [each.samples for each in calls] == [64, 128, 150]
    assert result == calls[-1]
    assert bits(got) == bits(whole)
    first, _ = trained(backend, network, images, labels, order[:64], RATE)
    rest, _ = trained(backend, first, images, labels, order[64:], RATE)
    assert bits(rest) == bits(whole)
    first.weights[0][3, 5] = np.nan
    calls.clear()
    _, result = trained(backend, first, images, labels, order, RATE, calls.append)
    assert result.samples == 64 and np.isnan(result.loss) and calls == [result]


@pytest.mark.parametrize("before, interrupted", [(1, False), (2, False), (3, False), (3, True)])
def test_results_do_not_depend_on_the_launch_before(ready, monkeypatch, before, interrupted):
    """Nor on its tickets, which are not counted where it ran and was interrupted."""
    backend, network, (images, labels, order) = ready
    started, _ = trained(backend, network, images, labels, order[:before], RATE)
    expected, _ = trained(backend, started, images, labels, order, RATE)
    loaded = backend.load(network)
    launch = loaded._kernel.launch

    def launched(job):
        launch(job)
        if interrupted:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(loaded._kernel, "launch", launched)
        backend.train(loaded, images, labels, order[:before], RATE)
    backend.train(loaded, images, labels, order, RATE)
    ticket = (resident_module.FIRST_TICKET + before + len(order)) % 4
    assert interrupted or loaded._ticket == ticket
    assert bits(weights_of(backend, loaded, network)) == bits(expected)


def test_giving_up_names_the_exchange(monkeypatch):
    """Block 1 sends no deltas of hidden layer 1 for the third sample: all others end as well.

    Of the odd parts there is one, so that all blocks wait for these deltas, and none for sums.
    """
    sizes, limits = CASES["two hidden layers"]
    cut_into(monkeypatch, sizes, limits, 6, 1)
    sent = "publish_sums<l, true, tile<l>::TR>(now);"
    texts = {path.name: path.read_text() for path in SOURCES.glob("resident*.cu*")}
    files = {
        name: text.replace(sent, f"if (blockIdx.x != 1 || step != 2) {sent}")
        for name, text in texts.items()
        if sent in text
    }
    assert files
    backend, calls = resident(limits, files), []
    loaded = backend.load(random_network(sizes, 1, 1.0, "relu", "cross-entropy"))
    loaded.wait_seconds = 1e-3  # on the emulation's clock, which moves with polls
    expected = r"gave up on cuda-emulated.* 0.001 s for the deltas of hidden layer 1 of sample 2"
    with pytest.raises(InputError, match=expected):
        backend.train(loaded, *training_set(sizes, 60, 2), RATE, calls.append)
    assert [each.samples for each in calls] == [0]


@pytest.mark.parametrize("limits, preset", [*zip([H200] * 5, PRESETS), (RTX_4090, "net3")])
def test_the_papers_networks_that_fit(limits, preset):
    """Every weight has a slot, and the device has all that the plan needs."""
    sizes = (841, *PRESETS[preset], 10)
    plan = make_plan(sizes, limits)
    assert 0.95 * limits.multiprocessors <= plan.blocks <= limits.multiprocessors
    assert plan.shared_floats * 4 <= limits.shared_bytes
    held = sum(layer.registers for layer in plan.layers)
    assert held <= planning.weight_registers(limits, plan.threads)
    registers = -(-(held + 8) // 8) * 8
    assert registers * plan.threads <= limits.registers
    for layer in plan.layers:
        assert layer.thread_rows * layer.thread_columns == plan.threads
        assert 0 <= layer.registers <= layer.slots
        assert layer.slots * plan.threads >= layer.rows * layer.columns
    slots = sum(layer.slots for layer in plan.layers) * plan.threads * plan.blocks
    weights = sum(a * b for a, b in pairwise(sizes))
    assert slots <= 1.3 * weights + plan.blocks * 10 * 256 * 8  # rounding, and the last layer


#: Where weights fit, but not the vectors beside them.
TIGHT = DeviceLimits(2, 2048, registers=32 * 72, threads=(32,))


@pytest.mark.parametrize(
    ("sizes", "limits", "message"),
    [
        ((841, *PRESETS["net4"], 10), RTX_4090, r"need [\d,]+ KiB in each of \d+ .*hold \d+$"),
        ((841, 10), LIMITS, "without hidden layers"),
        ((20, 60, 3), TIGHT, r"need 4 KiB in each of 2 .* hold 3$"),
    ],
)
def test_what_does_not_fit(sizes, limits, message):
    with pytest.raises(DoesNotFit, match=message):
        make_plan(sizes, limits)
