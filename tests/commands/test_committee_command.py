"""`mlpcore committee`: its runs and its result, how it stops and goes on, the folder for others."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest

from mlpcore import Trainer, dataset
from mlpcore.__main__ import main
from mlpcore.commands import committee as command
from mlpcore.commands import runs
from mlpcore.store.committee import CommitteeFolder
from mlpcore.store.weights import weights_sha256
from small_runs import assert_same_result, load_run
from test_golden_bits import EXPECTED


@pytest.fixture
def argv(data):
    """The command of a committee of three in the folder ``c``."""
    options = "--epochs 3 --recipe paper --lr 0.01 --threads 1 --out c --arch 8,6 7,5 12"
    return ["committee", "--data", data, *options.split()]


@pytest.mark.figures
def test_the_result(call, argv, data, monkeypatch):
    """Errors, their mean, and the comparison are those of the mean of the members' outputs."""
    monkeypatch.setattr(runs, "trained_figures", lambda *args: {})  # the figures of the members
    lines = call(*argv).splitlines()
    rows = {row[0]: row[1:] for row in (re.split(r"\s{2,}", line) for line in lines)}
    given, outputs = dataset.load(data), []
    for member in CommitteeFolder.open("c").members:
        state = load_run(Path("c", member.name))
        assert rows[member.name][2] == f"{state.best_metrics.test_error:.3f} %"
        seen = given.test_images.reshape(60, -1)
        outputs.append(command.backends.get("reference").predict(state.best, seen))
    errors = np.mean(outputs, axis=0).argmax(axis=1) != given.test_labels
    singly = [each.argmax(axis=1) != given.test_labels for each in outputs]
    assert rows["committee of 3"][2] == f"{100 * errors.mean():.3f} %"
    assert rows["mean of the members"][2] == f"{100 * np.mean(singly):.3f} %"
    best = min(singly, key=np.sum)
    alone = np.count_nonzero(best & ~errors), np.count_nonzero(errors & ~best)
    said = "{} images are wrong only for the member, {} only for the committee".format(*alone)
    text = Path("c", runs.REPORT).read_text()
    assert said in lines[-3] and said in text and "- epochs: 3" in text
    assert lines[-2] == "drawing figures"
    assert re.fullmatch(r"report: c/report.md; summary: .* info c", lines[-1])
    figures = re.findall(r"!\[[a-z]+\]\((.*)\)", text)
    assert sorted(Path("c", each) for each in figures) == sorted(Path("c/figures").iterdir())


def test_stopped_it_goes_on_to_the_same_bits(call, argv, data, signal_in, capsys, monkeypatch):
    """Members are ordinary runs, of the bits that they have without a committee.

    The backend is that of the beginning; another machine may have another best one.
    """
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")
    for member, epoch in ((1, 1), (2, 2)):  # in two members, in the middle of an epoch
        with signal_in(signal.SIGINT, epoch, seed=member):
            assert main(argv) == 128 + signal.SIGINT
        assert " committee " in capsys.readouterr().out.splitlines()[-1]
    with monkeypatch.context() as patch:  # after the last epoch of a member
        patch.setattr(runs, "write_report", lambda *args: signal.raise_signal(signal.SIGINT))
        assert main(argv) == 128 + signal.SIGINT
    assert " committee " in capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setenv("MLPCORE_BACKEND", "reference")
    lines = call(*argv).splitlines()
    assert "member 1 of 3: 8-6, seed 0, is trained" in lines
    committee = CommitteeFolder.open("c")
    for member in committee.members:
        backend = command.backends.get("scalar", 1)
        trainer = Trainer(member.config, dataset.load(data), backend)
        assert trainer.run()
        assert_same_result(load_run(committee.run_folder(member)), trainer.state)
    assert call(*argv).splitlines()[-8:] == lines[-8:]  # a finished one shows its result again


def test_processes_of_this_machine_come_to_the_same_bits(call):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    options = "--dataset", "digits", "--arch", "20", "--epochs", "2", "--backend", "scalar"
    argv = "committee", *options, "--members", "2", "--seed", "7", "--out", "c"
    out = call(*argv, "--workers", "2")
    assert out.startswith("dashboard: ") and "20-2: 2 of 2 epochs, test error " in out
    for name, sha256 in EXPECTED["trained committee"].items():
        assert weights_sha256(load_run(Path("c", name)).network) == sha256
    assert "dashboard" not in call(*argv, "--workers", "2")  # for which there is nothing to do


def test_a_stop_on_a_cluster_says_how_to_go_on(argv, capsys, monkeypatch):
    cluster = pytest.importorskip("mlpcore.cluster", reason="the extra 'cluster' is not installed")
    monkeypatch.setattr(cluster, "train_members", lambda *a, **options: signal.SIGINT)
    assert main([*argv, "--workers", "1", "--backend", "cuda"]) == 128 + signal.SIGINT
    assert capsys.readouterr().out.endswith("--arch 8,6 7,5 12 --workers 1 --backend cuda\n")
