"""The examples do what they say."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlpcore import backends, dataset
from mlpcore.store.export import write_safetensors
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.trained import TrainedNetwork
from oracle import random_network

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(autouse=True)
def examples_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def percentages(text):
    return [float(found) for found in re.findall(r"([\d.]+)%", text)]


def test_grid_search(capsys):
    import grid_search

    grid_search.main()
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 5
    assert min(percentages(out)) > 85


@pytest.fixture
def one_torch_thread():
    """Two wait for each other where others use the cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_torch_dataset(one_torch_thread, capsys):
    import torch_dataset

    torch_dataset.main(epochs=3, workers=0)
    shares = percentages(capsys.readouterr().out)
    assert len(shares) == 3
    assert shares[-1] > 80


def test_torch_dataset_is_the_same_with_any_workers():
    pytest.importorskip("torch")
    command = [sys.executable, str(Path(__file__).with_name("support") / "torch_workers.py")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "alike\n"), result.stderr


def test_torch_import(tmp_path, capsys, monkeypatch):
    torch = pytest.importorskip("torch")
    import torch_import

    network, path = random_network((841, 60, 30, 10), 3), tmp_path / "net.safetensors"
    network_input = NetworkInput("MNIST", (29, 29), (28, 28))
    write_safetensors(TrainedNetwork(path, network, network_input, {}), path)
    images = dataset.load(name="digits").test_images.reshape(-1, 841)
    torch.set_num_threads(1)
    with torch.no_grad():
        outputs = torch_import.load(str(path))(torch.from_numpy(images)).numpy()
    backend = backends.get("scalar", 1)
    expected = backend.predict(backend.load(network), backend.put(images))
    # The same products in other orders: as tests/test_export.py reckons, under a third of this.
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)
    monkeypatch.setattr("sys.argv", ["torch_import.py", str(path)])
    runpy.run_path(str(EXAMPLES / "torch_import.py"), run_name="__main__")
    assert "in_features=841, out_features=60" in capsys.readouterr().out
