"""A progress bar for notebooks, scripts and the interactive Python."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from html import escape
from typing import Any, TextIO

from mlpcore.report.console import REFRESH_SECONDS, Console, column_names, epoch_cells
from mlpcore.report.html import text_table_html
from mlpcore.report.tables import duration
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer

#: About so many epochs of a run have a line, in a notebook and elsewhere.
NOTEBOOK_LINES, LINES = 10, 20


def in_notebook() -> bool:
    """Whether output goes to a notebook: Jupyter, VS Code, Colab."""
    from rich.console import Console as RichConsole

    return RichConsole().is_jupyter


class ProgressBar(Observer):
    """Shows how far a training is, and the metrics of its epochs.

    In a notebook one output is updated in place: a bar, the time left, the last epoch and about ten
    others. On a terminal the bars are below lines, one for each epoch or for about twenty of many.
    Without a terminal, as in a log file, there are the lines alone.

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
        self._shown: Observer
        if out is None and in_notebook():
            self._shown = _NotebookOutput()
        else:
            self._shown = _FewLines(out or sys.stdout)

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Shows the bar, or the names of the columns, at the first epoch."""
        self._shown.on_epoch_start(trainer)

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """Moves the bar."""
        self._shown.on_progress(trainer, phase, done, total)

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Shows the metrics of the epoch."""
        self._shown.on_epoch_end(trainer, metrics)

    def on_run_end(self, trainer: Trainer) -> None:
        """Removes the bar."""
        self._shown.on_run_end(trainer)


def _has_line(metrics: EpochMetrics, epochs: int, lines: int) -> bool:
    """Whether an epoch is the first, the last, or one of about `lines` in between."""
    return metrics.epoch in (1, epochs) or metrics.epoch % math.ceil(epochs / lines) == 0


class _FewLines(Console):
    """A console with lines for some of many epochs."""

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        if _has_line(metrics, trainer.config.epochs, LINES):
            super().on_epoch_end(trainer, metrics)


class _NotebookOutput(Observer):
    """An output of a notebook that changes in place.

    IPython alone does that; the bars of other packages also need ipywidgets.
    """

    def __init__(self) -> None:
        self._output: Any = None
        self._next_refresh = 0.0

    def on_epoch_start(self, trainer: Trainer) -> None:
        from IPython.display import HTML, display

        if self._output is None:
            self._started, self._epochs_before = time.monotonic(), _epochs_done(trainer)
            self._output = display(HTML(""), display_id=True)

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next_refresh:
            return
        self._next_refresh = now + REFRESH_SECONDS
        epochs, epoch = trainer.config.epochs, _epochs_done(trainer)
        text = f"epoch {trainer.state.epoch + 1}/{epochs}, {phase}"
        if gained := epoch - self._epochs_before:
            left = (now - self._started) / gained * (epochs - epoch)
            text += f", {duration(left)} left"
        bar = f'<progress value="{epoch}" max="{epochs}" style="width: 300px"></progress>'
        self._update(trainer, f"<div>{bar} {escape(text)}</div>")

    def on_run_end(self, trainer: Trainer) -> None:
        if self._output is not None:
            state = trainer.state
            text = f"{state.epoch} of {trainer.config.epochs} epochs in {duration(state.seconds)}"
            if best := state.best_metrics:
                text += f"; lowest validation error {best.validation_error:.2f} % "
                text += f"after epoch {best.epoch}"
            self._update(trainer, f"<div>{escape(text)}</div>")
            self._output = None

    def _update(self, trainer: Trainer, first: str) -> None:
        """Shows a line above a table of epochs."""
        from IPython.display import HTML

        shown = _shown_epochs(trainer.state.history, trainer.config.epochs)
        rows = [epoch_cells(metrics, trainer.config.epochs) for metrics in shown]
        table = text_table_html([column_names(trainer.dataset.held_out), *rows]) if rows else ""
        self._output.update(HTML(f"{first}{table}"))


def _epochs_done(trainer: Trainer) -> float:
    """Epochs that are done, with the share of the one in progress."""
    return trainer.state.epoch + trainer.state.progress.samples / trainer.n_samples


def _shown_epochs(history: Sequence[EpochMetrics], epochs: int) -> list[EpochMetrics]:
    """The last of the epochs so far, and about `NOTEBOOK_LINES` before it."""
    before = [m for m in history[:-1] if _has_line(m, epochs, NOTEBOOK_LINES)]
    return [*before, *history[-1:]]
