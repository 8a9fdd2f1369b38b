"""The plan of resident training: who owns which weight, and whether it fits. No GPU is needed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore.backends.cuda import plan as resident_plan
from mlpcore.backends.cuda.plan import VERSIONS, Device, DoesNotFit, make_plan
from mlpcore.network.architecture import PRESETS

#: Multiprocessors, shared memory of a block and clocks from NVIDIA's tables.
DEVICES = {
    "H200": Device(132, 232448, capability=90),
    "A100": Device(108, 166912, capability=80, clock_ghz=1.41),
    "RTX 4090": Device(128, 101376, capability=89, clock_ghz=2.52),
    "GTX 1660": Device(22, 65536, capability=75, clock_ghz=1.8),
    "emulated": Device(6, 48 << 10, registers=64 * 64, threads=(32, 64)),
}

#: Presets that each device holds: 4 bytes a weight against registers and shared memory.
FITTING = {
    "H200": ("net1", "net2", "net3", "net4", "net5"),
    "A100": ("net1", "net2", "net3"),
    "RTX 4090": ("net1", "net2", "net3"),
    "GTX 1660": (),
    "emulated": (),
}


def sizes_of(preset):
    return 841, *PRESETS[preset], 10


def check(plan, device, networks=1):
    """Every weight once, in thread and slot as in block; nothing beyond what the device has."""
    assert plan.blocks * networks <= device.multiprocessors
    assert plan.shared_floats * 4 <= device.shared_bytes
    assert plan.weight_registers <= resident_plan.weight_registers(device, plan.threads)
    registers = -(-(plan.weight_registers + 8) // 8) * 8  # and at least some for anything else
    assert registers * plan.threads <= device.registers
    for i, layer in enumerate(plan.layers):
        owners = np.zeros((plan.sizes[i + 1], plan.sizes[i]), int)
        for block in range(plan.blocks):
            top, bottom, left, right = plan.weights(block, i)
            assert 0 <= bottom - top <= layer.rows
            assert 0 <= right - left <= layer.columns
            owners[top:bottom, left:right] += 1
        # The last layer's columns are cut and its rows are not: copies in the other direction.
        copies = plan.parts[(i + 1) % 2] if i == plan.n_layers - 1 else 1
        assert np.all(owners == copies), i
        assert layer.thread_rows * layer.thread_columns == plan.threads
        assert layer.rows <= layer.padded_rows < layer.rows + layer.thread_rows
        assert layer.columns <= layer.padded_columns < layer.columns + layer.thread_columns
        assert 0 <= layer.registers <= layer.slots
        assert layer.slots * plan.threads >= layer.rows * layer.columns
    for boundary in range(plan.n_layers + 1):
        lengths = [
            b - a for a, b in (plan.slice(boundary, k) for k in range(plan.n_parts(boundary)))
        ]
        assert sum(lengths) == plan.sizes[boundary]
        assert max(lengths) - min(lengths) <= 1  # as balanced as whole elements allow


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("device", DEVICES)
def test_the_papers_networks(device, preset):
    if preset not in FITTING[device]:
        with pytest.raises(DoesNotFit, match=r"need [\d,]+ KiB in each of \d+ .*hold \d+$"):
            make_plan(sizes_of(preset), DEVICES[device])
        return
    plan = make_plan(sizes_of(preset), DEVICES[device])
    check(plan, DEVICES[device])
    assert plan.blocks >= 0.95 * DEVICES[device].multiprocessors  # hardly any idle
    slots = sum(layer.slots for layer in plan.layers) * plan.threads * plan.blocks
    weights = sum(a * b for a, b in zip(plan.sizes, plan.sizes[1:]))
    assert slots <= 1.3 * weights + plan.blocks * 10 * 256 * 8  # rounding, and the last layer


@given(
    sizes=st.lists(st.integers(1, 700), min_size=3, max_size=6),
    device=st.sampled_from(sorted(DEVICES)),
    multiprocessors=st.integers(1, 40),
)
@settings(max_examples=40)
def test_any_network_on_any_device(sizes, device, multiprocessors):
    device = DEVICES[device]
    device = Device(multiprocessors, device.shared_bytes, device.registers, threads=device.threads)
    try:
        plan = make_plan(tuple(sizes), device)
    except DoesNotFit:
        held = sum(a * b for a, b in pairwise(sizes)) * 4
        available = device.shared_bytes + 2 * device.registers
        assert held > 0.3 * multiprocessors * available  # it was no small network
        return
    check(plan, device)
    text = plan.header()
    assert f"SIZES[] = {{{', '.join(map(str, sizes))}}}" in text
    assert f"PLANNED_SHARED_FLOATS = {plan.shared_floats}" in text


@pytest.mark.parametrize("networks", [2, 4, 8])
def test_several_networks_share_a_device(networks):
    device = DEVICES["H200"]
    plan = make_plan(sizes_of("net1"), device, networks)
    check(plan, device, networks)
    one = make_plan(sizes_of("net1"), device)
    assert plan.microseconds(device) < networks * one.microseconds(device)  # or it has no use


def test_each_version_has_a_kernel_of_its_own():
    plan = make_plan(sizes_of("net1"), DEVICES["H200"])
    assert len({plan.digest(version) for version in VERSIONS}) == len(VERSIONS)


@pytest.mark.parametrize(
    "sizes, networks, reason",
    [
        ((841, 10), 1, "without hidden layers"),
        ((841, 50, 10), 7, "7 networks on 6 multiprocessors"),
        ((841, 100_000, 10), 1, r"layers 841, 100000, 10 need .* KiB in each of 6"),
    ],
)
def test_what_cannot_be_resident_says_why(sizes, networks, reason):
    with pytest.raises(DoesNotFit, match=reason):
        make_plan(sizes, DEVICES["emulated"], networks)


def test_a_search_in_vain_is_not_repeated(monkeypatch):
    sizes, device = (841, 100_000, 10), Device(7, 48 << 10)
    with pytest.raises(DoesNotFit) as first:
        make_plan(sizes, device)
    monkeypatch.setattr(resident_plan, "search_plan", None)
    with pytest.raises(DoesNotFit) as again:
        make_plan(sizes, device)
    assert str(again.value) == str(first.value)


def test_plans_are_repeatable():
    """The grid determines the order of sums, and so the bits."""
    plans = [resident_plan.search_plan(sizes_of("net3"), DEVICES["A100"]) for _ in range(2)]
    assert plans[0] == plans[1]
