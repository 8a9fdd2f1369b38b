"""The plan of resident training: whether a network fits a device. No GPU is needed."""

from itertools import pairwise

import numpy as np
import pytest

from emulated import LIMITS
from mlpcore.backends.cuda import plan as planning
from mlpcore.backends.cuda.plan import DeviceLimits, DoesNotFit, make_plan
from mlpcore.network.architecture import PRESETS
from oracle import CASES

#: The multiprocessors and shared memory of a block are from NVIDIA's tables.
H200, RTX_4090 = DeviceLimits(132, 232448), DeviceLimits(128, 101376, capability=89)


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


FITTING = [*((H200, preset) for preset in PRESETS), (RTX_4090, "net3")]


@pytest.mark.parametrize("limits, preset", FITTING)
def test_the_papers_networks_that_fit(limits, preset):
    sizes = (841, *PRESETS[preset], 10)
    plan = make_plan(sizes, limits)
    check(plan, limits)
    assert plan.blocks >= 0.95 * limits.multiprocessors  # hardly any idle
    slots = sum(layer.slots for layer in plan.layers) * plan.threads * plan.blocks
    weights = sum(a * b for a, b in pairwise(sizes))
    assert slots <= 1.3 * weights + plan.blocks * 10 * 256 * 8  # rounding, and the last layer


def test_networks_on_small_devices():
    """They are what `CASES` says."""
    plans = {name: make_plan(*case) for name, case in CASES.items()}
    for plan, (_, limits) in zip(plans.values(), CASES.values()):
        check(plan, limits)
    assert plans["one block"].blocks == 1
    exchanging = {name for name, plan in plans.items() if min(plan.even_parts, plan.odd_parts) > 1}
    assert exchanging >= {"two hidden layers", "four hidden layers"}
    layers = [(layer, plan) for plan in plans.values() for layer in plan.layers]
    assert any(layer.rows > plan.threads for layer, plan in layers)
    shares = {np.sign(layer.registers) + (layer.registers == layer.slots) for layer, _ in layers}
    assert shares == {0, 1, 2}  # weights in shared memory, in both, in registers


TOO_LARGE = r"need [\d,]+ KiB in each of \d+ .*hold \d+$"

#: Where weights fit, but not the vectors beside them.
TIGHT = DeviceLimits(2, 2048, registers=32 * 72, threads=(32,))


@pytest.mark.parametrize(
    ("sizes", "limits", "message"),
    [
        ((841, *PRESETS["net4"], 10), RTX_4090, TOO_LARGE),
        ((841, 10), LIMITS, "without hidden layers"),
        ((20, 60, 3), TIGHT, r"need 4 KiB in each of 2 .* hold 3$"),
    ],
)
def test_what_does_not_fit(sizes, limits, message):
    with pytest.raises(DoesNotFit, match=message):
        make_plan(sizes, limits)
