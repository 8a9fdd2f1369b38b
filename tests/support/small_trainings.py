"""What the tests of the CUDA backend share: data for a training, and its result."""

from itertools import product

import numpy as np

from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from oracle import random_network, uniform

#: Every activation with every loss.
KINDS = list(product(ACTIVATIONS, LOSSES))


def network_of(kind, sizes, seed):
    """A random network with an activation and a loss."""
    activation, loss = kind
    network = Network(sizes, activation=activation, loss=loss)
    network.assign(random_network(sizes, seed))
    return network


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
