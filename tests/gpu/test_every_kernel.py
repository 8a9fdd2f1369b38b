"""Every CUDA kernel at small sizes: on a GPU, where compute-sanitizer watches, and emulated."""

import numpy as np
import pytest

from emulated import get_backend, needs_emulation
from mlpcore import DeformationParameters, Network
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.launch import KERNELS
from mlpcore.data.pixels import PixelSpec
from mlpcore.deformation import deform

#: Layer sizes around the edges of the kernels' blocks.
SHAPES = ((1, 1), (31, 257, 10), (32, 33, 255, 3), (15, 16, 17, 128))

NETWORKS = [Network(sizes, 1) for sizes in SHAPES]
NETWORKS += [Network(SHAPES[-1], 1, "relu", "cross-entropy")]


@pytest.fixture(params=["cuda", pytest.param("cuda-emulated", marks=needs_emulation)])
def driver(request):
    return get_backend(request.param).driver


def train(backend, network, rng):
    """Train, count errors, predict."""
    n, sizes = 70, network.layer_sizes
    loaded = backend.load(network)
    images = backend.put(rng.uniform(-1, 1, (n, sizes[0])).astype(np.float32))
    labels = backend.put(rng.integers(0, sizes[-1], n).astype(np.uint8))
    backend.train(loaded, images, labels, np.arange(9, dtype=np.int32), 1e-3)
    backend.count_errors(loaded, images, labels)
    backend.predict(loaded, images)


def test_every_kernel(driver, monkeypatch):
    launched, launch = set(), driver.launch

    def recorded(each, *arguments):
        launched.add(each.kernel)
        launch(each, *arguments)

    monkeypatch.setattr(driver, "launch", recorded)
    rng = np.random.default_rng(0)
    for network in NETWORKS:
        train(CudaBackend(driver, "streaming"), network, rng)
    for network in NETWORKS if driver.name == "cuda" else NETWORKS[1:2]:  # each takes a compiler
        train(CudaBackend(driver, "resident"), network, rng)
    cuda = CudaBackend(driver, "streaming")
    digits = cuda.put(rng.uniform(-1, 1, (130, 5, 7)).astype(np.float32))
    for parameters in (DeformationParameters(), DeformationParameters(sigma=12)):
        np.asarray(deform(digits, np.zeros(130, np.uint8), parameters, 1, 1, cuda, 95))
    pictures, rows = cuda.put(np.zeros((9, 16, 16), np.uint8)), np.arange(9, dtype=np.int32)
    cuda.to_inputs(cuda.take(pictures, cuda.put(rows)), PixelSpec((17, 17), (16, 16)))
    few = rng.uniform(-1, 1, (3, 17, 19)).astype(np.float32)
    maps = np.tile(np.eye(2, dtype=np.float32), (3, 1, 1))
    cuda.deform_by(few, maps, np.zeros((3, 2, 17, 19), np.float32))
    assert launched == set(KERNELS)
