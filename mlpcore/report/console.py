"""What a terminal or a log file shows of a training run."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable
from typing import TextIO

from mlpcore.data.dataset import kind_of_test
from mlpcore.report.tables import NONE, text_table
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer

#: Seconds between two updates of the live display.
REFRESH_SECONDS = 0.25

COLUMNS = ("epoch", "rate", "loss", "training", "validation", "test", "samples/s", "time")


def epoch_line(metrics: EpochMetrics, epochs: int, samples_per_second: float) -> str:
    """A line of the table whose header is `header_line`."""
    cells = (
        f"{metrics.epoch}/{epochs}",
        f"{metrics.learning_rate:.2e}",
        f"{metrics.loss:.4f}",
        f"{metrics.training_error:.2f} %",
        f"{metrics.validation_error:.2f} %",
        f"{metrics.test_error:.2f} %" if metrics.n_test else NONE,
        f"{samples_per_second:,.0f}",
        f"{metrics.seconds:.1f} s",
    )
    return _line(cells, epochs)


def header_line(epochs: int, held_out: int = 0) -> str:
    """What the columns of `epoch_line` are; `held_out` as of the `Dataset`."""
    names = (kind_of_test(held_out) if name == "test" else name for name in COLUMNS)
    return _line(names, epochs)


def _line(cells: Iterable[str], epochs: int) -> str:
    widths = (max(5, 2 * len(str(epochs)) + 1), 8, 7, 8, 10, 8, 9, 8)
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))


class Console(Observer):
    """Shows progress: lines that stay and, on a terminal, a display that changes.

    A context manager, so that the terminal is left as it was.

    Parameters
    ----------
    out
        Where everything goes. Without a terminal there are no control codes, and each line
        is there at once.
    """

    def __init__(self, out: TextIO):
        self.out = out
        self._live = _Display(out) if out.isatty() else None
        self._phase: str | None = None
        self._next_refresh = 0.0
        self._speed = 0.0

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def print(self, text: str = "") -> None:
        """A line that stays."""
        if self._live:
            self._live.print(text)
        else:
            print(text, file=self.out, flush=True)

    def print_table(self, rows: list[tuple[str, ...]]) -> None:
        """A table that stays; the live display ends before it."""
        if self._live:
            self._live.stop()
        self.print(text_table(rows))

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Prints the header before the first line."""
        self._phase = None
        if not self._speed:
            self.print(header_line(trainer.config.epochs, trainer.dataset.held_out))

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """Measures the speed and updates the live display now and then."""
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._phase_start, self._first = phase, now, done
            self._next_refresh = now
        elif phase == "training" and now > self._phase_start:
            self._speed = (done - self._first) / (now - self._phase_start)
        if self._live and now >= self._next_refresh:
            self._next_refresh = now + REFRESH_SECONDS
            self._live.show(trainer, phase, done, total, self._speed)

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Prints the line of an epoch."""
        self._speed = metrics.n_train / max(metrics.training_seconds, 1e-9)
        self.print(epoch_line(metrics, trainer.config.epochs, self._speed))


class _Display:
    """Two bars, for the epoch and for the run, with speeds and the times left."""

    def __init__(self, out: TextIO):
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn

        # Refreshed from `show`: a thread of its own would compete with those that train.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[left]} left"),
            TextColumn("{task.fields[speed]}"),
            console=RichConsole(file=out, markup=False, highlight=False),
            auto_refresh=False,
            transient=True,
        )
        self._epoch = self._progress.add_task("", total=1, left="", speed="")
        self._run = self._progress.add_task("", total=1, left="", speed="")

    def print(self, text: str) -> None:
        self._progress.console.print(text, soft_wrap=True)

    def stop(self) -> None:
        self._progress.stop()

    def show(self, trainer: Trainer, phase: str, done: int, total: int, speed: float) -> None:
        """Draws anew."""
        self._progress.start()
        state, epochs = trainer.state, trainer.config.epochs
        epoch_left, run_left = time_left(trainer, phase, done, total, speed)
        weights = speed * state.network.n_parameters
        self._progress.update(
            self._epoch,
            description=f"epoch {state.epoch + 1}/{epochs} {phase:<10}",
            completed=done,
            total=total,
            left=_clock(epoch_left),
            speed=f"{speed:,.0f} samples/s" if speed else "",
        )
        share = done / total if phase == "training" else float(phase == "evaluating")
        self._progress.update(
            self._run,
            description="run",
            completed=state.epoch + share,
            total=epochs,
            left=_clock(run_left),
            speed=f"{weights / 1e9:,.2f} billion weight updates/s" if speed else "",
        )
        self._progress.refresh()


def time_left(
    trainer: Trainer, phase: str, done: int, total: int, speed: float
) -> tuple[float, float] | tuple[None, None]:
    """Seconds until the epoch and until the run end, None when there is nothing to go by.

    Training goes on at `speed`, in samples/s; the rest takes as long as in the epoch before.
    """
    state = trainer.state
    before = state.history[-1] if state.history else None
    if not speed:
        return None, None
    evaluation = before.evaluation_seconds if before else 0.0
    trained = done if phase == "training" else total if phase == "evaluating" else 0
    if phase == "evaluating":
        epoch_left = evaluation * (1 - done / total)
    else:
        epoch_left = (trainer.n_samples - trained) / speed + evaluation
    an_epoch = before.seconds if before else trainer.n_samples / speed
    return epoch_left, epoch_left + (trainer.config.epochs - state.epoch - 1) * an_epoch


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "-:--:--"
    return str(datetime.timedelta(seconds=round(seconds)))
