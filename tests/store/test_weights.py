"""Files of weights: exact round trips, and refusal of damaged and hostile ones."""

import os
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load, save

from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from mlpcore.store import weights
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from oracle import random_network
from small_runs import same_weights

fuzz = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzz
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.integers(0, 2**64 - 1))
def test_networks_survive_files_and_other_programs_read_them(tmp_path, sizes, seed):
    network, path = Network(sizes, seed), tmp_path / "n.safetensors"
    write_network(path, network, {"epoch": "7"})
    read, metadata = read_network(path, tuple(sizes))
    assert same_weights(network, read)
    assert metadata["epoch"] == "7"
    assert metadata["architecture"] == ",".join(map(str, sizes))
    tensors = load(path.read_bytes())
    assert len(tensors) == 2 * network.n_layers
    for i in range(network.n_layers):
        np.testing.assert_array_equal(tensors[f"layers.{i}.weight"], network.weights[i])
        np.testing.assert_array_equal(tensors[f"layers.{i}.bias"], network.biases[i])
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_activation_and_loss_survive_files(tmp_path, activation, loss):
    network, path = Network((4, 3, 2), 1, activation, loss), tmp_path / "n.safetensors"
    write_network(path, network, {"input_range": "unit"})
    read, metadata = read_network(path)
    assert same_weights(network, read)
    assert (read.activation, read.loss) == (activation, loss)
    assert (metadata["activation"], metadata["loss"]) == (activation, loss)
    assert metadata["input_range"] == "unit"


def test_float16_takes_half_the_bytes(tmp_path):
    """Weights are those that float16 has; written again, in either type, they stay."""
    network, path = random_network((30, 20, 10), 1, loss="cross-entropy"), tmp_path / "n"
    network.weights[0][0, :2] = 65504, 1e-9  # the greatest, and too small for any bit
    write_network(path, network, {"epoch": "7"}, "float16")
    assert {tensor.dtype.name for tensor in load(path.read_bytes()).values()} == {"float16"}
    read, metadata = read_network(path, (30, 20, 10))
    assert (read.loss, metadata["epoch"]) == ("cross-entropy", "7")
    for arrays in zip([*network.weights, *network.biases], [*read.weights, *read.biases]):
        np.testing.assert_array_equal(arrays[0].astype(np.float16), arrays[1])
    for dtype in weights.DTYPES:
        write_network(tmp_path / dtype, read, {}, dtype)
        assert same_weights(read_network(tmp_path / dtype)[0], read)
    sizes = [(tmp_path / dtype).stat().st_size for dtype in weights.DTYPES]
    assert sizes[0] - sizes[1] == pytest.approx(2 * 830, abs=8)  # the header is padded


def test_what_float16_lacks_is_refused(tmp_path):
    network = Network((4, 2))
    network.biases[0][1] = 65520  # which would be rounded to infinity
    with pytest.raises(InputError, match="too large for float16"):
        write_network(tmp_path / "n", network, {}, "float16")
    with pytest.raises(InputError, match="dtype 'int8': expected float32 or float16"):
        write_network(tmp_path / "n", network, {}, "int8")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", weights.DTYPES)
def test_every_flipped_bit_of_weights_is_seen(tmp_path, dtype):
    path = tmp_path / "n"
    write_network(path, Network((4, 3, 2), 1), {}, dtype)
    good = path.read_bytes()
    for bit in range(0, 8 * 40, 7):
        content = bytearray(good)
        content[-1 - bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(InputError, match="damaged"):
            read_network(path)


@pytest.mark.parametrize("text", ["", "one", "2", "-1", "nan"])
def test_unknown_targets_are_refused(tmp_path, text):
    path = tmp_path / "n"
    write_network(path, Network((841, 2), 1), {"target": text})
    with pytest.raises(InputError, match=r"n: target .*: expected"):
        TrainedNetwork.read(path)


def rewritten(path, change):
    """Changes the metadata of a file, with a checksum that fits."""
    network, _ = read_network(path)
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    del metadata["sha256"]
    change(metadata)
    metadata["sha256"] = weights._checksum(network, metadata)
    path.write_bytes(save(load(path.read_bytes()), metadata))


def test_older_files_hold_networks_of_the_paper(tmp_path):
    path = tmp_path / "n.safetensors"
    write_network(path, Network((4, 3, 2), 1, "relu", "cross-entropy"), {})
    rewritten(path, lambda metadata: [metadata.pop(name) for name in ("activation", "loss")])
    network, metadata = read_network(path)
    assert (network.activation, network.loss) == ("tanh", "squared")
    names = [metadata[name] for name in weights.CHOICES]
    assert names == ["tanh", "squared", "signed"]


@pytest.mark.parametrize("name", weights.CHOICES)
def test_unknown_names_are_refused(tmp_path, name):
    path = tmp_path / "n.safetensors"
    write_network(path, Network((4, 3, 2), 1), {})
    rewritten(path, lambda metadata: metadata.update({name: "swish\n"}))
    with pytest.raises(InputError, match=rf"n.safetensors: {name} 'swish\\n': expected"):
        read_network(path)


def header(text, length=None):
    return struct.pack("<Q", len(text) if length is None else length) + text


def announcing(architecture, **tensors):
    """A file whose metadata give an architecture, with other tensors."""
    return save(tensors, {"format": weights.FORMAT, "architecture": architecture})


SHAPE = {"layers.0.bias": np.zeros(2, np.float32)}
HOSTILE = {
    "longer header than file": header(b"{}", 100),
    "huge header": header(b"", 2**63),
    "no object": header(b"[]"),
    "no metadata": header(b"{}"),
    "deep header": header(b"[" * 20000),
    "huge architecture": announcing("999999,999999,10", **SHAPE),
    "too many tensors": announcing("1,1", **SHAPE),
    "other shape": announcing("3,2", **SHAPE, **{"layers.0.weight": np.zeros((3, 2), "f4")}),
    "other type": announcing("3,2", **SHAPE, **{"layers.0.weight": np.zeros((2, 3), "i4")}),
    "other name": announcing("3,2", **SHAPE, **{"layers.0.weights": np.zeros((2, 3), "f4")}),
} | {
    f"architecture {text!r}": announcing(text)
    for text in ("", "4", "4,", "4,x,2", "-4,2", "4,3.0", "²,2", "9" * 50)
}


@fuzz
@given(st.data())
def test_damaged_and_hostile_files_are_refused_in_one_line(tmp_path, data):
    path = tmp_path / "network.safetensors"
    write_network(path, Network((4, 3, 2), 1), {"epoch": "7"})
    good = path.read_bytes()
    match data.draw(st.sampled_from(["cut", "longer", "flipped bit", "any bytes"])):
        case "cut":
            content = good[: data.draw(st.integers(0, len(good) - 1))]
        case "longer":
            content = good + data.draw(st.binary(min_size=1, max_size=40))
        case "flipped bit":
            bit = data.draw(st.integers(0, 8 * len(good) - 1))
            content = bytearray(good)
            content[bit // 8] ^= 1 << bit % 8
        case "any bytes":
            content = data.draw(st.binary(max_size=200).map(header) | st.binary(max_size=200))
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_network(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers(tmp_path, name):
    path = tmp_path / "x"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(InputError) as caught:
        read_network(path)
    assert "\n" not in str(caught.value)


def test_a_huge_header_takes_no_memory(tmp_path):
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.write(header(b"", 2**35))
        file.truncate(2**36)
    with pytest.raises(InputError, match="16,777,216 bytes"):
        read_network(path)


def test_other_architectures_and_weights_that_are_not_finite(tmp_path):
    network, path = Network((4, 2)), tmp_path / "x"
    write_network(path, network, {})
    with pytest.raises(InputError, match="of 4-2, expected 4-5-2"):
        read_network(path, (4, 5, 2))
    network.weights[0][0, 0] = np.inf
    write_network(path, network, {})
    with pytest.raises(InputError, match="not finite"):
        read_network(path)
