"""Features of the CUDA backend alone: graphs, batches and memory; on a device where there is one.

`test_backends.py` and `test_training.py` compare with the oracle, and tests/gpu trains the
larger networks.
"""

import numpy as np
import pytest

from emulated import emulated_backend, get_backend, needs_emulation
from mlpcore import DeformationParameters, InputError, Network, Trainer
from mlpcore.backends.cuda import deformation, network, streaming
from mlpcore.deformation.deform import deform
from oracle import bits, random_network, trained, training_set, uniform
from small_runs import DATA, make_config


@pytest.fixture(scope="module", params=["cuda-emulated", "cuda"])
def device(request):
    return get_backend(request.param, schedule="streaming")


@pytest.fixture
def emulated():
    return get_backend("cuda-emulated")


def test_nothing_to_do(device):
    network = device.load(Network((5, 3), seed=1))
    none, labels, order = np.zeros((0, 5), np.float32), np.zeros(0, np.uint8), np.zeros(0, np.int32)
    assert device.predict(network, none).shape == (0, 3)
    assert device.count_errors(network, none, labels) == 0
    assert device.train(network, none, labels, order, 0.1).samples == 0
    images, maps = np.zeros((0, 4, 4), np.float32), np.zeros((0, 2, 2), np.float32)
    assert device.deform_by(images, maps, np.zeros((0, 2, 4, 4), np.float32)).shape == (0, 4, 4)


def test_graphs_of_any_length_and_any_order_of_threads_give_the_same_bits(device, monkeypatch):
    start = random_network((40, 70, 5), 3, activation="relu", loss="cross-entropy")
    data, results = training_set((40, 70, 5), 11, 3), []
    for seed, steps in enumerate((1, 4, 64, 64)):
        monkeypatch.setattr(streaming, "STEPS_PER_GRAPH", steps)
        if device.name == "cuda-emulated":
            device.driver.seed(seed)
        got, result = trained(device, start, *data)
        results.append((bits(got), result))
    assert results.count(results[0]) == 4


def test_graphs_serve_every_epoch(emulated, monkeypatch):
    """The next epoch's order, learning rate and images reach a graph that was captured before."""
    monkeypatch.setattr(streaming, "STEPS_PER_GRAPH", 4)
    sizes, captured, capture = (10, 7, 3), [], emulated.driver.capture
    monkeypatch.setattr(emulated.driver, "capture", lambda x: captured.append(x) or capture(x))
    network, (images, labels, _) = random_network(sizes, 1), training_set(sizes, 12, 1)
    loaded, shown = emulated.load(network), emulated.put(images)
    on_device, expected = emulated.put(labels), network.copy()
    for epoch, rate in enumerate([0.01, 0.002, 0.02]):
        order = np.random.default_rng(epoch).permutation(12).astype(np.int32)
        shown.set(images * (1 + epoch))
        emulated.train(loaded, shown, on_device, order, rate)
        assert len(captured) == 2  # of one step and of four
        expected, _ = trained(emulated_backend(), expected, np.asarray(shown), labels, order, rate)
    emulated.store(loaded, network)
    assert bits(network) == bits(expected)
    for arrays in (shown, emulated.put(labels)), (emulated.put(images), on_device):
        captured.clear()
        emulated.train(loaded, *arrays, order, rate)
        assert captured  # other labels or images need other graphs


def test_validation_in_batches_gives_the_same_bits(emulated, monkeypatch):
    start, (images, labels, _) = random_network((30, 40, 6), 3), training_set((30, 40, 6), 100, 3)
    whole, polls = emulated.predict(emulated.load(start), images), []
    monkeypatch.setattr(network, "PREDICT_BATCH", 33)
    loaded = emulated.load(start)
    assert np.array_equal(emulated.predict(loaded, images), whole)
    wanted = np.count_nonzero(whole.argmax(axis=1) != labels)
    assert emulated.count_errors(loaded, images, labels, lambda: polls.append(1)) == wanted
    assert len(polls) == 4


def test_deformation_grid_by_grid_gives_the_same_bits(emulated, monkeypatch):
    images, labels = uniform(1, 230, 5, 7), np.zeros(230, np.uint8)
    arguments = images, labels, DeformationParameters(), 7, 3, emulated, 150
    whole = np.asarray(deform(*arguments))
    monkeypatch.setattr(deformation, "GRIDS_AT_A_TIME", 1)
    out = emulated.put(np.empty_like(images))
    assert deform(*arguments, out=out) is out
    assert np.array_equal(np.asarray(out), whole)


def test_arrays_on_the_device(emulated):
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = emulated.put(values)
    assert array.reshape(2, -1).shape == (2, 12)
    assert np.array_equal(np.asarray(array[1:3]), values[1:3])
    assert np.array_equal(np.asarray(array[1:3][1:].reshape(6)), values[2])
    assert np.asarray(array, np.float64).dtype == np.float64
    assert np.array_equal(np.asarray(emulated.put(values.T)), values.T)
    with pytest.raises(InputError):
        array[::2]


@needs_emulation
def test_too_little_memory_is_refused_before_training(monkeypatch):
    """All that a run takes is taken before it."""
    small = emulated_backend(memory=1 << 20)
    with pytest.raises(InputError, match=r"network of layers 841, 1000, 10: .* needed, 1.0 MiB"):
        small.load(Network((841, 1000, 10)))
    assert small.driver.free_memory() == 1 << 20
    backend, config, sizes = emulated_backend(), make_config(epochs=2), []
    driver, allocate = backend.driver, backend.driver.allocate
    trainer = Trainer(config, DATA, backend)
    free = driver.free
    with pytest.raises(InputError):
        Trainer(config, DATA, emulated_backend(memory=(1 << 33) - free - 1))
    monkeypatch.setattr(driver, "allocate", lambda n: sizes.append(n) or allocate(n))
    trainer.run()
    assert driver.free == free
    # For a moment: angles, taps, bytes, and the order.
    assert set(sizes) <= {256 * 8, 21 * 4, 256 * 4, len(DATA.train_labels) * 4}
