"""What a terminal or a log file shows while the members of a committee train at once."""

from __future__ import annotations

from collections.abc import Iterable

from mlpcore.errors import printable
from mlpcore.report.console import Console
from mlpcore.report.tables import NONE
from mlpcore.store.committee import Member
from mlpcore.training.state import TrainingState


class MembersDisplay:
    """A line for every state that comes home; on a terminal a bar for each member below them.

    A context manager, so that the terminal is left as it was.
    """

    def __init__(self, console: Console, members: Iterable[Member]):
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._epochs = {member.name: member.config.epochs for member in members}
        self._console, out = console, console.out
        self._progress: Progress | None = None
        if out and out.isatty():
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.completed} of {task.total} epochs"),
                TimeRemainingColumn(),
                TextColumn("left  {task.fields[worker]}"),
                console=RichConsole(file=out, markup=False, highlight=False),
                transient=True,
                speed_estimate_period=600,
            )
            add = self._progress.add_task
            self._bars = {name: add(name, total=n, worker="") for name, n in self._epochs.items()}

    def __enter__(self) -> MembersDisplay:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress:
            self._progress.stop()

    def say(self, text: str) -> None:
        """Prints a line that stays."""
        if self._progress:
            self._progress.console.print(printable(text), soft_wrap=True)
        else:
            self._console.print(text)

    def epoch(self, name: str, epoch: int, worker: str) -> None:
        """Moves the bar of a member. An epoch that a worker repeats moves it back."""
        if self._progress:
            self._progress.update(self._bars[name], completed=epoch, worker=worker)

    def home(self, name: str, state: TrainingState, worker: str) -> None:
        """Prints how far a member is, and how good."""
        metrics, epochs = state.history[-1], self._epochs[name]
        test = f"{metrics.test_error:.2f} %" if metrics.n_test else NONE
        errors = f"validation {metrics.validation_error:.2f} %, test {test}"
        self.say(f"{name}: {state.epoch} of {epochs} epochs, {errors}, from {worker}")
