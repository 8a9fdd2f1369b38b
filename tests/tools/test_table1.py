"""The paper's experiment: its table, the time left, what is asked for, and the README's part."""

import dataclasses
from pathlib import Path

import pytest

from mlpcore.backends import INSTRUCTION_SETS
from mlpcore.data.summary import DataSummary
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network.architecture import PRESETS, count_parameters
from mlpcore.report.results import TABLE_1
from mlpcore.report.tables import duration, markdown_table
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics
from table1 import evidence, progress, readme, report, tables
from table1.experiment import Experiment, Planned, check_data
from table1.measure import Committee
from table1.records import ErrorCounts, Record, distinct_seeds

MNIST = DataSummary("MNIST", "here", (29, 29), 10, 60_000, 10_000, "0123")
LETTERS = dataclasses.replace(MNIST, name="letters", sha256="4567")
ROOT = Path(__file__).parents[2]


def metrics(epoch, validation_errors=600, test_errors=60, seconds=(1.0, 6.0, 2.0)):
    deformation, training, evaluation = seconds
    return EpochMetrics(
        epoch=epoch, learning_rate=1e-3, n_train=60_000, n_test=10_000, training_errors=900,
        loss=0.1, validation_errors=validation_errors, test_errors=test_errors,
        deformation_seconds=deformation, training_seconds=training, evaluation_seconds=evaluation,
    )  # fmt: skip


def record(net="net1", seed=0, errors=((600, 60),), epochs=None, data=MNIST, **more):
    """A run whose epochs made these validation and test errors; finished unless `epochs` is."""
    config = TrainingConfig(PRESETS[net], epochs=epochs or len(errors), seed=seed)
    history = tuple(metrics(i, *each) for i, each in enumerate(errors, 1))
    return Record(f"{net}-seed{seed}", config, data, history, **more)


def row(records, name, committees=()):
    """A row of the table by its first cell, as a dictionary."""
    rows = tables.table(records, committees)
    cells = next(cells for cells in rows[1:] if cells[0] == name)
    return dict(zip(rows[0], cells, strict=True))


# ---- the table -----------------------------------------------------------------------------


def test_validation_selects_and_the_test_does_not():
    run = record(
        errors=[(900, 40), (600, 60), (600, 55), (700, 50)], counts=ErrorCounts(10_000, 60, 45)
    )
    cells = row([run], "net1-seed0")
    assert cells["weights"] == "1.34 M"
    assert cells["epochs"] == "4/4"
    assert cells["validation error"] == "1.00 %"
    assert cells["test error at best validation"] == "0.60 % (0.47 to 0.77)"
    assert cells["best test error"] == "0.40 % (0.29 to 0.54)"
    assert cells["second guess right"] == "45 of 60"
    assert cells["time"] == "36.0 s"
    assert cells["weight updates/s"] == f"{60_000 * 1_347_510 / 6 / 1e9:.1f} G"


@pytest.mark.parametrize("net", TABLE_1)
def test_the_papers_columns(net):
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
    assert len({len(cells) for cells in rows}) == 1
    assert any("unfinished" in text for text in tables.notes(runs))
    assert not any("unfinished" in text for text in tables.notes(runs[:1]))


def test_runs_on_other_data_say_so():
    held_out = dataclasses.replace(MNIST, held_out=5_000, sha256="89")
    runs = [record(), *(record(seed=i, data=held_out) for i in (1, 2)), record(data=LETTERS)]
    names = [cells[0] for cells in tables.table(runs)[1:]]
    assert names == [
        "net1-seed0",
        "net1-seed1, on MNIST, 5,000 held out",
        "net1-seed2, on MNIST, 5,000 held out",
        "net1, on MNIST, 5,000 held out, mean of 2 seeds",
        "net1-seed0, on letters",
    ]
    assert tables.other_settings(runs[-1]).endswith("data: letters")
    assert "data" not in tables.other_settings(runs[0])
    assert [cells[0] for cells in tables.table(runs[1:2])[1:]] == ["net1-seed1"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (59.94, "59.9 s"),
        (59.97, "1.0 min"),
        (3596, "59.9 min"),
        (3598, "1.0 h"),
        (84240, "23.4 h"),
    ],
)
def test_times(seconds, text):
    assert duration(seconds) == text


def test_the_mean_over_seeds_and_its_interval():
    runs = [
        record(seed=i, errors=[(600, errors)], counts=ErrorCounts(10_000, errors, 40 + i))
        for i, errors in enumerate((50, 60, 70))
    ]
    cells = row([*runs, record(seed=3, errors=[(600, 99)], epochs=2)], "net1, mean of 3 seeds")
    # t for 2 degrees of freedom is 4.3027, the standard deviation 0.1, the root of 3 its divisor.
    assert cells["test error at best validation"] == "0.60 % (0.35 to 0.85)"
    assert cells["best test error"] == "0.60 % (0.35 to 0.85)"
    assert cells["second guess right"] == "123 of 180"
    assert cells["time"] == "9.0 s"
    assert tables.t_interval([1, 2, 3]) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-4)


def test_means_of_two_recipes_have_their_own_names():
    def runs(name, **changes):
        made = [record(seed=i, errors=[(600, 50)]) for i in range(2)]
        return [
            dataclasses.replace(
                run,
                name=name.format(i),
                config=dataclasses.replace(run.config, **changes),
            )
            for i, run in enumerate(made)
        ]

    rows = tables.table([*runs("net1-seed{}"), *runs("net1-saturating-seed{}", target=1.5)])
    means = [cells[0] for cells in rows if "mean" in cells[0]]
    assert means == ["net1, mean of 2 seeds", "net1-saturating, mean of 2 seeds"]
    rows = tables.table(runs("my-run{}"))
    assert rows[-1][0] == "net1, mean of 2 seeds"


def test_no_mean_of_one_seed_nor_of_the_same_seed_twice_nor_of_other_settings():
    run = record()
    copy = dataclasses.replace(run, name="copy")
    scalar = dataclasses.replace(
        run, name="scalar", config=dataclasses.replace(run.config, backend="scalar")
    )
    longer = record(seed=1, errors=[(600, 60)] * 2)
    other = record(seed=1, data=LETTERS)
    assert distinct_seeds([run, copy, scalar, longer, other]) == [run, longer, other]
    rows = tables.table([run, copy, scalar, longer, other])
    assert not any("mean" in cells[0] for cells in rows)


def test_markdown_shows_cells_as_they_are():
    text = markdown_table([("run",), ("a|b*",)])
    assert text.splitlines()[2] == "| a\\|b\\* |"
    assert len({len(line) for line in text.splitlines()}) == 1


def test_a_committee_has_a_row():
    committee = Committee(("net1-seed0", "net2-seed0"), ErrorCounts(10_000, 40, 30))
    cells = row([record()], "committee of all 2 finished runs", [committee])
    assert cells["test error at best validation"] == "0.40 % (0.29 to 0.54)"
    assert cells["second guess right"] == "30 of 40"
    assert cells["best test error"] == cells["epochs"] == "-"


def test_a_committee_of_some_runs_is_not_called_one_of_all():
    runs = [record(seed=seed) for seed in range(3)]
    committee = Committee(("net1-seed0", "net1-seed2"), ErrorCounts(10_000, 40, 30))
    assert row(runs, "committee of 2 finished runs", [committee])
    text = report.table_text(runs, [committee], [])
    assert "The committee of 2 is of net1-seed0, net1-seed2." in text
    everyone = Committee(tuple(each.name for each in runs), committee.counts)
    assert row(runs, "committee of all 3 finished runs", [everyone])
    assert "The committee of" not in report.table_text(runs, [everyone], [])


@pytest.mark.parametrize("held_out", [(0, 0), (0, 60), (60, 60)])
def test_the_curves_are_called_what_the_column_is(held_out):
    records = [
        record(seed=seed, data=dataclasses.replace(MNIST, held_out=n))
        for seed, n in enumerate(held_out)
    ]
    kind = "held-out" if all(held_out) else "test"
    title = report.learning_curves(records).axes[0].get_title()
    assert title == f"Validation error (solid) and {kind} error (dotted) of all runs"
    assert f"best {kind} error" in tables.table(records, ())[0]


def test_no_test_images():
    """As in data that have none: no error, and no division by zero."""
    history = (dataclasses.replace(metrics(1), n_test=0, test_errors=0),)
    runs = [dataclasses.replace(record(seed=i), history=history) for i in range(2)]
    for cells in tables.table(runs)[1:]:
        assert cells[4] == cells[6] == "-"


# ---- the time left -------------------------------------------------------------------------


def test_an_epoch_takes_the_median_of_the_recent_ones():
    slow, quick = metrics(1, seconds=(9, 9, 9)), metrics(2, seconds=(1, 6, 2))
    assert progress.seconds_per_epoch([slow] * 50 + [quick] * 11 + [slow] * 9) == 9
    assert progress.seconds_per_epoch([quick], scale=10) == 1 + 10 * 8


def test_a_run_is_measured_by_its_own_epochs():
    run = Planned("net1", 0, Path("net1-seed0"))
    left = progress.time_left(run, 100, record(errors=[(1, 1)] * 40, epochs=100), [])
    assert left == progress.Left(60 * 9.0)


def test_others_are_estimated_by_the_network_nearest_in_size():
    net4 = Planned("net4", 0, Path("net4-seed0"))
    net1, net3 = record("net1"), record("net3")
    scale = count_parameters((841, *PRESETS["net4"], 10)) / net3.n_parameters
    expected = progress.Left(pytest.approx(50 * (1 + scale * 8)), "net3-seed0")
    assert progress.time_left(net4, 50, None, [net1, net3]) == expected
    started = record("net4", errors=(), epochs=50)
    assert progress.time_left(net4, 50, started, [net1, net3, started]) == expected
    seed1 = Planned("net3", 1, Path("net3-seed1"))
    assert progress.time_left(seed1, 50, None, [net1, net3]).seconds == pytest.approx(450)
    assert progress.time_left(net4, 50, None, [started]).seconds is None


def test_what_is_done_running_and_left():
    experiment = Experiment(("net1", "net2", "net3"), (0, 1), 10, Path("out"))
    records = [
        record("net1", errors=[(1, 1)] * 10),
        record("net2", errors=[(1, 1)] * 4, epochs=10),
        record("net1", 1, errors=[(1, 1)] * 9, epochs=10, running=True),
    ]
    rows, total = progress.status(experiment, {r.name: r for r in records}, {"net3-seed1": "bad"})
    assert [cells[:3] for cells in rows[1:]] == [
        ("net1-seed0", "finished", "10/10"),
        ("net2-seed0", "unfinished", "4/10"),
        ("net3-seed0", "not started", "0/10"),
        ("net1-seed1", "running", "9/10"),
        ("net2-seed1", "not started", "0/10"),
        ("net3-seed1", "damaged", "0/10"),
    ]
    scale = count_parameters((841, *PRESETS["net3"], 10)) / records[1].n_parameters
    net3 = 10 * (1 + scale * 8)
    assert [cells[3] for cells in rows[1:]] == [
        "-", "54.0 s", f"{net3 / 60:.1f} min (estimate)", "9.0 s", "1.5 min (estimate)", "-",
    ]  # fmt: skip
    assert total.startswith(f"time left for this process: {(54 + 90 + net3) / 60:.1f} min, of it")
    assert f"{(90 + net3) / 60:.1f} min estimated by the number of weights" in total
    assert total.endswith("from the epochs of net2-seed0")
    assert "not known" in progress.status(experiment, {}, {})[1]


# ---- what is asked for ---------------------------------------------------------------------


def test_runs_are_those_of_the_first_seed_first():
    experiment = Experiment(("net2", "net1"), (7, 3), 10, Path("out"))
    names = ["net2-seed7", "net1-seed7", "net2-seed3", "net1-seed3"]
    assert [run.name for run in experiment.runs] == names


def test_another_recipe_has_runs_and_settings_of_its_own():
    experiment = Experiment(("net1",), (3,), 1000, Path("out"), recipe="saturating")
    (run,) = experiment.runs
    assert run.name == "net1-saturating-seed3"
    config = experiment.config(run, (1, 7), "sse2", "deferred")
    paper = Experiment(("net1",), (3,), 1000, Path("out")).config(run, (1, 7), "sse2", "deferred")
    assert config == dataclasses.replace(paper, target=1.5, learning_rate_ratio=2.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 40}, ("epochs 40", "asked for 2000")),
        ({"seed": 5}, ("seed 5", "asked for 0")),
        ({"hidden_layers": (8, 5)}, ("hidden layers 8,5", "asked for 1000,500")),
        ({"learning_rate": 0.002}, ("learning rate 0.002", "asked for 0.001")),
        ({"learning_rate_end": 1e-5}, ("learning rate end 1e-05", "asked for 1e-06")),
        (
            {"deformation": DeformationParameters(alpha=38.0)},
            ("alpha 38,", "asked for sigma 6, alpha 36, beta 15, gamma 15"),
        ),
        ({"backend": "scalar"}, ("backend scalar", "asked for sse2")),
    ],
)
def test_a_run_with_other_settings_is_refused(change, words):
    experiment = Experiment(("net1",), (0,), 2000, Path("out"), backend="sse2")
    (run,) = experiment.runs
    meant = experiment.config(run, (1, 7), "sse2", "deferred")
    experiment.check(run, Record(run.name, meant, MNIST))
    other = Record(run.name, dataclasses.replace(meant, **change), MNIST)
    with pytest.raises(InputError) as caught:
        experiment.check(run, other)
    text = str(caught.value)
    assert text.startswith("out/net1-seed0 was started with ")
    assert "\n" not in text
    assert all(word in text for word in words)


@pytest.mark.parametrize("backend", INSTRUCTION_SETS)
@pytest.mark.parametrize("schedule", ["deferred", "immediate"])
def test_without_a_backend_each_run_keeps_its_own(backend, schedule):
    experiment = Experiment(("net1",), (0,), 2000, Path("out"))
    (run,) = experiment.runs
    config = experiment.config(run, (1, 7), backend, schedule)
    experiment.check(run, Record(run.name, config, MNIST))


def test_other_data_are_refused():
    run = Planned("net1", 0, Path("net1-seed0"))
    check_data(run, record(), dataclasses.replace(MNIST, source="elsewhere"))
    with pytest.raises(InputError, match=r"net1-seed0 was .* other data than .*elsewhere"):
        check_data(run, record(), dataclasses.replace(LETTERS, source="elsewhere"))


# ---- the README ----------------------------------------------------------------------------


def test_the_brief_table_has_every_row():
    errors = ((600, 60), (500, 70))
    runs = [record(errors=errors), record(seed=1, errors=errors), record(seed=2, epochs=2)]
    records = [*runs, record("net2")]
    committee = Committee(("net1-seed0", "net2-seed0"), ErrorCounts(10_000, 40, 30))
    brief = tables.table(records, [committee], tables.BRIEF)
    assert brief[0][:3] == ("run", "epochs", "validation error")
    assert brief[0][3:] == ("test error at best validation", "paper's", "time", "paper's time")
    tested, papers = "0.70 % (0.55 to 0.88)", ("0.49 %", "18.0 s", "23.4 h")
    assert brief[1] == ("net1-seed0", "2/2", "0.83 %", tested, *papers)
    unfinished = ("1.00 %", "0.60 % (0.47 to 0.77)", "0.49 %", "9.0 s", "23.4 h")
    assert brief[3] == ("net1-seed2 (unfinished)", "1/2", *unfinished)
    tested = "0.70 % (0.70 to 0.70)"  # of equal seeds
    assert brief[4] == ("net1, mean of 2 seeds", "2", "0.83 %", tested, *papers)
    tested = "0.40 % (0.29 to 0.54)"
    assert brief[6] == ("committee of 2 finished runs", "-", "-", tested, "-", "-", "-")
    assert [cells[0] for cells in brief] == [
        cells[0] for cells in tables.table(records, [committee])
    ]
    others = tables.table([record(data=LETTERS)], (), tables.BRIEF)
    assert others[0] == (*brief[0][:4], "time")


def test_the_brief_table_says_what_is_missing():
    missing = ["net3-seed0 (1 of 2 epochs)", "net2-seed0 (not readable)"]
    text = report.brief_table_text([record()], [], missing)
    said = "net2-seed0 (not readable), net3-seed0 (1 of 2 epochs)"
    assert text.endswith(f"|\n\nStarted, but not in the table: {said}.")
    assert report.brief_table_text([record()], [], []).endswith("|")


def test_the_table_goes_between_its_marks():
    text = f"a\n{readme.BEGIN}\nold\n{readme.END}\nb\n"
    new = readme.replace_table(text, "| new |")
    assert new == f"a\n{readme.BEGIN}\n| new |\n{readme.END}\nb\n"
    assert readme.replace_table(new, "| new |") == new


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{readme.BEGIN}\n",
        f"{readme.END}\n{readme.BEGIN}\n",
        f"{readme.BEGIN}\n{readme.END}\n" * 2,
        f"{readme.BEGIN}\n{readme.BEGIN}\n{readme.END}\n",
    ],
)
def test_marks_that_are_not_there_once(text):
    with pytest.raises(InputError, match="once each"):
        readme.replace_table(text, "new")


def test_the_readme_says_what_the_evidence_gives():
    """Without evidence there is no table; with it, `make readme` has been called."""
    text = (ROOT / "README.md").read_text()
    if (ROOT / evidence.FOLDER).exists():
        assert readme.replace_table(text, readme.readme_table(ROOT / evidence.FOLDER)) == text
    else:
        assert readme.BEGIN not in text
