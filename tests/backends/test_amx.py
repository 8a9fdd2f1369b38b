"""Batches through the matrix unit: of this CPU, where it has one, and an emulated one."""

import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import amx_emulated
from mlpcore.backends import counting
from mlpcore.backends.simd import SimdBackend, has_amx
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from oracle import EPSILON, SEEDS, TANH_ERROR, random_network, sum_tolerance, uniform

WITH_AMX = pytest.mark.skipif(not has_amx(), reason="this CPU has no AMX")

#: Around tiles of 16, pairs of 32, steps of 32 inputs with the bias.
WIDTHS = st.sampled_from([256, 257, 271, 287, 288, 289, 300])
OUTPUTS = st.sampled_from([1, 2, 10, 15, 16, 17, 31, 32, 33, 65])


@pytest.fixture(scope="module", params=["cpu", "emulated"])
def predict_by_amx(request, tmp_path_factory):
    """Outputs of a network for images, by so many threads."""
    if request.param == "emulated":
        if sys.platform != "linux" or amx_emulated.compiler() is None:
            pytest.skip("amx.c is compiled on Linux alone, by a C compiler")
        return amx_emulated.EmulatedUnit(tmp_path_factory.mktemp("amx"))
    if not has_amx():
        pytest.skip("this CPU has no AMX")
    return lambda network, images, threads: SimdBackend("avx512", threads).predict_by_amx(
        network, images
    )


@given(n_in=WIDTHS, n_out=OUTPUTS, n=st.sampled_from([0, 1, 31, 33, 127, 128, 130]), seed=SEEDS)
@example(n_in=287, n_out=32, n=128, seed=0)  # 288 with the bias: whole tiles
@settings(max_examples=40)
def test_one_layer(reference, predict_by_amx, n_in, n_out, n, seed):
    """Off by what amx.c says: 3 * 2^-18 of the terms' magnitudes, and a sum's rounding."""
    network, images = random_network((n_in, n_out), seed % 2**32), uniform(seed, n, n_in)
    got = predict_by_amx(network, images, 2)
    magnitude = np.abs(images) @ np.abs(network.weights[0]).T + np.abs(network.biases[0])
    tolerance = A * B * (sum_tolerance(magnitude, n_in + 1) + 3 * 2.0**-18 * magnitude)
    tolerance += A * (TANH_ERROR + EPSILON)
    assert np.all(np.abs(got - reference.predict(network, images)) <= tolerance)


@given(sizes=st.lists(WIDTHS, min_size=2, max_size=4), n_out=OUTPUTS, seed=SEEDS)
@settings(max_examples=15)
def test_several_layers(reference, predict_by_amx, sizes, n_out, seed):
    """An error grows from layer to layer by the weights' norm, here about 1."""
    network, images = random_network((*sizes, n_out), seed % 2**32), uniform(seed, 140, sizes[0])
    got = predict_by_amx(network, images, 1)
    assert np.abs(got - reference.predict(network, images)).max() <= 5e-4
    assert np.array_equal(predict_by_amx(network, images, 3), got)
    assert np.array_equal(predict_by_amx(network, images[5:38], 2), got[5:38])


@WITH_AMX
def test_errors_are_counted_as_in_float32():
    """Also where two outputs are as good as equal: of 400 images, some are within 1e-4."""
    network, images = random_network((300, 256, 2), 1), uniform(2, 400, 300)
    network.weights[1][1] = network.weights[1][0] * (1 + uniform(3, 256) * 1e-4)
    network.biases[1][1] = network.biases[1][0]
    backend = SimdBackend("avx512", 2)
    labels = backend.predict(network, images).argmax(axis=1).astype(np.uint8)
    off = backend.predict_by_amx(network, images).argmax(axis=1) != labels
    assert off.any()  # the matrix unit alone would miscount
    assert backend.count_errors(network, images, labels) == 0
    labels[:7] ^= 1
    assert backend.count_errors(network, images, labels) == 7


def test_close_calls():
    outputs = np.array([[1.0, 0.5, 0.9], [0.0, 2.0, 1.0], [np.nan, 0.0, 5.0]], np.float32)
    assert counting.close_calls(outputs, 0.2).tolist() == [0, 2]
    assert counting.close_calls(outputs[:, :1], 0.2).size == 0


def test_narrow_layers_and_other_instruction_sets_do_without():
    assert not SimdBackend("scalar").amx
    network, images = Network((300, 255, 10), seed=1), uniform(1, 50, 300)
    backend = SimdBackend("avx512") if has_amx() else SimdBackend("scalar")
    labels = backend.predict(network, images).argmax(axis=1).astype(np.uint8)
    assert backend.count_errors(network, images, labels) == 0


@WITH_AMX
def test_who_is_asked_in_between_may_use_the_unit():
    network, images = random_network((300, 256, 10), 1), uniform(2, 400, 300)
    backend = SimdBackend("avx512", 1)
    labels = backend.predict(network, images).argmax(axis=1).astype(np.uint8)
    counts = []

    def use_it():
        counts.append(backend.count_errors(network, images, labels))

    assert backend.count_errors(network, images, labels, use_it) == 0
    assert counts == [0] * len(counts) != []


@pytest.mark.parametrize("predict_by_amx", ["emulated"], indirect=True)
def test_the_unit_is_set_up_again_after_asking_and_left_on_a_stop(predict_by_amx):
    network, images = random_network((300, 256, 10), 1), uniform(2, 700, 300)
    expected, calls = predict_by_amx(network, images, 1), []

    def use_it():
        calls.append(predict_by_amx(network, images[:40], 1))

    assert np.array_equal(predict_by_amx(network, images, 1, use_it), expected)
    assert calls and all(np.array_equal(outputs, expected[:40]) for outputs in calls)
    assert np.isnan(predict_by_amx(network, images, 2, lambda: True)).any()
