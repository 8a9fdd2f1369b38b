"""The plan of resident training: whether a network fits a device. No GPU is needed."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore.backends.cuda import plan as planning
from mlpcore.backends.cuda.plan import DeviceLimits, DoesNotFit, make_plan
from mlpcore.network.architecture import PRESETS

#: The multiprocessors and shared memory of a block of a GPU are from NVIDIA's tables.
DEVICES = {
    "H200": DeviceLimits(132, 232448),
    "RTX 4090": DeviceLimits(128, 101376, capability=89),
    "emulated": DeviceLimits(6, 48 << 10, registers=64 * 64, threads=(32, 64)),
}


def check(plan, device):
    """Every weight has a slot, and the device has all that the plan needs."""
    assert plan.blocks <= device.multiprocessors
    assert plan.shared_floats * 4 <= device.shared_bytes
    assert plan.weight_registers <= planning.weight_registers(device, plan.threads)
    registers = -(-(plan.weight_registers + 8) // 8) * 8
    assert registers * plan.threads <= device.registers
    for layer in plan.layers:
        assert layer.thread_rows * layer.thread_columns == plan.threads
        assert 0 <= layer.registers <= layer.slots
        assert layer.slots * plan.threads >= layer.rows * layer.columns


FITTING = [*(("H200", preset) for preset in PRESETS), ("RTX 4090", "net3")]


@pytest.mark.parametrize("device, preset", FITTING)
def test_the_papers_networks_that_fit(device, preset):
    sizes, limits = (841, *PRESETS[preset], 10), DEVICES[device]
    plan = make_plan(sizes, limits)
    check(plan, limits)
    assert plan.blocks >= 0.95 * limits.multiprocessors  # hardly any idle
    slots = sum(layer.slots for layer in plan.layers) * plan.threads * plan.blocks
    weights = sum(a * b for a, b in pairwise(sizes))
    assert slots <= 1.3 * weights + plan.blocks * 10 * 256 * 8  # rounding, and the last layer


TOO_LARGE = r"need [\d,]+ KiB in each of \d+ .*hold \d+$"

#: Where weights fit, but not the vectors beside them.
TIGHT = DeviceLimits(2, 2048, registers=32 * 72, threads=(32,))


@pytest.mark.parametrize(
    ("sizes", "limits", "message"),
    [
        ((841, *PRESETS["net4"], 10), DEVICES["RTX 4090"], TOO_LARGE),
        ((841, *PRESETS["net1"], 10), DEVICES["emulated"], TOO_LARGE),
        ((841, 10), DEVICES["emulated"], "without hidden layers"),
        ((20, 60, 3), TIGHT, r"need 4 KiB in each of 2 .* hold 3$"),
    ],
    ids=["net4", "net1", "no hidden layer", "vectors"],
)
def test_what_does_not_fit(sizes, limits, message):
    with pytest.raises(DoesNotFit, match=message):
        make_plan(sizes, limits)


@given(
    sizes=st.lists(st.integers(1, 700), min_size=3, max_size=6),
    device=st.sampled_from(sorted(DEVICES)),
    multiprocessors=st.integers(1, 40),
)
@settings(max_examples=20)
def test_any_network_on_any_device(sizes, device, multiprocessors):
    limits = DEVICES[device]
    limits = replace(limits, multiprocessors=multiprocessors)
    try:
        plan = make_plan(tuple(sizes), limits)
    except DoesNotFit:
        needed = sum(a * b for a, b in pairwise(sizes)) * 4
        available = limits.shared_bytes + 2 * limits.registers
        assert needed > 0.3 * multiprocessors * available  # it was no small network
        return
    check(plan, limits)
