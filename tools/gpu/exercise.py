"""Runs every CUDA kernel at small sizes: `python -m gpu.exercise`, for compute-sanitizer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import cast

import numpy as np

from mlpcore import backends
from mlpcore.backends.cuda.backend import SCHEDULES, CudaBackend
from mlpcore.backends.cuda.memory import DeviceArray
from mlpcore.backends.cuda.network import DeviceNetwork
from mlpcore.backends.cuda.resident import ResidentNetwork
from mlpcore.deformation.deform import deform
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.network import Network

#: Layer sizes around the edges of the kernels' blocks.
SHAPES = ((1, 1), (31, 257, 10), (32, 33, 255, 3), (15, 16, 17, 128))


def networks() -> list[Network]:
    """The networks to train: the paper's activation and loss, and once the others."""
    others = Network(SHAPES[-1], 1, "relu", "cross-entropy")
    return [*(Network(sizes, 1) for sizes in SHAPES), others]


def train(
    backend: CudaBackend, start: Network, rng: np.random.Generator
) -> tuple[DeviceNetwork, DeviceArray, DeviceArray]:
    """A network, trained, and its images and labels."""
    n, sizes = 70, start.layer_sizes
    network = backend.load(start)
    if isinstance(network, ResidentNetwork):  # to measure delays would take minutes here
        network.delays = [100 * i for i in range(network.plan.exchanges)]
    images = backend.put(rng.uniform(-1, 1, (n, sizes[0])).astype(np.float32))
    labels = backend.put(rng.integers(0, sizes[-1], n).astype(np.uint8))
    backend.train(network, images, labels, np.arange(n, dtype=np.int32), 1e-3)
    return network, images, labels


def exercise(cuda: CudaBackend) -> None:
    """Trains, predicts, shuffles and deforms on the device of a backend."""
    rng = np.random.default_rng(0)
    for schedule, start in product(SCHEDULES, networks()):
        backend = CudaBackend(cuda.driver, schedule=schedule)
        network, images, labels = train(backend, start, rng)
        backend.count_errors(network, images, labels)
        backend.predict(network, images)
    together = [CudaBackend(cuda.driver, "resident-2") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(train, together, [Network(SHAPES[1], 1)] * 2, rng.spawn(2)))
    for n in (1, 256, 257):
        np.asarray(cuda.permutation(n, 1, 1))
    digits = cuda.put(rng.uniform(-1, 1, (130, 5, 7)).astype(np.float32))
    np.asarray(deform(digits, np.zeros(130, np.uint8), DeformationParameters(), 1, 1, cuda, 95))
    few = rng.uniform(-1, 1, (3, 17, 19)).astype(np.float32)
    maps = np.tile(np.eye(2, dtype=np.float32), (3, 1, 1))
    cuda.deform_by(few, maps, np.zeros((3, 2, 17, 19), np.float32))


if __name__ == "__main__":
    exercise(cast(CudaBackend, backends.get("cuda")))
