"""The progress of a training run on a terminal, in a notebook or in a log file."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from mlpcore.errors import printable_lines
from mlpcore.report.tables import NONE, kind_of_test
from mlpcore.store.committee import Member
from mlpcore.terminal import flush_or_discard, say
from mlpcore.training.config import is_milestone
from mlpcore.training.state import EpochMetrics, TrainingState
from mlpcore.training.trainer import Observer, Trainer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Seconds between two updates of the bars.
REFRESH_SECONDS = 0.25


def epoch_columns(held_out: int) -> tuple[str, ...]:
    """The header of lines for epochs; `held_out` is that of the `Dataset`."""
    test = kind_of_test(held_out)
    return "epoch", "rate", "loss", "training", "validation", test, "samples/s", "time"


def epoch_cells(metrics: EpochMetrics, epochs: int) -> tuple[str, ...]:
    """The cells of an epoch, of so many."""
    return (
        f"{metrics.epoch}/{epochs}",
        f"{metrics.learning_rate:.2e}",
        f"{metrics.loss:.4f}",
        f"{metrics.training_error:.2f} %",
        NONE if metrics.validation_errors is None else f"{metrics.validation_error:.2f} %",
        f"{metrics.test_error:.2f} %" if metrics.n_test else NONE,
        f"{metrics.n_train / max(metrics.training_seconds, 1e-9):,.0f}",
        f"{metrics.seconds:.1f} s",
    )


class ProgressBar(Observer):
    """Shows the progress of training, and the metrics of its epochs.

    An epoch of a second or more gets a line, and so do about twenty of many shorter ones. In a
    notebook and on a terminal, two bars below the lines show the time left. A log file gets only
    the lines, each at once. The bars in a notebook need the package ipywidgets.

    As a context manager it leaves the terminal as it was, whatever happens.

    Parameters
    ----------
    out : file, optional
        Where it is shown instead of in a notebook or on standard output.

    Examples
    --------
    >>> from mlpcore import Trainer, TrainingConfig, backends, dataset
    >>> data, config = dataset.load(name="digits"), TrainingConfig(hidden_layers=(20,), epochs=2)
    >>> trainer = Trainer(config, data, backends.get(), observers=[ProgressBar()])
    >>> trainer.run()  # doctest: +ELLIPSIS
    epoch      rate     loss  training  validation ...
      1/2  1.00e-03 ...
      2/2 ...
    True
    """

    def __init__(self, out: TextIO | None = None):
        out = out or sys.stdout
        self.out: TextIO | None = out
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._can_change, self._next_refresh = _can_change(out), 0.0
        self._speed = 0.0  # samples trained in a second, of this epoch or of the one before
        self._has_header = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        self._remove_bars()

    def print(self, text: str = "") -> None:
        """Prints lines that stay, each as `mlpcore.errors.printable` shows it."""
        self.print_whole(printable_lines(text))

    def print_whole(self, text: str) -> None:
        """Prints lines that stay and are safe already, such as a command to type."""
        with self._surviving():
            if self._bars and self.out and self.out.isatty():
                self._bars.console.print(text, soft_wrap=True)  # above the bars
            elif self.out:
                print(text, file=self.out, flush=True)

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Go on without output when it fails: training is worth more than what it prints."""
        try:
            yield
        except OSError as error:
            if self.out is sys.stdout:
                flush_or_discard(self.out)
            self.out = self._bars = None
            say(f"note: output has ended ({error.strerror}); the work continues", sys.stderr)

    def _remove_bars(self) -> None:
        with self._surviving():
            if self._bars:
                self._bars.stop()
        self._bars, self._tasks = None, {}

    def _print_row(self, trainer: Trainer, *cells: str) -> None:
        """Prints cells in columns that are as wide as any number in them, and fit a terminal."""
        epoch = max(5, 2 * len(str(trainer.config.epochs)) + 1)
        widths = epoch, 8, 7, 8, 10, 8, 9, 8
        line = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))
        while self._can_change and len(line) > shutil.get_terminal_size().columns:
            line = line[: line.rindex("  ")].rstrip()
        self.print(line)

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Prints the header before the first line; in a notebook the bars are above it."""
        self.on_progress(trainer, "", 0, trainer.n_samples)
        if not self._has_header:
            self._has_header = True
            self._print_row(trainer, *epoch_columns(trainer.source.held_out))

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """Moves the bars of the epoch's phase and of the run."""
        epoch, epochs = trainer.state.epoch, trainer.config.epochs
        share = done / total if phase == "training" else float(phase == "evaluating")
        name, texts = f"epoch {epoch + 1}/{epochs} {phase:<10}", ("", "")
        if self._speed:
            updates = self._speed * trainer.state.network.n_parameters / 1e9
            texts = f"{self._speed:,.0f} samples/s", f"{updates:,.2f} billion weight updates/s"
        speed = self.show_bar("epoch", name, done, total, texts[0])
        if phase == "training":
            self._speed = speed or self._speed
        self.show_bar("run", "run", epoch + share, epochs, texts[1])

    def show_bar(self, key: str, name: str, done: float, total: float, text: str) -> float | None:
        """Moves a bar, which it adds at first, if what is shown can change.

        The bar begins anew with another name. Bars are drawn anew every `REFRESH_SECONDS` at most.
        Returns how much is done in a second, if that is known.
        """
        if not self._can_change or not self.out:
            return None
        with self._surviving():
            if not self._bars:
                self._bars = new_bars(self.out)
                self._bars.start()
            if key not in self._tasks:
                self._tasks[key] = self._bars.add_task("", total=None, text="")
            task = self._bars.tasks[self._tasks[key]]
            is_new = name != task.description
            if is_new:
                self._bars.reset(task.id, total=total, description=name)
            self._bars.update(task.id, completed=done, total=total, text=text)
            now = time.monotonic()
            if is_new or now >= self._next_refresh:
                self._next_refresh = now + REFRESH_SECONDS
                self._bars.refresh()
            return task.speed
        return None

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Prints the line of an epoch, unless many short ones would scroll by."""
        if metrics.seconds < 1 and not is_milestone(metrics.epoch, trainer.config.epochs):
            return
        self._print_row(trainer, *epoch_cells(metrics, trainer.config.epochs))

    def on_run_end(self, trainer: Trainer) -> None:
        """Removes the bars."""
        self._remove_bars()


class MembersConsole(ProgressBar):
    """A line for every state that is saved; on a terminal a bar for each member below them."""

    def __init__(self, out: TextIO, members: Iterable[Member]):
        super().__init__(out)
        self._epochs = {each.name: each.config.epochs for each in members}
        for name in self._epochs:
            self._show(name, 0)

    def _show(self, name: str, epoch: int) -> None:
        epochs = self._epochs[name]
        self.show_bar(name, name, epoch, epochs, f"{epoch} of {epochs} epochs")

    def saved(self, name: str, state: TrainingState, worker: str) -> None:
        """Moves the bar of a member, and prints how good it is."""
        self._show(name, state.epoch)
        errors = f"test error {state.history[-1].test_error:.2f} %"
        self.print(f"{name}: {state.epoch} of {self._epochs[name]} epochs, {errors}, from {worker}")


def _can_change(out: TextIO) -> bool:
    """Whether what was shown can change: on a terminal, and in a notebook, which runs IPython."""
    if out.isatty() or out is not sys.stdout or "IPython" not in sys.modules:
        return out.isatty()
    from rich.console import Console as RichConsole

    return RichConsole().is_jupyter


def new_bars(out: TextIO) -> Progress:
    """Bars with the time left, none yet; they are drawn when `refresh` is called.

    A thread that draws them would compete with the threads that train, and nobody would catch that
    its output fails.
    """
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.fields[text]}"),
        console=RichConsole(file=out, markup=False, highlight=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=out is sys.stdout or sys.stdout.isatty(),
        speed_estimate_period=600,
    )
