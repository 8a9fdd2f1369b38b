"""Lines that stay, and the bars of a terminal and of a notebook."""

import builtins
import io
import sys
import types

import pytest

from mlpcore import Trainer, backends
from mlpcore.report import ProgressBar, console
from mlpcore.training.state import EpochMetrics
from small_runs import DATA, make_config


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    return terminal


def trainer_of(epochs, *observers):
    return Trainer(make_config(epochs=epochs), DATA, backends.get("scalar", 1), observers)


def test_a_terminal_shows_two_bars_and_keeps_the_lines(terminal, monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    trainer = trainer_of(30)
    with ProgressBar(terminal) as shown:
        shown.on_epoch_start(trainer)
        for phase in ("training", "evaluating"):
            for done in range(0, 230, 80):
                shown.on_progress(trainer, phase, done, 230)
        shown.on_epoch_end(trainer, EpochMetrics(1, 1e-3, 900, 0, 90, 0.1, 45, 0, 0, 10, 0))
    text = terminal.getvalue()
    assert "\x1b[" in text
    for words in ("epoch 1/30 evaluating", "epoch 1/30 training", "samples/s", "updates/s", "left"):
        assert words in text
    (line,) = (line for line in text.splitlines() if " 1/30 " in line and "5.00 %" in line)
    assert line.split()[-3:] == ["90", "10.0", "s"]


def test_a_notebook_has_bars(monkeypatch, capsys):
    """Rich draws them by ipywidgets, and says so where it is not installed."""
    shell = type("ZMQInteractiveShell", (), {})
    monkeypatch.setattr(builtins, "get_ipython", shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    with pytest.warns(UserWarning, match="ipywidgets"):
        assert trainer_of(3, ProgressBar()).run()
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["1/3", "2/3", "3/3"]


def test_a_log_file_has_some_of_many_epochs(capsys):
    assert trainer_of(50, ProgressBar()).run()
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["epoch", "rate"]
    assert [int(line.split("/")[0]) for line in lines] == [1, *range(3, 49, 3), 50]


def test_an_epoch_of_a_second_has_its_line_of_columns_that_fit(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    with ProgressBar(terminal) as shown:
        for epoch, seconds in ((4, 0.9), (5, 1.0), (30, 0.9)):
            metrics = EpochMetrics(epoch, 1e-3, 900, 0, 90, 0.1, 45, 0, 0, seconds, 0)
            shown.on_epoch_end(trainer_of(300), metrics)
    lines = terminal.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["5/300", "30/300"]
    assert all(line.endswith("5.00 %         -") for line in lines)
