"""Soft targets: the oracle goes down the gradient, and every schedule takes the oracle's steps."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlpcore import backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from oracle import EPSILON, SEEDS, bits, random_network, uniform

CPU_BACKENDS = [
    name for name, reason in backends.available().items() if reason is None and name != "cuda"
]
KINDS = [("tanh", "squared"), ("relu", "cross-entropy")]

every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def problem(sizes, n, seed):
    """Inputs of which half are 0, labels, an order in which some images come twice; soft targets.

    These are of any kind: sure of a class, which may not be the label, unsure, and in between.
    """
    rng = np.random.default_rng(seed)
    images, n_classes = uniform(seed, n, sizes[0]), sizes[-1]
    images[rng.random(images.shape) < 0.5] = 0
    labels = rng.integers(0, min(n_classes, 256), n).astype(np.uint8)
    soft = rng.dirichlet(np.full(n_classes, 0.3), n)
    soft[::3] = np.eye(n_classes)[rng.integers(0, n_classes, len(soft[::3]))]
    soft[1::5] = 1 / n_classes
    order = rng.integers(0, n, 2 * n).astype(np.int32)
    return (images, labels, order), soft.astype(np.float32)


def network_of(kind, sizes, seed):
    activation, loss = kind
    return random_network(sizes, seed % 2**32, activation=activation, loss=loss)


def assert_near(network, expected):
    """As in `check_training`: some roundings of weights of about 1 in each of some steps."""
    for got, oracle in zip(network.weights + network.biases, expected.weights + expected.biases):
        tolerance = 32 * EPSILON * max(1.0, np.abs(oracle).max())
        np.testing.assert_allclose(got, oracle, rtol=0, atol=tolerance)


def loss_of(kind, parameters, x, q, target):
    """The loss as `Backend.train` states it, in float64 from weights and biases."""
    activation, loss = kind
    *hidden, (w, b) = parameters
    for v, c in hidden:
        x = np.maximum(v @ x + c, 0) if activation == "relu" else A * np.tanh(B * (v @ x + c))
    if loss == "squared":
        return 0.5 * np.sum((A * np.tanh(B * (w @ x + b)) - target * (2 * q - 1)) ** 2)
    powers = np.exp(w @ x + b)
    return -np.sum(q * np.log(powers / powers.sum()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracles_step_is_down_the_gradient(reference, kind):
    """By central differences of every weight and bias."""
    sizes, target = (5, 7, 4), 0.8
    (images, labels, _), soft = problem(sizes, 6, 1)
    for i in range(6):
        network = network_of(kind, sizes, 3)
        before = [
            (w.astype(float), b.astype(float)) for w, b in zip(network.weights, network.biases)
        ]
        x, q = images[i].astype(float), soft[i].astype(float)
        order = np.array([i], np.int32)
        result = reference.train(
            network, images, labels, order, 1.0, target=target, soft_targets=soft
        )
        # A softmax of float32's soft targets, which sum to 1 within 1e-7.
        assert result.loss == pytest.approx(loss_of(kind, before, x, q, target), abs=1e-6)
        after = [*zip(network.weights, network.biases)]
        for old, new in zip(sum(before, ()), sum(after, ())):
            for place in np.ndindex(old.shape):
                value, losses = old[place], []
                for step in (1e-4, -1e-4):
                    old[place] = value + step
                    losses.append(loss_of(kind, before, x, q, target))
                old[place] = value
                # The differences err by about 1e-8, and the new weight is rounded by 1e-7.
                assert value - new[place] == pytest.approx((losses[0] - losses[1]) / 2e-4, abs=5e-7)


@every_schedule
@given(
    sizes=st.lists(st.sampled_from([1, 16, 33, 130, 257]), min_size=2, max_size=4),
    n=st.integers(1, 20),
    kind=st.sampled_from(KINDS),
    block=st.sampled_from([1, 3, 32]),
    packed_from=st.sampled_from([0, 1 << 20]),
    weighted=st.booleans(),
    seed=SEEDS,
)
@example([130, 257, 130, 10], 20, KINDS[0], 32, 0, False, 1)
@example([130, 257, 130, 10], 20, KINDS[1], 32, 1 << 20, True, 2)
@settings(max_examples=8)
def test_steps_are_the_oracles(
    simd_name, reference, schedule, sizes, n, kind, block, packed_from, weighted, seed
):
    """With the same bits for any number of threads. Errors count against labels."""
    data, soft = problem(sizes, n, seed)
    weights = np.random.default_rng(seed).choice(np.array([0, 1, 2], np.float32), n)
    arguments = *data, 0.05 / (max(sizes) + 1), None, 0.9, 0.0, weights if weighted else None, soft
    several, one, expected = (network_of(kind, sizes, seed) for _ in range(3))
    wanted = reference.train(expected, *arguments)
    result = SimdBackend(simd_name, 3, schedule, block, packed_from).train(several, *arguments)
    assert_near(several, expected)
    assert (result.samples, result.errors) == (2 * n, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-4, abs=1e-4)
    SimdBackend(simd_name, 1, schedule, block, packed_from).train(one, *arguments)
    assert bits(one) == bits(several)


@pytest.mark.parametrize("name", CPU_BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_targets_that_are_sure_of_the_label_are_none(name, kind):
    sizes, n = (150, 300, 140, 10), 40
    backend, (data, _) = backends.get(name, 2), problem(sizes, n, 3)
    network, expected = (network_of(kind, sizes, 1) for _ in range(2))
    sure = np.eye(10, dtype=np.float32)[data[1]]
    result = backend.train(network, *data, 1e-3, target=1.2, soft_targets=sure)
    wanted = backend.train(expected, *data, 1e-3, target=1.2)
    assert_near(network, expected)
    assert (result.samples, result.errors) == (wanted.samples, wanted.errors)
    assert result.loss == pytest.approx(wanted.loss, rel=1e-5)
    if kind[1] == "cross-entropy":
        assert bits(network) == bits(expected)


@every_schedule
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_skipped_depends_on_the_loss_with_soft_targets(simd_name, schedule, kind):
    sizes, n = (40, 30, 5), 30
    (images, labels, order), soft = problem(sizes, n, 7)
    backend, network = SimdBackend(simd_name, 2, schedule), network_of(kind, sizes, 1)
    losses = [
        backend.train(
            network.copy(), images, labels, order[i : i + 1], 1e-6, soft_targets=soft
        ).loss
        for i in range(2 * n)
    ]
    for threshold, skipped in ((1.1 * max(losses), True), (0.9 * min(losses), False)):
        trained, expected = network.copy(), network.copy()
        backend.train(trained, images, labels, order, 1e-6, skip_below=threshold, soft_targets=soft)
        if not skipped:
            backend.train(expected, images, labels, order, 1e-6, soft_targets=soft)
        assert bits(trained) == bits(expected)
        assert (bits(trained) == bits(network)) == skipped


@pytest.mark.parametrize("name", CPU_BACKENDS)
@pytest.mark.parametrize(
    "targets, message",
    [
        ([[1, 0], [0.5, 0.5], [-0.1, 1.1], [1, 0]], "soft_targets of sample 2, from -0.1, sum 1: "),
        ([[1, 0], [0.5, 0.4], [1, 0], [1, 0]], "soft_targets of sample 1, from 0.4, sum 0.9: "),
        ([[1, 0], [1, 0], [1, 0], [np.nan, 1]], "soft_targets of sample 3, from nan, sum nan: "),
        ([[np.inf, 0]] * 4, "soft_targets of sample 0, from 0, sum inf: expected probabilities"),
        ([[1, 0]], r"soft_targets: float32 of shape \(1, 2\), expected .* shape \(4, 2\)"),
        (np.ones((4, 2)), "soft_targets: float64 of shape"),
    ],
)
def test_targets_that_are_no_probabilities_are_refused(name, targets, message):
    network, ((images, labels, _), _) = Network((3, 2), seed=1), problem((3, 2), 4, 8)
    before = bits(network)
    if isinstance(targets, list):
        targets = np.array(targets, np.float32)
    order = np.zeros(4, np.int32)  # where the images of bad targets do not come
    with pytest.raises(InputError, match=f"^{message}"):
        backends.get(name).train(network, images, labels, order, 0.1, soft_targets=targets)
    assert bits(network) == before
