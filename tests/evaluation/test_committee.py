"""Committees: the mean of outputs, and refusals."""

import numpy as np
import pytest

from mlpcore import Committee, InputError, Network, backends, evaluate
from small_runs import BACKENDS, make_dataset

DATA = make_dataset(n_test=130)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_mean_decides(name):
    backend = backends.get(name)
    networks = [Network((35, *hidden, 3), seed=1) for hidden in ((9,), (4, 5), ())]
    committee = Committee(networks)
    inputs = DATA.test_images.reshape(130, 35)
    singly = [backend.predict(backend.load(n), backend.put(inputs)) for n in networks]
    mean = sum(outputs.astype(np.float64) for outputs in singly) / 3
    outputs = committee.outputs(DATA.test_images, backend)
    # Sums of three numbers below 2 in float64, in another order.
    np.testing.assert_allclose(outputs, mean, rtol=0, atol=1e-15)
    guesses = committee.predict(inputs, backend)
    assert guesses.tolist() == outputs.argmax(1).tolist()
    result = committee.evaluate(DATA.test_images, DATA.test_labels, backend)
    assert result.errors == np.count_nonzero(guesses != DATA.test_labels)
    wrong = np.flatnonzero(guesses != DATA.test_labels)
    assert len(wrong) > 0
    expected = np.sort(outputs[wrong], axis=1)[:, :-3:-1]  # of the first and the second guess
    np.testing.assert_array_equal(result.misclassified.outputs, expected)


def test_members_mend_each_others_errors(reference):
    """Three networks, each blind for one of three pixels."""
    images = np.repeat(2 * np.eye(3, dtype=np.float32) - 1, 2, axis=0)
    labels = np.repeat(np.arange(3), 2)
    networks = []
    for blind in range(3):
        network = Network((3, 3))
        network.weights[0][...] = np.eye(3)
        network.weights[0][blind] = 0
        network.biases[0][blind] = -1.5
        networks.append(network)
    alone = [evaluate(network, images, labels, reference).errors for network in networks]
    assert alone == [2, 2, 2]
    assert Committee(networks).evaluate(images, labels, reference).errors == 0


def test_of_one_it_is_that_one(reference):
    network = Network((35, 9, 3), seed=1)
    alone = evaluate(network, DATA.test_images, DATA.test_labels, reference)
    committee = Committee([network]).evaluate(DATA.test_images, DATA.test_labels, reference)
    assert np.array_equal(alone.confusion, committee.confusion)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([], "no networks: expected at least one"),
        ([(35, 9, 3), (35, 3), (35, 9, 4)], "network 3 of a committee is 35-9-4: expected 35 inp"),
        ([(35, 9, 3), (36, 9, 3)], "network 2 of a committee is 36-9-3"),
    ],
)
def test_refusals(sizes, words):
    with pytest.raises(InputError) as caught:
        Committee([Network(each, 0) for each in sizes])
    assert words in str(caught.value)


def test_images_that_do_not_fit(reference):
    with pytest.raises(InputError, match="6 x 6 pixels: expected 35 pixels"):
        Committee([Network((35, 3), 0)]).predict(np.zeros((2, 6, 6), np.float32), reference)
