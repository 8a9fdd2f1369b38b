"""The table and its place in a page, the time left, and which runs are planned."""

import dataclasses
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpcore import backends
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network.architecture import PRESETS
from mlpcore.training.config import TrainingConfig
from table1 import evidence, report, tables
from table1.experiment import check_settings, plan, seconds_per_epoch, with_labels
from table1.records import distinct_seeds
from table1_runs import LETTERS, MNIST, metrics, record

ROOT = Path(__file__).parents[3]


def changed(run, name, **changes):
    """A run with another name and other settings."""
    config = dataclasses.replace(run.config, **changes)
    return dataclasses.replace(run, folder=Path(name), config=config)


@pytest.mark.parametrize("folder", ["table1", "hold-out"])
def test_the_committed_tables_are_those_of_the_evidence(folder):
    """They have states, recipes, means, committees of some and of all runs, held-out images."""
    folder = ROOT / "benchmarks" / "results" / folder
    committed = (folder / "README.md").read_text().splitlines()
    found = report.table_text(*evidence.read_collection(folder)).splitlines()
    for line, expected in zip(found, committed[2:]):
        if not expected:
            break
        assert line == expected
    if folder == ROOT / evidence.FOLDER:  # "make readme" has been called since it changed.
        page = (ROOT / "docs" / "table-1.md").read_text()
        table = report.table_text(*evidence.read_collection(folder), brief=True)
        assert report.replace_table(page, table, "table-1.md") == page


def test_runs_on_other_data_and_settings_say_so():
    held_out = msgspec.structs.replace(MNIST, held_out=5_000, sha256="89")
    runs = [record(), *(record(seed=i, data=held_out) for i in (1, 2)), record(data=LETTERS)]
    on = ", on MNIST, 5,000 held out"
    rows = tables.table(runs)
    assert [cells[0] for cells in rows[1:]] == [
        "net1-seed0",
        f"net1-seed1{on}",
        f"net1-seed2{on}",
        f"net1{on}, mean of 2 seeds",
        "net1-seed0, on letters",
    ]
    assert [cells[rows[0].index("paper's")] for cells in rows[1:]] == ["0.49 %", *["-"] * 4]
    deformation = DeformationParameters(sigma=5)
    strong = changed(runs[1], "strong", learning_rate_end=1e-6, deformation=deformation)
    said = "epochs 1, sigma 5, 5,000 training images held out and tested on"
    assert report.other_settings(strong) == said
    assert report.other_settings(runs[-1]).endswith("data letters")


def test_the_first_best_validation_counts_and_no_mean_is_of_copies_or_other_settings():
    errors = [(900, 40), (600, 60), (600, 55), (700, 50)]
    run = record(errors=errors)
    row = tables.table([run])[1]
    assert row[4] == "0.60 % (0.47 to 0.77)" and row[6] == "0.40 % (0.29 to 0.54)"
    copy, scalar = changed(run, "copy"), changed(run, "scalar", backend="scalar")
    longer, other = record(seed=1, errors=[*errors, (9, 9)]), record(seed=1, data=LETTERS)
    alone = [run, copy, scalar, longer, other]
    assert distinct_seeds(alone) == [run, longer, other]
    assert not any("mean" in cells[0] for cells in tables.table(alone))
    others = [changed(run, "a"), changed(record(seed=1, errors=errors), "b")]
    assert tables.table(others)[-1][0] == "net1, mean of 2 seeds"


def test_runs_without_epochs_or_test_images():
    untested = dataclasses.replace(metrics(1), n_test=0, test_errors=0)
    runs = [dataclasses.replace(record(seed=i), history=(untested,)) for i in range(2)]
    runs.append(record("net4", errors=(), epochs=9, running=True))
    for cells in tables.table(runs)[1:]:
        assert cells[4] == cells[6] == "-"
    assert cells[0] == "net4-seed0 (running)"
    assert cells[2:] == ("0/9", "-", "-", "0.35 %", "-", "0.32 %", "-", "-", "114.5 h", "-")


@given(st.text(), st.text(), st.lists(st.sampled_from([report.BEGIN, report.END, "x"])))
def test_the_table_goes_between_its_marks_or_nowhere(before, after, lines):
    text = "\n".join([before, *lines, after])
    if [line for line in lines if line != "x"] == [report.BEGIN, report.END]:
        new = report.replace_table(text, "| new |", "page")
        assert new == report.replace_table(new, "| new |", "page")
        assert f"{report.BEGIN}\n| new |\n{report.END}\n" in new
        assert new.startswith(before) and new.endswith(after)
    else:
        with pytest.raises(InputError):
            report.replace_table(text, "| new |", "page")


def test_an_epoch_takes_the_median_time_of_recent_ones_of_the_nearest_network():
    slow, quick = metrics(1, seconds=(9, 9, 9)), metrics(2, seconds=(1, 6, 2))
    run = dataclasses.replace(record(), history=(slow,) * 50 + (quick,) * 11 + (slow,) * 9)
    assert seconds_per_epoch(run.config, [run]) == 9
    net4 = record("net4", errors=(), epochs=50)
    scale = net4.n_parameters / record("net3").n_parameters
    found = seconds_per_epoch(net4.config, [record("net1"), record("net3"), net4])
    assert found == pytest.approx(1 + scale * 8)
    assert math.isnan(seconds_per_epoch(net4.config, [net4]))


def test_runs_are_planned_by_recipe_the_first_seed_first():
    backend = backends.get()
    planned = plan(Path("out"), ("net2", "net1"), (7, 3), 10, "saturating", backend)
    names = ["net2-{}-seed7", "net1-{}-seed7", "net2-{}-seed3", "net1-{}-seed3"]
    assert [folder.name for folder in planned] == [name.format("saturating") for name in names]
    assert planned[Path("out/net1-saturating-seed3")] == TrainingConfig(
        hidden_layers=PRESETS["net1"], epochs=10, learning_rate_end=1e-6, target=1.5, seed=3,
        learning_rate_ratio=2.0, backend=backend.name, schedule=backend.schedule,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 40), ("deformation", DeformationParameters(alpha=38.0)), ("backend", "scalar")],
)
def test_a_run_with_other_settings_is_refused(name, value):
    planned = TrainingConfig(backend="sse2", schedule="packed")
    older = dataclasses.replace(with_labels(planned, (2, 3)), schedule="deferred")
    check_settings(changed(record(), "run", **vars(older)), planned, any_backend=False)
    other = changed(record(), "run", **vars(planned) | {name: value})
    with pytest.raises(InputError):
        check_settings(other, planned, any_backend=False)
    if name == "backend":
        check_settings(other, planned, any_backend=True)
