"""The plan of resident training: whether a network fits a device. No GPU is needed."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore.backends.cuda import plan as planning
from mlpcore.backends.cuda.plan import DATA_CENTRE, DeviceLimits, DoesNotFit, make_plan
from mlpcore.network.architecture import PRESETS

#: Multiprocessors, shared memory of a block and clocks from NVIDIA's tables.
DEVICES = {
    "H200": DATA_CENTRE[90],
    "A100": DATA_CENTRE[80],
    "RTX 4090": DeviceLimits(128, 101376, capability=89, clock_ghz=2.52),
    "GTX 1660": DeviceLimits(22, 65536, capability=75, clock_ghz=1.8),
    "emulated": DeviceLimits(6, 48 << 10, registers=64 * 64, threads=(32, 64)),
}

#: How many presets a device holds: 4 bytes a weight against registers and shared memory.
FITTING = {"H200": 5, "A100": 3, "RTX 4090": 3, "GTX 1660": 0, "emulated": 0}


def sizes_of(preset):
    return 841, *PRESETS[preset], 10


def check(plan, device):
    """There is a slot for every weight, and nothing is beyond what the device has."""
    assert plan.blocks <= device.multiprocessors
    assert plan.shared_floats * 4 <= device.shared_bytes
    assert plan.weight_registers <= planning.weight_registers(device, plan.threads)
    registers = -(-(plan.weight_registers + 8) // 8) * 8  # and at least some for anything else
    assert registers * plan.threads <= device.registers
    for layer in plan.layers:
        assert layer.thread_rows * layer.thread_columns == plan.threads
        assert 0 <= layer.registers <= layer.slots
        assert layer.slots * plan.threads >= layer.rows * layer.columns


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("device", DEVICES)
def test_the_papers_networks(device, preset):
    sizes, limits = sizes_of(preset), DEVICES[device]
    if preset not in list(PRESETS)[: FITTING[device]]:
        with pytest.raises(DoesNotFit, match=r"need [\d,]+ KiB in each of \d+ .*hold \d+$"):
            make_plan(sizes, limits)
        return
    plan = make_plan(sizes, limits)
    check(plan, limits)
    assert plan.blocks >= 0.95 * limits.multiprocessors  # hardly any idle
    slots = sum(layer.slots for layer in plan.layers) * plan.threads * plan.blocks
    weights = sum(a * b for a, b in pairwise(sizes))
    assert slots <= 1.3 * weights + plan.blocks * 10 * 256 * 8  # rounding, and the last layer


@given(
    sizes=st.lists(st.integers(1, 700), min_size=3, max_size=6),
    device=st.sampled_from(sorted(DEVICES)),
    multiprocessors=st.integers(1, 40),
)
@settings(max_examples=40)
def test_any_network_on_any_device(sizes, device, multiprocessors):
    limits = DEVICES[device]
    limits = DeviceLimits(
        multiprocessors, limits.shared_bytes, limits.registers, threads=limits.threads
    )
    try:
        plan = make_plan(tuple(sizes), limits)
    except DoesNotFit:
        needed = sum(a * b for a, b in pairwise(sizes)) * 4
        available = limits.shared_bytes + 2 * limits.registers
        assert needed > 0.3 * multiprocessors * available  # it was no small network
        return
    check(plan, limits)


def test_a_network_without_hidden_layers_is_not_resident():
    with pytest.raises(DoesNotFit):
        make_plan((841, 10), DEVICES["emulated"])


def test_a_search_in_vain_is_not_repeated(monkeypatch):
    sizes, limits = (841, 100_000, 10), DeviceLimits(7, 48 << 10)
    with pytest.raises(DoesNotFit) as first:
        make_plan(sizes, limits)
    monkeypatch.setattr(planning, "search_plan", None)
    with pytest.raises(DoesNotFit) as again:
        make_plan(sizes, limits)
    assert str(again.value) == str(first.value)
