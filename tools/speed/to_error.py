"""The time until a test error is reached: each learner trains anew with one budget after another.

What is measured is a list of runs; all else follows from it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.tables import NONE
from mlpcore.store import provenance
from mlpcore.training import Trainer, TrainingConfig
from mlpcore.training.recipes import RECIPES, Recipe
from speed.machine import describe
from speed.peers.base import Learner, Task, failure_text
from speed.results import utc_now
from speed.tables import digits, head, short_time, table

#: Budgets of epochs, from the shortest; a learning rate that falls fits its budget.
BUDGETS = (1, 2, 3, 5, 8, 12, 20)

#: Training images of a run that only warms up.
FEW = 1000


@dataclass(frozen=True)
class Run:
    """A training of its own."""

    learner: str
    epochs: int
    seed: int
    seconds: float
    error: float  #: after the last epoch, in percent


@dataclass(frozen=True)
class Outcome:
    """The JSON document, in seconds and percent."""

    date: str
    revision: str
    machine: dict[str, str]
    threads: int
    data: str
    layer_sizes: tuple[int, ...]
    learners: dict[str, str]  #: and their settings
    missing: dict[str, str]  #: learners that are not installed or have failed, with the reason
    runs: list[Run]


def train_recipe(
    task: Task, epochs: int, seed: int, rate: float, recipe: Recipe
) -> tuple[float, float]:
    """Trains by a recipe; the time is the trainer's own account, without its evaluations."""
    config = TrainingConfig(
        hidden_layers=task.hidden,
        epochs=epochs,
        seed=seed,
        deformation=task.deformation,
        **recipe.settings_of(task.hidden),
    )
    trainer = Trainer(config, task.data, task.backend)
    trainer.run()
    history = trainer.state.history
    seconds = sum(each.deformation_seconds + each.training_seconds for each in history)
    return seconds, history[-1].test_error


def _settings(recipe: Recipe) -> str:
    config = TrainingConfig(**recipe.settings)
    rate = f"rate {config.learning_rate:g}"
    return f"{config.activation}, {config.loss}, on-line, {rate}, {config.decay}"


OURS = tuple(
    Learner(f"ours {name}", _settings(recipe), partial(train_recipe, recipe=recipe))
    for name, recipe in RECIPES.items()
)


@dataclass(frozen=True)
class Comparison:
    """What to measure; `task` has the data, the network and the threads."""

    task: Task
    learners: tuple[Learner, ...]
    errors: tuple[float, ...]  #: in percent, descending
    budgets: tuple[int, ...] = BUDGETS  #: epochs, ascending
    repeats: int = 1  #: with the seeds 1, 2, ...

    def settings(self, learner: Learner) -> str:
        """With the learning rates of a peer, in the order of the budgets."""
        rates = dict.fromkeys(f"{learner.rate(epochs):g}" for epochs in self.budgets)
        return learner.settings + (f", rate {' then '.join(rates)}" if learner.rates else "")

    def least_time(self, runs: Iterable[Run], name: str, error: float) -> tuple[float, int] | None:
        """The least time in which a learner's runs reach an error, and their epochs.

        The error of a budget is the mean over its seeds, its time their median. A budget without
        all its seeds does not count.
        """
        own, reached = [run for run in runs if run.learner == name], []
        for epochs in self.budgets:
            some = [run for run in own if run.epochs == epochs]
            if len(some) == self.repeats and statistics.mean(r.error for r in some) <= error:
                reached.append((statistics.median(r.seconds for r in some), epochs))
        return min(reached, default=None)


def train(comparison: Comparison, learner: Learner, epochs: int, seed: int, warm: bool) -> Run:
    """A run, after a short one that is not timed if the learner is not warm."""
    task, rate = comparison.task, learner.rate(epochs)
    if not warm:  # libraries import, compile and start threads when first used
        images, labels = task.data.train_images[:FEW], task.data.train_labels[:FEW]
        few = replace(task.data, train_images=images, train_labels=labels)
        learner.train(Task(few, task.hidden, task.threads), 1, seed, rate)
    return Run(learner.name, epochs, seed, *learner.train(task, epochs, seed, rate))


def measure(
    comparison: Comparison, progress: Callable[[str], object] = lambda title: None
) -> Outcome:
    """All runs; `progress` is told each result.

    All have run with a budget and a seed before the next begins. Every seed starts with another
    learner. Nobody goes on after the lowest error.
    """
    task, learners = comparison.task, comparison.learners
    missing = {each.name: reason for each in learners if (reason := each.missing())}
    runs: list[Run] = []
    outcome = Outcome(
        utc_now(),
        provenance.revision(),
        describe(),
        task.threads,
        task.data.name,
        task.layer_sizes,
        {each.name: comparison.settings(each) for each in learners},
        missing,
        runs,
    )
    for epochs in comparison.budgets:
        lowest = comparison.errors[-1]
        active = [e for e in learners if not comparison.least_time(runs, e.name, lowest)]
        for seed in range(1, comparison.repeats + 1):
            shift = (seed - 1) % max(1, len(active))
            for learner in active[shift:] + active[:shift]:
                if learner.name in missing:
                    continue
                warm = any(run.learner == learner.name for run in runs)
                try:
                    runs.append(train(comparison, learner, epochs, seed, warm))
                    text = f"{runs[-1].error:.2f} % in {runs[-1].seconds:.1f} s"
                except Exception as failure:  # of another library: the others go on
                    text = missing[learner.name] = failure_text(failure)
                progress(f"epochs {epochs}, seed {seed}, {learner.name}: {text}")
    return outcome


def tables(comparison: Comparison, outcome: Outcome) -> list[str]:
    """The least times to each error."""
    rows = [[each.name, comparison.settings(each)] for each in comparison.learners]
    for error in comparison.errors:
        found = [comparison.least_time(outcome.runs, name, error) for name, *_ in rows]
        pairs = zip(comparison.learners, found)
        ours = [least[0] for learner, least in pairs if least and not learner.rates]
        for row, least in zip(rows, found):
            ratio = f" {digits(least[0] / min(ours))}x" if least and ours else ""
            row.append(f"{short_time(least[0])}, epochs {least[1]}{ratio}" if least else NONE)
    notes = (
        "Time: deformation and training from the first sample on, without loading, imports, "
        "initial weights and the evaluations of the test error; the least over budgets of "
        f"{', '.join(map(str, comparison.budgets))} epochs, each a run of its own whose learning "
        f"rate falls to its end. Threads: {outcome.threads}. The ratio is to our fastest: more "
        "than 1 is slower.",
        f"The error is the mean over {comparison.repeats} seeds after the last epoch, the time is "
        "their median. Another seed has another error.",
        "Learning rates of peers: the best of those that were tried with net1 and 10,000 held-out "
        "digits of MNIST.",
    )
    title = f"{outcome.data}, {format_layer_sizes(outcome.layer_sizes)}: time to a test error"
    headers = ("Learner", "Settings", *(f"to {error:g} %" for error in comparison.errors))
    return [
        head(outcome.date, outcome.revision, outcome.machine, outcome.missing),
        table(title, headers, rows, notes, left=2),
    ]
