"""The CUDA kernels and their host logic against the oracle; on a device where there is one.

The suite of all backends, test_backends.py, runs over the same two backends. Here are the
sizes at which a block, a strip or a patch begins and ends, the paper's networks, and what only
this backend has: graphs, batches, device memory.

Tolerances are those of test_backends.py: a sum of n products rounds by at most n half units in
the last place of the sum of their magnitudes, whatever its order.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sanitized
import small_runs
from mlpcore import backends
from mlpcore.backends.cuda import backend as cuda
from mlpcore.backends.cuda import emulated as cuda_emulated
from mlpcore.backends.cuda import launch as cuda_launch
from mlpcore.backends.cuda import memory as cuda_memory
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.deformation.deform import DeformationParameters, deform, gaussian_taps
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.network.architecture import PRESETS
from mlpcore.training.trainer import Trainer

EPSILON = 2.0**-24

#: Widths at the edges of warps, strips, patches and blocks.
EDGES = st.one_of(
    st.just(1),
    st.builds(
        lambda unit, times, offset: max(1, unit * times + offset),
        st.sampled_from([16, 32, 128, 256]),
        st.integers(1, 3),
        st.integers(-1, 1),
    ),
)
SEEDS = st.integers(0, 2**32 - 1)

#: Each shape of a layer that the paper's networks have.
SHAPES = sorted(
    {shape for hidden in PRESETS.values() for shape in zip((841, *hidden), (*hidden, 10))}
)


def _usable(name):
    reason = backends.available()[name]
    return pytest.param(name, marks=pytest.mark.skipif(reason is not None, reason=str(reason)))


@pytest.fixture(scope="module", params=[_usable("cuda-emulated"), _usable("cuda")])
def device(request):
    return backends.get(request.param, schedule="streaming")  # resident: test_resident.py


@pytest.fixture
def emulated():
    if cuda_emulated.unavailable_reason() is not None:
        pytest.skip(cuda_emulated.unavailable_reason())
    return CudaBackend(cuda_emulated.EmulatedDriver(), steps_per_graph=4)


def uniform(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def random_network(sizes, seed):
    network = Network(sizes)
    for i, (weights, biases) in enumerate(zip(network.weights, network.biases)):
        limit = 1 / np.sqrt(weights.shape[1])
        weights[...] = uniform(seed + 2 * i, *weights.shape) * limit
        biases[...] = uniform(seed + 2 * i + 1, *biases.shape) * limit
    return network


def problem(sizes, n, seed):
    """Images, labels and an order of n steps."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, min(sizes[-1], 256), n).astype(np.uint8)
    return uniform(seed, n, sizes[0]), labels, rng.integers(0, n, n).astype(np.int32)


def assert_same_weights(got, expected, tolerance=0.0):
    for a, b in zip(got.weights + got.biases, expected.weights + expected.biases):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def trained(backend, network, images, labels, order, rate=1e-3, progress=None, target=1.0):
    """A copy of the network after training, and the result."""
    network = network.copy()
    loaded = backend.load(network)
    images, labels = backend.put(images), backend.put(labels)
    result = backend.train(loaded, images, labels, order, rate, progress, target)
    backend.store(loaded, network)
    return network, result


# ---- every size ----------------------------------------------------------------------------


def check_layer(device, reference, n_in, n_out, seed, n):
    network = random_network((n_in, n_out), seed)
    inputs, deltas = A * uniform(seed, n, n_in), uniform(seed + 1, n, n_out)
    loaded, magnitude = device.load(network), np.abs(network.weights[0])
    outputs = device.forward(loaded, 0, inputs)
    terms = np.abs(inputs) @ magnitude.T + np.abs(network.biases[0])
    tolerance = A * B * (n_in + 3) * EPSILON * terms + A * 5e-7
    assert np.all(np.abs(outputs - reference.forward(network, 0, inputs)) <= tolerance)
    below = device.backward(loaded, 0, deltas, inputs)
    tolerance = A * B * (n_out + 8) * EPSILON * (np.abs(deltas) @ magnitude) + 1e-30
    assert np.all(np.abs(below - reference.backward(network, 0, deltas, inputs)) <= tolerance)
    device.update(loaded, 0, inputs, deltas, 0.1)
    got, expected = network.copy(), network.copy()
    device.store(loaded, got)
    reference.update(expected, 0, inputs, deltas, 0.1)
    assert_same_weights(got, expected, 4 * n * EPSILON * (1 + 0.1 * n * A))


@given(n_in=EDGES, n_out=EDGES, seed=SEEDS, n=st.integers(1, 3))
@example(n_in=1, n_out=1, seed=0, n=1)
@example(n_in=31, n_out=257, seed=1, n=2)  # 32 connections: a full strip with the bias
@example(n_in=32, n_out=255, seed=2, n=2)
@settings(max_examples=60)
def test_layers_at_the_edges_of_blocks(device, reference, n_in, n_out, seed, n):
    check_layer(device, reference, n_in, n_out, seed, n)


@pytest.mark.parametrize("n_in, n_out", SHAPES)
def test_layers_of_the_papers_networks(device, reference, n_in, n_out):
    check_layer(device, reference, n_in, n_out, 5, 1)


@given(sizes=st.lists(EDGES, min_size=2, max_size=4), seed=SEEDS)
@settings(max_examples=20)
def test_training_at_the_edges_of_blocks(device, reference, sizes, seed):
    network = random_network(sizes, seed)
    images, labels, order = problem(sizes, 6, seed)
    rate = 0.1 / (max(sizes) + 1)
    got, result = trained(device, network, images, labels, order, rate)
    expected, wanted = trained(reference, network, images, labels, order, rate)
    assert_same_weights(got, expected, 16 * EPSILON * 1.1)  # six steps of a few roundings each
    assert result.samples == 6
    assert result.loss == pytest.approx(wanted.loss, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", PRESETS)
def test_training_of_the_papers_networks(device, reference, name):
    """Two steps; a thousand, on a device, in tools/gpu_check.py."""
    sizes = (841, *PRESETS[name], 10)
    network = Network(sizes, seed=1)
    images, labels, order = problem(sizes, 2, 1)
    got, result = trained(device, network, images, labels, order, 1e-2)
    expected, wanted = trained(reference, network, images, labels, order, 1e-2)
    assert_same_weights(got, expected, 8 * EPSILON)  # of weights below 1
    assert result.loss == pytest.approx(wanted.loss, rel=1e-5)


@given(
    sizes=st.lists(EDGES, min_size=2, max_size=3),
    n=st.sampled_from([1, 63, 64, 65, 130]),
    seed=SEEDS,
)
@settings(max_examples=10)
def test_prediction_at_the_edges_of_blocks(device, reference, sizes, n, seed):
    network, (images, labels, _) = random_network(sizes, seed), problem(sizes, n, seed)
    loaded = device.load(network)
    outputs = device.predict(loaded, images)
    np.testing.assert_allclose(outputs, reference.predict(network, images), rtol=0, atol=2e-5)
    expected = np.count_nonzero(outputs.argmax(axis=1) != labels)
    assert device.count_errors(loaded, images, labels) == expected


@given(rows=st.integers(21, 75), columns=st.integers(21, 75), seed=SEEDS)
@example(rows=21, columns=21, seed=0)
@example(rows=31, columns=22, seed=1)
@example(rows=52, columns=84, seed=2)
@example(rows=53, columns=85, seed=3)
@settings(max_examples=15)
def test_both_convolutions(device, reference, rows, columns, seed):
    noise = uniform(seed, 2, rows, columns)
    taps = np.random.default_rng(seed).uniform(0, 0.1, 21).astype(np.float32)
    expected = reference.displacement_field(noise, taps, 36.0)
    tolerance = 450 * EPSILON * 36.0 * taps.sum() ** 2  # at most 441 products and their sums
    for convolve in (device.displacement_field, device.displacement_field_listing):
        field = convolve(noise, taps, 36.0)
        assert field.shape == expected.shape
        assert np.abs(field - expected).max() <= tolerance


def test_nothing_to_do(device):
    network = device.load(Network((5, 3), seed=1))
    none = np.zeros((0, 5), np.float32)
    assert device.forward(network, 0, none).shape == (0, 3)
    assert device.predict(network, none).shape == (0, 3)
    assert device.count_errors(network, none, np.zeros(0, np.uint8)) == 0
    assert device.deform_by(
        np.zeros((0, 4, 4), np.float32),
        np.zeros((0, 2, 2), np.float32),
        np.zeros((0, 2, 4, 4), np.float32),
    ).shape == (0, 4, 4)
    order = np.zeros(0, np.int32)
    assert device.train(network, none, np.zeros(0, np.uint8), order, 0.1).samples == 0


# ---- what only this backend has ------------------------------------------------------------


def test_graphs_give_the_bits_of_single_launches(device):
    network, data = random_network((20, 33, 4), 3), problem((20, 33, 4), 11, 3)
    results = []
    for steps_per_graph in (0, 1, 4, 64):
        backend = CudaBackend(device.driver, steps_per_graph, "streaming")
        results.append(trained(backend, network, *data))
    for got, result in results[1:]:
        assert_same_weights(got, results[0][0])
        assert result == results[0][1]


def test_graphs_serve_every_epoch(emulated):
    """The next epoch's order, learning rate and images reach a graph that was captured before."""
    sizes = (10, 7, 3)
    network = random_network(sizes, 1)
    images, labels, _ = problem(sizes, 12, 1)
    loaded, resident = emulated.load(network), emulated.put(images)
    on_device, expected, graphs = emulated.put(labels), network.copy(), set()
    plain = CudaBackend(emulated.driver, steps_per_graph=0)
    for epoch, rate in enumerate([0.01, 0.002, 0.02]):
        order = np.random.default_rng(epoch).permutation(12).astype(np.int32)
        resident.set(images * (1 + epoch))
        emulated.train(loaded, resident, on_device, order, rate)
        graphs.add(id(loaded.graphs[4]))
        expected, _ = trained(plain, expected, images * (1 + epoch), labels, order, rate)
    emulated.store(loaded, network)
    assert_same_weights(network, expected)
    assert len(graphs) == 1
    emulated.train(loaded, emulated.put(images), on_device, order, rate)
    assert id(loaded.graphs[4]) not in graphs  # other images, another graph


def test_the_order_of_threads_changes_no_bit(emulated):
    network, data = random_network((40, 70, 5), 3), problem((40, 70, 5), 6, 3)
    results = []
    for seed in range(3):
        emulated.driver.seed(seed)
        results.append(trained(emulated, network, *data))
    for got, result in results[1:]:
        assert_same_weights(got, results[0][0])
        assert result == results[0][1]


def test_training_stops_at_the_end_of_a_sample(emulated):
    network, (images, labels, order) = random_network((9, 5), 3), problem((9, 5), 200, 3)
    calls = []

    def stop(done):
        calls.append(done)
        return len(calls) == 3

    got, result = trained(emulated, network, images, labels, order, progress=stop)
    assert result.samples == calls[-1] < 200
    expected, _ = trained(emulated, network, images, labels, order[: calls[-1]])
    assert_same_weights(got, expected)


def test_an_interrupt_leaves_whole_samples(emulated):
    network, (images, labels, order) = random_network((9, 5), 3), problem((9, 5), 40, 3)
    calls, loaded = [], emulated.load(network)

    def interrupt(done):
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        emulated.train(loaded, images, labels, order, 1e-3, interrupt)
    got = network.copy()
    emulated.store(loaded, got)
    expected, _ = trained(emulated, network, images, labels, order[: calls[-1]])
    assert_same_weights(got, expected)


def test_validation_in_batches_gives_the_same_bits(emulated, monkeypatch):
    network, (images, labels, _) = random_network((30, 40, 6), 3), problem((30, 40, 6), 100, 3)
    whole = emulated.predict(emulated.load(network), images)
    monkeypatch.setattr(cuda_memory, "PREDICT_BATCH", 33)
    loaded = emulated.load(network)
    assert np.array_equal(emulated.predict(loaded, images), whole)
    resident = loaded, emulated.put(images), emulated.put(labels)
    wanted, polls = np.count_nonzero(whole.argmax(axis=1) != labels), []

    def interrupt():
        polls.append(1)
        if len(polls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        emulated.count_errors(*resident, interrupt)
    assert emulated.count_errors(*resident) == wanted
    assert emulated.count_errors(*resident, interrupt) == wanted
    assert len(polls) == 2 + 4


def test_deformation_grid_by_grid_gives_the_same_bits(emulated, monkeypatch):
    images, labels = uniform(1, 230, 5, 7), np.zeros(230, np.uint8)
    arguments = images, labels, DeformationParameters(), 7, 3, emulated, 150
    whole = np.asarray(deform(*arguments))
    monkeypatch.setattr(cuda, "GRIDS_AT_A_TIME", 1)
    out = emulated.put(np.empty_like(images))
    assert deform(*arguments, out=out) is out
    assert np.array_equal(np.asarray(out), whole)


def test_deformation_gives_the_bits_of_the_c_kernels(emulated):
    """The same operations in the same order, fused where those are."""
    if backends.available()["avx2"] is not None:
        pytest.skip("no C kernels that fuse products and sums")
    images, labels = uniform(1, 120, 29, 29), np.zeros(120, np.uint8)
    parameters = DeformationParameters()
    expected = deform(images, labels, parameters, 7, 3, backends.get("avx2"))
    result = deform(emulated.put(images), labels, parameters, 7, 3, emulated)
    assert np.array_equal(np.asarray(result), expected)


def test_images_larger_than_a_block_and_fields_of_one_tap(emulated, reference):
    images, labels = uniform(1, 2, 40, 30), np.zeros(2, np.uint8)
    parameters = DeformationParameters(sigma=0.0, alpha=2.0)
    result = np.asarray(deform(images, labels, parameters, 1, 1, emulated, 99))
    expected = deform(images, labels, parameters, 1, 1, reference, 99)
    assert np.abs(result - expected).max() <= 64 * EPSILON * 50 * 2


# ---- what an epoch draws -------------------------------------------------------------------


def test_equal_sort_keys_keep_their_order(device):
    """As of a stable sort. Keys of 64 random bits are hardly ever equal, so these are planted."""
    keys = np.random.default_rng(1).integers(0, 40, 600).astype(np.uint64) << np.uint64(32)
    resident, order = device.put(keys), device.put(np.zeros(600, np.int32))
    _, rank = cuda_launch.permutation((0, 0), 0, 600, resident.address, order.address)
    with device.driver.active():
        device.driver.launch(rank)
    assert np.array_equal(np.asarray(order), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("wrong", [-1, 30])
def test_an_order_on_the_device_is_checked_there(device, wrong):
    network, (images, labels, order) = random_network((9, 5), 3), problem((9, 5), 30, 3)
    order[17] = wrong
    got = network.copy()
    with pytest.raises(InputError, match=r"order: from .* expected 0 to 29"):
        trained(device, got, images, labels, device.put(order))
    assert_same_weights(got, network)


def test_part_of_an_order_on_the_device(device, reference):
    network, (images, labels, order) = random_network((9, 5), 3), problem((9, 5), 30, 3)
    expected, _ = trained(reference, network, images, labels, order[7:23])
    got, _ = trained(device, network, images, labels, device.put(order)[7:23])
    assert_same_weights(got, expected, 16 * EPSILON)  # sixteen steps, weights below 1


# ---- arrays and memory ---------------------------------------------------------------------


def test_arrays_on_the_device(emulated):
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = emulated.put(values)
    assert array.reshape(2, -1).shape == (2, 12)
    assert np.array_equal(np.asarray(array[1:3]), values[1:3])
    assert np.array_equal(np.asarray(array[1:3][1:].reshape(6)), values[2])
    assert np.asarray(array, np.float64).dtype == np.float64
    assert np.array_equal(np.asarray(emulated.put(values.T)), values.T)
    with pytest.raises(InputError, match="consecutive"):
        array[::2]


def test_memory_comes_back(emulated):
    free = emulated.driver.free_memory()
    loaded, array = emulated.load(Network((50, 20, 3))), emulated.put(np.zeros(1000, np.float32))
    assert emulated.driver.free_memory() < free - 4000
    del loaded, array
    assert emulated.driver.free_memory() == free


def test_too_little_memory_is_refused_before_training():
    driver = cuda_emulated.EmulatedDriver(memory=1 << 20)
    backend = CudaBackend(driver)
    with pytest.raises(InputError, match=r"network of layers 841, 1000, 10: .* needed, 1.0 MiB"):
        backend.load(Network((841, 1000, 10)))
    with pytest.raises(InputError, match=r"\(4,000,000 bytes\) of device memory needed"):
        backend.put(np.zeros(1_000_000, np.float32))
    assert driver.free_memory() == 1 << 20


def make_trainer(backend):
    return Trainer(small_runs.make_config(epochs=2), small_runs.make_dataset(), backend)


def test_all_memory_of_a_run_is_taken_before_it():
    driver = cuda_emulated.EmulatedDriver()
    trainer = make_trainer(CudaBackend(driver, steps_per_graph=8))
    free, sizes, allocate = driver.free_memory(), [], driver.allocate
    driver.allocate = lambda n_bytes: sizes.append(n_bytes) or allocate(n_bytes)
    trainer.run()
    assert driver.free_memory() == free
    assert set(sizes) <= {256 * 8, 21 * 4}  # angles and taps, for a moment


def test_too_little_memory_for_the_fields_is_refused_before_training():
    driver = cuda_emulated.EmulatedDriver()
    free = driver.free_memory()
    trainer = make_trainer(CudaBackend(driver))
    needed = free - driver.free_memory()
    del trainer
    with pytest.raises(InputError, match="of device memory needed"):
        make_trainer(CudaBackend(cuda_emulated.EmulatedDriver(memory=needed - 1)))


def test_a_network_of_other_sizes_is_not_stored(emulated):
    with pytest.raises(InputError, match="expected"):
        emulated.store(emulated.load(Network((3, 2))), Network((3, 4)))


def test_out_must_be_on_the_device_and_of_the_images_shape(emulated):
    images, affine = uniform(1, 2, 4, 4), np.tile(np.eye(2, dtype=np.float32), (2, 1, 1))
    taps = gaussian_taps(6.0)
    for out in (images.copy(), emulated.put(images[:1])):
        with pytest.raises(InputError, match="out"):
            emulated.deform(images, affine, taps, 1.0, 1, 1, out=out)


def test_kernels_stay_within_bounds():
    """The tests at the edges of blocks once more, under AddressSanitizer."""
    chosen = "emulated and (edges or convolutions) or grid_by_grid or than_a_block"
    result = sanitized.run("-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen)
    assert result.returncode == 0, result.stdout + result.stderr
