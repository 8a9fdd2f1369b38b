"""What a terminal, a notebook or a log file shows of a training."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from mlpcore.errors import printable_lines
from mlpcore.report.tables import NONE, Rows, kind_of_test, text_table
from mlpcore.terminal import flush_or_discard, say
from mlpcore.training.config import is_milestone
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer

#: Seconds between two updates of the bars.
REFRESH_SECONDS = 0.25


def epoch_line(metrics: EpochMetrics, epochs: int) -> str:
    """A line of the table whose header is `header_line`."""
    cells = (
        f"{metrics.epoch}/{epochs}",
        f"{metrics.learning_rate:.2e}",
        f"{metrics.loss:.4f}",
        f"{metrics.training_error:.2f} %",
        NONE if metrics.validation_errors is None else f"{metrics.validation_error:.2f} %",
        f"{metrics.test_error:.2f} %" if metrics.n_test else NONE,
        f"{training_speed(metrics):,.0f}",
        f"{metrics.seconds:.1f} s",
    )
    return _line(cells, epochs)


def header_line(epochs: int, held_out: int = 0) -> str:
    """The names of the columns of `epoch_line`; `held_out` is that of the `Dataset`."""
    test = kind_of_test(held_out)
    names = ("epoch", "rate", "loss", "training", "validation", test, "samples/s", "time")
    return _line(names, epochs)


def training_speed(metrics: EpochMetrics) -> float:
    """Samples trained in a second."""
    return metrics.n_train / max(metrics.training_seconds, 1e-9)


def _line(cells: Iterable[str], epochs: int) -> str:
    widths = (max(5, 2 * len(str(epochs)) + 1), 8, 7, 8, 10, 8, 9, 8)
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))


class Console(Observer):
    """Shows a line for each epoch and, on a terminal or in a notebook, two bars below the lines.

    A context manager, so that the terminal is left as it was.

    Parameters
    ----------
    out
        Where everything goes. In a file there are no control codes, and each line is there at
        once.
    """

    def __init__(self, out: TextIO):
        self.out: TextIO | None = out
        self._bars: _Bars | None = None
        self._can_change = _can_change(out)
        self._has_header = False

    def __enter__(self) -> Console:
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
                self._bars.print(text)  # above the bars
            elif self.out:
                print(text, file=self.out, flush=True)

    def print_table(self, rows: Rows) -> None:
        """Prints a table that stays; the bars are removed."""
        self._remove_bars()
        self.print(text_table(rows))

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Go on without output when it fails: a training is worth more than what it prints."""
        try:
            yield
        except OSError as error:
            if self.out is sys.stdout:
                flush_or_discard(self.out)
            self.out = self._bars = None
            say(f"note: no output any more ({error.strerror}); the work goes on", sys.stderr)

    def _remove_bars(self) -> None:
        with self._surviving():
            if self._bars:
                self._bars.stop()
        self._bars = None

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Prints the header before the first line; in a notebook the bars are above it."""
        self.on_progress(trainer, "", 0, trainer.n_samples)
        if not self._has_header:
            self._has_header = True
            self.print(header_line(trainer.config.epochs, trainer.source.held_out))

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """Moves the bars."""
        if self._can_change and self.out:
            with self._surviving():
                self._bars = self._bars or _Bars(self.out)
                self._bars.show(trainer, phase, done, total)

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Prints the line of an epoch."""
        if self._bars:
            self._bars.speed = training_speed(metrics)
        self.print(epoch_line(metrics, trainer.config.epochs))

    def on_run_end(self, trainer: Trainer) -> None:
        """Removes the bars."""
        self._remove_bars()


class ProgressBar(Console):
    """Shows how far a training is, and the metrics of its epochs.

    In a notebook and on a terminal two bars with the times left are below lines, one for each epoch
    or for about twenty of many. In a log file there are the lines alone. The bars in a notebook
    need the package ipywidgets.

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
        super().__init__(out or sys.stdout)

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Prints the line of the first and of the last epoch, and of some in between."""
        if is_milestone(metrics.epoch, trainer.config.epochs):
            super().on_epoch_end(trainer, metrics)


def _can_change(out: TextIO) -> bool:
    """Whether what was shown can change: on a terminal, and in a notebook, which runs IPython."""
    if out is not sys.stdout or "IPython" not in sys.modules:
        return out.isatty()
    from rich.console import Console as RichConsole

    return out.isatty() or RichConsole().is_jupyter


class _Bars:
    """Two bars with the times left: for a phase of the epoch, and for the run."""

    def __init__(self, out: TextIO):
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        # `show` refreshes it: a thread for that would compete with the threads that train.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TimeRemainingColumn(),
            TextColumn("left"),
            TextColumn("{task.fields[speed]}"),
            console=RichConsole(file=out, markup=False, highlight=False),
            auto_refresh=False,
            transient=True,
            speed_estimate_period=300,
        )
        names = "", "run"
        self._bars = [self._progress.add_task(name, total=None, speed="") for name in names]
        self._name, self._next_refresh = "", 0.0
        self.speed = 0.0  # samples trained in a second, of this epoch or of the one before

    def print(self, text: str) -> None:
        self._progress.console.print(text, soft_wrap=True)

    def stop(self) -> None:
        self._progress.stop()

    def show(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """Draws the bars anew, at most every `REFRESH_SECONDS`."""
        state, epochs = trainer.state, trainer.config.epochs
        name = f"epoch {state.epoch + 1}/{epochs} {phase:<10}"
        now = time.monotonic()
        if name != self._name:
            self._name = name
            self._progress.reset(self._bars[0], completed=done, total=total, description=name)
        elif now < self._next_refresh:
            return
        self._next_refresh = now + REFRESH_SECONDS
        self._progress.start()
        self._progress.update(self._bars[0], completed=done)
        share = done / total if phase == "training" else float(phase == "evaluating")
        self._progress.update(self._bars[1], completed=state.epoch + share, total=epochs)
        if phase == "training":
            self.speed = self._progress.tasks[0].speed or self.speed
        if self.speed:
            updates = self.speed * state.network.n_parameters / 1e9
            self._progress.update(self._bars[0], speed=f"{self.speed:,.0f} samples/s")
            self._progress.update(self._bars[1], speed=f"{updates:,.2f} billion weight updates/s")
        self._progress.refresh()
