"""`mlpcore info`: runs before, in and after training, committees, and files of weights."""

import signal

import pytest

from mlpcore.__main__ import main
from mlpcore.store.run_folder import BEST, read_history

pytestmark = pytest.mark.usefixtures("made_here")


def test_a_run_and_its_weights(call):
    best = min(reversed(read_history("run")), key=lambda each: each.validation_errors)
    out = " ".join(call("info", "run", f"run/{BEST}", "pretrained").split())
    assert f"{best.test_error:.2f} %" in out and "learning rate: 0.008" in out
    assert f"n test: {best.n_test}; test errors: {best.test_errors}" in out
    assert "841-1000-500-10, relu, cross-entropy, 1,347,510 weights" in out
    assert "train --resume run --epochs 6 " in out and "3 of 3 epochs done" in out
    assert {"1/3", "2/3", "3/3"} <= set(out.split())


def test_a_stopped_committee(call, data, signal_in, capsys):
    options = "--arch 3 --members 2 --epochs 2 --threads 1 --out c --data"
    with signal_in(signal.SIGINT, 1):
        assert main(["committee", *options.split(), data]) == 130
    rows = [line.split() for line in call("info", "c").splitlines()]
    (first,) = read_history("c/3-1")
    errors = [f"{each:.2f}" for each in (first.validation_error, first.test_error)]
    assert rows[2] == ["3-1", "0", "1/2", errors[0], "%", errors[1], "%"]
    assert rows[3] == ["3-2", "1", "0/2", "-", "-"]
    assert rows[4][:3] == ["to", "resume:", "repeat"]
    assert "1 of 2 epochs done" in call("info", "c/3-1")
    assert main(["evaluate", "c"]) == 2
    assert "c/3-2 is not trained yet: expected a whole committee" in capsys.readouterr().err
    assert main(["train", "--resume", "c/3-1", "--epochs", "9"]) == 2
    assert "c/3-1 is a member of the committee in" in capsys.readouterr().err
    call("committee", *options.split(), data)
    assert call("info", "c").splitlines()[-1].endswith("evaluate c")
