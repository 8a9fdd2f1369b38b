"""Starts, resumes and ends a run in its folder, for every command that trains.

Here signals become stops, and results become lines, a report and an exit status.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.data import dataset
from mlpcore.errors import InputError, shown
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, check_writable
from mlpcore.inference import TrainedClassifier
from mlpcore.network import Network
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.report.console import Console
from mlpcore.report.figures import evaluation_figures, network_figures, write_figures
from mlpcore.report.page import title_of
from mlpcore.report.results import report, result_table
from mlpcore.store.run_folder import LAST, Run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Diverged, Observer, Trainer

#: The file in the folder of a finished run that shows its result.
REPORT = "report.md"


def start(
    folder: Path,
    config: TrainingConfig,
    data: dataset.Dataset,
    backend: Backend,
    console: Console,
    command: str,
    until: int | None = None,
) -> int:
    """Trains a new run.

    Parameters
    ----------
    folder
        Where the run is written; it must not hold one yet.
    command
        What to type to go on, printed when the run is stopped.
    until
        The epoch after which to stop, the last by default.

    Returns
    -------
    int
        The exit status: 0 when epoch `until` is done, 128 + n after signal n, even if the signal
        came too late to stop the training.

    Raises
    ------
    InputError
        When the folder cannot be used, or training fails.
    """
    trainer = Trainer(config, data, backend)
    _describe(console, config, backend, data)
    with _stopping(trainer) as signals:
        run = Run.create(folder, config, data, backend.description, trainer.state)
        with contextlib.closing(run):
            return _train(trainer, run, console, command, signals, until)


def resume(
    folder: Path,
    console: Console,
    command: str,
    threads: int | None = None,
    data_folder: str | None = None,
    data: dataset.Dataset | None = None,
    until: int | None = None,
    epochs: int | None = None,
) -> int:
    """Goes on with a run. A finished run shows its result again.

    Parameters
    ----------
    folder
        Folder of the run.
    command, until
        As for `start`.
    threads
        Number of threads; the result does not depend on it.
    data_folder
        Where the run's data are now, if they have moved.
    data
        The data, if they are loaded already.
    epochs
        The number of epochs of the run from now on, as in `TrainingConfig.with_epochs`.

    Returns
    -------
    int
        The exit status, as of `start`.

    Raises
    ------
    InputError
        When the folder holds no sound run, the data are not those of the run, more epochs have
        begun than there are to be, epochs are left but the folder cannot be written, or
        training fails.
    """
    with contextlib.closing(Run.open(folder)) as run:
        backend = backends.get(run.config.backend, threads, run.config.schedule)
        state, config = run.load(), run.config
        if epochs not in (None, config.epochs):
            config = config.with_epochs(epochs, state.begun)
        if state.epoch < config.epochs:
            check_writable(folder)  # rather than lose an epoch that cannot be saved
        data = data or run.data.load(data_folder)
        run.check_data(data)
        trainer = Trainer(config, data, backend, state=state)
        _describe(console, config, backend, data)
        if config is not run.config:
            console.print(_change_of_epochs(run.config, config, state.begun))
            run.change_settings(config)
        with _stopping(trainer) as signals:
            return _train(trainer, run, console, command, signals, until)


def _change_of_epochs(before: TrainingConfig, after: TrainingConfig, begun: int) -> str:
    """What a new number of epochs does to the learning rate, in a line."""
    text = f"epochs: {after.epochs} instead of {before.epochs}"
    if not 0 < begun < after.epochs:
        return text
    last, following = after.learning_rate_at(begun - 1), after.learning_rate_at(begun)
    return (
        f"{text}; the learning rate is {last:.3g} in epoch {begun}, {following:.3g} in the next, "
        f"and {after.learning_rate_at(after.epochs - 1):.3g} in the last"
    )


def _describe(
    console: Console, config: TrainingConfig, backend: Backend, data: dataset.Dataset
) -> None:
    """Prints the data and the backend."""
    if data.notice:
        console.print(f"note: {data.notice}")
    console.print(
        f"data: {data.name} ({shown(data.source)}): {data.contents}"
        + (", values {:g} to {:g}".format(*data.value_range) if data.value_range else "")
    )
    console.print(f"backend: {backend.description}")


class _StopAfter(Observer):
    """Stops a training after an epoch."""

    def __init__(self, epoch: int):
        self._epoch = epoch

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        if trainer.state.epoch >= self._epoch:
            trainer.request_stop()


@contextlib.contextmanager
def _stopping(trainer: Trainer) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM end training at the next sample; yields the signals that came.

    A signal only sets a flag: no number of signals interrupts the saving.
    """
    signals: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        trainer.request_stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _train(
    trainer: Trainer,
    run: Run,
    console: Console,
    command: str,
    signals: list[int],
    until: int | None,
) -> int:
    """Trains to the end, or to a stop; returns the exit status."""
    name, n = format_hidden_layers(run.config.hidden_layers), trainer.state.network.n_parameters
    width = "" if run.config.width is None else f"; width of the ink: {run.config.width} pixels"
    console.print(f"network: {name}, {n:,} weights{width}; run: {shown(run.folder)}")
    if trainer.state.seconds:
        console.print(f"resumed: {_place(trainer)}")
    trainer.observers = (run, console)
    if until is not None:
        trainer.observers += (_StopAfter(until),)
        if trainer.state.epoch >= until:
            trainer.request_stop()
    try:
        finished = trainer.run()
    except Diverged as error:
        raise Diverged(
            f"{error}; {shown(run.folder / LAST)} holds the weights before that"
        ) from None
    if finished:
        _present(trainer, run, console)
    if not signals:
        return 0
    console.print(f"stopped: {_place(trainer)}; saved. To go on:")
    console.print_whole(f"  {command}")
    return 128 + signals[0]


def _place(trainer: Trainer) -> str:
    """How far training has come, in words."""
    state = trainer.state
    text = f"{state.epoch} of {trainer.config.epochs} epochs done"
    if state.progress.samples:
        text += f", and {state.progress.samples:,} of {trainer.n_samples:,} samples of the next"
    return text


def _present(trainer: Trainer, run: Run, console: Console) -> None:
    """Prints the result of a finished run, and writes its report with figures."""
    state, data = trainer.state, trainer.dataset
    assert state.best is not None
    console.print()
    console.print_table(result_table(run.config, run.data, state))
    test: Evaluation | None = None
    figures: list[Path] = []
    try:
        classifier = TrainedClassifier([TrainedNetwork.read(run.folder)], trainer.backend)
        test, _ = classifier.evaluate(data.test_images, data.test_labels)
        figures = draw(run.folder / "figures", state.best, state.history, data, test)
    except Exception as error:  # no failure of a figure may fail a training that is done
        reason = " ".join(str(error).split())
        console.print(f"note: no figures are drawn: {type(error).__name__}: {reason}")
    files = [path.relative_to(run.folder).as_posix() for path in figures]
    text = report(run.config, run.data, state, trainer.backend.description, test, files)
    try:
        atomic_write(run.folder / REPORT, text.encode(errors="replace"))
    except InputError as error:  # the result is on the screen, and all else is saved
        console.print(f"note: no report: {error}")
    # Not 1 - 1 / n_classes: labels may be rare, or missing.
    guessed = 100 * (1 - np.bincount(data.train_labels).max() / len(data.train_labels))
    best = state.best_metrics
    if best is not None and best.validation_error > 0.9 * guessed:
        console.print(
            "note: this network is hardly better than always guessing the most frequent label, "
            f"which is wrong {guessed:.0f} % of the time: expected a lower --lr or a weaker "
            "deformation"
        )


def draw(
    folder: Path,
    network: Network,
    history: list[EpochMetrics],
    data: dataset.Dataset,
    test: Evaluation,
) -> list[Path]:
    """Writes the figures of a finished run; returns their files."""
    figures = evaluation_figures(data.test_images, test, title_of(network, data.name))
    figures |= network_figures(network, data.image_shape, history, data.held_out, data.name)
    return write_figures(folder, figures)
