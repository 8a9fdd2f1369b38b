"""Committees: the mean of outputs, and how probable a difference is."""

import numpy as np
import pytest

from mlpcore import Committee, Network
from mlpcore.evaluation import Evaluation
from mlpcore.evaluation.committee import compare
from small_runs import make_dataset

DATA = make_dataset(n_test=130)


def test_the_mean_decides(reference):
    networks = [Network((35, *hidden, 3), seed=1) for hidden in ((9,), (4, 5), ())]
    committee, inputs = Committee(networks), DATA.test_images.reshape(130, 35)
    outputs = committee.outputs(DATA.test_images, reference)
    expected = np.mean([reference.predict(each, inputs) for each in networks], 0, np.float64)
    # Sums of three numbers below 2 in float64, in another order.
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-15)
    guesses = committee.predict(inputs, reference)
    assert guesses.tolist() == outputs.argmax(1).tolist()
    result = committee.evaluate(DATA.test_images, DATA.test_labels, reference)
    assert result.errors == np.count_nonzero(guesses != DATA.test_labels) > 0


@pytest.mark.parametrize(("alone", "p_value"), [((0, 0), 1), ((1, 9), 22 / 2**10), ((7, 0), 2**-6)])
def test_mcnemars_exact_test(alone, p_value):
    """Each of the two is wrong alone for so many of 90 samples, and both are for 5."""
    outputs = np.zeros((2, 90, 2))
    outputs[..., 0] = 1
    outputs[:, :5, 1] = outputs[0, 5 : 5 + alone[0], 1] = 2
    outputs[1, 90 - alone[1] :, 1] = 2
    first, second = (Evaluation.of(each, np.zeros(90, int)) for each in outputs)
    assert compare(first, second) == (*alone, pytest.approx(p_value))
