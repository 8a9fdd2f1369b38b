"""Promises of the C backend alone: bits, packed weights, failing allocations, threads that end."""

import gc
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_operations import SIZES, operations
from emulated import SIMD
from mlpcore import Network, backends
from mlpcore.backends import simd
from mlpcore.backends.simd import SimdBackend
from mlpcore.network.activation import A, B
from oracle import EPSILON, SEEDS, on_ground, random_network, trained, uniform


@given(
    # Around the vectors, the padding and the chunks that a background is left out by.
    n_in=st.sampled_from([1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 143, 144, 256, 257, 841]),
    widths=st.lists(st.sampled_from([1, 15, 16, 47, 130, 300]), min_size=1, max_size=3),
    n=st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 130, 200]),
    ground=st.booleans(),
    threads=st.sampled_from([2, 3, 16]),
    seed=SEEDS,
)
@settings(max_examples=25)
def test_predict_around_panels(simd_name, reference, n_in, widths, n, ground, threads, seed):
    """Near the oracle, with the same bits by more threads, and in batches of another ground."""
    network, images = random_network((n_in, *widths), seed % 2**32), uniform(seed, n, n_in)
    if ground:
        images = on_ground(images, uniform(seed + 1, n), seed)
    one = SimdBackend(simd_name, 1)
    outputs = one.predict(network, images)
    # A sum's rounding, carried through at most two more layers of slope A B about 1.15.
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=0, atol=2e-5)
    assert np.array_equal(SimdBackend(simd_name, threads).predict(network, images), outputs)
    for batch in (slice(n // 2, n), *(slice(i, i + 1) for i in range(0, n, 7))):
        assert np.array_equal(one.predict(network, images[batch]), outputs[batch])


@pytest.mark.parametrize("sizes", [(841, 100, 50, 10), (128, 129, 7, 300), (127, 65, 1), (5, 10)])
def test_predictions_of_many_have_the_bits_of_few(simd_name, sizes):
    """Predictions of many samples go by their active inputs."""
    images = on_ground(uniform(1, 1100, sizes[0]), uniform(2, 1100), 3)
    network = random_network(sizes, 5, activation="relu", loss="cross-entropy")
    one, more = SimdBackend(simd_name, 1), SimdBackend(simd_name, 3)
    outputs = np.concatenate([one.predict(network, half) for half in (images[:550], images[550:])])
    for backend in one, more:
        assert np.array_equal(backend.predict(network, images), outputs)


@pytest.mark.parametrize("n_in", [2, 3, 4, 5, 40])
def test_a_rare_value_is_no_ground(simd_name, reference, n_in):
    """Adding and subtracting 1,000 would leave little of the other terms, about 0.001 each."""
    network, images = random_network((n_in, 10), 1), uniform(2, 4, n_in) * 1e-3
    images[:, 0], network.weights[0][:, 0] = 1000.0, 0.0
    outputs = SimdBackend(simd_name, 1).predict(network, images)
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=0, atol=1e-6)


@pytest.mark.parametrize("value, count", [(np.nan, 1), (np.nan, 12), (np.inf, 12), (np.inf, 20)])
def test_predict_keeps_what_is_not_finite(simd_name, value, count):
    """A network that has diverged says so in every output, and only for its own samples."""
    network, images = random_network((20, 17, 5), 1), uniform(2, 3, 20)
    images[:, :12] = -1.0  # a ground, which is left out
    images[1, max(0, 12 - count) : max(12, count)] = value  # infinities of both signs are NaN
    backend = SimdBackend(simd_name, 1)
    outputs = backend.predict(network, images)
    assert np.isfinite(outputs).all(axis=1).tolist() == [True, False, True]
    assert np.isnan(outputs[1]).all()
    assert np.isnan(backend.predict(network, images[1:2])).all()


#: The error of a packed weight below 1: half of the last of 21 bits, of which one is the sign, and
#: four roundings to float32. They round the scale, its inverse, the product of the weight and the
#: inverse, and the whole number.
PACKED_EPSILON = 2.0**-21 + 4 * EPSILON


@pytest.mark.parametrize("name", [each for each in SIMD if backends.get(each).packs])
@pytest.mark.parametrize(
    ("n_in", "row", "above"),
    [
        *((n_in, 1, 1) for n_in in (1, 15, 16, 17, 47, 48, 95, 96, 97, 144)),
        *((97, row, 1) for row in (0, 1e-20, 1e-30, np.nan)),
        *((n_in, 1, 2.0**-100) for n_in in (17, 300)),
    ],
)
def test_a_packed_row_has_its_21_bits(name, reference, n_in, row, above):
    """Up and down, whatever the size of other rows, and of the deltas, some of them denormal.

    One neuron alone is connected to the output. A single step, the first of a block, shows in
    its loss what went up, and in the biases of the layer below what came down.
    """
    width = 300 + 15_000 // n_in  # a smaller layer is one thread's, and not packed
    network = random_network((1, n_in, width, 1), 1)
    for array in (network.weights[1], network.biases[1]):
        array[5] *= row
    network.weights[2][:, np.arange(width) != 5] = 0
    network.weights[2][:, 5] = above
    data = np.zeros((32, 1), np.float32), np.zeros(32, np.uint8), np.arange(32, dtype=np.int32)
    rates = [1e3 / (row or 1) / above if row == row else 1.0, 1e-3, 1e-3]
    once = np.eye(1, 32, dtype=np.float32)[0]
    engine = SimdBackend(name, 2, packed_from=0)
    got, result = trained(engine, network, *data, rates, sample_weight=once)
    wanted, expected = trained(reference, network, *data, rates, sample_weight=once)
    if np.isnan(row):
        assert np.isnan(result.loss)
        return
    # Of neuron 5's sum, and then of its state and the output, whose slopes are at most A B; each
    # tanh is off by up to 4e-7 (cpu_simd/layer_kernels.h). The slope of the loss is |y - t|.
    greatest = np.abs(np.append(network.weights[1][5], network.biases[1][5])).max()
    error = PACKED_EPSILON * greatest * (1 + A * np.abs(np.tanh(B * network.biases[0])).sum())
    error = A * B * above * (A * B * error + A * 4e-7) + A * 4e-7
    assert abs(result.loss - expected.loss) <= np.sqrt(2 * expected.loss) * error
    change, correct = (each.biases[0] - network.biases[0] for each in (got, wanted))
    # The slopes and the deltas above round as well; no scale is below 1e-28.
    tolerance = 3 * PACKED_EPSILON * max(1, 1e-27 / (row or 1))
    assert np.abs(change - correct).max() <= tolerance * np.abs(correct).max()
    assert change.any() == (row > 0)


OPERATIONS = dict(operations())


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_allocation_and_every_start_of_a_thread_fails_once(name, monkeypatch):
    monkeypatch.setattr(simd, "_at_most_cores", int)  # three threads on any machine
    gc.collect()  # frees what other tests left
    start = Network(SIZES, 1, "relu", "cross-entropy", "he")
    expected, failed, n = OPERATIONS[name](start.copy()), True, 0
    while failed:
        network, n = start.copy(), n + 1
        simd._fail_call(n)
        try:
            result = OPERATIONS[name](network)
        except MemoryError:
            result = None
        finally:
            left, leaked = simd._fail_call(0)
        failed = left <= 0
        assert leaked == 0
        if result is None:
            assert failed and all(map(np.array_equal, network.weights, start.weights))
        else:  # with fewer threads, if a call has failed
            assert all(map(np.array_equal, result, expected))
    assert n > (20 if name == "train sparse" else 1)


CODE = """
import sys, threading, time
import numpy as np
from mlpcore import Network
from mlpcore.backends import simd

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

sys.modules["slow"] = Slow()  # its end takes long, with the other modules' end
simd._at_most_cores = int
network, backend = Network((300, 1000, 1000, 10), seed=1), simd.SimdBackend("scalar", 2)
images, labels = np.zeros((20000, 300), np.float32), np.zeros(20000, np.uint8)
called = threading.Event()

def wait(sleep=time.sleep):
    called.set()
    sleep(0.3)  # Python then ends this thread, while another one of C works on

def count(depth):
    # C keeps what its threads share deep in this thread's stack. The system frees that, but not
    # the stack's first pages.
    if depth == 0:
        return backend.count_errors(network, images, labels, wait)
    return list(map(count, [depth - 1]))

threading.Thread(target=count, args=(100,), daemon=True).start()
called.wait()
"""


def test_the_interpreter_ends_while_a_callback_waits():
    """Python ended the thread in the callback; other threads then read from its freed stack."""
    subprocess.run([sys.executable, "-c", CODE], check=True)
