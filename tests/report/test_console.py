"""Lines that stay, and the live display of a terminal."""

import io
from types import SimpleNamespace

from mlpcore import Network
from mlpcore.report import console
from mlpcore.report.console import Console
from mlpcore.training.state import EpochMetrics


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_two_bars_and_keeps_the_lines(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    clock = iter(range(10_000))
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    state = SimpleNamespace(epoch=0, network=Network((4, 3)))
    config, data = SimpleNamespace(epochs=30), SimpleNamespace(held_out=0)
    trainer = SimpleNamespace(state=state, config=config, dataset=data)
    metrics = EpochMetrics(1, 1e-3, 900, 0, 90, 0.1, 45, 0, 0, 10, 0)
    out = Terminal()
    with Console(out) as shown:
        shown.on_epoch_start(trainer)
        for phase in ("deforming", "training", "evaluating"):
            for done in range(0, 900, 300):
                shown.on_progress(trainer, phase, done, 900)
        shown.on_epoch_end(trainer, metrics)
        shown.print_table([("network", "time"), ("net1", "1 h")])
    text = out.getvalue()
    assert "\x1b[" in text
    for words in ("epoch 1/30 deforming", "epoch 1/30 training", "samples/s", "updates/s", "left"):
        assert words in text
    (line,) = (line for line in text.splitlines() if " 1/30 " in line and "5.00 %" in line)
    assert line.split()[-3:] == ["90", "10.0", "s"]
    assert text.endswith("network  time\nnet1      1 h\n")
