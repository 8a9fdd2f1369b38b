"""A progress bar in a notebook, on a terminal and in a log file."""

import builtins
import io
import re
import sys
import types

import pytest

from mlpcore import Trainer, backends
from mlpcore.report import ProgressBar, progress
from mlpcore.training.trainer import Observer
from small_runs import DATA, make_config


class Output:
    """An output of a notebook: the texts that it has shown."""

    def __init__(self):
        self.shown = []

    def update(self, content):
        self.shown.append(content)


@pytest.fixture
def outputs(monkeypatch):
    """The outputs of a notebook, in which IPython is replaced."""
    found = []

    class ZMQInteractiveShell:
        pass

    def display(content, display_id):
        assert display_id is True
        found.append(Output())
        return found[-1]

    module = types.ModuleType("IPython.display")
    module.display, module.HTML = display, str
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0)
    return found


def trainer_of(epochs, *observers):
    return Trainer(make_config(epochs=epochs), DATA, backends.get("scalar", 1), observers)


class Raise(Observer):
    """Raises at the end of an epoch, once."""

    def __init__(self, epoch, error):
        self.epoch, self.error = epoch, error

    def on_epoch_end(self, trainer, metrics):
        if metrics.epoch == self.epoch:
            raise self.error


def epochs_of(text):
    return [int(number) for number in re.findall(r">(\d+)/\d+<", text)]


def test_a_notebook_has_one_output(outputs, capsys):
    trainer = trainer_of(40, ProgressBar())
    assert trainer.run()
    (output,) = outputs
    assert capsys.readouterr().out == ""
    bars = [re.search(r'<progress value="([\d.]+)" max="40"', text) for text in output.shown[:-1]]
    values = [float(bar[1]) for bar in bars]
    assert values == sorted(values) and values[0] == 0 and values[-1] > 39
    # The last epoch is always there, with few others.
    assert any(epochs_of(text) == [1, 4, 8, 12, 13] for text in output.shown)
    assert any("epoch 14/40, training" in text and " left" in text for text in output.shown)
    last, best = output.shown[-1], trainer.state.best_metrics
    assert "<progress" not in last and "40 of 40 epochs in" in last
    assert f"{best.validation_error:.2f} % after epoch {best.epoch}" in last
    assert epochs_of(last) == [1, *range(4, 41, 4)]


def test_a_notebook_after_an_exception(outputs):
    """The bar is gone; another call has an output of its own."""
    trainer = trainer_of(3, ProgressBar(), Raise(2, KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert "2 of 3 epochs" in outputs[0].shown[-1] and "<progress" not in outputs[0].shown[-1]
    assert trainer.run()
    first, second = outputs
    assert "2 of 3 epochs" in first.shown[-1] and "3 of 3 epochs" in second.shown[-1]


@pytest.mark.parametrize(
    ("epochs", "shown"), [(3, [1, 2, 3]), (50, [1, *range(3, 49, 3), 50])]
)  # fmt: skip
def test_a_log_file_has_some_of_many_epochs(capsys, epochs, shown):
    assert trainer_of(epochs, ProgressBar()).run()
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["epoch", "rate"]
    assert [int(line.split("/")[0]) for line in lines] == shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_is_left_as_it_was(monkeypatch):
    """Also after an exception: the cursor is visible, and standard output is the same."""
    monkeypatch.setenv("TERM", "xterm")
    out, before = Terminal(), sys.stdout
    with pytest.raises(ZeroDivisionError):
        trainer_of(3, ProgressBar(out), Raise(2, ZeroDivisionError)).run()
    text = out.getvalue()
    assert "run" in text and text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert sys.stdout is before
