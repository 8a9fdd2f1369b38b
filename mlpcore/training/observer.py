"""What happens during a training, told to whoever shows or keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlpcore.training.state import EpochMetrics

if TYPE_CHECKING:
    from mlpcore.training.trainer import Trainer


class Observer:
    """A `Trainer` calls these methods. They do nothing: override those of interest."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """An epoch begins, or continues at `trainer.state.progress`."""

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """A phase has done some of its images: "deforming", "training", "evaluating".

        Evaluation counts a whole set of images when it is done. This is called often. An
        exception from here ends the run without `on_stop`.
        """

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """An epoch is complete; `trainer.state` includes it."""

    def on_stop(self, trainer: Trainer) -> None:
        """Training stops before its end, as requested; it can continue from `trainer.state`."""

    def on_run_end(self, trainer: Trainer) -> None:
        """`Trainer.run` is about to return, or to raise any exception."""
