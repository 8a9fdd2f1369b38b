"""The metrics of epochs, and the progress of one, as JSON in the files of a run."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from mlpcore.checks import check_fields, check_rate, check_whole
from mlpcore.errors import InputError, shown
from mlpcore.training.state import EpochMetrics, EpochProgress


def plain_values(epoch: EpochMetrics | EpochProgress) -> dict[str, Any]:
    """For JSON."""
    return dataclasses.asdict(epoch)


def history_lines(history: Iterable[EpochMetrics]) -> Iterator[bytes]:
    """A line of JSON for each epoch. Human readers get percentages, too."""
    for metrics in history:
        values = plain_values(metrics)
        for name in ("training_error", "validation_error", "test_error"):
            values[name] = round(getattr(metrics, name), 4)
        yield json.dumps(values).encode() + b"\n"


#: A line is shorter.
MAX_LINE = 2**10


def parse_history(path: Path, lines: Iterable[bytes]) -> list[EpochMetrics]:
    """The inverse of `history_lines`, for lines of a file that may be damaged."""
    try:
        history = [msgspec.json.decode(line, type=EpochMetrics) for line in lines]
        for epoch, metrics in enumerate(history, 1):
            check_whole("epoch", metrics.epoch, epoch, epoch)
            check_whole("n_train", metrics.n_train, 1, 2**31)
            check_whole("n_test", metrics.n_test, 0, 2**31)
            check_whole("training_errors", metrics.training_errors, 0, metrics.n_train)
            check_whole("validation_errors", metrics.validation_errors, 0, metrics.n_train)
            check_whole("test_errors", metrics.test_errors, 0, metrics.n_test)
            check_rate("learning_rate", metrics.learning_rate)
            _check_sums(metrics)
    except (ValueError, RecursionError):
        raise InputError(f"{shown(path)} is damaged: expected metrics of epochs") from None
    return history


def parse_progress(text: str, n_train: int) -> EpochProgress:
    """The progress in an epoch, from JSON; ValueError or RecursionError if it is damaged."""
    values = msgspec.json.decode(text)
    check_fields("progress", values, EpochProgress)
    progress = msgspec.convert(values, EpochProgress)
    check_whole("samples", progress.samples, 0, n_train)
    check_whole("errors", progress.errors, 0, progress.samples)
    _check_sums(progress)
    return progress


def _check_sums(values: EpochMetrics | EpochProgress) -> None:
    """Raise a ValueError unless the loss and all times are finite, and 0 or more."""
    for name, value in dataclasses.asdict(values).items():
        if (name == "loss" or name.endswith("seconds")) and not 0 <= value < math.inf:
            raise ValueError(f"{name} {value}: expected a finite number, 0 or more")
