"""Results beside the paper's, and tables."""

import sys

from msgspec.structs import replace

from mlpcore import TrainingConfig
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.data.summary import DataSummary
from mlpcore.network.architecture import PRESETS
from mlpcore.report.results import result_table
from mlpcore.report.tables import duration, escape, markdown_table, text_table
from mlpcore.training.state import EpochMetrics, TrainingState

MNIST = DataSummary("MNIST", "here", 10, 60_000, 10_000, "", MNIST_PIXELS)


def test_the_papers_row_stands_beside_ours():
    history = [
        EpochMetrics(epoch, 1e-3, 60_000, 10_000, 0, 0.1, *errors, 0, 1800, 0)
        for epoch, errors in enumerate([(900, 120), (800, 130), (850, 110)], 1)
    ]
    state = TrainingState(None, None, history)
    rows = result_table(TrainingConfig(PRESETS["net1"]), MNIST, state)
    assert rows[1] == ("net1, 3 epochs", "1.30 %", "1.10 %", "1.5 h", "1.34 M")
    assert rows[2] == ("net1 in the paper", "0.49 %", "0.44 %", "23.4 h", "1.34 M")
    for change in ({"name": "digits"}, {"held_out": 10_000}):  # nor the least of the test errors
        head, ours = result_table(TrainingConfig(PRESETS["net1"]), replace(MNIST, **change), state)
        assert head[1].endswith(" error for best validation") and head[2:] == ("time", "weights")
        assert ours == ("net1, 3 epochs", "1.30 %", "1.5 h", "1.34 M")


def test_a_narrow_terminal_breaks_no_word(monkeypatch):
    rows = [("network", "error for best validation", "time"), ("net1, 3 epochs", "1.30 %", "1.5 h")]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for columns, n_lines in ((50, 2), (40, 3), (25, 5), (9, 5)):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = text_table(rows).splitlines()
        assert (max(map(len, lines)) <= max(columns, 25), len(lines)) == (True, n_lines)
        assert sorted(" ".join(lines).split()) == sorted(" ".join(sum(rows, ())).split())


def test_what_tables_show():
    header, _, *body = markdown_table([("network", "a*|b"), ("1e3", "-")]).splitlines()
    found = [line.replace(" ", "") for line in (header, *body)]
    assert found == [r"|network|a\*\|b|", "|1e3|-|"]
    assert escape("<b>_1_ [a](#) `x`") == r"\<b\>\_1\_ \[a\](\#) \`x\`"
    seconds = 59.94, 59.96, 3597, 84240
    assert [duration(each) for each in seconds] == ["59.9 s", "1.0 min", "1.0 h", "23.4 h"]
