"""The time until a test error is reached: all train anew with one budget after another."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TypeAlias

from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.tables import NONE, Rows
from mlpcore.training import Trainer, TrainingConfig
from mlpcore.training.recipes import RECIPES, Recipe
from speed.alone import seconds_alone
from speed.measure import describe
from speed.peers.base import Learner, Task, failure_text
from speed.tables import digits, head, short_time, table

Progress: TypeAlias = Callable[[str], object]

#: Budgets of epochs, from the shortest; a learning rate that falls fits its budget.
BUDGETS = (1, 2, 3, 5, 8, 12, 20)

#: Training images of a run that only warms up, and the seed of all runs.
FEW, SEED = 1000, 1


@dataclass(frozen=True)
class Run:
    """A training of its own."""

    learner: str
    epochs: int
    seconds: float
    error: float  #: after the last epoch, in percent
    alone: float | None = None  #: seconds of a process, from Enter on


@dataclass(frozen=True)
class Outcome:
    """The JSON document, in seconds and percent."""

    machine: dict[str, str]
    threads: int
    data: str
    layer_sizes: tuple[int, ...]
    learners: dict[str, str]  #: and their settings
    runs: list[Run]


def train_recipe(
    task: Task, epochs: int, seed: int, rate: float, recipe: Recipe
) -> tuple[float, float]:
    """Trains by a recipe; the time is the trainer's own account, without its evaluations."""
    settings = recipe.settings_of(task.hidden)
    config = TrainingConfig(
        task.hidden, epochs, seed=seed, deformation=task.deformation, **settings
    )
    trainer = Trainer(config, task.data, task.backend)
    trainer.run()
    history = trainer.state.history
    seconds = sum(each.deformation_seconds + each.training_seconds for each in history)
    return seconds, history[-1].test_error


OURS = tuple(
    Learner(f"ours {name}", f"recipe {name}, on-line", partial(train_recipe, recipe=recipe))
    for name, recipe in RECIPES.items()
)


def least_time(runs: Iterable[Run], name: str, error: float) -> tuple[float, int] | None:
    """The least time in which a learner's runs reach an error, and their epochs."""
    reached = (run for run in runs if run.learner == name and run.error <= error)
    return min(((run.seconds, run.epochs) for run in reached), default=None)


def train(task: Task, learner: Learner, epochs: int, warm: bool) -> Run:
    """A run, after a short one that is not timed if the learner is not warm."""
    rate = learner.rate(epochs)
    if not warm:  # libraries import, compile and start threads when first used
        pixels, labels = task.data.train_pixels[:FEW], task.data.train_labels[:FEW]
        few = replace(task.data, train_pixels=pixels, train_labels=labels)
        learner.train(Task(few, task.hidden, task.threads), 1, SEED, rate)
    return Run(learner.name, epochs, *learner.train(task, epochs, SEED, rate))


def measure(
    task: Task,
    learners: Sequence[Learner],
    errors: Sequence[float],
    budgets: Sequence[int],
    progress: Progress = lambda title: None,
) -> Outcome:
    """All runs; `progress` is told each result.

    All have run with a budget before the next begins. Nobody goes on after the lowest error, or
    after a failure.
    """
    runs: list[Run] = []
    failed: set[str] = set()
    for epochs, learner in product(sorted({*budgets}), learners):
        if learner.name in failed or least_time(runs, learner.name, min(errors)):
            continue
        warm = any(run.learner == learner.name for run in runs)
        try:
            runs.append(train(task, learner, epochs, warm))
            text = f"{runs[-1].error:.2f} % in {runs[-1].seconds:.1f} s"
        except Exception as failure:  # of another library: the others go on
            text = failure_text(failure)
            failed.add(learner.name)
        progress(f"epochs {epochs}, {learner.name}: {text}")
    return Outcome(
        describe(),
        task.threads,
        task.data.name,
        task.layer_sizes,
        {each.name: each.settings for each in learners},
        runs,
    )


def time_alone(
    outcome: Outcome, errors: Sequence[float], arch: str, data: Sequence[str], progress: Progress
) -> Outcome:
    """With the seconds from Enter on of each learner's shortest run to each error."""
    names, timed = {each.name: each for each in OURS}, []
    for run in outcome.runs:
        found = [least_time(outcome.runs, run.learner, error) for error in errors]
        if (run.seconds, run.epochs) in found:
            recipe = run.learner.removeprefix("ours ") if run.learner in names else None
            settings = {"arch": arch, "epochs": run.epochs}
            settings |= {"threads": outcome.threads, "seed": SEED}
            run = replace(run, alone=seconds_alone(run.learner, recipe, settings, data))
            progress(f"epochs {run.epochs}, {run.learner}: {run.alone:.1f} s from Enter")
        timed.append(run)
    return replace(outcome, runs=timed)


def tables(outcome: Outcome, errors: Sequence[float]) -> list[str]:
    """The least times to each error, beside our least."""
    notes = (
        "Time: deformation and training from the first sample on, without loading, imports, "
        "initial weights and the evaluations of the test error; the least over budgets of epochs, "
        "each a run of its own whose learning rate falls to its end. The ratio is to our fastest: "
        f"more than 1 is slower. The error is that of the last epoch. Threads: {outcome.threads}.",
    )
    enter = (
        "The same runs once more, each a process of its own, from Enter to the prompt. Ours is "
        "`mlpcore train` with its evaluations and report; the others train and evaluate once.",
    )
    title = f"{outcome.data}, {format_layer_sizes(outcome.layer_sizes)}"
    alone = [replace(run, seconds=run.alone) for run in outcome.runs if run.alone is not None]
    trained, entered = (rows_of(outcome, runs, errors) for runs in (outcome.runs, alone))
    return [
        head(outcome.machine),
        table(f"{title}: time to a test error", trained, notes, left=2),
        table(f"{title}: from Enter to a test error", entered, enter, left=2),
    ]


def rows_of(outcome: Outcome, runs: Sequence[Run], errors: Sequence[float]) -> Rows:
    """The least time of each learner to each error."""
    ordered = sorted(errors, reverse=True)
    rows: Rows = [("Learner", "Settings", *(f"to {error:g} %" for error in ordered))]
    for name, settings in outcome.learners.items():
        cells = [name, settings]
        for error in ordered:
            ours = [least_time(runs, each.name, error) for each in OURS]
            fastest = min(filter(None, ours), default=None)
            if found := least_time(runs, name, error):
                ratio = f" {digits(found[0] / fastest[0])}x" if fastest else ""
                cells.append(f"{short_time(found[0])}, epochs {found[1]}{ratio}")
            else:
                cells.append(NONE)
        rows.append(tuple(cells))
    return rows
