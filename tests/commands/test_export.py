"""`mlpcore export`: both formats, notes, refusals."""

import os
import sys
from pathlib import Path

import pytest

from mlpcore import Network
from mlpcore.commands import main
from mlpcore.data.dataset import MNIST
from mlpcore.store import export
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import CONFIG
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from oracle import random_network
from small_runs import same_weights


@pytest.fixture
def weights():
    """A file of weights in the working folder."""
    network_input = NetworkInput(MNIST, (29, 29), (28, 28))
    path = Path("net.safetensors")
    write_network(path, random_network((841, 12, 10), 1), network_input.to_metadata())
    return path


def test_both_formats(call, weights):
    pytest.importorskip("onnx")
    for _ in range(2):  # the second time it replaces them
        call("export", weights, "--onnx", "a.onnx", "--safetensors", "a.st")
    assert Path("a.onnx").read_bytes() == export.to_onnx(TrainedNetwork.read(weights))
    assert same_weights(read_network(Path("a.st"))[0], read_network(weights)[0])
    assert sorted(os.listdir()) == ["a.onnx", "a.st", "net.safetensors"]


def test_a_note_tells_what_is_assumed(capsys, weights):
    write_network(weights, Network((841, 10), 1), {})
    assert main(["export", str(weights), "--safetensors", "a"]) == 0
    assert "note: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        "net.safetensors",
        "net.safetensors --safetensors net.safetensors",
        "net.safetensors --safetensors link",
        "net.safetensors --safetensors hard-link",
        "net.safetensors --safetensors no/folder",
        "net.safetensors --safetensors run",
        f"net.safetensors --safetensors run/{CONFIG.upper()}",
        "net.safetensors --safetensors a\0b",
        "net.safetensors --onnx a --safetensors ./a",
        "run --safetensors a",
        "text --safetensors a",
        "sides --safetensors a",
    ],
)
def test_refusals(refusal, weights, arguments):
    Path("run").mkdir()
    Path("run", CONFIG).touch()
    Path("text").write_text("no network")
    Path("link").symlink_to("text")
    Path("hard-link").hardlink_to(weights)
    write_network(Path("sides"), Network((35, 3), 1), {})
    contents = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    refusal("export", *arguments.split())
    assert contents == {path: path.read_bytes() for path in contents}


def test_without_onnx_one_line_names_the_extra(call, refusal, monkeypatch, weights):
    """A broken onnx is told from a missing one."""
    monkeypatch.setitem(sys.modules, "onnx", None)  # as if it were not installed
    assert "'export'" in refusal("export", weights, "--onnx", "a.onnx")
    call("export", weights, "--safetensors", "a.safetensors")
    Path("onnx").mkdir()
    Path("onnx", "__init__.py").write_text("raise ImportError('no protobuf', name='google')")
    monkeypatch.delitem(sys.modules, "onnx")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # nothing else may appear here
    monkeypatch.syspath_prepend(os.getcwd())
    assert "no protobuf" in refusal("export", weights, "--onnx", "a.onnx")
