"""tools/train.py: what it prints and writes, its exit codes, one line for every bad input."""

import dataclasses
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlpcore
from mlpcore import backends, files
from mlpcore.commands import runs
from mlpcore.data import mnist
from mlpcore.data.summary import DataSummary
from mlpcore.network.architecture import PRESETS
from mlpcore.report import console
from mlpcore.report import results as report
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, Run
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, TrainingState
from mlpcore.training.trainer import Trainer
from small_runs import BACKENDS, assert_same_result, isolate, load_tool, write_arrays, write_idx

tool = load_tool("train")
SCRIPT = Path(__file__).parents[2] / "tools" / "train.py"
QUICK = ("--arch", "8", "--epochs", "2", "--threads", "1")


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """An empty working folder, no data set of this machine, no network."""
    isolate(monkeypatch, tmp_path / "work")


@pytest.fixture(autouse=True)
def no_figures(request, monkeypatch):
    """Figures take longer than these trainings: only tests that are marked draw them."""
    if not request.node.get_closest_marker("figures"):
        monkeypatch.setattr(runs, "draw", lambda *args: [])


@pytest.fixture
def data(tmp_path):
    """A folder of small IDX files."""
    return str(write_idx(tmp_path / "letters"))


def run_state(folder):
    run = Run.open(Path(folder))
    try:
        return run.load()
    finally:
        run.close()


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments."""
    capsys.readouterr()
    assert tool.main(list(argv)) == 2
    err = capsys.readouterr().err
    assert re.fullmatch(r"error: [^\n]+\n", err)
    return err


# A run


def test_a_run_prints_plain_lines_and_a_table(data, capsys):
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", out)
    lines = out.splitlines()
    assert lines[0].startswith(f"data: letters ({data}): 230 training and 60 test images")
    assert lines[1] == f"backend: {backends.get(threads=1).description}"
    assert "315 weights" in lines[2]
    assert lines[3].split() == list(console.COLUMNS)
    assert [line.split()[0] for line in lines[4:6]] == ["1/2", "2/2"]
    state = run_state("r")
    assert f"{state.history[1].validation_error:.2f} %" in lines[5]
    assert lines[-1].startswith("8, 2 epochs")
    assert not any("note" in line for line in lines)
    assert f"{state.best_metrics.test_error:.2f} %" in lines[-1]
    assert sorted(os.listdir("r")) == sorted([BEST, LAST, CONFIG, METRICS, "report.md"])


def test_the_report_holds_table_and_settings(data):
    assert tool.main(["--data", data, *QUICK, "--out", "r", "--sigma", "5.5", "--seed", "9"]) == 0
    text = Path("r", "report.md").read_text()
    assert "| 8, 2 epochs |" in text
    for line in ("- sigma: 5.5", "- seed: 9", "- epochs: 2", "- learning rate: 0.001"):
        assert line in text.splitlines()


@pytest.mark.figures
def test_the_report_shows_figures_of_the_best_network(data, monkeypatch):
    drawn = []
    evaluation_figures = runs.evaluation_figures
    monkeypatch.setattr(
        runs,
        "evaluation_figures",
        lambda *args: drawn.append(args) or evaluation_figures(*args),
    )
    argv = ["--data", data, *QUICK, "--lr", "0.05", "--epochs", "5", "--out", "r"]
    assert tool.main(argv) == 0
    text, best = Path("r", "report.md").read_text(), run_state("r").best_metrics
    ((images, test),) = drawn
    assert (images.shape, test.errors, test.n) == ((60, 7, 5), best.test_errors, 60)
    low, high = test.interval
    assert (
        f"Misclassified: {best.test_errors} of 60 images, {best.test_error:.2f} % "
        f"(95 % interval {low:.2f} to {high:.2f} %)."
    ) in text
    assert report.describe_second(test) in text.splitlines()
    shown = re.findall(r"!\[[a-z ]+\]\((.*)\)", text)
    assert len(shown) == 4
    assert all(Path("r", file).read_bytes().startswith(b"\x89PNG") for file in shown)
    assert sorted(Path("r", file) for file in shown) == sorted(Path("r", "figures").iterdir())


@pytest.mark.parametrize("error", [RuntimeError("no\nfont"), MemoryError(), OSError(28, "full")])
def test_figures_that_fail_do_not_fail_the_training(data, capsys, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr(runs, "draw", fail)
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    (note,) = (line for line in out.splitlines() if line.startswith("note: "))
    assert note.startswith(f"note: no figures are drawn: {type(error).__name__}: ")
    text = Path("r", "report.md").read_text()
    assert "![" not in text and "## Test" in text
    monkeypatch.setattr(runs, "draw", lambda *args: [])
    assert tool.main(["--resume", "r"]) == 0  # draws them after all
    assert "note" not in capsys.readouterr().out


@pytest.mark.figures
def test_a_folder_of_figures_that_cannot_be_written(data, capsys):
    Path("r").mkdir()
    Path("r", "figures").touch()
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    assert "note: no figures are drawn: InputError: cannot create r/figures" in (
        capsys.readouterr().out
    )


def test_options_reach_the_settings(data):
    options = "--lr 0.02 --lr-end 0.01 --sigma 5 --alpha 37 --beta 10 --gamma 20 --seed 3"
    options += " --backend scalar --schedule immediate --lr-ratio 2 --target 1.5"
    argv = ["--data", data, "--arch", "7,5", "--epochs", "1", *options.split(), "--out", "r"]
    assert tool.main(argv) == 0
    config = json.loads(Path("r", CONFIG).read_text())["training"]
    assert config["deformation"] == {
        "sigma": 5, "alpha": 37, "beta": 10, "gamma": 20, "similar_labels": [],
    }  # fmt: skip
    del config["deformation"]
    assert config == {
        "hidden_layers": [7, 5], "epochs": 1, "learning_rate": 0.02, "learning_rate_end": 0.01,
        "learning_rate_ratio": 2, "target": 1.5, "seed": 3, "backend": "scalar",
        "schedule": "immediate",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "ratio", "target"),
    [
        ("--recipe paper", 1, 1),
        ("--recipe saturating", 2, 1.5),
        ("--recipe saturating --target 1.2", 2, 1.2),
        ("--recipe saturating --lr-ratio 1", 1, 1.5),
    ],
)
def test_a_recipe_stands_where_options_do_not(data, options, ratio, target):
    argv = ["--data", data, "--arch", "7,5", "--epochs", "1", *options.split(), "--out", "r"]
    assert tool.main(argv) == 0
    config = json.loads(Path("r", CONFIG).read_text())["training"]
    assert (config["learning_rate_ratio"], config["target"]) == (ratio, target)


def test_no_deform(data):
    assert tool.main(["--data", data, *QUICK, "--no-deform", "--out", "r"]) == 0
    deformation = json.loads(Path("r", CONFIG).read_text())["training"]["deformation"]
    assert (deformation["alpha"], deformation["beta"], deformation["gamma"]) == (0, 0, 0)


@pytest.mark.parametrize(("n_train", "epochs"), [(60_000, 30), (1_442, 500), (10**7, 1)])
def test_epochs_by_default_make_1_8_million_samples(data, monkeypatch, n_train, epochs):
    made = []

    class Labels(list):
        def __len__(self):
            return n_train

    load = tool.dataset.load

    def load_with_size(*args, **kwargs):
        dataset = load(*args, **kwargs)
        object.__setattr__(dataset, "train_labels", Labels())
        return dataset

    def trainer(config, *args):
        made.append(config)
        raise tool.InputError("enough")

    monkeypatch.setattr(tool.dataset, "load", load_with_size)
    monkeypatch.setattr(runs, "Trainer", trainer)
    assert tool.main(["--data", data, "--arch", "8"]) == 2
    assert made[0].epochs == epochs


def test_a_folder_of_its_own_for_each_run(data):
    argv = ["--data", data, "--arch", "8,5", "--epochs", "1", "--threads", "1"]
    assert tool.main(argv) == tool.main(argv) == 0
    names = os.listdir("runs")
    assert len(names) == 2
    assert all(re.fullmatch(r"8-5-\d{8}-\d{6}(-2)?", name) for name in names)


def test_the_digits_by_name_know_one_and_seven(capsys):
    argv = ["--dataset", "digits", "--arch", "4", "--epochs", "1", "--threads", "1", "--out", "r"]
    assert tool.main(argv) == 0
    assert "data: scikit-learn digits" in capsys.readouterr().out
    run = Run.open(Path("r"))
    run.close()
    assert run.config.deformation.similar_labels == (1, 7)
    assert tool.main(["--resume", "r"]) == 0


# Stop and resume


def stop_at(monkeypatch, signal_number, epoch):
    """Sends this process a signal when an epoch has begun to train."""
    on_samples = Trainer._on_samples
    sent = []

    def hook(self, begin, done):
        if self.state.epoch == epoch and not sent:
            sent.append(signal_number)
            os.kill(os.getpid(), signal_number)
            os.kill(os.getpid(), signal_number)  # an impatient second one
        return on_samples(self, begin, done)

    monkeypatch.setattr(Trainer, "_on_samples", hook)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_signal_stops_and_the_printed_command_resumes(data, capsys, monkeypatch, number, backend):
    argv = ["--data", data, "--arch", "8", "--epochs", "3", "--backend", backend, "--threads", "1"]
    assert tool.main([*argv, "--out", "whole"]) == 0
    with monkeypatch.context() as patch:
        stop_at(patch, number, epoch=1)
        status = tool.main([*argv, "--out", "the run"])
    assert status == 128 + number
    assert not Path("the run", "report.md").exists()
    state = run_state("the run")
    assert state.epoch == 1
    assert state.progress.samples < 230
    *_, stopped, command = capsys.readouterr().out.splitlines()
    assert stopped.startswith("stopped: 1 of 3 epochs done")
    _, script, *arguments = shlex.split(command)
    assert Path(script).resolve() == SCRIPT
    assert arguments == ["--resume", "the run", "--threads", "1"]
    assert tool.main(arguments) == 0
    out = capsys.readouterr().out
    assert "resumed: 1 of 3 epochs done" in out
    assert out.splitlines()[-1].startswith("8, 3 epochs")
    if backend != "reference":  # of whose float64 a stop keeps float32
        assert_same_result(run_state("whole"), run_state("the run"))


def test_the_printed_command_says_where_the_data_are_now(data, capsys, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        stop_at(patch, signal.SIGINT, epoch=0)
        assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 128 + signal.SIGINT
    os.rename(data, tmp_path / "moved letters")
    with monkeypatch.context() as patch:
        stop_at(patch, signal.SIGINT, epoch=1)
        moved = os.path.relpath(tmp_path / "moved letters")
        assert tool.main(["--resume", "r", "--data", moved]) == 128 + signal.SIGINT
    _, _, *arguments = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert arguments == ["--resume", "r", "--data", str(tmp_path / "moved letters")]
    assert tool.main(arguments) == 0


def test_the_handlers_are_put_back(data):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert tool.main(["--data", data, *QUICK]) == 0
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_finished_run_only_shows_its_result_again(data, capsys):
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    weights, table = Path("r", LAST).read_bytes(), capsys.readouterr().out.splitlines()[-1]
    assert tool.main(["--resume", "r"]) == 0
    assert Path("r", LAST).read_bytes() == weights
    assert capsys.readouterr().out.splitlines()[-1] == table


def deny_new_files(patch):
    """As in a folder that is only to be read; root, as whom tests may run, may write any."""

    def refuse(path=None, mode="", **kwargs):
        if mode != "rb":
            raise PermissionError(13, "Permission denied")
        return open(path, mode)

    patch.setattr(files.tempfile, "mkdtemp", refuse)
    patch.setattr(files, "open", refuse, raising=False)


def test_a_run_in_a_folder_that_cannot_be_written(data, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, signal.SIGINT, epoch=1)
        assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 128 + signal.SIGINT
    deny_new_files(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", None)  # nothing is computed in vain
        text = refusal(capsys, "--resume", "r")
    assert text == "error: cannot write to r: Permission denied\n"


def test_the_result_of_a_run_in_a_folder_that_cannot_be_written(data, capsys, monkeypatch):
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    table = capsys.readouterr().out.splitlines()[-1]
    deny_new_files(monkeypatch)
    assert tool.main(["--resume", "r"]) == 0
    *_, shown, note = capsys.readouterr().out.splitlines()
    assert shown == table
    assert note == "note: no report: cannot write r/report.md: Permission denied"


def test_resume_finds_the_data_again_or_is_told(data, capsys, tmp_path):
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    os.rename(data, tmp_path / "moved")
    assert data in refusal(capsys, "--resume", "r")
    assert tool.main(["--resume", "r", "--data", str(tmp_path / "moved")]) == 0
    write_idx(tmp_path / "other", n_train=231)
    text = refusal(capsys, "--resume", "r", "--data", str(tmp_path / "other"))
    assert "are not those" in text


def environment():
    """For subprocesses: this package, no data set, and no way to download one."""
    root = str(Path(mlpcore.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": root, "XDG_CACHE_HOME": os.getcwd()}


def test_ctrl_c_in_a_process_of_its_own(data):
    """Interrupts as soon as the first epoch's line is there, then goes on by the command."""
    argv = [sys.executable, str(SCRIPT), "--data", data, "--arch", "200", "--epochs", "100000"]
    process = subprocess.Popen(
        [*argv, "--threads", "1", "--out", "r"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    while not process.stdout.readline().strip().startswith("1/100000"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert err == ""
    assert out.splitlines()[-1].endswith("--resume r --threads 1")
    assert run_state("r").epoch >= 1


# Bad input


def test_bad_input_in_a_process_of_its_own():
    result = subprocess.run(
        [sys.executable, str(SCRIPT), "--data", "none", "--out", "r"],
        capture_output=True,
        env=environment(),
        text=True,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.fullmatch(r"error: cannot read the folder .*none: [^\n]+\n", result.stderr)
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--arch 0", "not 0"),
        ("--arch -5", "'-5'"),
        ("--arch=-5,3", "'-5'"),
        ("--arch a,b", "'a' is not a width"),
        ("--arch=", "is not a width"),
        ("--arch 99999999", "99,999,999"),
        ("--epochs 0", "epochs 0"),
        ("--epochs -3", "epochs -3"),
        ("--epochs many", "'many', expected a whole number"),
        ("--epochs 1.5", "'1.5', expected a whole number"),
        ("--lr 0", "learning rate 0.0"),
        ("--lr -1", "learning rate -1.0"),
        ("--lr nan", "learning rate nan"),
        ("--lr inf", "learning rate inf"),
        ("--lr 1e-50", "learning rate 1e-50"),
        ("--lr fast", "'fast', expected a number"),
        ("--lr-end 0", "final learning rate 0.0"),
        ("--lr-end inf", "final learning rate inf"),
        ("--sigma -1", "sigma -1.0"),
        ("--alpha -1", "alpha -1.0"),
        ("--alpha nan", "alpha nan"),
        ("--beta 90", "beta 90.0"),
        ("--gamma 100", "gamma 100.0"),
        ("--no-deform --sigma 5", "--no-deform together with --sigma"),
        ("--seed -1", "seed -1"),
        ("--seed 1e3", "'1e3', expected a whole number"),
        ("--threads 0", "threads 0"),
        ("--backend mmx", "'mmx': expected auto, cpu, reference, scalar"),
        ("--dataset cifar", "'cifar'"),
        ("--speed 9", "--speed"),
        ("--epoch 9", "--epoch"),
        ("more", "more"),
        ("--lr", "expected one argument"),
        ("--out /proc/run", "/proc/run"),
        ("--out=", "'', expected a folder"),
        ("--data=", "'', expected a folder"),
        ("--out file", "file"),
        ("--out file/run", "file/run"),
        ("--resume none", "none/config.json"),
        ("--resume none --epochs 3", "--epochs together with --resume"),
        ("--resume none --out r", "--out together with --resume"),
    ],
)
def test_arguments_are_refused_before_anything_is_read(capsys, monkeypatch, options, words):
    def load(*args, **kwargs):
        raise AssertionError("data are loaded first")

    monkeypatch.setattr(tool.dataset, "load", load)
    Path("file").touch()
    assert words in refusal(capsys, *options.split())
    assert os.listdir() == ["file"]


def test_a_backend_that_this_cpu_lacks(capsys, monkeypatch):
    monkeypatch.setattr(backends, "unavailable_reason", lambda name: "no such luck")
    assert "no such luck" in refusal(capsys, "--backend", "sse2")


@pytest.mark.parametrize("arch", ["1000000,1000000", "999999,999999,999999"])
def test_a_network_larger_than_memory(data, capsys, arch):
    assert "GiB" in refusal(capsys, "--data", data, "--arch", arch)
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [("--data none", "none"), ("--data file", "file"), ("--dataset mnist", "MNIST")],
)
def test_data_that_are_not_there(capsys, monkeypatch, options, words):
    monkeypatch.setattr(mnist, "download", lambda *args: "the network is down")
    Path("file").touch()
    assert words in refusal(capsys, *options.split(), "--out", "r")
    assert os.listdir() == ["file"]


def test_a_truncated_file_of_data(data, capsys):
    path = Path(data, "train-images-idx3-ubyte")
    path.write_bytes(path.read_bytes()[:-1])
    assert str(path) in refusal(capsys, "--data", data, "--out", "r")
    assert os.listdir() == []


def test_a_folder_that_already_holds_a_run(data, capsys):
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    before = {path: path.read_bytes() for path in Path("r").iterdir()}
    text = refusal(capsys, "--data", data, *QUICK, "--out", "r")
    assert "r already holds a run" in text
    assert {path: path.read_bytes() for path in Path("r").iterdir()} == before


def test_a_damaged_checkpoint(data, capsys, monkeypatch):
    assert tool.main(["--data", data, *QUICK, "--out", "r"]) == 0
    path = Path("r", LAST)
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(tool.dataset, "load", None)  # noticed before the data are loaded
    assert LAST in refusal(capsys, "--resume", "r")


def test_divergence_ends_with_one_line(data, capsys):
    text = refusal(capsys, "--data", data, "--arch", "8", "--lr", "3e38", "--out", "r")
    assert "diverged in epoch 1 at learning rate 3e+38" in text
    assert f"r/{LAST} holds the weights before" in text
    assert run_state("r").network.is_finite()


def test_a_full_disk_ends_with_one_line(data, capsys, monkeypatch):
    def fsync(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    text = refusal(capsys, "--data", data, *QUICK, "--out", "runs/r")
    assert text == f"error: cannot write runs/r/{CONFIG}: No space left on device\n"
    assert os.listdir() == []


def test_a_line_break_in_an_argument_stays_on_one_line(capsys):
    refusal(capsys, "--arch", "3\n4")
    refusal(capsys, "--data", "no\nwhere")
    refusal(capsys, "one\ntwo")


# Table 1


def metrics(epoch, validation_errors, test_errors):
    return EpochMetrics(
        epoch=epoch, learning_rate=1e-3, n_train=60_000, n_test=10_000, training_errors=0,
        loss=0.1, validation_errors=validation_errors, test_errors=test_errors,
        deformation_seconds=0, training_seconds=1800, evaluation_seconds=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("net", "row"),
    [
        ("net1", ("0.49 %", "0.44 %", "23.4 h", "1.34 M")),
        ("net2", ("0.46 %", "0.40 %", "44.2 h", "3.26 M")),
        ("net3", ("0.41 %", "0.39 %", "66.7 h", "6.69 M")),
        ("net4", ("0.35 %", "0.32 %", "114.5 h", "12.11 M")),
        ("net5", ("0.44 %", "0.43 %", "107.7 h", "8.86 M")),
    ],
)
def test_the_papers_row_stands_beside_ours(net, row):
    summary = DataSummary("MNIST", "here", (29, 29), 10, 60_000, 10_000, "")
    history = [metrics(1, 900, 120), metrics(2, 800, 130), metrics(3, 850, 110)]
    state = TrainingState(None, None, history)
    rows = report.result_table(TrainingConfig(PRESETS[net]), summary, state)
    assert rows[2] == (f"{net} in the paper", *row)
    assert rows[1] == (f"{net}, 3 epochs", "1.30 %", "1.10 %", "1.5 h", row[-1])
    assert len({len(line) for line in report.markdown_table(rows).splitlines()}) == 1


def test_held_out_images_take_the_place_of_the_test_images(data, capsys):
    """In what is said, in what is counted, when the run goes on, and when it is evaluated."""
    argv = ["--data", data, "--hold-out", "40", *QUICK, "--out", "r"]
    assert tool.main(argv) == 0
    out = capsys.readouterr().out
    assert "190 training and 40 held-out training images of 7 x 5" in out
    assert "held-out error for best validation" in out
    assert "validation  held-out  samples/s" in out
    assert [m.n_test for m in run_state("r").history] == [40, 40]
    text = Path("r", "report.md").read_text()
    assert "By the network of that epoch, on 40 held-out training images. Misclassified:" in text
    assert "190 training and 40 held-out training images" in text
    assert tool.main(["--resume", "r"]) == 0
    assert "190 training and 40 held-out" in capsys.readouterr().out
    evaluate = load_tool("evaluate")
    assert evaluate.main(["r"]) == 0
    assert ": 40 held-out training images of 7 x 5" in capsys.readouterr().out
    assert evaluate.main(["r", "--data", data]) == 0
    out = capsys.readouterr().out
    assert ": 60 test images of 7 x 5" in out and "a part held out" in out


def test_too_many_held_out_images_are_refused(data, capsys):
    argv = ["--data", data, *QUICK, "--out", "r", "--hold-out"]
    assert "230 training images to hold out: expected 1 to 229" in refusal(capsys, *argv, "230")
    assert "--hold-out together with --resume" in refusal(capsys, "--resume", "r", *argv[-1:], "5")
    assert not Path("r").exists()


def test_no_better_than_the_most_frequent_label(tmp_path, capsys):
    """Images that tell nothing, one in three of label 0, the others of 9; none of 1 to 8."""
    arrays = [np.zeros((30, 5, 5), np.uint8), np.array(10 * [0, 9, 9], np.uint8)]
    data = str(write_arrays(tmp_path / "blank", 2 * arrays))
    argv = ["--arch", "4", "--epochs", "9", "--lr", "0.05", "--threads", "1", "--out", "r"]
    assert tool.main(["--data", data, *argv, "--no-deform"]) == 0
    assert run_state("r").best_metrics.validation_errors == 10  # guesses 9
    out = capsys.readouterr().out.replace("\n", " ")
    assert "note: always the most frequent label would be wrong 33 % of the time" in out


def test_no_row_of_the_paper_for_other_data():
    summary = DataSummary("digits", "here", (29, 29), 10, 60_000, 10_000, "")
    state = TrainingState(None, None, [metrics(1, 9, 9)])
    assert len(report.result_table(TrainingConfig(), summary, state)) == 2
    held_out = DataSummary("MNIST", "here", (29, 29), 10, 50_000, 10_000, "", held_out=10_000)
    assert len(report.result_table(TrainingConfig(), held_out, state)) == 2


def test_no_error_without_test_images():
    summary = DataSummary("digits", "here", (29, 29), 10, 60_000, 0, "")
    none = dataclasses.replace(metrics(1, 9, 9), n_test=0, test_errors=0)
    rows = report.result_table(TrainingConfig(), summary, TrainingState(None, None, [none]))
    assert rows[1][1:3] == ("-", "-")
