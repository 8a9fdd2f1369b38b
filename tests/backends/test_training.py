"""Promises of every engine about a training: each schedule of each instruction set, the steppers,
and the CUDA backend streaming and resident. Weights, zeros and cuts belong to the `Problem`."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

from emulated import SIMD, emulated_backend, get_backend
from mlpcore import Network, backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.network.activation import BINARY, HUBER
from oracle import (
    CASES,
    EPSILON,
    KINDS,
    WIDTHS,
    Problem,
    StepperEngine,
    bits,
    check_training,
    trained,
    training_problems,
    training_set,
    uniform,
)

TANH, RELU = ("tanh", "squared"), ("relu", "cross-entropy")
LINEAR, SIGMOID = ("relu", HUBER), ("tanh", BINARY)

ON_CPUS = [*((name, how) for name in SIMD for how in (*SCHEDULES, "steps")), ("reference", "steps")]
ON_DEVICES = [("cuda", "streaming"), ("cuda-emulated", "streaming"), ("cuda-emulated", "resident")]

#: A network and a device whose resident kernels are compiled for `test_resident.py` as well.
COMMON, LIMITS = CASES["two hidden layers"]

every_engine = pytest.mark.parametrize(("name", "how"), ON_CPUS + ON_DEVICES)


def engines(name, how, counts=(2,), block=32):
    """Engines that give the same bits, by a number of threads or of calls."""
    if how == "steps":
        return [StepperEngine(get_backend(name, 1), n) for n in counts]
    if name in backends.INSTRUCTION_SETS:
        return [SimdBackend(name, n, how, block, packed_from=0) for n in counts]
    return [
        emulated_backend(how, limits=LIMITS) if "emul" in name else get_backend(name, None, how)
    ]


@pytest.mark.parametrize(("name", "how"), ON_CPUS + ON_DEVICES[:2])
@given(
    problem=training_problems(widths=WIDTHS | st.sampled_from([130, 143, 300])),
    block=st.sampled_from([1, 3, 32, 40]),
    count=st.sampled_from([2, 3]),
)
# One input and one neuron; backgrounds; decay; more threads than tiles, and more outputs than one
# tile has; wide layers, as of the paper's networks; blocks that are whole, and one longer than all.
@example(Problem((1, 1), 3, 0, 0.1), 32, 2)
@example(Problem((841, 300, 200, 10), 20, 1, 1e-3, -1.0), 32, 2)
@example(Problem((130, 33, 5), 40, 3, 1e-3, -1.0, weights="whole"), 150, 2)
@example(Problem((841, 300, 129, 5), 40, 3, 1e-3, 0.0, 1.0, 1.0, *RELU, 9.0, 0.5), 32, 3)
@example(Problem((20, 16, 4), 4500, 4, 0.01, weight_decay=0.05), 32, 2)
@example(Problem((20, 16, 4), 40, 5, 0.02, weight_decay=1.0), 32, 2)
@example(Problem((100, 1000, 257, 10), 20, 1, 1e-3, "own", weights="far apart"), 32, 16)
@example(Problem((150, 300, 200, 10), 20, 1, 1e-3, None, 1.0, 2.0, *RELU, 0.0, 0.7, 0), 32, 3)
@example(Problem((130, 257, 300), 20, 8, 1e-3, 0.0, 1.0, 1.0, *RELU, 0.0, 0.5, 1), 32, 3)
@example(Problem((130, 257, 300), 20, 9, 1e-3, 0.0, 1.0, 1.0, *LINEAR, 0.05, 0.5), 32, 3)
@example(Problem((130, 257, 300), 20, 9, 1e-3, 0.0, 1.0, 1.0, *SIGMOID, 0.05, 0.5), 32, 3)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_the_oracles(reference, name, how, problem, block, count):
    """With the same bits by any number of threads, and however the samples are cut into calls."""
    counts = (1,) if name == "reference" else (1, count)  # it rounds at the end of a call
    check_training(reference, problem, *engines(name, how, counts, block))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        *(("two hidden layers", kind) for kind in KINDS),
        *((case, TANH) for case in ("one hidden layer", "four hidden layers")),
        *(("rows beyond threads", TANH), ("one block", ("tanh", "cross-entropy"))),
    ],
    ids=str,
)
def test_resident_training_is_the_oracles(reference, case, kind):
    """Kernels are compiled for each network, so these are few."""
    (sizes, limits), more = CASES[case], (None, 1.3, 2.0)
    resident = emulated_backend("resident", limits=limits)
    check_training(reference, Problem(sizes, 40, 2, 0.01, *more, *kind), resident)
    if kind == RELU:
        dead = Problem(sizes, 33, 2, 0.01, *more, *kind, alive=0)
        check_training(reference, dead, resident)
    assert resident.notice is None


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
@given(problem=training_problems(), count=st.sampled_from([1, 3]))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_a_sparse_matrix_are_rows_of_an_array(cpu_name, reference, kind, problem, count):
    """To the bit, with rows without values."""
    steppers = (StepperEngine(backends.get(cpu_name, 1), count, each) for each in (np.array, kind))
    check_training(reference, problem, *steppers)


@every_engine
@pytest.mark.parametrize("gap, label", [(0, 0), (15, 0), (15, 1), (90, 1), (700, 1), (1e30, 0)])
def test_losses_of_sure_outputs(name, how, gap, label):
    """-log p of sums gap, 0, 0, 0 and 0, where p rounds to 1 or is too small for a float."""
    network, (engine,) = Network(COMMON, loss="cross-entropy"), engines(name, how, (2,))
    network.biases[-1][0] = gap
    data = uniform(1, 1, COMMON[0]), np.full(1, label, np.uint8), np.zeros(1, np.int32)
    got, result = trained(engine, network, *data, 0.01)
    outputs = engine.predict(engine.load(got), data[0])
    expected = np.log1p(4 * np.exp(-float(gap))) + (gap if label else 0)
    assert result.loss == pytest.approx(expected, rel=1e-5, abs=1e-30)
    assert got.is_finite() and outputs.sum() == pytest.approx(1, abs=4 * EPSILON)


@every_engine
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_of_equal_outputs_the_first_counts(name, how, kind):
    """A rate too small to tell the outputs apart leaves all of them equal."""
    labels, order = np.array([0, 0, 1, 2, 4], np.uint8), np.arange(5, dtype=np.int32)
    data = np.zeros((5, COMMON[0]), np.float32), labels, order
    _, result = trained(engines(name, how)[0], Network(COMMON, None, *kind), *data, 1e-30)
    assert (result.samples, result.errors) == (5, 3)
    assert result.loss == pytest.approx(5 * (5 / 2 if kind[1] == "squared" else np.log(5)))


@every_engine
@pytest.mark.parametrize("kind", [TANH, RELU], ids="-".join)
@pytest.mark.parametrize("place, value", [(None, np.nan), (0, np.nan), (1, -np.nan), (1, np.inf)])
@pytest.mark.filterwarnings("ignore:invalid value")  # of NumPy, as the oracle computes
def test_what_is_not_finite_is_seen(name, how, kind, place, value):
    """In the loss or the weights: rectifiers, lists of active inputs and clamped sums keep NaN."""
    problem = Problem(COMMON, 35, 2, 0.01, None, 1.0, 1.0, *kind, zeros=0.3)
    network, (images, labels, order, _) = problem.network(), problem.samples()
    if place is None:
        images[order[10], 5] = value
    else:
        network.weights[place][2, 1] = value
    got, result = trained(engines(name, how)[0], network, images, labels, order, 0.01)
    assert not (np.isfinite(result.loss) and got.is_finite())
    if np.isnan(value) and kind == RELU:
        assert np.isnan(result.loss)


@pytest.mark.parametrize(
    "schedule, cuts", [("deferred", (64, 96)), ("packed", (64,)), ("sparse", (32, 64))]
)
def test_a_call_may_be_cut(simd_name, schedule, cuts):
    """Training in pieces gives the bits of training at once: anywhere, or at a block's end."""
    kind = RELU if schedule == "sparse" else TANH
    images, labels, order = training_set((150, 400, 300, 10), 120, zeros=0.5)
    (backend,) = engines(simd_name, schedule)
    whole, pieces = (Network((150, 400, 300, 10), 2, *kind) for _ in range(2))
    backend.train(whole, images, labels, order, 0.01, weight_decay=0.5)
    for part in np.split(order, cuts):
        backend.train(pieces, images, labels, part, 0.01, weight_decay=0.5)
    assert bits(whole) == bits(pieces)


@pytest.mark.parametrize("raises", [False, True], ids=["stop", "interrupt"])
@pytest.mark.parametrize(
    ("name", "how", "sizes"),
    [
        *((SIMD[-1], how, sizes) for how in SCHEDULES for sizes in ((20, 600, 10), (20, 10))),
        *((*device, COMMON) for device in ON_DEVICES[1:]),
    ],
)
def test_training_ends_after_a_whole_sample(name, how, sizes, raises):
    """Progress is told once more with all, and of its exceptions the first is raised."""
    (engine,), calls = engines(name, how), []
    network, data = Network(sizes, seed=4), training_set(sizes, 200)

    def end(result):
        calls.append(result)
        if raises:
            raise KeyboardInterrupt(len(calls))
        return True

    got = network.copy()
    loaded = engine.load(got)
    with pytest.raises(KeyboardInterrupt, match="1") if raises else nullcontext():
        assert engine.train(loaded, *map(engine.put, data), 0.01, end) == calls[-1]
    assert 1 <= calls[-1].samples < 200
    engine.store(loaded, got)
    images, labels, order = data
    expected, result = trained(engine, network, images, labels, order[: calls[-1].samples], 0.01)
    assert result == calls[-1] and bits(got) == bits(expected)


def test_neurons_of_tanh_learn_from_a_state_of_zero(simd_name, reference):
    """With weights of 0 below, and others above."""
    network = Network((4, 20, 3), seed=1)
    network.weights[0][...] = network.biases[0][...] = 0
    data = uniform(1, 2, 4), np.array([1, 2], np.uint8), np.arange(2, dtype=np.int32)
    expected, _ = trained(reference, network, *data, 0.1)
    got, _ = trained(*engines(simd_name, "steps", (1,)), network, *data, 0.1)
    np.testing.assert_allclose(got.weights[0], expected.weights[0], rtol=0, atol=32 * EPSILON)
    assert np.abs(got.weights[0]).min() > 0
