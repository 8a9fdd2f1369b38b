"""What the tests of the CUDA backend share: networks, data for a training, and its result."""

from itertools import product

import numpy as np

from mlpcore.backends.cuda.plan import DeviceLimits
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from oracle import random_network, uniform

#: Every activation with every loss.
KINDS = list(product(ACTIVATIONS, LOSSES))

#: Networks and devices. Their plans exchange sums at every boundary, cut slices of unequal length,
#: have more rows than threads, and keep weights in registers, in shared memory and in both.
CASES = {
    "one hidden layer": ((20, 33, 4), DeviceLimits(6, 48 << 10, 64 * 64, threads=(32,))),
    "two hidden layers": ((23, 19, 17, 5), DeviceLimits(6, 48 << 10, 64 * 96, threads=(64,))),
    "four hidden layers": ((9, 14, 11, 8, 13, 3), DeviceLimits(4, 48 << 10, 2816, threads=(32,))),
    "rows beyond threads": ((7, 85, 40, 2), DeviceLimits(2, 48 << 10, 32 * 96, threads=(32,))),
    "one block": ((12, 10, 3), DeviceLimits(1, 48 << 10, 64 * 64, threads=(32,))),
}


def network_of(kind, sizes, seed):
    """A random network with an activation and a loss."""
    return random_network(sizes, seed, 1.0, *kind)


def problem(sizes, n, seed):
    """Random images and labels, and an order of n steps."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, min(sizes[-1], 256), n).astype(np.uint8)
    return uniform(seed, n, sizes[0]), labels, rng.integers(0, n, n).astype(np.int32)


def trained(backend, network, images, labels, order, rate=1e-3, progress=None, target=1.0):
    """A copy of the network after training, and the result."""
    network = network.copy()
    loaded = backend.load(network)
    images, labels = backend.put(images), backend.put(labels)
    result = backend.train(loaded, images, labels, order, rate, progress, target)
    backend.store(loaded, network)
    return network, result


def assert_same_weights(got, expected, tolerance=0.0):
    """All weights and biases differ by at most so much; by default the bits are the same."""
    for a, b in zip(got.weights + got.biases, expected.weights + expected.biases):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
