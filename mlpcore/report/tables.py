"""Rows of cells as aligned lines or as Markdown, and how times and sizes are written in them."""

from __future__ import annotations

import math
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
    rows = [tuple(map(escape, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [rows[0], rule, *rows[1:]]
    return "\n".join(f"| {_aligned(line, widths, ' | ')} |" for line in lines)


def escape(text: str) -> str:
    """Text whose strokes and stars Markdown shows as they are."""
    return text.replace("|", "\\|").replace("*", "\\*")


def _aligned(row: Sequence[str], widths: Sequence[int], gap: str) -> str:
    first = row[0].ljust(widths[0])
    return gap.join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])


def weights_text(n: int) -> str:
    """A number of weights, in millions cut off after two digits: the paper's 1.34 is 1,347,510."""
    return f"{n // 10_000 / 100:.2f} M" if n >= 100_000 else f"{n:,}"


def duration(seconds: float) -> str:
    """How long something took, in seconds, minutes or hours with a place each."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    if round(seconds / 60, 1) < 60:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def short_time(seconds: float) -> str:
    """A time that was measured, with three digits: 37.2 µs."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    # 999.5 and more are 1,000 with three digits, and so one of the next unit.
    unit, size = next((each for each in units if seconds >= 0.9995 * each[1]), units[-1])
    return f"{digits(seconds / size)} {unit}"


def digits(value: float) -> str:
    """Three significant digits, or all before the point, without an exponent."""
    if value <= 0:
        return "0"
    rounded = float(f"{value:.3g}")
    places = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{rounded if places else value:,.{min(places, 4)}f}"
