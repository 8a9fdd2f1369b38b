"""A stepper trains as `Backend.train` does, one sample or a few a call."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

from mlpcore import Network, backends
from mlpcore.errors import InputError
from oracle import (
    Problem,
    assert_near,
    bits,
    on_ground,
    random_network,
    training_problems,
    training_set,
    uniform,
)

NETWORK = (20, 30, 3)


def cut(samples, n_parts, seed):
    """Arrays of the same length in as many parts, some of them empty."""
    ends = np.sort(np.random.default_rng(seed).integers(0, len(samples[0]), n_parts - 1))
    return zip(*(np.split(each, ends) for each in samples))


@given(training_problems())
@example(Problem((30, 257, 129, 10), 12, 1, 0.01 / 258, 0.0, 1.0, 2.0, "relu", "cross-entropy"))
@example(Problem((841, 300, 10), 12, 2, 0.01 / 842, 0.0, 1.3, 1.0, "tanh", "squared"))
@example(Problem((20, 16, 4), 9000, 4, 0.01, weight_decay=0.05))
@example(Problem((30, 140, 4), 12, 4, 0.01, 0.0, activation="relu", weight_decay=1000.0))
@settings(max_examples=20)
def test_steps_are_the_oracles(cpu_name, reference, problem):
    """Weights, losses and predictions; the same bits however the samples are cut into calls."""
    sizes, n, seed, rate, ground, target, ratio, activation, loss, decay = problem
    rates = rate if ratio == 1 else [rate / ratio**layer for layer in range(len(sizes) - 1)]
    start = random_network(sizes, seed % 2**32, activation=activation, loss=loss)
    images, labels, _ = training_set(sizes, n, seed)
    images = on_ground(images, 0.0 if ground is None else uniform(seed, n), seed)
    weights = np.random.default_rng(seed).choice(np.array([0, 0.5, 1], np.float32), n)
    expected, results = start.copy(), []
    wanted = reference.train(
        expected, images, labels, np.arange(n, dtype=np.int32), rates, None, target, weights, decay
    )
    for parts in (1, 2, n + 1):
        stepper = backends.get(cpu_name).stepper(start.copy())
        learnt = [
            stepper.train(x, y, rates, target, w, decay)
            for x, y, w in cut((images, labels, weights), parts, seed)
        ]
        # Weights are off by up to 2e-6, which sums over up to 841 inputs of up to 1 add up.
        assert sum(r.loss for r in learnt) == pytest.approx(wanted.loss, rel=1e-4, abs=1e-4)
        assert abs(sum(r.errors for r in learnt) - wanted.errors) <= 1
        assert sum(r.samples for r in learnt) == n
        assert_near(stepper.network, expected)
        outputs = reference.predict(expected, images)
        np.testing.assert_allclose(stepper.predict(images), outputs, rtol=0, atol=1e-4)
        results.append(bits(stepper.network))
    if cpu_name != "reference":  # which rounds to float32 at the end of a call
        assert results[0] == results[1] == results[2]


@given(st.integers(1, 300), st.integers(0, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_rows_of_a_sparse_matrix_are_rows_of_an_array(simd_name, n_in, n, seed):
    """To the bit, with rows without values, and with arrays in between."""
    rng, kind = np.random.default_rng(seed), ("relu", "cross-entropy")
    rows = np.where(rng.random((n, n_in)) < 0.1, rng.uniform(-1, 1, (n, n_in)), 0)
    rows = rows.astype(np.float32)
    labels = rng.integers(0, 3, n).astype(np.uint8)
    network = random_network((n_in, 140, 3), seed, 1, *kind)
    dense, sparse = (backends.get(simd_name).stepper(network.copy()) for _ in range(2))
    for images in (rows, csr_matrix(rows), csr_array(rows)):
        assert dense.train(rows, labels, 0.01) == sparse.train(images, labels, 0.01)
    assert bits(dense.network) == bits(sparse.network)
    assert np.array_equal(dense.predict(rows), sparse.predict(csr_matrix(rows)))


def test_neurons_of_tanh_learn_from_a_state_of_zero(simd_name, reference):
    """With weights of 0 below, and others above."""
    network = Network((4, 20, 3), seed=1)
    network.weights[0][...] = network.biases[0][...] = 0
    expected, images, labels = network.copy(), uniform(1, 2, 4), np.array([1, 2], np.uint8)
    reference.train(expected, images, labels, np.arange(2, dtype=np.int32), 0.1)
    stepper = backends.get(simd_name).stepper(network)
    stepper.train(images, labels, 0.1)
    assert_near(stepper.network, expected)
    assert np.abs(stepper.network.weights[0]).min() > 0


def test_a_sample_whose_loss_is_not_finite_is_not_learnt(simd_name):
    stepper = backends.get(simd_name).stepper(Network(NETWORK, 1, "tanh", "cross-entropy"))
    before = bits(stepper.network)
    images = np.full((1, 20), np.nan, np.float32)
    assert np.isnan(stepper.train(images, np.zeros(1, np.uint8), 0.1).loss)
    assert bits(stepper.network) == before


ONE, LABEL = np.zeros((1, 20), np.float32), np.zeros(1, np.uint8)
REFUSED = [
    ((ONE[:, :19], LABEL, 0.1), "images: float32 of shape (1, 19)"),
    ((ONE.astype(float), LABEL, 0.1), "images: float64"),
    ((ONE, np.zeros(2, np.uint8), 0.1), "labels: uint8 of shape (2,)"),
    ((ONE, LABEL + 3, 0.1), "labels: from 3 to 3, expected 0 to 2"),
    ((ONE, LABEL, -1.0), "learning_rate"),
    ((ONE, LABEL, [0.1]), "learning rates of 1 layers, expected one or 2"),
    ((ONE, LABEL, 0.1, 9.0), "target"),
    ((ONE, LABEL, 0.1, 1.0, np.full(1, -1, np.float32)), "sample_weight -1"),
    ((ONE, LABEL, 0.1, 1.0, None, -1.0), "weight_decay -1: expected 0 or more"),
    ((ONE, LABEL, 0.1, 1.0, None, np.inf), "weight_decay"),
]


def test_rates_that_change_in_a_list_are_those_of_the_call(simd_name):
    images, labels, rates = uniform(3, 2, 20), np.array([0, 2], np.uint8), [0.1, 0.1]
    steppers = [backends.get(simd_name).stepper(Network(NETWORK, seed=1)) for _ in range(2)]
    for rate in (0.1, 0.2):
        rates[:] = rate, rate
        steppers[0].train(images, labels, rates)
        steppers[1].train(images, labels, np.array([rate, rate]))
    assert bits(steppers[0].network) == bits(steppers[1].network)


def broken(change):
    """A sparse matrix of one row, whose arrays are not as they should be."""
    matrix = csr_matrix(np.ones((1, 20), np.float32))
    assert matrix.has_canonical_format  # which SciPy does not look at again
    change(matrix)
    return matrix


@pytest.mark.parametrize(
    "images",
    [
        broken(lambda m: m.indptr.__setitem__(1, 10**6)),
        broken(lambda m: m.indptr.__setitem__(0, 1)),
        broken(lambda m: m.indices.__setitem__(-1, 20)),
        broken(lambda m: m.indices.__setitem__(0, -1)),
        broken(lambda m: m.indices.fill(3)),
        broken(lambda m: setattr(m, "indices", m.indices[:9])),
        broken(lambda m: setattr(m, "indptr", m.indptr[:1])),
        csr_matrix((np.ones(2, np.float32), [3, 1], [0, 2]), shape=(1, 20)),
        csr_matrix(ONE).tocsc(),
        csr_matrix(ONE.astype(float)),
    ],
)
def test_a_sparse_matrix_that_is_none_is_refused(simd_name, images):
    stepper = backends.get(simd_name).stepper(Network(NETWORK, seed=1))
    with pytest.raises(ValueError):
        stepper.train(images, LABEL, 0.1)
    with pytest.raises(ValueError):
        stepper.predict(images)


@pytest.mark.parametrize("arguments, line", REFUSED)
def test_what_is_refused_changes_nothing(cpu_name, arguments, line):
    stepper = backends.get(cpu_name).stepper(Network(NETWORK, seed=1))
    before = bits(stepper.network)
    with pytest.raises(InputError) as error:
        stepper.train(*arguments)
    assert line in str(error.value)
    assert bits(stepper.network) == before
