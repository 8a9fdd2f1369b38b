"""Resident training against the oracle, under the emulation: exchanges, versions, faults.

Tolerance: a step rounds a weight below 1 by at most 2^-25, and its change, which the learning
rate makes small, by less than that; n steps by n 2^-24.
"""

from pathlib import Path

import numpy as np
import pytest
from test_cuda import EPSILON, assert_same_weights, problem, random_network, trained

import sanitized
from mlpcore import backends
from mlpcore.backends.cuda import emulated as cuda_emulated
from mlpcore.backends.cuda import plan as resident_plan
from mlpcore.backends.cuda import resident as cuda_resident
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.emulated import SOURCES, EmulatedDriver, EmulationError
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray
from mlpcore.backends.cuda.plan import VERSIONS, Device, make_plan
from mlpcore.errors import InputError

pytestmark = pytest.mark.skipif(
    cuda_emulated.unavailable_reason() is not None, reason=str(cuda_emulated.unavailable_reason())
)

RATE = 0.01

#: Networks, and devices whose plans cut them in each way: an exchange on every boundary, slices
#: of unequal length, more rows than threads, and weights in registers, in shared memory and both.
CASES = {
    "one hidden layer": ((20, 33, 4), Device(6, 48 << 10, 64 * 64, threads=(32,))),
    "two hidden layers": ((23, 19, 17, 5), Device(6, 48 << 10, 64 * 96, threads=(64,))),
    "four hidden layers": ((9, 14, 11, 8, 13, 3), Device(4, 48 << 10, 32 * 88, threads=(32,))),
    "rows beyond threads": ((7, 85, 40, 2), Device(2, 48 << 10, 32 * 96, threads=(32,))),
    "one block": ((12, 10, 3), Device(1, 48 << 10, 64 * 64, threads=(32,))),
}


class Driver(EmulatedDriver):
    """The emulated device with limits, and with a resident kernel, of a test's own."""

    def __init__(self, limits=EmulatedDriver.limits, source=SOURCES / "resident.cu"):
        super().__init__()
        self.limits, self.source, self.kernels_made = limits, source, []

    def specialise(self, plan, version):
        kernel = cuda_emulated.EmulatedKernel(plan, version, self.source)
        self.kernels_made.append(kernel)
        return kernel


def resident(limits=EmulatedDriver.limits, version=VERSIONS[-1], source=SOURCES / "resident.cu"):
    return CudaBackend(Driver(limits, source), schedule="resident", version=version)


@pytest.fixture(scope="module")
def one_hidden_layer():
    """A backend whose kernel is compiled once, and what goes with it."""
    sizes, limits = CASES["one hidden layer"]
    return resident(limits), random_network(sizes, 1), problem(sizes, 150, 2)


# ---- equivalence ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_the_oracle(reference, case):
    (sizes, limits), n = CASES[case], 80
    network, data = random_network(sizes, 1), problem(sizes, n, 2)
    backend = resident(limits)
    how = {"rate": [RATE / 2**layer for layer in range(len(sizes) - 1)], "target": 1.3}
    got, result = trained(backend, network, *data, **how)
    assert backend.notice is None
    expected, wanted = trained(reference, network, *data, **how)
    assert_same_weights(got, expected, n * EPSILON)
    assert (result.samples, result.errors) == (n, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-5)


def test_more_members_than_words_at_a_time(reference, monkeypatch):
    sizes, device = (38, 40, 21, 3), Device(19, 48 << 10, 64 * 96, threads=(32,))
    plans = resident_plan._plans(sizes, 19, device, 64, resident_plan._fastest)
    plan = next(plan for plan in plans if plan.parts == (1, 19))
    assert plan.parts[1] > resident_plan.WORDS_AT_A_TIME
    monkeypatch.setattr("mlpcore.backends.cuda.backend.make_plan", lambda *arguments: plan)
    network, data = random_network(sizes, 1), problem(sizes, 70, 2)
    got, _ = trained(resident(device), network, *data, RATE)
    expected, _ = trained(reference, network, *data, RATE)
    assert_same_weights(got, expected, 70 * EPSILON)


def test_cases_are_what_they_say():
    plans = {name: make_plan(*case) for name, case in CASES.items()}
    parts = {name: plan.parts for name, plan in plans.items()}
    assert parts["one block"] == (1, 1)
    assert min(parts["two hidden layers"]) > 1
    assert min(parts["four hidden layers"]) > 1
    assert any(layer.rows > p.threads for p in plans.values() for layer in p.layers)
    layers = [layer for plan in plans.values() for layer in plan.layers]
    assert any(layer.registers == layer.slots for layer in layers)
    assert any(layer.registers == 0 for layer in layers)
    assert any(0 < layer.registers < layer.slots for layer in layers)


def test_versions_have_the_same_bits_but_for_looking_ahead(reference):
    """They add up the same numbers in the same order; the last by another formula."""
    sizes, limits = CASES["two hidden layers"]
    network, data = random_network(sizes, 1), problem(sizes, 70, 2)
    results = [trained(resident(limits, version), network, *data, RATE) for version in VERSIONS]
    for got, result in results[1:-1]:
        assert_same_weights(got, results[0][0])
        assert result == results[0][1]
    assert_same_weights(results[-1][0], results[0][0], 70 * EPSILON)


def test_the_order_of_threads_and_blocks_changes_no_bit(one_hidden_layer):
    backend, network, data = one_hidden_layer
    results = []
    for seed in range(6):
        for kernel in backend.driver.kernels_made:
            kernel.driver.seed(seed)
        results.append(trained(backend, network, *data, RATE))
    for got, result in results[1:]:
        assert_same_weights(got, results[0][0])
        assert result == results[0][1]


def test_launches_of_any_length_give_the_same_bits(one_hidden_layer, monkeypatch):
    backend, network, (images, labels, order) = one_hidden_layer
    whole, _ = trained(backend, network, images, labels, order, RATE)
    monkeypatch.setattr(cuda_resident, "MAX_STEPS", cuda_resident.BLOCK)
    calls = []
    got, _ = trained(backend, network, images, labels, order, RATE, calls.append)
    assert calls == [64, 128, 150]
    assert_same_weights(got, whole)
    first, _ = trained(backend, network, images, labels, order[:64], RATE)
    rest, _ = trained(backend, first, images, labels, order[64:], RATE)
    assert_same_weights(rest, whole)


def test_training_stops_between_launches(one_hidden_layer):
    backend, network, (images, labels, order) = one_hidden_layer
    got, result = trained(backend, network, images, labels, order, RATE, lambda done: True)
    assert result.samples == 64
    expected, _ = trained(backend, network, images, labels, order[:64], RATE)
    assert_same_weights(got, expected)


def test_validation_sees_the_trained_weights(one_hidden_layer, reference):
    backend, network, (images, labels, order) = one_hidden_layer
    loaded = backend.load(network)
    backend.train(loaded, images, labels, order, RATE)
    trained_network = network.copy()
    backend.store(loaded, trained_network)
    outputs = backend.predict(loaded, images)
    np.testing.assert_allclose(outputs, reference.predict(trained_network, images), atol=2e-5)


@pytest.mark.parametrize("before", [1, 2, 3])
def test_results_do_not_depend_on_the_epoch_at_which_training_begins(one_hidden_layer, before):
    backend, network, (images, labels, order) = one_hidden_layer
    loaded, started = backend.load(network), network.copy()
    backend.train(loaded, images, labels, order[:before], RATE)
    backend.store(loaded, started)
    expected, _ = trained(backend, started, images, labels, order, RATE)
    backend.train(loaded, images, labels, order, RATE)
    got = network.copy()
    backend.store(loaded, got)
    steps = before + len(order)
    assert loaded.resident._epoch == (cuda_resident.FIRST_EPOCH + steps) % cuda_resident.EPOCHS
    assert_same_weights(got, expected)


# ---- the choice of schedule ----------------------------------------------------------------


def test_a_network_that_does_not_fit_streams_and_says_so():
    sizes = 20, 2000, 1500, 4
    backend, network = resident(), random_network(sizes, 1)
    data = problem(sizes, 2, 2)
    got, _ = trained(backend, network, *data, RATE)
    assert "streaming schedule: layers 20, 2000, 1500, 4 need" in backend.description
    expected, _ = trained(CudaBackend(EmulatedDriver()), network, *data, RATE)
    assert_same_weights(got, expected)


def test_the_schedule_can_be_chosen():
    assert backends.get("cuda-emulated").schedule == "streaming"
    backend = backends.get("cuda-emulated", schedule="resident")
    assert backend.description.endswith(", resident schedule")
    expected = "'deferred': expected resident or streaming with the backend cuda-emulated"
    with pytest.raises(InputError, match=expected):
        backends.get("cuda-emulated", schedule="deferred")


# ---- committees ----------------------------------------------------------------------------


def committee_of_three(backend, sizes, n=70):
    """Networks, images, labels and orders of three members, and what each is alone."""
    networks = [random_network(sizes, seed) for seed in range(3)]
    data = [problem(sizes, n, seed) for seed in range(3)]
    alone = [trained(backend, network, *each, RATE) for network, each in zip(networks, data)]
    return networks, *zip(*data), alone


def test_a_committee_trains_as_its_members_do(reference):
    sizes = 11, 9, 7, 3
    backend = resident(Device(6, 48 << 10, 64 * 64, threads=(32,)))
    networks, images, labels, orders, alone = committee_of_three(reference, sizes)
    loaded, calls = [backend.load(network) for network in networks], []
    results = backend.train_committee(loaded, images, labels, orders, RATE, calls.append)
    assert calls == [64, 70]
    assert backend._committees[sizes, 3].plan.blocks == 2  # its own multiprocessors for each
    for network, on_device, result, (expected, wanted) in zip(networks, loaded, results, alone):
        backend.store(on_device, network)
        assert_same_weights(network, expected, 70 * EPSILON)
        assert (result.samples, result.errors) == (70, wanted.errors)
        assert result.loss == pytest.approx(wanted.loss, rel=1e-5)


def test_a_committee_that_does_not_fit_trains_one_after_another():
    backend = CudaBackend(EmulatedDriver())
    networks, images, labels, orders, alone = committee_of_three(backend, (11, 9, 3), 5)
    loaded = [backend.load(network) for network in networks]
    results = backend.train_committee(loaded, images, labels, orders, RATE)
    for network, on_device, result, (expected, wanted) in zip(networks, loaded, results, alone):
        backend.store(on_device, network)
        assert_same_weights(network, expected)
        assert result == wanted


def test_committees_are_of_equal_members():
    backend = CudaBackend(EmulatedDriver())
    networks = [backend.load(random_network(sizes, 1)) for sizes in ((5, 4, 2), (5, 3, 2))]
    (images, labels, order), none = problem((5, 4, 2), 4, 1), []
    for members, orders in [(networks, [order] * 2), (networks[:1] * 2, [order, order[:2]])]:
        with pytest.raises(InputError, match=r"a committee of layers .*: expected networks of the"):
            backend.train_committee(members, [images] * 2, [labels] * 2, orders, RATE)
    with pytest.raises(InputError, match="a committee of layers"):
        backend.train_committee(none, none, none, none, RATE)


# ---- what goes wrong -----------------------------------------------------------------------


def test_training_ends_where_weights_are_not_finite(one_hidden_layer, monkeypatch):
    backend, network, (images, labels, order) = one_hidden_layer
    monkeypatch.setattr(cuda_resident, "MAX_STEPS", cuda_resident.BLOCK)
    broken = network.copy()
    broken.weights[0][3, 5] = np.nan
    _, result = trained(backend, broken, images, labels, order, RATE)
    assert result.samples == 64
    assert np.isnan(result.loss)


def faulty(tmp_path, old, new):
    """The kernel with a fault planted."""
    text = (SOURCES / "resident.cu").read_text()
    assert text.count(old) == 1, old
    (tmp_path / "faulty.cu").write_text(text.replace(old, new))
    return tmp_path / "faulty.cu"


def outcome(source, case, version=VERSIONS[-1], seeds=8):
    """What becomes of a faulty kernel: "same" bits as the right one, or another end."""
    sizes, limits = CASES[case]
    network, data = random_network(sizes, 1), problem(sizes, 60, 2)
    expected, _ = trained(resident(limits, version), network, *data, RATE)
    backend, seen = resident(limits, version, source), set()
    for seed in range(seeds):
        loaded = backend.load(network)
        loaded.resident.wait_seconds = 1e-4  # on the emulation's clock, which moves with polls
        backend.driver.kernels_made[-1].driver.seed(seed)
        got = network.copy()
        try:
            backend.train(loaded, *data, RATE)
        except InputError as error:
            seen.add("gave up" if "gave up" in str(error) else str(error))
            continue
        backend.store(loaded, got)
        pairs = zip(got.weights + got.biases, expected.weights + expected.biases)
        seen.add("same" if all(np.array_equal(a, b) for a, b in pairs) else "other")
    return seen


@pytest.mark.parametrize(
    "case, old, new, expected",
    [
        (  # a reader that does not wait
            "two hidden layers",
            "if (!FLAGGED || !(others & 1) || stopped) break;",
            "break;",
            {"other"},
        ),
        (  # one buffer instead of two: a reader takes the words of the sample before for this one's
            "one hidden layer",
            "now = next;",
            "now = {now.words, next.bit};",
            {"gave up", "other"},
        ),
        (  # a lost word
            "two hidden layers",
            "store_word(of.words",
            "if (blockIdx.x != 2 || step != 9 || k != 2) store_word(of.words",
            {"gave up"},
        ),
        (  # states that are read before all of them are written
            "two hidden layers",
            "__syncthreads();\n            if constexpr (l == 0) keep_inputs",
            "if constexpr (l == 0) keep_inputs",
            {"other"},
        ),
        (  # scratch that is written while it is still read
            "two hidden layers",
            "__syncthreads();  // scratch has been read",
            "",
            {"other"},
        ),
    ],
    ids=["no-wait", "one-buffer", "lost-word", "no-meeting", "scratch"],
)
def test_planted_faults_show(tmp_path, case, old, new, expected):
    seen = outcome(faulty(tmp_path, old, new), case)
    assert seen & expected, seen


def test_the_barrier_is_needed_without_epochs(tmp_path):
    source = faulty(
        tmp_path,
        "while (acquire_count(&control->count) < barriers && !stopped) {",
        "while (false) {",
    )
    assert "other" in outcome(source, "two hidden layers", "barrier")


def test_giving_up_names_the_exchange(tmp_path):
    """Block 1 sends no deltas of hidden layer 1 for the third sample: all others end as well."""
    old = "publish<l, true>(now, column, sum);"
    source = faulty(tmp_path, old, f"if (blockIdx.x != 1 || step != 2) {old}")
    sizes, limits = CASES["two hidden layers"]
    backend = resident(limits, source=source)
    loaded = backend.load(random_network(sizes, 1))
    loaded.resident.wait_seconds = 1e-3
    with pytest.raises(InputError) as caught:
        backend.train(loaded, *problem(sizes, 10, 2), RATE)
    text = str(caught.value)
    assert "gave up on cuda-emulated" in text
    assert "waited more than 0.001 s for the deltas of hidden layer 1 of sample 2" in text
    assert "\n" not in text


def test_an_interrupted_launch_leaves_no_words_behind(one_hidden_layer, monkeypatch):
    """It ran, but its epochs were not counted: the next one begins with clear words."""
    backend, network, (images, labels, order) = one_hidden_layer
    parts = order[:3], order[3:43]
    loaded, expected = backend.load(network), network.copy()
    for part in parts:
        backend.train(loaded, images, labels, part, RATE)
    backend.store(loaded, expected)
    loaded, got = backend.load(network), network.copy()
    kernel = loaded.resident._kernel
    launch = kernel.launch

    def interrupted(*arguments):
        launch(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "launch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            backend.train(loaded, images, labels, parts[0], RATE)
    backend.train(loaded, images, labels, parts[1], RATE)
    backend.store(loaded, got)
    assert_same_weights(got, expected)


def test_blocks_that_cannot_all_be_resident_are_no_hang(monkeypatch):
    """The emulation refuses what a cooperative launch would."""
    sizes, limits = CASES["two hidden layers"]
    backend = resident(limits)
    loaded = backend.load(random_network(sizes, 1))
    monkeypatch.setattr(loaded.resident.plan.__class__, "blocks", property(lambda plan: 1))
    loaded.resident.wait_seconds = 1e-3
    with pytest.raises((InputError, EmulationError), match=r"gave up|nobody answers"):
        backend.train(loaded, *problem(sizes, 10, 2), RATE)


@pytest.mark.parametrize("bit", [0, 1])
def test_words_keep_values_but_for_their_last_bit(bit):
    special = [np.inf, -np.inf, 0.0, -0.0, np.finfo(np.float32).max]
    nans = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32).view(np.float32)
    consecutive = np.arange(0x3F800000, 0x3F800000 + 504, dtype=np.uint32).view(np.float32)
    values = np.concatenate([np.float32(special), nans, consecutive])
    driver = EmulatedDriver(Path(__file__).parents[2] / "support" / "cuda_snippets" / "words.cu")
    source, out, words = (DeviceArray(driver, values.shape, t) for t in ("f4", "f4", "u4"))
    source.set(values)
    arguments = (source.address, out.address, words.address, bit)
    driver.launch(Launch("round_trip_kernel", (1, 1, 1), (values.size, 1, 1), arguments))
    got = np.asarray(out)
    np.testing.assert_array_equal(got[:4], values[:4])
    assert np.isfinite(got[4])
    assert np.isnan(got[5:8]).all()
    errors = got[8:].view(np.uint32).astype(int) - consecutive.view(np.uint32)
    assert set(errors) == {-1, 0, 1}
    assert errors.sum() == 0  # up as often as down
    assert np.all(np.asarray(words) == bit)


def test_resident_training_stays_within_bounds():
    """Once more under AddressSanitizer: all kinds of slots, and two launches."""
    chosen = "oracle and (four or beyond) or any_length"
    result = sanitized.run("-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_launch_agrees_with_the_kernel():
    sizes, limits = CASES["one block"]
    driver = resident(limits).driver
    kernel = driver.specialise(make_plan(sizes, limits), VERSIONS[-1])
    assert {name: letters for name, (_, letters) in kernel.driver.kernels.items()} == {
        cuda_resident.KERNEL: cuda_resident.FORMATS
    }
    text = (SOURCES / "resident.cu").read_text()
    assert f"SAMPLES_PER_BLOCK = {cuda_resident.BLOCK};" in text
    assert f"WORDS_AT_A_TIME = {resident_plan.WORDS_AT_A_TIME};" in text
    assert resident_plan.VERSIONS == ("barrier", "flags", "overlap", "ahead")
