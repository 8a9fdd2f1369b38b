"""The metrics of epochs as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from mlpcore.errors import InputError, shown
from mlpcore.training.state import EpochMetrics

#: A line is shorter.
MAX_LINE = 2**10


def history_lines(history: Iterable[EpochMetrics]) -> Iterator[bytes]:
    """A line of JSON for each epoch. Human readers get percentages, too."""
    for metrics in history:
        values = msgspec.structs.asdict(metrics)
        for name in ("training_error", "validation_error", "test_error"):
            if values[f"{name}s"] is not None:
                values[name] = round(getattr(metrics, name), 4)
        yield json.dumps(values).encode() + b"\n"


def parse_history(path: Path, lines: Iterable[bytes]) -> list[EpochMetrics]:
    """The inverse of `history_lines`, for lines of a file that may be damaged."""
    try:
        history = [msgspec.json.decode(line, type=EpochMetrics) for line in lines]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{shown(path)} is damaged: {error}") from None
    if [each.epoch for each in history] != list(range(1, len(history) + 1)):
        raise InputError(f"{shown(path)} is damaged: expected a line for each epoch")
    return history
