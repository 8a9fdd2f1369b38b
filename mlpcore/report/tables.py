"""Tables as aligned lines or as Markdown, and numbers and times as their cells show them."""

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TypeAlias

#: Cells of text, the header first.
Rows: TypeAlias = list[tuple[str, ...]]

#: Stands for what is not known or has no meaning.
NONE = "-"


def text_table(rows: Rows, align: Sequence[str] = ()) -> str:
    """Rows as aligned lines, which a narrow terminal does not break.

    `align` has "left" or "right" for each column; by default only the first is on the left.
    """
    from tabulate import tabulate  # not above: results alone need it

    if sys.stdout.isatty():
        rows = _within(rows, shutil.get_terminal_size().columns)
    return tabulate(rows, tablefmt="plain", disable_numparse=True, colalign=_align(rows, align))


def _within(rows: Rows, most: int) -> Rows:
    """Rows whose cells have as many lines as a width of the table asks for; no word is broken."""
    columns = list(zip(*rows))
    widths = [max(map(len, column)) for column in columns]
    spare = [
        width - max(map(len, " ".join(column).split())) for width, column in zip(widths, columns)
    ]
    for _ in range(sum(widths) + 2 * len(widths) - 2 - most):
        k = spare.index(max(spare))
        spare[k], widths[k] = spare[k] - 1, widths[k] - (spare[k] > 0)
    return [tuple(map(textwrap.fill, row, widths)) for row in rows]


def markdown_table(rows: Rows, align: Sequence[str] = ()) -> str:
    """Rows as a table in Markdown; `align` is as for `text_table`."""
    from tabulate import tabulate

    head, *cells = (tuple(map(escape, row)) for row in rows)
    align = _align(rows, align)
    return tabulate(cells, head, tablefmt="pipe", disable_numparse=True, colalign=align)


def _align(rows: Rows, align: Sequence[str]) -> Sequence[str]:
    return align or ["left", *["right"] * (len(rows[0]) - 1)]


def escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>#|~&])", r"\\\1", text)


def kind_of_test(held_out: int) -> str:
    """The word for the images that errors are counted on; `held_out` is that of the `Dataset`."""
    return "held-out" if held_out else "test"


def weights_text(n: int) -> str:
    """A number of weights. Millions are cut off, as in the paper: 1,347,510 are 1.34 M."""
    return f"{n // 10_000 / 100:.2f} M" if n >= 100_000 else f"{n:,}"


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours, with one decimal place."""
    for unit, size in (("s", 1), ("min", 60)):
        if round(seconds / size, 1) < 60:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 3600:.1f} h"
