"""`tools/pretrained.py`: a run becomes the file of the package, with its evidence."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

import pretrained
from mlpcore import TrainingConfig, backends, dataset, evaluate
from mlpcore.store.documents import from_json
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.recipes import RECIPES
from small_runs import finish_run, isolate, write_mnist


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Small data in the place of MNIST, in the working folder."""
    isolate(monkeypatch, tmp_path / "work")
    return dataset.load(write_mnist(monkeypatch, "mnist"), name="mnist")


def test_the_file_holds_rounded_weights_and_their_evidence(data, capsys):
    settings = RECIPES["modern"].settings_of((9,))
    config = TrainingConfig(hidden_layers=(9,), epochs=2, seed=3, backend="scalar", **settings)
    state = finish_run(Path("run"), config, data)
    assert pretrained.main(["run", "--out", "new/net.safetensors"]) == 0
    made = TrainedNetwork.read("new/net.safetensors")
    for ours, theirs in zip(made.network.weights, state.best.weights):
        np.testing.assert_array_equal(ours, theirs.astype(np.float16))
    images = data.as_inputs("unit").test_images
    result = evaluate(made.network, images, data.test_labels, backends.get("cpu"))
    best = state.best_metrics
    expected = {"epochs": "2", "seed": "3", "test_errors": str(result.errors), "n_test": "60"}
    expected |= {"validation_errors": str(best.validation_errors), "n_validation": "230"}
    assert expected.items() <= made.metadata.items()
    assert from_json(made.metadata["training"], TrainingConfig) == config
    content = Path("new/net.safetensors").read_bytes()
    line = f"{hashlib.sha256(content).hexdigest()}  net.safetensors\n"
    assert Path("new/net.sha256").read_text() == line
    assert capsys.readouterr().out.endswith(line)
