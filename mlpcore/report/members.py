"""What a terminal or a log file shows while the members of a committee train at once."""

from __future__ import annotations

from collections.abc import Iterable

from mlpcore.errors import printable
from mlpcore.report.console import Console
from mlpcore.store.committee import Member
from mlpcore.training.state import TrainingState


class MembersDisplay:
    """A line for every state that is saved; on a terminal a bar for each member below them.

    A context manager, so that the terminal is left as it was.
    """

    def __init__(self, console: Console, members: Iterable[Member]):
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        out = console.out
        self._console, self._terminal = console, out is not None and out.isatty()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed} of {task.total} epochs"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=RichConsole(file=out, markup=False, highlight=False),
            transient=True,
            disable=not self._terminal,
            speed_estimate_period=600,
        )
        add = self._bars.add_task
        self._members = {each.name: add(each.name, total=each.config.epochs) for each in members}

    def __enter__(self) -> MembersDisplay:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bars.stop()

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        if self._terminal:
            self._bars.console.print(printable(text), soft_wrap=True)
        else:
            self._console.print(text)

    def saved(self, name: str, state: TrainingState, worker: str) -> None:
        """Moves the bar of a member, and prints how good it is."""
        bar, metrics = self._members[name], state.history[-1]
        self._bars.update(bar, completed=state.epoch)
        errors = f"test error {metrics.test_error:.2f} %"
        total = self._bars.tasks[bar].total
        self.note(f"{name}: {state.epoch} of {total} epochs, {errors}, from {worker}")
