"""Observers that log a training for TensorBoard and for MLflow, which are optional packages."""

from __future__ import annotations

import dataclasses
import importlib
import os
from typing import Any

from mlpcore.data.dataset import kind_of_test
from mlpcore.errors import InputError
from mlpcore.report.console import training_speed
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.typing import StrPath


def scalars(trainer: Trainer, metrics: EpochMetrics) -> dict[str, float]:
    """What is logged of an epoch: errors in percent, the loss, the rate, samples a second."""
    values = {
        "loss": metrics.loss,
        "error/training": metrics.training_error,
        "error/validation": metrics.validation_error,
    }
    if metrics.n_test:
        values[f"error/{kind_of_test(trainer.dataset.held_out)}"] = metrics.test_error
    return values | {
        "learning_rate": metrics.learning_rate,
        "samples_per_second": training_speed(metrics),
    }


class TensorBoardLogger(Observer):
    """Writes the metrics of every epoch for TensorBoard.

    Parameters
    ----------
    log_dir : str or os.PathLike
        The folder of this run. ``tensorboard --logdir`` takes it, or the folder that it is in.

    Raises
    ------
    InputError
        When the package tensorboard is not installed.

    Examples
    --------
    >>> observers = [TensorBoardLogger("logs/first")]  # doctest: +SKIP
    """

    def __init__(self, log_dir: StrPath):
        self.log_dir = os.fsdecode(log_dir)
        self._summary = _imported("tensorboard", "tensorboard.summary")
        self._writer: Any = None

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Opens a new file in the folder, at the first epoch of a run."""
        if self._writer is None:
            self._writer = self._summary.Writer(self.log_dir)

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Writes `scalars`; the step is the epoch."""
        for tag, value in scalars(trainer, metrics).items():
            self._writer.add_scalar(tag, value, metrics.epoch)
        self._writer.flush()

    def on_run_end(self, trainer: Trainer) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class MLflowLogger(Observer):
    """Logs the settings and the metrics of every epoch to MLflow.

    They go to the run that is active, ``with mlflow.start_run():``. Without one, a run is started,
    and it ends with the training.

    Raises
    ------
    InputError
        When the package mlflow is not installed.

    Examples
    --------
    >>> observers = [MLflowLogger()]  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._mlflow = _imported("mlflow", "mlflow")
        self._begun = self._started = False

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Logs the settings, at the first epoch of a run."""
        if self._begun:
            return
        self._begun = True
        if self._mlflow.active_run() is None:
            self._mlflow.start_run()
            self._started = True
        settings = dataclasses.asdict(trainer.config)
        for group in ("deformation",):
            for name, value in (settings.pop(group) or {}).items():
                settings[f"{group}.{name}"] = value
        self._mlflow.log_params(settings | {"data": trainer.dataset.name})

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Logs `scalars`; the step is the epoch."""
        self._mlflow.log_metrics(scalars(trainer, metrics), step=metrics.epoch)

    def on_run_end(self, trainer: Trainer) -> None:
        """Ends the run if it was started here."""
        if self._started:
            self._mlflow.end_run()
        self._begun = self._started = False


def _imported(package: str, module: str) -> Any:
    """The module of an optional package, which is the extra of the same name."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"the package {package} cannot be imported ({error}): expected mlpcore's extra "
            f"{package!r} (pip install 'mlpcore[{package}]')"
        ) from None
