"""What a terminal or a log file shows while the members of a committee train at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from mlpcore.report.console import Console
from mlpcore.store.committee import Member
from mlpcore.training.state import TrainingState


class MembersConsole(Console):
    """A line for every state that is saved; on a terminal a bar for each member below them."""

    def __init__(self, out: TextIO, members: Iterable[Member]):
        super().__init__(out)
        self._epochs = {each.name: each.config.epochs for each in members}
        for name in self._epochs:
            self._show(name, 0)

    def _show(self, name: str, epoch: int) -> None:
        epochs = self._epochs[name]
        self.show_bar(name, name, epoch, epochs, f"{epoch} of {epochs} epochs")

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        self.print(text)

    def saved(self, name: str, state: TrainingState, worker: str) -> None:
        """Moves the bar of a member, and prints how good it is."""
        self._show(name, state.epoch)
        errors = f"test error {state.history[-1].test_error:.2f} %"
        self.print(f"{name}: {state.epoch} of {self._epochs[name]} epochs, {errors}, from {worker}")
