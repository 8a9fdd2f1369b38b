"""`mlpcore train --teacher`: what it records and prints, resuming, refusals."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import mlpcore
from mlpcore.commands import runs
from mlpcore.inference import Teacher
from mlpcore.store.run_folder import BEST, CONFIG, METRICS
from mlpcore.store.weights import read_network
from small_runs import load_run, make_pixels, same_weights, write_arrays

QUICK = ("--recipe", "modern", "--arch", "8", "--threads", "1", "--alpha", "4", "--beta", "5")


@pytest.fixture
def train(call, data):
    """Trains on small data; returns what is printed. There is a teacher, ``t``, of two epochs."""

    def run(folder, *options):
        return call("train", "--data", data, *QUICK, "--out", folder, *options)

    run("t", "--epochs", 2, "--lr", 0.05)
    return run


def test_a_run_names_its_teacher(train, call):
    out = train("r", "--epochs", 2, "--teacher", "t", "--teacher-weight", 0.9)
    teacher = Teacher("t")
    named = f"{Path('t').resolve()} (SHA-256 {teacher.sha256[:12]}...), weight 0.9"
    assert f"\nteacher: {named}\n" in out
    assert re.search(r"^teacher: \d+ % of the time$", out, re.MULTILINE)
    settings = json.loads(Path("r", CONFIG).read_text())["training"]["teacher"]
    paths = [str(Path("t").resolve())]
    assert settings == {"paths": paths, "sha256": teacher.sha256, "weight": 0.9}
    for line in Path("r", METRICS).read_text().splitlines():
        assert json.loads(line)["teacher_seconds"] > 0
    report = Path("r", runs.REPORT).read_text()
    assert f"\n- teacher: {named}\n" in report
    assert re.search(r"^The teacher took \d+ % of the time\.$", report, re.MULTILINE)
    assert "teacher" not in json.loads(Path("t", CONFIG).read_text())["training"]
    assert "teacher_seconds" not in Path("t", METRICS).read_text()
    assert not re.search(r"^(- t|The t)eacher", Path("t", runs.REPORT).read_text(), re.MULTILINE)
    assert not same_weights(read_network("r/" + BEST)[0], read_network("t/" + BEST)[0])


def test_a_run_is_evaluated_and_shown_without_its_teacher(train, call, data):
    train("r", "--epochs", 1, "--teacher", "t")
    shutil.rmtree("t")
    call("evaluate", "r")
    assert mlpcore.load("r").predict(np.zeros((1, 7, 5), np.uint8)).shape == (1,)
    call("train", "--resume", "r")


def test_a_run_goes_on_with_its_teacher_alone(train, call, refusal):
    train("whole", "--epochs", 3, "--decay", "factor", "--teacher", "t", "--teacher", "t")
    train("r", "--epochs", 3, "--decay", "factor", "--teacher", "t", "--teacher", "t")
    call("train", "--resume", "r", "--epochs", 4)
    call("train", "--resume", "whole", "--epochs", 4)
    shutil.move("t", "moved")
    line = refusal("train", "--resume", "r", "--epochs", 5)
    assert line.startswith("error: teacher of the run in r: ")
    assert line.endswith("; --teacher says where it is now\n")
    train("moved/other", "--epochs", 1, "--seed", 1)
    line = refusal("train", "--resume", "r", "--epochs", 5, "--teacher", "moved/other")
    assert re.search(r"expected the weights with the SHA-256 \w+\.\.\., found \w+\.\.\.$", line)
    moved = ("--teacher", "moved", "--teacher", "moved")
    for folder in ("r", "whole"):
        call("train", "--resume", folder, "--epochs", 5, *moved)
    assert same_weights(load_run("r").network, load_run("whole").network)
    assert "has no teacher, expected none" in refusal(
        "train", "--resume", "moved", "--epochs", 3, "--teacher", "r"
    )


def test_a_committee_teaches_and_each_member_sees_its_width(train, call, data):
    options = "--widths", "original,3", "--arch", "8", "--epochs", 1, "--threads", 1
    call("committee", "--data", data, *options, "--out", "c")
    train("r", "--epochs", 1, "--teacher", "c")
    found = json.loads(Path("r", CONFIG).read_text())["training"]["teacher"]["sha256"]
    teacher = Teacher("c")
    assert found == teacher.sha256
    assert [each.input.width for each in teacher.networks] == [None, 3]


def test_minutes_include_the_teacher(train):
    assert "--minutes 0.001: " in train("r", "--minutes", 0.001, "--teacher", "t")


def test_refusals(train, call, data, refusal, tmp_path):
    options = "train", "--data", data, *QUICK
    assert "--teacher-weight without --teacher: expected both" in refusal(
        *options, "--teacher-weight", 0.5
    )
    assert "teacher weight 2.0: expected" in refusal(
        *options, "--teacher", "t", "--teacher-weight", 2
    )
    assert "missing does not exist" in refusal(*options, "--teacher", "missing")
    arrays = *make_pixels(60, 0, 4), *make_pixels(20, 1, 4)
    other = write_arrays(tmp_path / "other", arrays)
    line = refusal("train", "--data", other, *QUICK, "--teacher", "t")
    assert "knows images of 7 x 5 and 3 classes (0, 1, 2), expected those of other, " in line
