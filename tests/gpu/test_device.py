"""What only a GPU can show. `make gpu-check` runs this and keeps the figures it records."""

import os
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpu.measure import COMPARED, NETWORKS, random_samples
from mlpcore import backends
from mlpcore.backends.cuda.joint import JointLaunches
from mlpcore.data import dataset
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.training.config import TrainingConfig
from mlpcore.training.trainer import Trainer

pytestmark = pytest.mark.gpu


def load(preset, schedule="resident", kind=("tanh", "squared")):
    """A backend, a network, and that network on the device."""
    backend, network = backends.get("cuda", schedule=schedule), Network(NETWORKS[preset], 1, *kind)
    loaded = backend.load(network)
    if backend.notice:
        pytest.skip(backend.notice)
    return backend, network, loaded


def train_in_float64(network, images, labels, rates, target):
    """The weights, then the biases, after training in float64 by an independent PyTorch program.

    The float64 oracle would take too long for the largest networks; this runs on the GPU.
    """
    import torch  # fails without it: to skip would hide that nothing was compared

    def float64(array):
        return torch.tensor(np.asarray(array), dtype=torch.float64, device="cuda")

    def activated(layer, a):
        if layer == len(weights) - 1:
            return torch.softmax(a, 0) if entropy else A * torch.tanh(B * a)
        return torch.relu(a) if rectified else A * torch.tanh(B * a)

    def slope(rectified, y):
        return (y > 0).double() if rectified else B / A * (A - y) * (A + y)

    rectified, entropy = network.activation == "relu", network.loss == "cross-entropy"
    wanted = (1, 0) if entropy else (target, -target)
    weights, biases = [float64(w) for w in network.weights], [float64(b) for b in network.biases]
    is_label = labels[:, None] == np.arange(len(network.biases[-1]))
    for image, t in zip(float64(images), float64(np.where(is_label, *wanted))):
        states = [image]
        for layer, (w, b) in enumerate(zip(weights, biases)):
            states.append(activated(layer, w @ states[-1] + b))
        delta = states[-1] - t
        if not entropy:
            delta *= slope(False, states[-1])
        for layer in reversed(range(len(weights))):
            below = (weights[layer].T @ delta) * slope(rectified, states[layer])
            weights[layer].addr_(delta, states[layer], alpha=-rates[layer])
            biases[layer].add_(delta, alpha=-rates[layer])
            delta = below
    return [array.cpu().numpy() for array in weights + biases]


@pytest.mark.parametrize("schedule", ["resident", "streaming"])
@pytest.mark.parametrize("preset, kind", COMPARED, ids=lambda each: "-".join(np.atleast_1d(each)))
def test_accuracy(schedule, preset, kind, record_property):
    """Weights after 2,000 samples agree with an independent program in float64.

    A step rounds a weight by at most half a unit in its last place, 2^-24 of its size, up or
    down. After n steps the root mean square of the sums is sqrt(n / 3) of that. The largest of 12
    million such sums is 5.3 times as large; 8 leaves room for the rounding of activations and
    deltas, which the learning rate scales down.
    """
    backend, network, loaded = load(preset, schedule, kind)
    n, target = 2000, 1.3  # not the default target: a kernel that loses it would pass
    rates = [1e-3 / 2**layer for layer in range(network.n_layers)]  # to tell the layers apart
    images, labels = random_samples(n)
    expected = train_in_float64(network, images, labels, rates, target)
    samples = backend.put(images), backend.put(labels), np.arange(n, dtype=np.int32)
    backend.train(loaded, *samples, rates, None, target)
    backend.store(loaded, network)
    error = max(np.abs(a - b).max() for a, b in zip(expected, network.weights + network.biases))
    tolerance = 8 * np.sqrt(n / 3) * 2.0**-24 * max(np.abs(a).max() for a in expected)
    record_property("largest_error", error)
    record_property("tolerance", tolerance)
    assert error <= tolerance


@pytest.mark.parametrize("preset", NETWORKS)
def test_repeats_have_the_same_bits(preset):
    """Twenty times the same training: blocks that exchange sums in another order would differ."""
    results = set()
    images, labels = random_samples(2000)
    for _ in range(20):
        backend, network, loaded = load(preset)
        samples = backend.put(images), backend.put(labels), np.arange(2000, dtype=np.int32)
        backend.train(loaded, *samples, 1e-3)
        backend.store(loaded, network)
        results.add(b"".join(array.tobytes() for array in network.weights + network.biases))
    assert len(results) == 1


def test_repeats_beside_other_networks(record_property, monkeypatch):
    """Eight networks in the same launches have the bits of each alone, and their throughput."""
    images, labels = random_samples(2000)
    order = np.arange(16_000, dtype=np.int32) % 2000
    counts, lead = [], JointLaunches._lead

    def counted(self, together):
        counts.append(len(together))
        lead(self, together)

    monkeypatch.setattr(JointLaunches, "_lead", counted)

    def train(seed, barrier):
        backend = backends.get("cuda", schedule="resident-8")
        network = Network(NETWORKS["net1"], seed)
        loaded = backend.load(network)
        samples = backend.put(images), backend.put(labels), order
        backend.train(loaded, *samples, 1e-3)
        barrier.wait(60)
        start = time.perf_counter()
        backend.train(loaded, *samples, 1e-3)
        seconds = time.perf_counter() - start
        backend.store(loaded, network)
        return seconds, b"".join(each.tobytes() for each in network.weights + network.biases)

    alone = [train(seed, threading.Barrier(1))[1] for seed in range(8)]
    counts.clear()
    barrier = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        times, together = zip(*pool.map(lambda seed: train(seed, barrier), range(8)))
    record_property("samples_per_second", 8 * len(order) / max(times))
    record_property("networks_of_launches", counts)
    assert list(together) == alone
    assert max(counts) == 8


def test_training_ends_where_the_cpu_does(record_property):
    """Five epochs of net1 end at the test error that the CPU reaches with the same seeds.

    Both see the same deformed images in the same order, but they round differently, which after
    an epoch is as good as another seed. Errors are about 3 % then and differ by some tenths of a
    percentage point between seeds, so two means of two seeds must agree within 0.75.
    """
    # Without a folder, the embedded digits: a download needs a network and more packages.
    data = dataset.load(name=None if os.environ.get("MLPCORE_DATA") else "digits")
    record_property("samples", len(data.train_labels))
    means = []
    for backend in (backends.get("cuda"), backends.get("cpu")):
        errors = []
        for seed in (1, 2):
            config = TrainingConfig(epochs=5, learning_rate=1e-3, learning_rate_end=1e-3, seed=seed)
            trainer = Trainer(config, data, backend)
            trainer.run()
            last = trainer.state.history[-1]
            errors.append(100 * last.test_errors / last.n_test)
            for name in ("deformation_seconds", "training_seconds", "evaluation_seconds"):
                record_property(f"{backend.name}_seed{seed}_{name}", getattr(last, name))
            record_property(f"{backend.name}_seed{seed}_test_error_percent", errors[-1])
        means.append(statistics.mean(errors))
    assert means[0] == pytest.approx(means[1], abs=0.75)
