"""Rows of cells as aligned lines or as Markdown, and how times and sizes are written in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Rows: TypeAlias = list[tuple[str, ...]]

#: What is not known, or makes no sense.
NONE = "-"


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


def weights_text(n: int) -> str:
    """A number of weights, in millions cut off after two digits: the paper's 1.34 is 1,347,510."""
    return f"{n // 10_000 / 100:.2f} M" if n >= 100_000 else f"{n:,}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
