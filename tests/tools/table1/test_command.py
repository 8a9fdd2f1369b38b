"""tools/reproduce.py: stopped anywhere it goes on; it refuses bad input; it reports."""

import math
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from mlpcore.files import lock
from mlpcore.store import run_folder
from mlpcore.store.run_folder import CONFIG, LAST, METRICS, Run
from mlpcore.training.trainer import Diverged, Trainer
from small_runs import assert_same_result, write_idx
from table1 import experiment
from table1.command import main
from table1_runs import arguments, assert_finished, contents, refusal, run_state, stop_before

pytestmark = pytest.mark.usefixtures("isolated", "no_figures")


def test_from_nothing_to_the_table(data, capsys, whole):
    assert main(arguments(data)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line.split() for line in out.splitlines()]
    assert ["net1-seed0", "not", "started", "0/3", "not", "known", "yet"] in lines
    assert ["net2-seed0", "finished", "3/3", "-"] in lines
    assert any(line[:1] == ["net2-seed0"] and line[-1] == "(estimate)" for line in lines)
    assert_finished("runs/table1", whole)
    assert "| committee of all 2 finished runs |" in Path("runs/table1/report.md").read_text()
    before = contents("runs/table1/net1-seed0")
    shutil.rmtree(data)  # Nothing is left to train, so nothing needs the data.
    assert main(["--nets", "1,2", "--epochs", "3"]) == 0
    out = capsys.readouterr().out
    assert "epoch " not in out
    assert "note: net1-seed0, net2-seed0 without second guesses: cannot read the folder" in out
    assert contents("runs/table1/net1-seed0") == before


class Killed(BaseException):
    """No handler of errors sees it."""


def test_killed_before_any_file_is_written_it_goes_on(data, monkeypatch, whole):
    monkeypatch.setattr(run_folder, "SAVING_SHARE", math.inf)  # each epoch is saved
    replace, survived, n = os.replace, False, 0
    while not survived:
        left = n

        def kill(source, target, **folders):
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            replace(source, target, **folders)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", kill)
            try:
                main(arguments(data, "--out", f"out{n}"))
                survived = True
            except Killed:
                pass
        assert main(arguments(data, "--out", f"out{n}")) == 0
        assert_finished(f"out{n}", whole)
        n += 1
    # Each run writes config, last, report and, for each of three epochs, at least two files.
    assert n > 2 * 9 + 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_and_the_printed_command_goes_on(data, capsys, monkeypatch, number, whole):
    argv = arguments(data, "--out", "the runs")
    with monkeypatch.context() as patch:
        stop_before(patch, 1, number)
        assert main(argv) == 128 + number
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert command[2:] == argv
    assert main(command[2:]) == 0
    assert_finished("the runs", whole)


@pytest.mark.parametrize("options", [["--epochs", "4"], ["--backend", "reference"], ["--data"]])
def test_other_settings_or_data_are_refused_before_any_training(
    half_done, capsys, tmp_path, options
):
    if options == ["--data"]:
        options = ["--data", str(write_idx(tmp_path / "other", n_train=231))]
    before = contents("out")
    assert "out/net1-seed0" in refusal(capsys, *half_done, *options)
    assert contents("out") == before


@pytest.mark.parametrize("damaged", [LAST, METRICS, CONFIG])
@pytest.mark.parametrize("gone", [False, True])
def test_a_damaged_run_is_one_line_and_the_others_go_on(half_done, capsys, whole, damaged, gone):
    path = Path("out/net1-seed0", damaged)
    path.unlink() if gone else path.write_bytes(path.read_bytes()[:-5])
    before = contents("out/net1-seed0")
    assert main(half_done) == 2
    out, err = capsys.readouterr()
    assert re.fullmatch(r"error: [^\n]+\n", err) and damaged in err
    assert re.search(r"^net1-seed0 +damaged ", out, re.MULTILINE)
    assert_same_result(run_state("out/net2-seed0"), run_state(whole / "net2-seed0"))
    assert contents("out/net1-seed0") == before
    assert "Started, but not in the table: net1-seed0." in Path("out/report.md").read_text()


def test_a_run_of_another_process_is_left_alone(data, capsys, monkeypatch):
    argv = arguments(data, "--out", "out")
    with monkeypatch.context() as patch:
        stop_before(patch, 0, signal.SIGTERM)
        assert main(argv) == 128 + signal.SIGTERM
    before, taken = contents("out/net1-seed0"), lock(Path("out/net1-seed0"))
    try:
        assert main(argv) == 1
    finally:
        os.close(taken)
    assert contents("out/net1-seed0") == before
    assert re.search(r"^net1-seed0 +running +0/3", capsys.readouterr().out, re.MULTILINE)
    assert run_state("out/net2-seed0").epoch == 3
    assert main(argv) == 0


def test_another_process_may_be_faster(data, capsys, monkeypatch, whole):
    """It takes a run between the look at its folder and its creation, and is killed."""
    create, taken = Run.create, []

    def late(folder, *rest):
        if not taken:
            folder.mkdir(parents=True)
            taken.append(lock(folder))
        return create(folder, *rest)

    monkeypatch.setattr(Run, "create", late)
    monkeypatch.setattr(experiment.time, "sleep", lambda seconds: os.close(taken[0]))
    assert main(arguments(data, "--out", "out")) == 0
    assert capsys.readouterr().err == ""
    assert_finished("out", whole)


def test_a_run_that_fails_is_one_line_and_the_others_go_on(data, capsys, monkeypatch):
    train = Trainer._train

    def diverge(self, *args):
        if len(self.config.hidden_layers) == 1:
            raise Diverged("training diverged")
        return train(self, *args)

    monkeypatch.setattr(Trainer, "_train", diverge)
    assert main(arguments(data, "--out", "out")) == 2
    out, err = capsys.readouterr()
    assert re.fullmatch(r"error: net1-seed0: training diverged;[^\n]*\n", err)
    assert re.search(r"^net1-seed0 +failed +0/3", out, re.MULTILINE)
    assert run_state("out/net2-seed0").epoch == 3


def test_the_report_has_table_and_figures(half_done):
    errors = run_state("out/net1-seed0").best_metrics.test_errors
    assert main(["--report", "--out", "out"]) == 0
    text = Path("out/report.md").read_text()
    figures = re.findall(r"\]\(([^)]+\.png)\)", text)
    assert len(figures) == 2 and all(Path("out", figure).exists() for figure in figures)
    assert re.search(rf"^\| net1-seed0 .* \d+ of {errors} \|", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--nets 6", "'6', expected some of net1"),
        ("--out file", "file"),
        ("--out /proc/runs", "/proc/runs"),
        ("--unfinished", "--unfinished together with training"),
        ("--readme file --out here", "--out together with readme"),
        ("--evidence kept --epochs 0", "--epochs together with evidence"),
        ("--rerun kept --report", "--report together with rerun"),
        ("--rerun none", "none/config.json"),
        ("--report", "runs/table1"),
        ("--readme file", "benchmarks/results/table1"),
    ],
)
def test_arguments_are_refused_and_nothing_is_left(capsys, options, words):
    Path("file").touch()
    assert words in refusal(capsys, *options.split())
    assert os.listdir() == ["file"]
