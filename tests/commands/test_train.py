"""`mlpcore train`: what it prints and writes, how it stops and goes on."""

import json
import os
import re
import shlex
import signal
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from msgspec import structs

from mlpcore import TrainingConfig, backends
from mlpcore.__main__ import main
from mlpcore.commands import runs
from mlpcore.commands import train as command
from mlpcore.deformation import IDENTITY, DeformationParameters
from mlpcore.files import LOCK_FILE
from mlpcore.network.architecture import PRESETS
from mlpcore.report import figures
from mlpcore.report.results import describe_second
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training import pace
from small_runs import DATA, MODERN, load_run, make_pixels

PAPER = TrainingConfig(PRESETS["net2"], backend="scalar", schedule="sparse")

QUICK = ("--recipe", "paper", "--arch", "8", "--epochs", "2", "--threads", "1")


@pytest.fixture
def train(call, data):
    """Trains on small data into the folder ``r``; returns what is printed."""
    return lambda *options: call("train", "--data", data, *QUICK, "--out", "r", *options)


def test_a_run_prints_plain_lines_and_a_table(train, data):
    out = train()
    assert not re.search(r"[\x00-\x09\x0b-\x1f]|note", out)
    lines = out.splitlines()
    assert lines[0] == f"data: letters ({data}): 230 training and 60 test images of 7 x 5"
    assert lines[1] == f"backend: {backends.get(threads=1).description}"
    assert "315 weights" in lines[2]
    assert [line.split()[0] for line in lines[4:6]] == ["1/2", "2/2"]
    state = load_run("r")
    last = state.history[1]
    errors = [last.training_error, last.validation_error, last.test_error]
    assert re.findall(r"([\d.]+) %", lines[5]) == [f"{each:.2f}" for each in errors]
    assert f"{state.best_metrics.test_error:.2f} %" in lines[-3]
    assert re.fullmatch(r"report: r/report.md; summary: .* info r", lines[-1])
    files = [BEST, LAST, CONFIG, METRICS, LOCK_FILE, runs.REPORT, "figures"]
    assert sorted(os.listdir("r")) == sorted(files)


@pytest.mark.figures
def test_the_report_shows_figures_of_the_best_network(train, call, monkeypatch):
    train("--lr", "0.05", "--epochs", "3", "--sigma", "5.5")
    drawn = []
    draw = figures.evaluation_figures
    monkeypatch.setattr(figures, "evaluation_figures", lambda *a: drawn.append(a) or draw(*a))
    for name in ("figures/.confusion.png.0123abcd.tmp", ".report.md.0123abcd.tmp"):
        Path("r", name).touch()  # which killed processes have left
    call("train", "--resume", "r", "--epochs", "5")
    assert not [*Path("r").rglob("*.tmp")]
    text, best = Path("r", runs.REPORT).read_text(), load_run("r").best_metrics
    ((images, test, title),) = drawn
    assert title.endswith(" on letters")
    assert (images.shape, test.errors, test.n) == ((60, 7, 5), best.test_errors, 60)
    assert f"Misclassified: {best.test_errors} of 60 images, {best.test_error:.2f} %" in text
    assert {"- sigma: 5.5", "- epochs: 5 (3 until epoch 3)", describe_second(test)} <= set(
        text.splitlines()
    )
    shown = re.findall(r"!\[[a-z ]+\]\((.*)\)", text)
    assert sorted(Path("r", file) for file in shown) == sorted(Path("r", "figures").iterdir())
    assert len(shown) == 4


@pytest.mark.figures
def test_figures_and_a_report_that_fail_do_not_fail_the_training(train, call, monkeypatch):
    no_font = mock.Mock(side_effect=RuntimeError("no\nfont"))
    with monkeypatch.context() as patch:
        patch.setattr(figures, "evaluation_figures", no_font)
        (note,) = (line for line in train().splitlines() if line.startswith("note: "))
    assert note == "note: no figures are drawn: RuntimeError: no font"
    text = Path("r", runs.REPORT).read_text()
    assert "![" not in text and "## Test" in text
    weights = Path("r", LAST).read_bytes()
    drawn, again = (call("train", "--resume", "r") for _ in range(2))
    assert "note" not in drawn and again == call("info", "r")
    assert "drawing" in drawn and "drawing" not in again
    assert Path("r", LAST).read_bytes() == weights
    Path("r", runs.REPORT).unlink()
    Path("r", runs.REPORT).mkdir()
    *_, note = call("train", "--resume", "r").splitlines()
    assert note.startswith("note: no report: cannot write r/report.md: ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "--lr 0.02 --lr-end 0.01 --sigma 5 --alpha 37 --beta 10 --gamma 20 --seed 3 --arch 7,5 "
            "--ones-and-sevens 0.3 --lr-ratio 2 --target 1.5 --activation tanh --loss squared "
            "--init he --input-range signed --decay factor --warm-up 30 --epochs 2 --recipe modern",
            {
                "hidden_layers": (7, 5), "epochs": 2, "learning_rate": 0.02,
                "learning_rate_end": 0.01, "learning_rate_ratio": 2, "target": 1.5,
                "activation": "tanh", "loss": "squared", "init": "he", "input_range": "signed",
                "ones_and_sevens": 0.3, "decay": "factor", "warm_up": 30, "seed": 3,
                "deformation": DeformationParameters(5, 37, 10, 20),
            },
        ),
        ("", {"hidden_layers": (1000, 500), "deformation": DeformationParameters()}
         | MODERN | {"learning_rate": 0.01}),
        ("--no-deform", {"deformation": IDENTITY}),
        ("--arch 7,5 --recipe saturating --target 1.2", {"learning_rate_ratio": 2, "target": 1.2}),
        ("--arch net2 --recipe saturating", {"learning_rate_ratio": 4 ** (1 / 3), "target": 1.5}),
        ("--arch net2 --recipe paper", structs.asdict(PAPER)),
    ],
)  # fmt: skip
def test_options_and_then_the_recipe_reach_the_settings(options, expected):
    config = command.make_config(command.parse(options.split()), "scalar")
    assert (config.backend, config.schedule) == ("scalar", "sparse")
    assert structs.replace(config, **expected) == config


def test_a_name_that_another_process_takes_in_the_meantime(call, data, monkeypatch):
    monkeypatch.setattr(command, "check_output", lambda folder: folder.mkdir(parents=True))
    call("train", "--data", data, "--arch", "3", "--epochs", "1")
    taken, own = sorted(Path("runs").iterdir())
    assert own.name == f"{taken.name}-2" and not os.listdir(taken) and load_run(own).epoch == 1


def test_minutes_become_epochs_before_training(call, data, monkeypatch):
    """So that the learning rate falls to its end in them; by `modern` some are not validated.

    An image takes a tenth of a second, a fifth of it for validation, and in the first epoch more.
    """
    parts = []

    def trainer(config, data, backend):
        n, n_test = len(data.train_labels), len(data.test_labels)
        parts.append((config.epochs, n, n_test, backend.threads))
        times = (99, 50), (n / 10, (n + n_test) / 50)
        history = [SimpleNamespace(seconds=a, evaluation_seconds=b) for a, b in times]
        return SimpleNamespace(run=lambda: True, state=SimpleNamespace(history=history))

    monkeypatch.setattr(pace, "Trainer", trainer)
    monkeypatch.setattr(pace, "MEASURED_SECONDS", 12)
    argv = ["--recipe", "modern", "--arch", "4", "--threads", "1", "--out", "r"]
    out = call("train", "--data", data, *argv, "--minutes", "9")
    assert parts == [(2, 100, 26, 1), (2, 200, 52, 1)]
    # Of 24 epochs 13 are validated, and take 23 seconds; the others take 18.4.
    assert load_run("r").epoch == 24
    assert "--minutes 9: 24 epochs, in about 8.4 min\n" in out


def test_epochs_of_a_run_without_a_number(monkeypatch):
    for samples, most, epochs in ((700, 500, 3), (9, 500, 1), (999, 2, 2)):
        monkeypatch.setattr(command, "DEFAULT_SAMPLES", samples)
        monkeypatch.setattr(command, "MAX_DEFAULT_EPOCHS", most)
        config = command.fitted(command.make_config({"arch": "8"}, "scalar"), {}, DATA)
        assert (config.epochs, config.deformation.similar_labels) == (epochs, (1,))


def test_without_mnist_digits_that_know_one_and_seven(call):
    """Each run has a folder of its own; strokes name themselves wherever the run is."""
    for _ in range(2):
        out = call("train", *QUICK, "--arch", "4,5", "--epochs", "1", "--ones-and-sevens", "0.3")
    assert out.startswith("note: MNIST was not found")
    assert "data: scikit-learn digits" in out
    assert "; strokes on 30 % of the ones and sevens; " in out
    folder, again = sorted(Path("runs").iterdir())
    assert re.fullmatch(r"4-5-\d{8}-\d{6}", folder.name) and folder.name[:12] == again.name[:12]
    settings = json.loads((folder / CONFIG).read_text())["training"]
    assert settings["deformation"]["similar_labels"] == [1, 7]
    call("export", folder, "--safetensors", "net.safetensors")
    assert TrainedNetwork.read("net.safetensors").metadata["ones_and_sevens"] == "0.3"
    assert "strokes on 30 %" in call("train", "--resume", folder, "--epochs", "2")
    assert "- ones and sevens: 0.3" in (folder / runs.REPORT).read_text().splitlines()


def test_held_out_images_take_the_place_of_the_test_images(train, call, data):
    """In what is said, in what is counted, when the run goes on, and when it is evaluated."""
    out = train("--hold-out", "40")
    assert "190 training and 40 held-out training images of 7 x 5" in out
    assert "held-out error for best validation" in out
    assert [m.n_test for m in load_run("r").history] == [40, 40]
    assert "on 40 held-out training images." in Path("r", runs.REPORT).read_text()
    assert "190 training and 40 held-out" in call("train", "--resume", "r", "--epochs", "3")
    assert ": 40 held-out training images of 7 x 5" in call("evaluate", "r")
    out = call("evaluate", "r", "--data", data)
    assert ": 60 test images of 7 x 5" in out and "a part held out" in out


def test_a_signal_stops_and_the_printed_command_resumes(
    data, call, refusal, signal_in, tmp_path, capsys
):
    """It says where the data are now, and may get another end."""

    def stopped(number, epoch, *argv):
        with signal_in(number, epoch):
            assert main(["train", *argv]) == 128 + number
        *_, line, printed = capsys.readouterr().out.splitlines()
        words = shlex.split(printed)
        assert words[1:4] == ["-m", "mlpcore", "train"]
        return line, words[4:]

    argv = ["--data", data, *QUICK, "--epochs", "9", "--out", "the run"]
    line, again = stopped(signal.SIGTERM, 1, *argv)
    assert line.startswith("stopped: 1 of 9 epochs done")
    assert again == ["--resume", "the run", "--threads", "1"]
    assert not Path("the run", runs.REPORT).exists()
    assert load_run("the run").progress.samples < 230
    os.rename(data, tmp_path / "moved letters")
    assert data in refusal("train", *again)
    moved = os.path.relpath(tmp_path / "moved letters")
    _, again = stopped(signal.SIGINT, 2, *again, "--data", moved)
    assert again[-2:] == ["--data", str(tmp_path / "moved letters")]
    out = call("train", *again, "--epochs", "3")
    assert "epochs: 3 instead of 9" in out and "resumed: 2 of 3 epochs done" in out
    stopped(signal.SIGINT, 3, *again, "--epochs", "9")
    assert not Path("the run", runs.REPORT).exists()  # which was that of three epochs


def test_a_signal_after_the_last_epoch_names_no_command(data, monkeypatch, capsys):
    monkeypatch.setattr(runs, "write_report", lambda *args: signal.raise_signal(signal.SIGINT))
    assert main(["train", "--data", data, *QUICK, "--out", "r"]) == 128 + signal.SIGINT
    assert "To resume" not in capsys.readouterr().out


def test_a_finished_run_goes_on_to_more_epochs(train, call):
    """The report names the settings that have a meaning, and says what the rates were."""
    train("--recipe", "modern", "--arch", "8")
    out = call("train", "--resume", "r", "--epochs", "4", "--threads", "1")
    said = "epochs: 4 instead of 2; the learning rate is 0.0025 in epoch 2, 0.00375 in the next"
    assert f"{said}, and 0.00125 in the last\n" in out
    assert "resumed: 2 of 4 epochs done" in out and out.splitlines()[-3].startswith("8, 4 epochs")
    lines = Path("r", runs.REPORT).read_text().splitlines()
    assert {"- epochs: 4 (2 until epoch 2)", "- loss: cross-entropy"} <= set(lines)
    assert not any(line.startswith(("- target", "- learning rate end")) for line in lines)
    assert "instead" not in call("train", "--resume", "r", "--epochs", "4")


def test_a_run_on_arrays_in_a_file(call, tmp_path):
    """Trained and evaluated with the names of its classes."""
    (x, y), (x_test, y_test) = make_pixels(230, 0), make_pixels(60, 1)
    words = np.array(["ant", "bee", "<i>cat"])
    file = tmp_path / "insects.npz"
    np.savez(file, X=x / 255, y=words[y], X_test=x_test / 255, y_test=words[y_test])
    out = call("train", "--data", file, *QUICK, "--out", "r")
    said = f"data: insects ({file}): 230 training and 60 test images of 7 x 5, values 0 to 1\n"
    assert out.startswith(said)
    assert r"- 3 classes: \<i\>cat, ant, bee" in Path("r", runs.REPORT).read_text().splitlines()
    out = call("evaluate", "r")
    assert re.search(r"label +<i>cat +ant +bee\n", out) and re.search(r"\d +(ant|bee|<i>cat) ", out)
    assert not re.search(r"note|\n *[012] ", out.split("misclassified")[0])


def test_divergence_ends_with_one_line(data, capsys):
    assert main(["train", "--data", data, *QUICK, "--lr", "3e38", "--out", "r"]) == 2
    (text,) = capsys.readouterr().err.splitlines()
    assert "diverged in epoch 1" in text and f"r/{LAST} holds the weights before" in text
