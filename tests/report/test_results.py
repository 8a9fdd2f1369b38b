"""Results beside the paper's, and tables."""

import dataclasses

import pytest

from mlpcore.data.summary import DataSummary
from mlpcore.network.architecture import PRESETS
from mlpcore.report.results import TABLE_1, result_table
from mlpcore.report.tables import duration, markdown_table, text_table
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, TrainingState

MNIST = DataSummary("MNIST", "here", (29, 29), 10, 60_000, 10_000, "")


def metrics(epoch, validation_errors, test_errors):
    return EpochMetrics(
        epoch=epoch, learning_rate=1e-3, n_train=60_000, n_test=10_000, training_errors=0,
        loss=0.1, validation_errors=validation_errors, test_errors=test_errors,
        deformation_seconds=0, training_seconds=1800, evaluation_seconds=0,
    )  # fmt: skip


@pytest.mark.parametrize("net", PRESETS)
def test_the_papers_row_stands_beside_ours(net):
    history = [metrics(1, 900, 120), metrics(2, 800, 130), metrics(3, 850, 110)]
    rows = result_table(TrainingConfig(PRESETS[net]), MNIST, TrainingState(None, None, history))
    error, best_error, hours, millions = TABLE_1[net]
    weights = f"{millions} M"
    assert rows[1] == (f"{net}, 3 epochs", "1.30 %", "1.10 %", "1.5 h", weights)
    paper = f"{error:.2f} %", f"{best_error:.2f} %", f"{hours} h", weights
    assert rows[2] == (f"{net} in the paper", *paper)


def test_no_row_of_the_paper_for_other_data_or_fewer_images():
    state = TrainingState(None, None, [metrics(1, 9, 9)])
    for change in ({"name": "digits"}, {"held_out": 10_000}):
        data = dataclasses.replace(MNIST, **change)
        assert len(result_table(TrainingConfig(), data, state)) == 2


def test_no_error_without_test_images():
    epoch = dataclasses.replace(metrics(1, 9, 9), n_test=0, test_errors=0)
    data = dataclasses.replace(MNIST, name="digits", n_test=0)
    rows = result_table(TrainingConfig(), data, TrainingState(None, None, [epoch]))
    assert rows[1][1:3] == ("-", "-")


def test_tables():
    rows = [("network", "a*|b"), ("net1", "0.50 %"), ("1e3", "-")]
    assert text_table(rows) == "network    a*|b\nnet1     0.50 %\n1e3           -"
    header, rule, *body = markdown_table(rows).splitlines()
    assert header.replace(" ", "") == r"|network|a\*\|b|"
    assert rule.startswith("|:--") and rule.endswith("-:|")
    assert body[1].replace(" ", "") == "|1e3|-|"
    assert markdown_table(rows[:1]).count("\n") == 1


def test_times():
    seconds = 59.94, 59.96, 3597, 84240
    assert [duration(each) for each in seconds] == ["59.9 s", "1.0 min", "1.0 h", "23.4 h"]
