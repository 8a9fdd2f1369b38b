"""Shared parts of the equivalence tests: inputs, tolerances, and the comparison of a training."""

import functools
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from mlpcore.backends.base import TrainingResult
from mlpcore.backends.cuda.plan import DeviceLimits
from mlpcore.backends.reference import ReferenceBackend
from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, ALL_LOSSES, BINARY, HUBER, LOSSES, OF_TARGETS

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

#: Half a unit in the last place of float32.
EPSILON = 2.0**-24

#: Around the vector lengths, the row blocks of 8 and the tiles of 16 rows.
WIDTHS = st.one_of(
    st.integers(1, 40),
    st.sampled_from([63, 64, 65, 127, 128, 129, 255, 256, 257, 271, 500]),
)
SEEDS = st.integers(0, 2**64 - 1)


def uniform(seed, *shape):
    """float32 in [-1, 1]."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def misaligned(array):
    """A copy that starts one byte after a multiple of four."""
    result = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def on_ground(images, ground, seed):
    """Each image cut down to a stretch of its inputs, with `ground` (n,) around it, as digits are.

    One in eight stays as it is, and one in eight keeps nothing but ground.
    """
    rng, (n, n_in) = np.random.default_rng(seed), images.shape
    begin, end = np.sort(rng.integers(0, n_in + 1, (2, n, 1)), axis=0)
    kind, place = rng.integers(0, 8, (n, 1)), np.arange(n_in)
    kept = (kind == 0) | (kind != 1) & (begin <= place) & (place < end)
    return np.where(kept, images, np.reshape(ground, (-1, 1))).astype(np.float32)


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


def trained(engine, network, images, labels, order, rate=1e-3, *progress, **more):
    """A copy of the network after training by a backend or `StepperEngine`, and the result."""
    network = network.copy()
    loaded, data = engine.load(network), (engine.put(images), engine.put(labels), order)
    result = engine.train(loaded, *data, rate, *progress, **more)
    engine.store(loaded, network)
    return network, result


def assert_near(network, expected):
    """Weights after up to eighty steps of a few roundings each are the oracle's.

    They start at up to 1: 32 half units in the last place. A lost update would show at 1e-5.
    """
    for got, oracle in zip(network.weights + network.biases, expected.weights + expected.biases):
        tolerance = 32 * EPSILON * max(1, np.abs(oracle).max())
        np.testing.assert_allclose(got, oracle, rtol=0, atol=tolerance)


def bits(network):
    """Of all weights and biases, to be compared."""
    return [a.tobytes() for a in network.weights + network.biases]


#: Weights of samples: whole numbers, some of them 0; tiny and huge ones together; huge; tiny; 0.
WEIGHTS = {"whole": [0, 1, 2, 3], "far apart": [0, 1e-30, 1e-8, 1, 1e8], "huge": [1e11, 3e11]}
WEIGHTS |= {"tiny": [1e-12, 3e-12], "none": [0]}


class Problem(NamedTuple):
    """A training of 2 n steps, and what may make a difference to an engine.

    `rate` is that of the first layer, and `ratio` times that of the layer above. `ground` is the
    images' background, if they have one; "own" is another one for each image. The share `zeros` of
    the inputs is 0. Of the last hidden layer's rectifiers only `alive` are ever above 0. Samples
    are weighted by a row of `WEIGHTS`, weights decay, and targets are numbers, on CPUs only.
    """

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
    zeros: float = 0.0
    alive: int | None = None
    weights: str | None = None

    def network(self):
        """The network before the training."""
        network = random_network(self.sizes, self.seed % 2**32, 1.0, self.activation, self.loss)
        if self.alive is not None and self.activation == "relu" and network.n_layers > 1:
            network.biases[-2][self.alive :] = -1000
        return network

    def samples(self):
        """Images, labels or targets, an order in which some images come twice, and weights."""
        n, rng = self.n, np.random.default_rng(self.seed)
        images = uniform(self.seed, n, self.sizes[0])
        if self.ground is not None:
            own = self.ground == "own"
            images = on_ground(images, uniform(self.seed + 1, n) if own else self.ground, self.seed)
        labels = rng.integers(0, min(self.sizes[-1], 256), n).astype(np.uint8)
        if self.loss == HUBER:
            labels = 4 * uniform(self.seed + 2, n, self.sizes[-1])  # most errors exceed 1.345
        if self.loss == BINARY:
            labels = rng.integers(0, 2, (n, self.sizes[-1])).astype(np.float32)
        order = rng.integers(0, n, 2 * n).astype(np.int32)
        images[rng.random(images.shape) < self.zeros] = 0
        mix = None if self.weights is None else np.array(WEIGHTS[self.weights], np.float32)
        return images, labels, order, None if mix is None else rng.choice(mix, n)


@st.composite
def training_problems(draw, samples=12, widths=WIDTHS):
    """Any networks, on images with and without a ground.

    A step changes a neuron's sum by about eta |x|^2 of its error: with eta up to 1 / width
    that is stable, so rounding errors do not grow and cannot hide a wrong result.
    """
    sizes = tuple(draw(st.lists(widths, min_size=2, max_size=5)))
    rate = draw(st.sampled_from([0.01, 0.1, 0.5])) / (max(sizes) + 1)
    return Problem(
        sizes,
        draw(st.integers(1, samples)),
        draw(SEEDS),
        rate,
        ground=draw(st.sampled_from([None, -1.0, 0.0, "own"])),
        target=draw(st.sampled_from([1.0, 0.5, 1.3])),
        ratio=draw(st.sampled_from([1.0, 2.0])),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        loss=draw(st.sampled_from(ALL_LOSSES)),
        # 40 leaves nothing of a weight.
        weight_decay=draw(st.sampled_from([0.0, 0.0, 0.02, 40.0])) / rate,
        zeros=draw(st.sampled_from([0.0, 0.0, 0.3, 0.7, 0.95, 1.0])),
        alive=draw(st.sampled_from([None, None, 0, 1, 2])),
        weights=draw(st.sampled_from([None, *WEIGHTS])),
    )


class StepperEngine(ReferenceBackend):
    """A backend's stepper, which learns in so many calls, some empty, from arrays of a `kind`."""

    def __init__(self, backend, calls=1, kind=np.asarray):
        self._backend, self._calls, self._kind = backend, calls, kind

    def load(self, network):
        return self._backend.stepper(network)

    def store(self, stepper, network):
        network.assign(stepper.network)

    def train(self, stepper, images, labels, order, rates, **more):
        weights = more.pop("sample_weight", None)
        stepper.train(self._kind(images[:0]), labels[:0], rates, weight_decay=9.0)  # for this call
        ends = np.random.default_rng(len(order)).integers(0, len(order), self._calls - 1)
        results = []
        for part in np.split(order, np.sort(ends)):
            factors = None if weights is None else weights[part]
            samples = self._kind(images[part]), labels[part]
            results.append(stepper.train(*samples, rates, sample_weight=factors, **more))
        return TrainingResult(*map(sum, zip(*((r.samples, r.errors, r.loss) for r in results))))

    def predict(self, stepper, images):
        return stepper.predict(self._kind(images))


@functools.lru_cache(64)  # because each engine gets the same problems
def solved(reference, problem):
    """A problem's samples, rates and other arguments, and its network after the oracle's training,
    with the training's result and predictions."""
    images, labels, order, weights = problem.samples()
    more = {"target": problem.target, "weight_decay": problem.weight_decay}
    rate = problem.rate
    if weights is not None:
        rate /= float(weights.max()) or 1.0  # the step of the greatest is a stable one
        more["sample_weight"] = weights
    rates = [rate / problem.ratio**layer for layer in range(len(problem.sizes) - 1)]
    expected = problem.network()
    wanted = reference.train(expected, images, labels, order, rates, **more)
    outputs = reference.predict(expected, images)
    return (images, labels, order), rates, more, expected, wanted, outputs


def check_training(reference, problem, *engines):
    """Weights, loss, counts and predictions after a training are the oracle's, with the same bits
    by all engines: these are backends, and steppers as `StepperEngine`."""
    if not all(engine.can_weight for engine in engines):
        loss = "squared" if problem.loss in OF_TARGETS else problem.loss
        less = {"weight_decay": 0.0, "weights": None, "n": min(problem.n, 64)}
        problem = problem._replace(loss=loss, **less)
    (images, labels, order), rates, more, expected, wanted, outputs = solved(reference, problem)
    greatest = problem.rate / rates[0]
    start, results, n = problem.network(), [], 2 * problem.n
    for engine in engines:
        network = start.copy()
        loaded, shown = engine.load(network), engine.put(images)
        how = rates if problem.ratio != 1 else rates[0]
        result = engine.train(loaded, shown, engine.put(labels), order, how, **more)
        # Weights are off by up to 2e-6, which sums over up to 1,000 inputs of up to 1 add up.
        np.testing.assert_allclose(engine.predict(loaded, shown), outputs, rtol=0, atol=1e-4)
        engine.store(loaded, network)
        assert_near(network, expected)
        if problem.alive == 0 and problem.activation == "relu" and not more["weight_decay"]:
            assert all(map(np.array_equal, network.weights[:-1], start.weights[:-1]))
        assert result.samples == n
        assert abs(result.errors - wanted.errors) <= 1  # two outputs may be as good as equal
        assert result.loss == pytest.approx(wanted.loss, rel=1e-4, abs=1e-4 * greatest)
        results.append((bits(network), result))
    for others, result in results[1:]:
        assert others == results[0][0] and result.errors == results[0][1].errors
        assert result.loss == pytest.approx(results[0][1].loss, rel=1e-12)
