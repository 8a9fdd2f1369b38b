"""The result of a run as the paper's Table 1 gives it, with the paper's own row."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from mlpcore.architecture import count_parameters, format_hidden_layers
from mlpcore.config import DataSummary, TrainingConfig
from mlpcore.state import TrainingState

#: Test error in percent for best validation and best of all, hours, millions of weights.
TABLE_1 = {
    "net1": (0.49, 0.44, 23.4, 1.34),
    "net2": (0.46, 0.40, 44.2, 3.26),
    "net3": (0.41, 0.39, 66.7, 6.69),
    "net4": (0.35, 0.32, 114.5, 12.11),
    "net5": (0.44, 0.43, 107.7, 8.86),
}

Rows: TypeAlias = list[tuple[str, ...]]


def result_table(config: TrainingConfig, data: DataSummary, state: TrainingState) -> Rows:
    """Header and row of a run with at least one epoch; the paper's row for the same on MNIST."""
    name = format_hidden_layers(config.hidden_layers)
    height, width = data.image_shape
    n_weights = count_parameters((height * width, *config.hidden_layers, data.n_classes))
    best = state.best_metrics
    assert best is not None
    rows: Rows = [
        ("network", "test error for best validation", "best test error", "time", "weights"),
        (
            f"{name}, {state.epoch} epoch{'s' * (state.epoch != 1)}",
            f"{best.test_error:.2f} %",
            f"{state.best_test_error:.2f} %",
            duration(state.seconds),
            # Cut off after two digits, like the paper's 1.34 for 1,347,510.
            f"{n_weights // 10_000 / 100:.2f} M" if n_weights >= 100_000 else f"{n_weights:,}",
        ),
    ]
    if name in TABLE_1 and data.name == "MNIST":
        error, best_error, hours, millions = TABLE_1[name]
        rows.append(
            (
                f"{name} in the paper",
                f"{error:.2f} %",
                f"{best_error:.2f} %",
                f"{hours} h",
                f"{millions:.2f} M",
            )
        )
    return rows


def text_table(rows: Rows) -> str:
    """Rows as aligned lines: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(_aligned(row, widths, "  ").rstrip() for row in rows)


def markdown_table(rows: Rows) -> str:
    """Rows as a table in Markdown."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [rows[0], rule, *rows[1:]]
    return "\n".join(f"| {_aligned(line, widths, ' | ')} |" for line in lines)


def _aligned(row: Sequence[str], widths: Sequence[int], gap: str) -> str:
    first = row[0].ljust(widths[0])
    return gap.join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])


def report(config: TrainingConfig, data: DataSummary, state: TrainingState, backend: str) -> str:
    """A finished run in Markdown: its result, and the settings to repeat it."""
    best = state.best_metrics
    assert best is not None
    settings = dataclasses.asdict(config)
    settings |= settings.pop("deformation")
    settings["hidden_layers"] = ", ".join(map(str, config.hidden_layers))
    settings["similar_labels"] = ", ".join(map(str, config.deformation.similar_labels)) or "none"
    settings["backend"] = backend
    lines = [f"- {name.replace('_', ' ')}: {value}" for name, value in settings.items()]
    height, width = data.image_shape
    return f"""# {format_hidden_layers(config.hidden_layers)} on {data.name}

{markdown_table(result_table(config, data, state))}

The best validation error, that of the whole undeformed training set, is
{best.validation_error:.2f} %, after epoch {best.epoch} of {config.epochs}.

## Settings

{chr(10).join(lines)}

## Data

- {data.name} ({data.source})
- {data.n_train:,} training and {data.n_test:,} test images of {height} x {width} pixels
- {data.n_classes} classes
- SHA-256 of the arrays: {data.sha256}
"""


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
