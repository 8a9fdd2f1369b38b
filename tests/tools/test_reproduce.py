"""`tools/reproduce.py`: stopped anywhere it goes on; its table and evidence are of its runs."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

import reproduce
from mlpcore.commands import runs
from mlpcore.data import dataset, mnist
from mlpcore.network.architecture import PRESETS
from mlpcore.report.console import ProgressBar
from mlpcore.store.weights import read_network, weights_sha256
from small_runs import assert_same_result, isolate, load_run, write_idx


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Small data in the place of MNIST and small networks, in the working folder."""
    isolate(monkeypatch, tmp_path / "work")
    data = dataset.load(write_idx("data/mnist"))
    monkeypatch.setattr(mnist, "IDENTITY", (data.train_pixels.shape, data.sha256))
    monkeypatch.setattr(runs, "trained_figures", lambda *args: {})  # they take long
    monkeypatch.setitem(PRESETS, "net1", (8,))
    monkeypatch.setitem(PRESETS, "net2", (9, 6))


def main(*options):
    return reproduce.main(["--nets", "1", "2", "--epochs", "3", "--threads", "1", *options])


def test_stopped_runs_go_on_and_finished_ones_are_left_alone(small, monkeypatch, capsys):
    assert main("--out", "whole") == 0

    def stop(self, trainer):
        if trainer.state.epoch == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "on_epoch_start", stop)
        assert main() == 128 + signal.SIGTERM
    assert "net1-seed0" in capsys.readouterr().out
    kept = json.loads(Path("runs/table1/net1-seed0.json").read_text())
    assert kept["last"]["epoch"] == 2 and kept["training"]["epochs"] == 3
    network = read_network("runs/table1/net1-seed0/last.safetensors")[0]
    assert kept["weights"][-1]["sha256"] == weights_sha256(network)
    assert main("--seeds", "0", "1") == 0
    for name in ("net1-seed0", "net2-seed0"):
        assert_same_result(load_run(f"runs/table1/{name}"), load_run(f"whole/{name}"))
    out = capsys.readouterr().out
    assert "net1-seed1" in out and "mean of 2 seeds" in out
    before = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*") if path.is_file()}
    shutil.rmtree("data")  # nothing is left to train, so nothing needs them
    assert main("--seeds", "0", "1") == 0
    assert all(path.stat().st_mtime_ns == t for path, t in before.items() if path.suffix != ".json")
