"""What the equivalence tests share: inputs, tolerances, and the comparison of a training."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, LOSSES

#: Half a unit in the last place of float32.
EPSILON = 2.0**-24

#: The rational tanh's relative error (cpu_simd/layer_kernels.h).
TANH_ERROR = 4e-7

#: Around the vector lengths, the row blocks of 8 and the tiles of 16 rows.
WIDTHS = st.one_of(
    st.integers(1, 40),
    st.sampled_from([63, 64, 65, 127, 128, 129, 255, 256, 257, 271, 500]),
)
SEEDS = st.integers(0, 2**64 - 1)


def sum_tolerance(magnitude, n):
    """Greatest rounding error of a sum of n products whose magnitudes add up so far."""
    return (n + 2) * EPSILON * magnitude + 1e-30


def uniform(seed, *shape):
    """float32 in [-1, 1]."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def on_ground(images, ground, seed):
    """Each image cut down to a stretch of its inputs, with `ground` (n,) around it, as digits are.

    One in eight stays as it is, and one in eight keeps nothing but ground.
    """
    rng = np.random.default_rng(seed)
    images = images.copy()
    n, n_in = images.shape
    for image, value, kind in zip(images, np.broadcast_to(ground, n), rng.integers(0, 8, n)):
        begin, end = sorted(rng.integers(0, n_in + 1, 2))
        if kind == 0:
            continue
        image[:begin] = value
        image[end if kind > 1 else 0 :] = value
    return images


def unaligned(array):
    """A copy that starts 4 bytes past a cache line."""
    raw = np.empty(array.size * 4 + 128, np.uint8)
    start = -raw.ctypes.data % 64 + 4
    copy = raw[start : start + array.size * 4].view(np.float32).reshape(array.shape)
    copy[...] = array
    return copy


def random_network(sizes, seed, scale=1.0, activation="tanh", loss="squared"):
    """Weights of a size that leaves the activations' linear part, but does not saturate."""
    network = Network(sizes, None, activation, loss)
    for layer, (weights, biases) in enumerate(zip(network.weights, network.biases)):
        limit = scale / np.sqrt(weights.shape[1])
        weights[...] = uniform(seed + 2 * layer, *weights.shape) * limit
        biases[...] = uniform(seed + 2 * layer + 1, *biases.shape) * limit
    return network


def training_set(sizes, n, seed=0, zeros=0.0, low=-1.0):
    """Images from `low` to 1, of which the fraction `zeros` is zero; labels; an order of all."""
    rng = np.random.default_rng(seed)
    images = rng.uniform(low, 1, (n, sizes[0])).astype(np.float32)
    images[rng.random(images.shape) < zeros] = 0
    labels = rng.integers(0, min(sizes[-1], 256), n).astype(np.uint8)
    return images, labels, rng.permutation(n).astype(np.int32)


def assert_near(network, expected, size=1.0):
    """Weights after up to eighty steps of a few roundings each are the oracle's.

    They start at up to 1, or `size`: 32 half units in the last place. A lost update would show at
    1e-5 or more.
    """
    for got, oracle in zip(network.weights + network.biases, expected.weights + expected.biases):
        tolerance = 32 * EPSILON * max(size, np.abs(oracle).max())
        np.testing.assert_allclose(got, oracle, rtol=0, atol=tolerance)


def bits(network):
    """Of all weights and biases, to be compared."""
    return [a.tobytes() for a in network.weights + network.biases]


class Problem(NamedTuple):
    """A training: `rate` is that of the first layer, and `ratio` times that of the layer above;
    `ground` is the images' background, if they have one; "own" is another one for each image.
    Weights decay on CPUs only."""

    sizes: tuple[int, ...]
    n: int
    seed: int
    rate: float
    ground: float | str | None = None
    target: float = 1.0
    ratio: float = 1.0
    activation: str = "tanh"
    loss: str = "squared"
    weight_decay: float = 0.0


@st.composite
def training_problems(draw, samples=12):
    """Any networks, on images with and without a ground.

    A step changes a neuron's sum by about eta |x|^2 of its error: with eta up to 1 / width
    that is stable, so rounding errors do not grow and cannot hide a wrong result.
    """
    sizes = tuple(draw(st.lists(WIDTHS, min_size=2, max_size=5)))
    rate = draw(st.sampled_from([0.01, 0.1, 0.5])) / (max(sizes) + 1)
    ground = draw(st.sampled_from([None, -1.0, 0.0, "own"]))
    target = draw(st.sampled_from([1.0, 0.5, 1.3]))
    ratio = draw(st.sampled_from([1.0, 2.0]))
    n, seed = draw(st.integers(1, samples)), draw(SEEDS)
    kind = draw(st.sampled_from(ACTIVATIONS)), draw(st.sampled_from(LOSSES))
    decay = draw(st.sampled_from([0.0, 0.0, 0.02, 40.0])) / rate  # 40 leaves nothing of a weight
    return Problem(sizes, n, seed, rate, ground, target, ratio, *kind, decay)


def check_training(reference, problem, *backends):
    """Weights, loss and counts after a training are the oracle's, with the same bits by all."""
    sizes, n, seed, rate, ground, target, ratio, activation, loss, decay = problem
    decay *= all(backend.can_weight for backend in backends)
    rates = rate if ratio == 1 else [rate / ratio**layer for layer in range(len(sizes) - 1)]
    start = random_network(sizes, seed % 2**32, activation=activation, loss=loss)
    images = uniform(seed, n, sizes[0])
    if ground is not None:
        images = on_ground(images, uniform(seed + 1, n) if ground == "own" else ground, seed)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, min(sizes[-1], 256), n).astype(np.uint8)
    order = rng.integers(0, n, 2 * n).astype(np.int32)
    expected, results = start.copy(), []
    more = {"target": target, "weight_decay": decay}
    wanted = reference.train(expected, images, labels, order, rates, **more)
    for backend in backends:
        network = start.copy()
        loaded = backend.load(network)
        samples = backend.put(images), backend.put(labels), order
        result = backend.train(loaded, *samples, rates, **more)
        backend.store(loaded, network)
        assert result.samples == wanted.samples == 2 * n
        assert_near(network, expected)
        assert result.loss == pytest.approx(wanted.loss, rel=1e-4, abs=1e-4)
        results.append((bits(network), result))
    assert all(each == results[0] for each in results)
