"""Files of weights: exact round trips, and refusal of damaged and hostile ones."""

import os
import struct

import numpy as np
import pytest
from msgspec import structs
from safetensors.numpy import load, save

from mlpcore.data.pixels import PixelSpec
from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from mlpcore.store import weights
from mlpcore.store.documents import to_metadata
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from small_runs import refusal, same_weights


@pytest.mark.parametrize(("activation", "loss"), [*zip(ACTIVATIONS, LOSSES)])
def test_networks_survive_files_and_other_programs_read_them(tmp_path, activation, loss):
    network, path = Network((30, 20, 10), 1, activation, loss), tmp_path / "n.safetensors"
    write_network(path, network, {"epoch": "7"})
    read, metadata = read_network(path)
    assert same_weights(network, read)
    assert (read.activation, read.loss, metadata["epoch"]) == (activation, loss, "7")
    tensors = load(path.read_bytes())
    assert sorted(tensors) == [f"layers.{i}.{name}" for i in (0, 1) for name in ("bias", "weight")]
    np.testing.assert_array_equal(tensors["layers.1.weight"], network.weights[1])
    np.testing.assert_array_equal(tensors["layers.0.bias"], network.biases[0])


def announcing(architecture, activation="tanh", **tensors):
    """A file whose metadata give an architecture, with other tensors."""
    metadata = {"format": weights.FORMAT, "architecture": architecture, "activation": activation}
    return save(tensors, metadata | {"loss": "squared", "sha256": ""})


WHOLE = {"layers.0.bias": np.zeros(2, "f"), "layers.0.weight": np.zeros((2, 3), "f")}

#: Files, and a part of the line that refuses them.
HOSTILE = [
    (struct.pack("<Q", 100) + b"{}", "header"),  # longer than the file
    (struct.pack("<Q", 2) + b"{}", "missing required field `format`"),
    (announcing("999999,999999,10", **WHOLE), "its tensors are not those of 999999-999999-10"),
    (announcing("3,2", **WHOLE).replace(b"F32", b"I32"), "its tensors are not those of 3-2"),
    (announcing("3,2", **WHOLE), "its checksum does not match its content"),
    (announcing("3,2", "swish", **WHOLE), "'swish': expected tanh or relu"),
    *((announcing(text, **WHOLE), "architecture") for text in ("", "4", "4,x", "-4,2", "9" * 50)),
]


@pytest.mark.parametrize(("content", "part"), HOSTILE)
def test_hostile_files(tmp_path, content, part):
    path = tmp_path / "x"
    path.write_bytes(content)
    line = refusal(read_network, path)
    assert line.startswith(f"{path} is not the expected safetensors file") and part in line


@pytest.mark.parametrize("dtype", weights.DTYPES)
def test_damaged_files_are_refused_in_one_line(tmp_path, dtype):
    """Cut anywhere, longer, or with a bit that is flipped in any byte."""
    path = tmp_path / "network.safetensors"
    path.write_bytes(weights.to_safetensors(Network((4, 3, 2), 1), {"epoch": "7"}, dtype))
    assert read_network(path)[1]["epoch"] == "7"
    good = path.read_bytes()
    contents = [good + b" "]
    for k, byte in enumerate(good):
        contents += good[:k], good[:k] + bytes([byte ^ 1 << k % 8]) + good[k + 1 :]
    for content in contents:
        path.write_bytes(content)
        assert str(path) in refusal(read_network, path)


def test_pipes_and_weights_that_are_not_finite(tmp_path):
    """Or would not be in float16."""
    network, path = Network((4, 2)), tmp_path / "x"
    network.weights[0][0, 0] = 65520
    assert "too large for float16" in refusal(weights.to_safetensors, network, {}, "float16")
    assert not path.exists()
    network.weights[0][0, 0] = np.inf
    write_network(path, network, {})
    assert "not finite" in refusal(read_network, path)
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(read_network, tmp_path / "pipe")


def seen(**changes):
    return to_metadata(pixels=structs.asdict(PixelSpec((2, 2), (2, 2))) | changes)


@pytest.mark.parametrize(
    ("metadata", "part"),
    [
        ({}, "its metadata name no pixels"),
        (seen(image_shape=(2, 3)), "images of 2 x 3: expected 4 pixels"),
        (seen(input_range="wide"), "Invalid enum value 'wide'"),
        (seen(margin=1), "margin 1: expected less than half"),
        *((seen() | {"target": text}, "n: ") for text in ("one", "2", "nan")),
        (seen() | {"classes": "[1]"}, "1 classes: expected 2"),
    ],
)
def test_metadata_of_trained_networks(tmp_path, metadata, part):
    write_network(tmp_path / "n", Network((4, 2), 1), metadata)
    assert part in refusal(TrainedNetwork.read, tmp_path / "n")
