"""Resident training against the oracle, under the emulation: exchanges, schedules, faults.

Tolerance: a step rounds a weight below 1 by at most 2^-25, and its change, which the learning
rate makes small, by less than that; n steps by n 2^-24.
"""

import ctypes
from contextlib import suppress

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from mlpcore.backends.cuda import plan as planning
from mlpcore.backends.cuda import resident as resident_module
from mlpcore.backends.cuda.plan import DeviceLimits
from mlpcore.backends.cuda.sources import SOURCES
from mlpcore.errors import InputError
from oracle import CASES, assert_near, bits, random_network, trained, training_set

pytestmark = needs_emulation

RATE = 0.01


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


#: Faults of the kernel by name: what is replaced, by what, and what must come of it.
FAULTS = {
    "a reader does not wait": ("if (!(others & 1) || stopped) break;", "break;", {"other"}),
    "one buffer, so a reader takes the words of the sample before": (
        "now = next;",
        "now = {now.words, next.bit};",
        {"gave up", "other"},
    ),
    "states are read before all of them are written": (
        "__syncthreads();  // all states are there",
        "",
        {"other"},
    ),
    "scratch is written while it is still read": (
        "__syncthreads();  // scratch has been read",
        "",
        {"other"},
    ),
    "the sums of a softmax are read before all of them are written": (
        "__syncthreads();  // all sums are there",
        "",
        {"other"},
    ),
    "one block sends no deltas": (
        "publish_sums<l, true, tile<l>::TR>(now);",
        "if (blockIdx.x != 1 || step != 2) publish_sums<l, true, tile<l>::TR>(now);",
        {"gave up"},
    ),
}


def with_faults():
    """The kernel's files with all faults planted, and a variable that chooses one of them."""
    files = {path.name: path.read_text() for path in SOURCES.glob("resident*.cu*")}
    for number, (old, new, _) in enumerate(FAULTS.values(), 1):
        (name,) = (name for name, text in files.items() if old in text)
        assert files[name].count(old) == 1, old
        chosen = f"if (planted_fault == {number}) {{ {new} }} else {{ {old}\n }}"
        files[name] = files[name].replace(old, chosen)
    variable = 'extern "C" { __attribute__((visibility("default"))) int planted_fault = 0; }'
    files["exchange.cuh"] = (SOURCES / "exchange.cuh").read_text() + variable
    return files


def plant(patch, loaded, fault):
    variable = ctypes.c_int.in_dll(loaded._kernel.driver._library, "planted_fault")
    patch.setattr(variable, "value", 1 + list(FAULTS).index(fault))


@pytest.fixture
def faulty(monkeypatch):
    """A backend with all faults planted, a network and data.

    Of the odd parts there is one, so all blocks wait for its deltas. With more of them, some blocks
    would go on and wait for their sums.
    """
    sizes, limits = CASES["two hidden layers"]
    cut_into(monkeypatch, sizes, limits, 6, 1)
    network = random_network(sizes, 1, 1.0, "relu", "cross-entropy")
    return resident(limits, with_faults()), network, training_set(sizes, 60, 2)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_show(faulty, fault, monkeypatch):
    (backend, network, data), expected = faulty, FAULTS[fault][2]
    right, _ = trained(backend, network, *data, RATE)
    seen = set()
    for seed in range(8):
        loaded = backend.load(network)
        loaded.wait_seconds = 1e-4  # on the emulation's clock, which moves with polls
        loaded._kernel.driver.seed(seed)
        plant(monkeypatch, loaded, fault)
        try:
            backend.train(loaded, *data, RATE)
        except InputError as error:
            assert "gave up" in str(error)
            seen.add("gave up")
        else:
            same = bits(weights_of(backend, loaded, network)) == bits(right)
            seen.add("same" if same else "other")
    assert seen & expected


def test_giving_up_names_the_exchange(faulty, monkeypatch):
    """Block 1 sends no deltas of hidden layer 1 for the third sample: all others end as well."""
    backend, network, data = faulty
    loaded, calls = backend.load(network), []
    loaded.wait_seconds = 1e-3
    expected = r"gave up on cuda-emulated.* 0.001 s for the deltas of hidden layer 1 of sample 2"
    plant(monkeypatch, loaded, "one block sends no deltas")
    with pytest.raises(InputError, match=expected):
        backend.train(loaded, *data, RATE, calls.append)
    assert [each.samples for each in calls] == [0]
