"""`tools/speedup.py --to-error`: budgets, turns, least times, input. No test looks at the clock."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpcore.data import dataset
from mlpcore.deformation import deform
from speed.command import main
from speed.error_tables import error_tables, verdicts
from speed.lesson import Contestant, Lesson, Trained
from speed.ours import OURS
from speed.peers import LEARNERS, settings
from speed.to_error import Contest, ErrorReport, Run, hold, least_time, measure_contest

ALL = (*OURS, *LEARNERS)

#: Training images of a run that warms up.
WARM_UP = 100


@pytest.fixture(scope="module")
def digits():
    """400 training images."""
    data = dataset.load(name="digits")
    images, labels = data.train_images[:400], data.train_labels[:400]
    return replace(data, train_images=images, train_labels=labels)


@pytest.fixture
def lesson(digits):
    return Lesson(digits, (20,), epochs=1, seed=1, threads=1)


@pytest.fixture
def contest(lesson, monkeypatch):
    """Makes a contest whose errors are functions of epochs and seed, by name.

    A run takes ten seconds an epoch, and as many as its seed. Also gives the list of runs.
    """
    monkeypatch.setattr(Lesson, "error_of", lambda self, trained: trained.network)

    def make(functions, **fields):
        calls = []

        def contestant(name, error):
            def train(lesson, rate):
                if len(lesson.data.train_labels) == WARM_UP:
                    return
                calls.append((lesson.epochs, lesson.seed, name))
                seconds = 10.0 * lesson.epochs + lesson.seed
                return Trained(error(lesson.epochs, lesson.seed), seconds)

            return Contestant(name, "made up", train, None if name == "ours" else 0.1)

        some = tuple(contestant(*item) for item in functions.items())
        fields = {"errors": (2.0, 1.0), "budgets": (1, 2, 3, 5), **fields}
        return Contest(lesson, some, **fields), calls

    monkeypatch.setattr("speed.lesson.FEW", WARM_UP)
    return make


# ---- the contest -------------------------------------------------------------------------------


def test_contestants_take_turns_budget_by_budget_until_the_lowest_error(contest):
    """`a` reaches 1 % with 2 epochs, `b` with 3, `c` never."""
    errors = {name: lambda n, seed, k=k: k / n for name, k in {"a": 2, "b": 3, "c": 9}.items()}
    held, calls = contest(errors, repeats=2)
    lines = hold(held)
    order = [name for epochs, seed, name in calls if (epochs, seed) == (1, 2)]
    assert order == ["b", "c", "a"]  # the second seed starts with the second contestant
    assert [epochs for epochs, *_ in calls] == sorted(epochs for epochs, *_ in calls)
    runs = {line.name: [(run.epochs, run.seed) for run in line.runs] for line in lines}
    budgets = {"a": (1, 2), "b": (1, 2, 3), "c": (1, 2, 3, 5)}
    assert runs == {name: [(n, s) for n in each for s in (1, 2)] for name, each in budgets.items()}
    assert [line.stopped for line in lines] == ["reached 1 %"] * 2 + ["no budget is left"]


def test_the_least_time_over_budgets():
    """Means of errors, medians of times; a budget without all its seeds does not count."""
    runs = [Run(1, 1, 9.0, 1.5, 0.0), Run(1, 2, 9.0, 2.5, 0.0), Run(1, 3, 30.0, 1.7, 0.0)]
    runs += [Run(2, seed, 8.0, 1.0, 0.0) for seed in (1, 2, 3)]
    runs += [Run(3, 1, 1.0, 0.1, 0.0)]
    slow = least_time(runs[:3], 1.9, 3)
    assert (slow.seconds, slow.epochs) == (9.0, 1)
    assert least_time(runs[:3], 1.8, 3).seconds is None
    fast = least_time(runs, 1.9, 3)
    assert (fast.seconds, fast.epochs) == (8.0, 2)
    assert least_time(runs, 0.9, 3).seconds is None


errors_and_times = st.tuples(st.floats(0, 100), st.floats(0.1, 1e6))


@given(st.lists(errors_and_times, min_size=1, max_size=8), st.floats(0.1, 99))
def test_no_budget_is_faster_than_the_least_time(values, error):
    runs = [Run(n, 1, seconds, found, 0.0) for n, (found, seconds) in enumerate(values, 1)]
    reached = [run.seconds for run in runs if run.error <= error]
    assert least_time(runs, error, 1).seconds == min(reached, default=None)


def test_a_contestant_stops_before_a_budget_beyond_the_limit(contest):
    """The runs take 11, 21, 31 and 51 seconds; 114 are more than the limit."""
    for limit, expected in ((100 / 60, [1, 2, 3]), (115 / 60, [1, 2, 3, 5]), (0.1, [1])):
        held, _ = contest({"a": lambda n, seed: 50.0}, limit=limit)
        (line,) = hold(held)
        assert [run.epochs for run in line.runs] == expected
        assert ("would exceed the limit" in line.stopped) == (len(expected) < 4)


def test_a_contestant_that_fails_stops_alone(contest):
    def broken(epochs, seed):
        raise RuntimeError("no such\noperator")

    held, _ = contest({"a": broken, "b": lambda n, seed: 0.5})
    first, second = hold(held)
    assert first.stopped == "failed: no such operator" and not first.runs
    assert second.stopped == "reached 1 %"


def test_ratios_verdicts_and_what_was_not_reached(contest, tmp_path):
    """The peer reaches 1 % with a budget more than ours."""
    errors = {"ours": lambda n, seed: 3 - n, "peer": lambda n, seed: {1: 2, 5: 0.4}.get(n, 1.2)}
    held, _ = contest(errors, errors=(2.0, 1.0, 0.5), budgets=(1, 2, 5))
    absent = replace(OURS[0], name="absent", modules=("no_module",))
    report = measure_contest(replace(held, contestants=(*held.contestants, absent)))
    ours, peer = report.lines
    assert [r.seconds for r in ours.reached] == [11.0, 21.0, 51.0]
    assert [r.ratio for r in peer.reached] == [1.0, pytest.approx(51 / 21), 1.0]
    assert report.missing == {"absent": "no_module is not installed"}
    none = replace(ours, reached=tuple(replace(r, seconds=None) for r in ours.reached))
    slower = replace(peer, reached=tuple(replace(r, ratio=0.5) for r in peer.reached))
    lost = replace(report, lines=(none, peer))
    assert all("only peers reach it" in text for text in verdicts(lost))
    texts = verdicts(replace(report, lines=(ours, slower)))
    assert all("a peer is faster than ours: peer" in text for text in texts)
    assert "ours is fastest" in verdicts(report)[1]
    _, table, *_, missing = error_tables(lost)
    assert table.rows[0][2:] == ("-", "-", "-") and missing.rows[0][0] == "absent"
    assert "51.0 s (5 epochs) 2.43x" in table.rows[1]
    report.write(tmp_path / "report.json")
    assert ErrorReport.read(tmp_path / "report.json") == report


# ---- what contestants do -----------------------------------------------------------------------


def test_peers_get_the_images_of_our_trainer(lesson, monkeypatch):
    seen = []

    def spy(*arguments, out, **others):
        result = deform(*arguments, out=out, **others)
        seen.append(np.array(result))
        return result

    monkeypatch.setattr("mlpcore.training.trainer.deformation.deform", spy)
    twice = replace(lesson, epochs=2)
    OURS[0].train(twice, 0.0)
    n, inputs = len(lesson.data.train_labels), lesson.data.n_inputs
    ours = np.concatenate(seen).reshape(2, n, inputs)
    for epoch in (0, 1):
        np.testing.assert_array_equal(lesson.deformed(epoch), ours[epoch])


@pytest.mark.parametrize("contestant", ALL, ids=lambda each: each.name)
def test_every_contestant_that_is_there_learns(lesson, contestant):
    """Guessing is wrong 90 % of the time; twelve epochs of 400 digits bring every one below 70."""
    if reason := contestant.missing():
        pytest.skip(reason)
    longer = replace(lesson, epochs=12, hidden=(50,))
    trained = contestant.train(longer, 2 * (contestant.start or 0))
    assert trained.seconds > 0 and longer.error_of(trained) < 70


def test_a_network_that_is_not_finite_has_no_right_answer(lesson):
    layers = [(np.zeros((20, 841)), np.zeros(20)), (np.full((10, 20), np.nan), np.zeros(10))]
    assert lesson.error_of(Trained(lesson.network(layers), 1.0)) == 100.0


# ---- the command -------------------------------------------------------------------------------


def test_to_an_error_from_end_to_end(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "SETTINGS", tmp_path / "none.json")
    path = tmp_path / "error.json"
    arguments = ["--to-error", "60,89", "--arch", "8", "--dataset", "digits", "--threads", "1"]
    arguments += ["--epochs", "1,2", "--peers", "scikit,AdamW 64", "--json", str(path)]
    assert main([*arguments, "--markdown"]) == 0
    out, err = capsys.readouterr()
    assert "to 89 %" in out and "epochs 1, seed 1, ours modern" in err
    report = ErrorReport.read(path)
    assert report.errors == (89.0, 60.0) and report.budgets == (1, 2)
    names = {line.name for line in report.lines} | {*report.missing}
    assert names == {*(each.name for each in OURS), "scikit-learn", "PyTorch AdamW 64"} | {
        "PyTorch AdamW 64 torchvision"
    }


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--to-error", "0"], "0, expected percentages between 0 and 100"),
        (["--to-error", "abc"], "'abc', expected a number"),
        (["--to-error", "101"], "101, expected percentages"),
        (["--to-error", "1,nan"], "nan, expected percentages"),
        (["--to-error", "1", "--epochs", "2,0"], "0, expected 1 to"),
        (["--to-error", "1", "--repeats", "0"], "0, expected 1 to"),
        (["--to-error", "1", "--limit", "0"], "0, expected more than 0"),
        (["--to-error", "1", "--arch", "8;9"], "--arch 8, 9: expected only one"),
        (["--to-error", "1", "--arch", "net9"], "architecture 'net9'"),
        (["--to-error", "1", "--threads", "1,2"], "--threads 1, 2: expected only one"),
        (["--to-error", "1", "--threads", "0"], "threads 0"),
        (["--to-error", "1", "--peers", "Keras"], "'Keras', expected a part of PyTorch AdamW 64"),
        (["--to-error", "1", "--routine", "epoch"], "--routine together with --to-error"),
        (["--to-error", "1", "--search", "1"], "--search together with --to-error"),
        (["--to-error", "1", "--json", "."], "cannot write ."),
        (["--search", "-1"], "expected more than 0"),
        (["--search", "1", "--repeats", "2"], "--repeats together with --search"),
        (["--epochs", "2"], "--epochs: expected together with --to-error or --search"),
    ],
)
def test_bad_input_for_a_contest_is_one_line(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and message in err
