"""A stepper trains as `Backend.train` does, one sample or a few a call."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mlpcore import Network, backends
from oracle import (
    bits,
    uniform,
)

NETWORK = (20, 30, 3)


def test_rates_that_change_in_a_list_are_those_of_the_call(simd_name):
    images, labels, rates = uniform(3, 2, 20), np.array([0, 2], np.uint8), [0.1, 0.1]
    steppers = [backends.get(simd_name).stepper(Network(NETWORK, seed=1)) for _ in range(2)]
    for rate in (0.1, 0.2):
        rates[:] = rate, rate
        steppers[0].train(images, labels, rates)
        steppers[1].train(images, labels, np.array([rate, rate]))
    assert bits(steppers[0].network) == bits(steppers[1].network)


ONE, LABEL = np.zeros((1, 20), np.float32), np.zeros(1, np.uint8)


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
