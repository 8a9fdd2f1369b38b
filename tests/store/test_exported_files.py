"""Exports: other programs compute the same from the files."""

import json
from pathlib import Path

import pytest

from mlpcore import __version__
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.store import export, onnx_graph
from mlpcore.store.documents import to_metadata
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import weights_sha256
from oracle import random_network
from small_runs import refusal

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

#: ONNX Runtime adds in float32 what the oracle adds in float64. A sum of 841 terms is about 1 in
#: a `random_network`. Its error is some sqrt(841) = 29 roundings of 2**-24, or 1.7e-6, and the next
#: layer makes it smaller. Mistakes are greater: 0.667 in place of 0.6666 gives 6e-4.
TOLERANCE = 1e-5


def trained_network(network, **metadata):
    metadata = {"data": "MNIST"} | metadata
    return TrainedNetwork(Path("net.safetensors"), network, MNIST_PIXELS, metadata)


def session(content):
    """ONNX Runtime, on one thread and without its warnings, for the content of a file."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def test_onnx_says_what_it_is():
    network = random_network((841, 7, 10), 0, activation="relu", loss="cross-entropy")
    trained = trained_network(network, epoch="3", seed="5", progress="{}", metrics="{}")
    content = export.to_onnx(trained)
    assert content == export.to_onnx(trained)
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 13)]
    assert {each.key: each.value for each in model.metadata_props} == {
        "version": __version__,
        "architecture": "841,7,10",
        "activation": "relu",
        "loss": "cross-entropy",
        "epoch": "3",
        "seed": "5",
        **to_metadata(data="MNIST", pixels=MNIST_PIXELS, target=1.0, classes=[*range(10)]),
        "weights_sha256": weights_sha256(network),
    }
    both = onnx.load_model_from_string(export.to_onnx(trained, trained))
    metadata = {each.key: each.value for each in both.metadata_props}
    assert metadata["classes"] == "[0,1,2,3,4,5,6,7,8,9]"
    assert (
        json.loads(metadata["members"])
        == [{each.key: each.value for each in model.metadata_props}] * 2
    )
    shapes = {each.name: (each.type, each.shape) for each in session(content).get_inputs()}
    assert shapes == {"pixels": ("tensor(uint8)", ["n", 28, 28])}
    shapes = {each.name: (each.type, each.shape) for each in session(content).get_outputs()}
    assert shapes == {"outputs": ("tensor(float)", ["n", 10])}


def test_more_than_onnx_takes_is_refused(monkeypatch):
    """ONNX files hold 2 GiB at most. Here the limit is moved to the size of the weights."""
    trained = trained_network(random_network((841, 12, 10), 1))
    n_bytes = 4 * (842 * 12 + 13 * 10)
    monkeypatch.setattr(onnx_graph, "MAX_BYTES", onnx_graph.MAX_OTHER_BYTES + n_bytes)
    assert export.to_onnx(trained)
    monkeypatch.setattr(onnx_graph, "MAX_BYTES", onnx_graph.MAX_OTHER_BYTES + n_bytes - 1)
    assert "bytes of weights: expected at most" in refusal(export.to_onnx, trained)
