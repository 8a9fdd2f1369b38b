"""The table, the notes on it, its place in a page, the time left, and which runs are planned."""

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpcore import backends
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network.architecture import PRESETS, count_parameters
from mlpcore.report.results import TABLE_1
from mlpcore.training.config import TrainingConfig
from table1 import evidence, report, tables
from table1.experiment import Experiment, check_settings, plan, seconds_per_epoch, with_labels
from table1.measure import CommitteeResult
from table1.records import ErrorCounts, distinct_seeds, first_difference
from table1_runs import LETTERS, MNIST, metrics, record

ROOT = Path(__file__).parents[3]


def row(records, name, committees=()):
    """A row of the table by its first cell, as a dictionary."""
    rows = tables.table(records, committees)
    cells = next(cells for cells in rows[1:] if cells[0] == name)
    return dict(zip(rows[0], cells, strict=True))


def changed(run, name, **changes):
    """A run with another name and other settings."""
    config = dataclasses.replace(run.config, **changes)
    return dataclasses.replace(run, folder=Path(name), config=config)


# ---- the table -----------------------------------------------------------------------------


def test_validation_selects_and_the_test_does_not():
    errors = [(900, 40), (600, 60), (600, 55), (700, 50)]
    cells = row([record(errors=errors, test=ErrorCounts(10_000, 60, 45))], "net1-seed0")
    assert cells == {
        "run": "net1-seed0",
        "weights": "1.34 M",
        "epochs": "4/4",
        "validation error": "1.00 %",
        "test error at best validation": "0.60 % (0.47 to 0.77)",
        "paper's": "0.49 %",
        "best test error": "0.40 % (0.29 to 0.54)",
        "paper's best": "0.44 %",
        "second guess right": "45 of 60",
        "time": "36.0 s",
        "paper's time": "23.4 h",
        "weight updates/s": f"{60_000 * 1_347_510 / 6 / 1e9:.1f} G",
    }


@pytest.mark.parametrize("net", TABLE_1)
def test_the_papers_figures_stand_beside_runs_on_its_data_only(net):
    error, best, hours, _ = TABLE_1[net]
    papers = ("paper's", "paper's best", "paper's time")
    cells = row([record(net)], f"{net}-seed0")
    assert [cells[name] for name in papers] == [f"{error} %", f"{best:.2f} %", f"{hours} h"]
    other = row([record(net, seed=1), record(net, data=LETTERS)], f"{net}-seed0, on letters")
    assert [other.pop(name) for name in papers] == ["-", "-", "-"]
    assert row([record(net, data=LETTERS)], f"{net}-seed0") == other | {"run": f"{net}-seed0"}


def test_every_run_has_its_row_with_its_state():
    runs = [
        record("net1"),
        record("net2", epochs=9),
        record("net3", epochs=9, running=True),
        record("net4", errors=(), epochs=9),
    ]
    rows = tables.table(runs)
    names = ["net1-seed0", "net2-seed0 (unfinished)", "net3-seed0 (running)"]
    assert [cells[0] for cells in rows[1:]] == [*names, "net4-seed0 (unfinished)"]
    assert [cells[2] for cells in rows[1:]] == ["1/1", "1/9", "1/9", "0/9"]
    assert rows[4][3:] == ("-", "-", "0.35 %", "-", "0.32 %", "-", "-", "114.5 h", "-")
    assert len(report.notes(runs)) == len(report.notes(runs[:1])) + 2  # unfinished, settings


def test_runs_on_other_data_and_settings_say_so():
    held_out = dataclasses.replace(MNIST, held_out=5_000, sha256="89")
    runs = [record(), *(record(seed=i, data=held_out) for i in (1, 2)), record(data=LETTERS)]
    on = ", on MNIST, 5,000 held out"
    assert [cells[0] for cells in tables.table(runs)[1:]] == [
        "net1-seed0",
        f"net1-seed1{on}",
        f"net1-seed2{on}",
        f"net1{on}, mean of 2 seeds",
        "net1-seed0, on letters",
    ]
    assert "best held-out error" in tables.table(runs[1:3])[0]
    assert report.other_settings(changed(runs[0], "paper", epochs=2000, seed=7)) == ""
    strong = changed(runs[1], "strong", epochs=300, deformation=DeformationParameters(sigma=5))
    said = "epochs 300, sigma 5, 5,000 training images held out and tested on"
    assert report.other_settings(strong) == said
    assert report.other_settings(runs[-1]).endswith("data letters")


def test_the_mean_over_seeds_and_its_interval():
    runs = [
        record(seed=i, errors=[(600, errors)], test=ErrorCounts(10_000, errors, 40 + i))
        for i, errors in enumerate((50, 60, 70))
    ]
    unfinished = record(seed=3, errors=[(600, 99)], epochs=2)
    cells = row([*runs, changed(unfinished, "net1-seed3", epochs=1)], "net1, mean of 4 seeds")
    assert cells["second guess right"] == "-"
    cells = row([*runs, unfinished], "net1, mean of 3 seeds")
    # t for 2 degrees of freedom is 4.3027, the standard deviation 0.1, the root of 3 its divisor.
    assert cells["test error at best validation"] == "0.60 % (0.35 to 0.85)"
    assert cells["best test error"] == "0.60 % (0.35 to 0.85)"
    assert cells["second guess right"] == "123 of 180"
    assert cells["time"] == "9.0 s"
    assert tables.t_interval([1, 2, 3]) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-4)


def test_means_are_of_different_seeds_and_the_same_settings():
    run, second = record(), record(seed=1)
    copy, scalar = changed(run, "copy"), changed(run, "scalar", backend="scalar")
    longer, other = record(seed=1, errors=[(600, 60)] * 2), record(seed=1, data=LETTERS)
    alone = [run, copy, scalar, longer, other]
    assert distinct_seeds(alone) == [run, longer, other]
    assert not any("mean" in cells[0] for cells in tables.table(alone))
    recipe = [
        changed(each, f"net1-saturating-seed{i}", target=1.5) for i, each in ((0, run), (1, second))
    ]
    rows = tables.table([run, second, *recipe])
    assert [cells[0] for cells in rows if "mean" in cells[0]] == [
        "net1, mean of 2 seeds",
        "net1-saturating, mean of 2 seeds",
    ]
    assert tables.table([changed(run, "a"), changed(second, "b")])[-1][0] == "net1, mean of 2 seeds"


def test_a_committee_has_a_row_that_says_whether_it_is_of_all():
    runs = [record(seed=seed) for seed in range(3)]
    counts = ErrorCounts(10_000, 40, 30)
    some = CommitteeResult(("net1-seed0", "net1-seed2"), counts)
    every = CommitteeResult(tuple(each.name for each in runs), counts)
    cells = row(runs, "committee of 2 finished runs", [some])
    assert cells["test error at best validation"] == "0.40 % (0.29 to 0.54)"
    assert cells["second guess right"] == "30 of 40"
    assert cells["best test error"] == cells["epochs"] == "-"
    assert row(runs, "committee of all 3 finished runs", [every])
    assert "is of net1-seed0, net1-seed2." in report.notes(runs, [some])[-1]


def test_no_test_images():
    history = (dataclasses.replace(metrics(1), n_test=0, test_errors=0),)
    runs = [dataclasses.replace(record(seed=i), history=history) for i in range(2)]
    for cells in tables.table(runs)[1:]:
        assert cells[4] == cells[6] == "-"


def test_the_brief_table_has_all_rows_and_says_what_is_missing():
    runs = [record(), record(seed=1), record("net2")]
    brief = tables.table(runs, (), tables.DETAILS)
    header = ("run", "epochs", "validation error", "test error at best validation")
    assert brief[0] == (*header, "paper's", "time", "paper's time")
    assert [cells[0] for cells in brief] == [cells[0] for cells in tables.table(runs)]
    text = report.table_text(runs, [], ["net3 (1 of 2 epochs)", "net2 (not readable)"], brief=True)
    said = "net2 (not readable), net3 (1 of 2 epochs)"
    assert text.endswith(f"|\n\nStarted, but not in the table: {said}.")
    assert report.table_text(runs, [], [], brief=True).endswith("|")


# ---- the page ------------------------------------------------------------------------------


@given(st.text(), st.text(), st.lists(st.sampled_from([report.BEGIN, report.END, "x"])))
def test_the_table_goes_between_its_marks_or_nowhere(before, after, lines):
    marks = [line for line in lines if line != "x"]
    text = "\n".join([before, *lines, after])
    if marks == [report.BEGIN, report.END]:
        new = report.replace_table(text, "| new |")
        assert new == report.replace_table(new, "| new |")
        assert f"{report.BEGIN}\n| new |\n{report.END}\n" in new
        assert new.startswith(before) and new.endswith(after)
    else:
        with pytest.raises(InputError):
            report.replace_table(text, "| new |")


def test_the_readme_says_what_the_evidence_gives():
    """`make readme` has been called since the evidence changed."""
    text = (ROOT / "README.md").read_text()
    records, summary = evidence.read_collection(ROOT / evidence.FOLDER)
    table = report.table_text(records, summary.committees, summary.missing, brief=True)
    assert report.replace_table(text, table) == text


# ---- the time left -------------------------------------------------------------------------


def test_an_epoch_takes_the_median_time_of_recent_ones_of_the_nearest_network():
    slow, quick = metrics(1, seconds=(9, 9, 9)), metrics(2, seconds=(1, 6, 2))
    run = dataclasses.replace(record(), history=(slow,) * 50 + (quick,) * 11 + (slow,) * 9)
    assert seconds_per_epoch(run.config, [run]) == 9
    net1, net3, net4 = record("net1"), record("net3"), record("net4", errors=(), epochs=50)
    scale = count_parameters((841, *PRESETS["net4"], 10)) / net3.n_parameters
    expected = pytest.approx(1 + scale * 8)
    assert seconds_per_epoch(net4.config, [net1, net3, net4]) == expected
    assert math.isnan(seconds_per_epoch(net4.config, [net4]))


def test_what_is_done_running_and_left(capsys):
    planned = plan(Path("out"), ("net1", "net2", "net3"), (0, 1), 10, "paper", backends.get())
    experiment = Experiment(planned, any_backend=True)
    records = [
        record("net1", errors=[(1, 1)] * 10),
        record("net2", errors=[(1, 1)] * 4, epochs=10),
        record("net1", 1, errors=[(1, 1)] * 9, epochs=10, running=True),
    ]
    experiment.records = {"out" / r.folder: r for r in records}
    experiment.failed = {Path("out/net3-seed1")}
    experiment.show()
    *rows, total = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    net3 = 10 * (1 + 8 * count_parameters((841, *PRESETS["net3"], 10)) / records[1].n_parameters)
    assert [" ".join(cells) for cells in rows[1:]] == [
        "net1-seed0 finished 10/10 -",
        "net2-seed0 unfinished 4/10 54.0 s",
        f"net3-seed0 not started 0/10 {net3 / 60:.1f} min (estimate)",
        "net1-seed1 running 9/10 9.0 s",
        "net2-seed1 not started 0/10 1.5 min (estimate)",
        "net3-seed1 damaged 0/10 -",
    ]
    assert total[-2:] == [f"{(54 + 90 + net3) / 60:.1f}", "min"]


# ---- what is planned -----------------------------------------------------------------------


def test_runs_are_planned_by_recipe_the_first_seed_first():
    backend = backends.get()
    planned = plan(Path("out"), ("net2", "net1"), (7, 3), 10, "saturating", backend)
    names = ["net2-{}-seed7", "net1-{}-seed7", "net2-{}-seed3", "net1-{}-seed3"]
    assert [folder.name for folder in planned] == [name.format("saturating") for name in names]
    assert planned[Path("out/net1-saturating-seed3")] == TrainingConfig(
        hidden_layers=PRESETS["net1"], epochs=10, learning_rate_end=1e-6, target=1.5, seed=3,
        learning_rate_ratio=2.0, backend=backend.name, schedule=backend.schedule,
        deformation=DeformationParameters(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 40},
        {"seed": 5},
        {"hidden_layers": (8, 5)},
        {"learning_rate": 0.002},
        {"learning_rate_end": 1e-5},
        {"deformation": DeformationParameters(alpha=38.0)},
        {"backend": "scalar"},
    ],
)
def test_a_run_with_other_settings_is_refused(change):
    planned = TrainingConfig(backend="sse2", schedule="packed")
    labels = with_labels(planned, (2, 3))  # Another revision had another schedule.
    check_settings(
        changed(record(), "run", **vars(labels) | {"schedule": "deferred"}), planned, False
    )
    other = changed(record(), "run", **vars(planned) | change)
    with pytest.raises(InputError):
        check_settings(other, planned, any_backend=False)
    if "backend" in change:
        check_settings(other, planned, any_backend=True)


def test_the_first_epoch_with_other_errors():
    history = [metrics(1), metrics(2), metrics(3)]
    slower = [*history[:2], metrics(3, seconds=(9, 9, 9))]
    assert first_difference(slower, history) == first_difference(history, history[:2]) == 0
    assert first_difference(history[:2], history) == 3
    assert first_difference([metrics(1), metrics(2, test_errors=1), metrics(3)], history) == 2
