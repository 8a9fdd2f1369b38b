"""Every threaded kernel once, for ThreadSanitizer: `make sanitize` runs this, pytest does not."""

import numpy as np

from mlpcore import Network, backends, deformation
from mlpcore.backends import simd
from mlpcore.backends.simd import SCHEDULES, SimdBackend

SIZES = [(300, 257, 129, 10), (64, 500, 3), (33, 300, 300, 10)]


def train(backend, rng):
    """Whole blocks and a rest, on layers that threads share and that one thread keeps."""
    n = 70
    for sizes in SIZES:
        images = rng.uniform(-1, 1, (n, sizes[0])).astype(np.float32)
        labels = rng.integers(0, sizes[-1], n).astype(np.uint8)
        order = rng.permutation(n).astype(np.int32)
        backend.train(Network(sizes, seed=1), images, labels, order, 1e-3)
        rectifiers = Network(sizes, 1, "relu", "cross-entropy", "he")
        data = np.maximum(images - 0.5, 0), labels, order
        backend.train(rectifiers, *data, 1e-3)
        weights = (np.arange(n) % 3).astype(np.float32)
        for network in (rectifiers, Network(sizes, seed=1)):
            backend.train(network, *data, 1e-3, sample_weight=weights)


def operate(backend, rng):
    """Layers one by one, deformation, and batches."""
    network = Network((300, 700, 10), seed=1)
    inputs = rng.uniform(-1, 1, (40, 300)).astype(np.float32)
    outputs = backend.forward(network, 0, inputs)
    backend.backward(network, 0, outputs, inputs)
    backend.update(network, 0, inputs, outputs, 1e-3)
    many = np.tile(inputs, (10, 1))
    backend.predict(network, many)
    backend.count_errors(network, many, np.zeros(400, np.uint8), lambda: None)
    images = rng.uniform(-1, 1, (230, 29, 29)).astype(np.float32)
    parameters = deformation.DeformationParameters()
    deformation.deform(images, np.zeros(230, np.uint8), parameters, 1, 1, backend)


def main():
    simd._at_most_cores = int  # three threads, whatever the number of cores
    names = [name for name in backends.INSTRUCTION_SETS if backends.available()[name] is None]
    for name, threads in ((names[0], 3), (names[-1], 2), (names[-1], 3)):
        for schedule in SCHEDULES:
            train(SimdBackend(name, threads, schedule, packed_from=0), np.random.default_rng(0))
        operate(SimdBackend(name, threads), np.random.default_rng(0))
    print("no data races in", ", ".join(dict.fromkeys((names[0], names[-1]))))


if __name__ == "__main__":
    main()
