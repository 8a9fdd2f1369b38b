"""Trains a run in its folder, for every command that trains.

Here signals become stops, and results become lines, a report and an exit status.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from mlpcore.commands.options import command_text
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError, one_line, shown
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, remove_temporary
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.report.console import ProgressBar
from mlpcore.report.figures import trained_figures, write_figures
from mlpcore.report.results import report, result_table
from mlpcore.report.tables import text_table
from mlpcore.stopping import stopping
from mlpcore.store.run_folder import LAST, Run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.trainer import Diverged, Trainer
from mlpcore.typing import Figure

#: The file in the folder of a finished run, or committee, that shows its result.
REPORT = "report.md"


def train(run: Run, trainer: Trainer, data: Dataset, console: ProgressBar, command: str) -> int:
    """Trains a run to its end, and shows its result.

    The trainer has the state and the settings of the run. `command` is what to type to go on.
    Returns the exit status: 128 + n after signal n, even if it came too late to stop the training,
    else 0. An InputError is raised when the folder cannot be written, or training fails.
    """
    _describe(run, trainer, data, console)
    trainer.observers += (run, console)
    # A signal only sets a flag: no number of signals interrupts the saving.
    with stopping(trainer.request_stop) as signals:
        try:
            finished = trainer.run()
        except Diverged as error:
            last = shown(run.folder / LAST)
            raise Diverged(f"{error}; {last} holds the weights before that") from None
        if finished:
            _present(trainer, run, data, console)
    if not finished:
        console.print(f"stopped: {_place(trainer)}; saved. To resume:")
        console.print_whole(f"  {command}")
    return 128 + signals[0] if signals else 0


def _describe(run: Run, trainer: Trainer, data: Dataset, console: ProgressBar) -> None:
    """Prints what trains on which data, and from where it goes on."""
    config = trainer.config
    if data.notice:
        console.print(f"note: {data.notice}")
    values = "" if data.pixels.whole else ", values {:g} to {:g}".format(*data.pixels.value_range)
    console.print(f"data: {data.name} ({shown(data.source)}): {data.contents}{values}")
    console.print(f"backend: {trainer.backend.description}")
    name, n = format_hidden_layers(config.hidden_layers), trainer.state.network.n_parameters
    share = config.ones_and_sevens
    strokes = f"; strokes on {100 * share:g} % of the ones and sevens" if share else ""
    console.print(f"network: {name}, {n:,} weights{strokes}; run: {shown(run.folder)}")
    if trainer.state.seconds:
        console.print(f"resumed: {_place(trainer)}")


def _place(trainer: Trainer) -> str:
    """The place that training has reached, in words."""
    state = trainer.state
    text = f"{state.epoch} of {trainer.config.epochs} epochs done"
    if state.progress.samples:
        text += f", and {state.progress.samples:,} of {trainer.n_samples:,} samples of the next"
    return text


def _present(trainer: Trainer, run: Run, data: Dataset, console: ProgressBar) -> None:
    """Prints the result of a finished run, and writes its report with figures."""
    state = trainer.state
    metrics = state.best_metrics
    assert metrics is not None
    console.print()
    console.print(text_table(result_table(run.config, run.data, state)))
    trained = TrainedNetwork.read(run.folder)
    test = Evaluation.of(trainer.test_outputs(trained.network), data.test_labels)
    text = functools.partial(report, run.config, run.data, state, trainer.backend.description, test)
    figures = trained_figures([trained], [state.history], data, test)
    write_report(run.folder, figures, text, console)
    # Not 1 - 1 / n_classes: labels may be rare, or missing.
    guessed = 100 * (1 - np.bincount(data.train_labels).max() / len(data.train_labels))
    if metrics.validation_error > 0.9 * guessed:
        console.print(
            "note: this network is barely better than always guessing the most frequent label, "
            f"which is wrong {guessed:.0f} % of the time: expected more --epochs, a lower --lr or "
            "a weaker deformation"
        )


def write_report(
    folder: Path,
    figures: Iterable[tuple[str, Figure]],
    text: Callable[[Sequence[str]], str],
    console: ProgressBar,
) -> None:
    """Draws the figures of a result and writes its report, and says so; a failure is a note.

    The folder is that of a run or a committee, and locked: what killed processes left of the files
    is removed. `text` gets the names of the files of figures, relative to it.
    """
    paths: Sequence[Path] = []
    console.print("drawing figures")
    try:
        paths = write_figures(folder / "figures", figures)
    except Exception as error:  # such as a font that is missing
        reason = one_line(error)
        console.print(f"note: no figures are drawn: {type(error).__name__}: {reason}")
    remove_temporary(folder, [REPORT])
    remove_temporary(folder / "figures", [path.name for path in paths])
    content = text([path.relative_to(folder).as_posix() for path in paths])
    try:
        atomic_write(folder / REPORT, content.encode(errors="replace"))
        more = command_text("info", str(folder))
        console.print(f"report: {shown(folder / REPORT)}; summary: {more}")
    except InputError as error:
        console.print(f"note: no report: {error}")
