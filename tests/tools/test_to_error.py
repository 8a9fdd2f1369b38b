"""`tools/speedup.py --to-error`: budgets, turns, least times, learning rates."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mlpcore.data import dataset
from mlpcore.deformation import deform
from speed.command import main
from speed.peers import LEARNERS
from speed.peers.base import Learner, Task
from speed.to_error import FEW, OURS, Comparison, Run, measure

DIGITS = dataset.load(name="digits")


@pytest.fixture
def task():
    """400 training images."""
    images, labels = DIGITS.train_images[:400], DIGITS.train_labels[:400]
    return Task(replace(DIGITS, train_images=images, train_labels=labels), (20,), threads=1)


def made_up(functions, **fields):
    """A comparison whose errors are functions of epochs and seed by name, and the list of runs.

    A run takes ten seconds an epoch, and as many as its seed.
    """
    calls = []

    def learner(name, error):
        def train(task, epochs, seed, rate):
            if len(task.data.train_labels) != FEW:  # else it warms up
                calls.append((epochs, seed, name))
            return 10.0 * epochs + seed, error(epochs, seed)

        return Learner(name, "made up", train, {} if name == "ours" else {1: 0.1})

    learners = tuple(learner(*item) for item in functions.items())
    fields = {"errors": (2.0, 1.0), "budgets": (1, 2, 3, 5), **fields}
    return Comparison(Task(DIGITS, (8,), 1), learners, **fields), calls


# ---- budgets -----------------------------------------------------------------------------------


def test_learners_take_turns_budget_by_budget_until_the_lowest_error():
    """`a` reaches 1 % with 2 epochs, `b` with 3, `c` never."""
    errors = {name: lambda n, seed, k=k: k / n for name, k in {"a": 2, "b": 3, "c": 9}.items()}
    comparison, calls = made_up(errors, repeats=2)
    outcome = measure(comparison)
    order = [name for epochs, seed, name in calls if (epochs, seed) == (1, 2)]
    assert (
        order == ["b", "c", "a"] and not outcome.missing
    )  # the second seed starts with the second
    assert [epochs for epochs, *_ in calls] == sorted(epochs for epochs, *_ in calls)
    for name, budgets in {"a": (1, 2), "b": (1, 2, 3), "c": (1, 2, 3, 5)}.items():
        own = [(run.epochs, run.seed) for run in outcome.runs if run.learner == name]
        assert own == [(n, seed) for n in budgets for seed in (1, 2)]


def test_the_least_time_over_budgets():
    """Means of errors, medians of times; a budget without all its seeds does not count."""
    comparison, _ = made_up({}, repeats=3)
    runs = [Run("a", 1, 1, 9.0, 1.5), Run("a", 1, 2, 9.0, 2.5), Run("a", 1, 3, 30.0, 1.7)]
    runs += [Run("a", 2, seed, 8.0, 1.0) for seed in (1, 2, 3)]
    runs += [Run("a", 3, 1, 1.0, 0.1), Run("b", 1, 1, 1.0, 0.1)]
    assert comparison.least_time(runs[:3], "a", 1.9) == (9.0, 1)
    assert comparison.least_time(runs[:3], "a", 1.8) is None
    assert comparison.least_time(runs, "a", 1.9) == (8.0, 2)
    assert comparison.least_time(runs, "a", 0.9) is None


# ---- what learners do --------------------------------------------------------------------------


def test_peers_get_the_images_of_our_trainer(task, monkeypatch):
    seen = []

    def spy(*arguments, out, **others):
        result = deform(*arguments, out=out, **others)
        seen.append(np.array(result))
        return result

    monkeypatch.setattr("mlpcore.training.trainer.deformation.deform", spy)
    OURS[0].train(task, 2, 1, 0.0)
    ours = np.concatenate(seen).reshape(2, 400, -1)
    for epoch in (0, 1):
        np.testing.assert_array_equal(task.deformed(1, epoch), ours[epoch])


@pytest.mark.parametrize("learner", (*OURS, *LEARNERS), ids=lambda each: each.name)
def test_every_learner_that_is_there_learns(task, learner):
    """Guessing is wrong 90 % of the time; twelve epochs of 400 digits bring every one below 70."""
    if reason := learner.missing():
        pytest.skip(reason)
    seconds, error = learner.train(Task(task.data, (50,), 1), 12, 1, 2 * learner.rate(1))
    assert seconds > 0 and error < 70


def test_a_network_that_is_not_finite_has_no_right_answer(task):
    layers = [(np.zeros((20, 841)), np.zeros(20)), (np.full((10, 20), np.nan), np.zeros(10))]
    assert task.error_of(layers) == 100.0


def test_to_an_error_from_end_to_end(capsys, tmp_path):
    path = tmp_path / "error.json"
    arguments = "--to-error 60,89 --arch 8 --dataset digits --threads 1 --epochs 2,1"
    assert main([*arguments.split(), "--peers", "scikit", "--json", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "to 89 %" in out and "epochs 1, seed 1, ours modern" in err
    document = json.loads(path.read_bytes())
    assert {*document["runs"][0]} == {"learner", "epochs", "seed", "seconds", "error"}
    assert {*document["learners"]} == {*(each.name for each in OURS), "scikit-learn"}
