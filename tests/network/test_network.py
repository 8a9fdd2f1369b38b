"""The network: presets, views without copies, initial weights, bad sizes."""

import pickle

import numpy as np
import pytest

from mlpcore import InputError, Network
from mlpcore.network.activation import complete
from mlpcore.network.architecture import PRESETS, format_hidden_layers, parse_hidden_layers


def test_presets_have_the_papers_weights():
    parameters = 1_347_510, 3_269_510, 6_692_010, 12_115_010, 8_860_010
    for name, expected in zip(PRESETS, parameters, strict=True):
        assert Network((841, *parse_hidden_layers(name), 10)).n_parameters == expected
        assert format_hidden_layers(PRESETS[name]) == name


def test_views_are_written_into_and_cannot_be_taken_away():
    """Without a layer a file of weights was written that nobody could read."""
    network, start, other = (Network((5, 3, 2), seed=seed) for seed in (1, 1, 2))
    network.weights[0] = other.weights[0]
    network.biases[-1] -= 1
    assert np.array_equal(network.copy().weights[0], other.weights[0])
    assert np.array_equal(network.copy().biases[1], start.biases[1] - 1)
    with pytest.raises(ValueError, match="broadcast"):
        network.weights[0] = other.weights[1]
    for views in (network.weights, network.biases):
        with pytest.raises(AttributeError):
            del views[0]


@pytest.mark.parametrize(("init", "fans"), [("he", (841, 300)), ("glorot", (1141, 310))])
def test_initial_weights_scaled_by_widths(init, fans):
    network = Network((841, 300, 10), seed=1, init=init)
    for weights, biases, fan in zip(network.weights, network.biases, fans):
        # The mean of 3,000 squares or more has a standard error of 1.6 % or less.
        assert np.mean(weights**2) == pytest.approx(2 / fan, rel=0.06)
        assert not biases.any()


def test_copies_are_equal_and_separate():
    """Views outlive the network that they are of."""
    network, weights = Network((3, 4, 2), seed=1), Network((3, 4, 2), seed=1).weights[0]
    assert np.array_equal(weights, network.weights[0])
    for twin in (network.copy(), pickle.loads(pickle.dumps(network))):
        assert twin.layer_sizes == network.layer_sizes
        assert all(np.array_equal(a, b) for a, b in zip(twin.weights, network.weights))
        twin.weights[0][0, 0] += 1
        assert not np.array_equal(twin.weights[0], network.weights[0])
    with pytest.raises(InputError, match="16,610 bits"):  # which Python does not write
        Network((3, 10**5000))
    with pytest.raises(InputError):
        network.assign(Network((3, 5, 2)))
    network.biases[1][0] = np.nan
    assert not network.is_finite()


def test_a_table_that_lacks_an_activation_is_refused():
    with pytest.raises(NotImplementedError, match=r"^here lacks the activation 'relu'$"):
        complete("here", {"tanh": 0})
