"""`mlpcore export`: all formats, notes, refusals."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from mlpcore import Network
from mlpcore.__main__ import main
from mlpcore.data.dataset import EMBEDDED
from mlpcore.store import export
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import CONFIG
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from mlpcore.web import page
from oracle import random_network
from small_runs import same_weights


def write(path, sizes=(841, 12, 10), seed=1):
    network_input = NetworkInput(EMBEDDED, (29, 29), (8, 8)).to_metadata()
    write_network(path, random_network(sizes, seed), network_input)
    return path


@pytest.fixture
def weights():
    """A file of weights in the working folder."""
    return write("net.safetensors")


def test_onnx_and_safetensors(call, weights):
    pytest.importorskip("onnx")
    for _ in range(2):  # the second time it replaces them
        call("export", weights, "--onnx", "a.onnx", "--safetensors", "a.st")
    assert Path("a.onnx").read_bytes() == export.to_onnx(TrainedNetwork.read(weights))
    assert same_weights(read_network("a.st")[0], read_network(weights)[0])
    assert sorted(os.listdir()) == ["a.onnx", "a.st", "net.safetensors"]


def test_a_committee_in_one_page(call):
    networks = [write(f"{seed}.safetensors", seed=seed) for seed in range(3)]
    assert "page of" in call("export", *networks, "--html", "a.html")
    assert "A committee of 3 networks on scikit-learn digits" in Path("a.html").read_text()


def test_float16_halves_the_weights(call):
    path = write("net.safetensors", (841, 50, 10))
    sizes = []
    for bits in 32, 16:
        files = "--html", "a.html", "--safetensors", "a.st"
        call("export", path, *files, "--precision", f"float{bits}")
        sizes.append([Path(name).stat().st_size for name in files[1::2]])
    n_bytes = 2 * (841 * 50 + 50 + 50 * 10 + 10)
    assert np.subtract(*sizes) == pytest.approx([4 / 3 * n_bytes, n_bytes], rel=0.005)


def test_without_a_network_it_is_that_of_the_package(capsys):
    assert main(["export", "--html", "a.html"]) == 0
    said = "note: no network is named: that of the package is used, net1"
    assert capsys.readouterr().err.startswith(said)
    assert b'"net1: 841-1000-500-10"' in Path("a.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("net.safetensors", "nothing to write"),
        ("net.safetensors --safetensors net.safetensors", "is the network itself"),
        ("net.safetensors --safetensors hard-link", "is the network itself"),
        ("net.safetensors --safetensors no/folder", "no"),
        (f"net.safetensors --safetensors run/{CONFIG.upper()}", "belongs to a run"),
        ("run --safetensors a", "run"),
        ("large.safetensors --html a.html", "float16 halves it"),
        ("net.safetensors net.safetensors --safetensors a", "2 networks as safetensors"),
        ("net.safetensors --onnx a.onnx --precision float16", "or --html"),
        ("net.safetensors letters.safetensors --html a.html", "network 2 of a committee"),
        ("nameless --safetensors a", "nameless: its metadata name no input"),
    ],
)
def test_refusals(refusal, weights, monkeypatch, arguments, said):
    monkeypatch.setattr(page, "MAX_BYTES", 100_000)
    Path("run").mkdir()
    Path("run", CONFIG).touch()
    Path("hard-link").hardlink_to(weights)
    write("large.safetensors", (841, 30, 10))
    shape = NetworkInput("letters", (7, 5), (7, 5)).to_metadata()
    write_network("letters.safetensors", Network((35, 3), 1), shape)
    write_network("nameless", Network((841, 10), 1), {})
    contents = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert said in refusal("export", *arguments.split())
    assert contents == {path: path.read_bytes() for path in contents}


def test_without_onnx_one_line_names_the_extra(refusal, monkeypatch, weights):
    monkeypatch.setitem(sys.modules, "onnx", None)  # as if it were not installed
    assert "'export'" in refusal("export", weights, "--onnx", "a.onnx")
