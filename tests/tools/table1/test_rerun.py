"""Runs of the evidence are computed again, to the bit, as far as they have come."""

import json
import os
import shlex
import signal
from pathlib import Path

import pytest

from mlpcore.store.run_folder import BEST
from mlpcore.store.weights import weights_sha256
from mlpcore.training.trainer import Trainer
from small_runs import load_tool, write_idx
from table1 import evidence
from table1.command import main
from table1.rerun import first_difference
from table1_runs import refusal, run_state


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_row_is_computed_again_to_the_bit(kept, capsys, data, threads):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", threads]
    assert main(argv) == 0
    assert "the same as kept/net1-seed0, to the bit" in capsys.readouterr().out
    expected = evidence.read_run_evidence(kept / "net1-seed0")
    again = run_state("runs/rerun/net1-seed0")
    assert weights_sha256(again.best) == expected.best.sha256
    assert weights_sha256(again.network) == expected.last.sha256


@pytest.mark.parametrize("ours, noted", [("a" * 40, True), ("b" * 40, False), ("", False)])
def test_a_row_of_another_revision(kept, capsys, data, monkeypatch, ours, noted):
    """Its bits cannot be promised, which is said before they are computed."""
    path = kept / "net1-seed0" / "result.json"
    result = json.loads(path.read_text())
    for weights in (result["best"], result["last"]):
        weights["revision"] = "b" * 40
    result["revisions"] = [[1, "b" * 40]]
    path.write_text(json.dumps(result))
    monkeypatch.setattr("mlpcore.store.provenance.revision", lambda: ours)
    assert main(["--rerun", "kept/net1-seed0", "--data", data, "--threads", "1"]) == 0
    note = f"note: computed by revision {'b' * 40}, this is {ours}: the bits differ if"
    assert (note in capsys.readouterr().out.replace("\n", " ")) == noted


def test_a_row_of_several_revisions(data, capsys, monkeypatch):
    """All are named, though both networks are of the last one."""
    argv = ["--nets", "1", "--epochs", "4", "--threads", "1", "--data", data]
    run_epoch = Trainer._run_epoch

    def run_one(self):
        run_epoch(self)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("mlpcore.store.provenance.revision", lambda: "a" * 40)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_run_epoch", run_one)
        assert main(argv) == 128 + signal.SIGTERM
    monkeypatch.setattr("mlpcore.store.provenance.revision", lambda: "c" * 40)
    assert main(argv) == main(["--evidence", "kept"]) == 0
    result = json.loads(Path("kept/net1-seed0/result.json").read_text())
    assert result["best"]["revision"] == result["last"]["revision"] == "c" * 40
    assert result["revisions"] == [[1, "a" * 40], [2, "c" * 40]]
    capsys.readouterr()
    assert main(["--rerun", "kept/net1-seed0", "--data", data]) == 0
    note = f"note: computed by revision {'a' * 40}, then by {'c' * 40}, this is {'c' * 40}: the"
    assert note in capsys.readouterr().out.replace("\n", " ")


def test_held_out_images_are_evidence_too(data, capsys):
    """Also of settings that are not the paper's, and computed again to the bit."""
    train = load_tool("train")
    argv = ["--data", data, "--hold-out", "40", "--arch", "8", "--epochs", "2", "--sigma", "5"]
    assert train.main([*argv, "--threads", "1", "--out", "runs/own/held-out"]) == 0
    assert main(["--evidence", "own", "--out", "runs/own"]) == 0
    text = Path("own", "README.md").read_text()
    assert text.startswith("# Runs tested on held-out images")
    rates = "learning rate 0.001 to 0.00099655 in 2 epochs"
    assert f"Settings of held-out: {rates}, sigma 5, alpha 36, beta 15, gamma 15, " in text
    assert "40 training images held out and tested on." in text
    header = [cell.strip() for cell in text.splitlines()[2].split("|")]
    assert header[5:7] == ["held-out error at best validation", "best held-out error"]
    assert "selected by the held-out images" in text and "test images" not in text
    capsys.readouterr()
    assert main(["--rerun", "own/held-out", "--data", data]) == 0
    assert "the same as own/held-out, to the bit" in capsys.readouterr().out


def test_evidence_of_the_embedded_digits_needs_no_folder(capsys):
    train = load_tool("train")
    argv = ["--dataset", "digits", "--hold-out", "300", "--arch", "8", "--epochs", "1"]
    assert train.main([*argv, "--threads", "1", "--out", "runs/own/digits"]) == 0
    assert main(["--evidence", "own", "--out", "runs/own"]) == 0
    capsys.readouterr()
    assert main(["--rerun", "own/digits", "--threads", "1"]) == 0
    assert "the same as own/digits, to the bit" in capsys.readouterr().out
    assert "together with data set 'digits'" in refusal(
        capsys, "--rerun", "own/digits", "--data", "own", "--out", "again"
    )


def test_a_rerun_may_be_interrupted(kept, capsys, data, monkeypatch):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_on_samples", lambda *args: os.kill(os.getpid(), signal.SIGTERM))
        assert main(argv) == 128 + signal.SIGTERM
    command = capsys.readouterr().out.splitlines()[-1]
    assert main(shlex.split(command)[2:]) == 0


def test_differences_are_found(kept, capsys, data):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", "1"]
    path = kept / "net1-seed0" / "result.json"
    result = json.loads(path.read_text())
    result["best"]["sha256"] = "0" * 64
    path.write_text(json.dumps(result))
    assert main(argv) == 1
    out = capsys.readouterr().out
    assert f"{BEST}: weights of SHA-256" in out
    assert "to the bit" not in out
    other = ["--evidence", "kept", "--out", "other"]
    settings = ["--nets", "1", "--epochs", "3", "--seeds", "1", "--data", data, "--out", "other"]
    assert main(settings) == main(other) == 0
    found = evidence.read_run_evidence(kept / "net1-seed1").record.history
    expected = run_state("out/net1-seed0").history
    assert first_difference(found, expected) == 1
    assert first_difference(expected, expected) is None
    assert first_difference(expected[:2], expected) == 3


def test_a_rerun_of_other_data_or_settings_is_refused(kept, capsys, data, tmp_path):
    other = str(write_idx(tmp_path / "other", n_train=231))
    argv = ["--rerun", "kept/net1-seed0"]
    assert "data of kept/net1-seed0 are not MNIST: expected --data" in refusal(capsys, *argv)
    assert "are not those of kept/net1-seed0" in refusal(capsys, *argv, "--data", other)
    assert sorted(os.listdir()) == ["kept", "out"]
    settings = ["--nets", "1", "--epochs", "2", "--data", data, "--out", "runs/rerun"]
    assert main(settings) == 0
    assert "has other settings than" in refusal(capsys, *argv, "--data", data)
