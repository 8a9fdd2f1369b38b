"""Shows tables on a terminal or as Markdown, and writes the JSON document."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from mlpcore.files import atomic_write
from mlpcore.report.tables import escape
from mlpcore.store import provenance
from speed.run import ArchitectureResults, Report
from speed.tables import Table

#: Columns of a pipe or a file, where no terminal limits them.
PIPE_WIDTH = 180


def _rich(table: Table) -> RichTable:
    shown = RichTable(
        title=Text(table.title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD if any(table.columns) else None,
        show_header=any(table.columns),
        pad_edge=False,
    )
    for i, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if i < table.left else "right")
    for row in table.rows:
        if row is None:
            shown.add_section()
        else:
            shown.add_row(*map(Text, row))
    return shown


def show(tables: Sequence[Table], console: Console) -> None:
    """On a terminal; plain text in a pipe."""
    for table in tables:
        console.print(_rich(table))
        for note in table.notes:
            console.print(Text(note, style="dim"))
        console.print()


def console() -> Console:
    """Standard output, wide enough where it is no terminal."""
    result = Console(highlight=False, soft_wrap=False)
    if not result.is_terminal:
        result = Console(highlight=False, width=PIPE_WIDTH)
    return result


def markdown(tables: Sequence[Table]) -> str:
    """The same as Markdown."""
    lines = []
    for table in tables:
        lines += [f"**{table.title}**", ""]
        lines.append("| " + " | ".join(map(escape, table.columns)) + " |")
        rules = [":--" if i < table.left else "--:" for i in range(len(table.columns))]
        lines.append("| " + " | ".join(rules) + " |")
        rows = [row for row in table.rows if row is not None]
        lines += ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
        lines.append("")
        for note in table.notes:
            lines += [escape(note), ""]
    return "\n".join(lines)


# ---- JSON ----------------------------------------------------------------------------------


def _finite(value: Any) -> Any:
    """JSON knows no infinity: it becomes null, as does what is not a number."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _architecture(results: ArchitectureResults) -> dict[str, Any]:
    rows = []
    for row in results.rows:
        lines = []
        for result in row.results:
            values = asdict(result)
            line = values.pop("line")
            del line["work"]  # of which `bandwidth` and `floor` are told
            lines.append({**line, **values})
        rows.append({"key": row.key, "title": row.title, "unit": row.unit, "results": lines})
    return {
        "name": results.name,
        "layer_sizes": results.layer_sizes,
        "parameters": results.parameters,
        "routines": rows,
        "claims": [asdict(claim) for claim in results.claims],
    }


def document(report: Report) -> dict[str, Any]:
    """Everything, in SI units, as JSON keeps it."""
    now = datetime.datetime.now(datetime.timezone.utc)
    limits = [{"place": place, **asdict(value)} for (place, _), value in report.limits.items()]
    return _finite(
        {
            "date": now.isoformat(timespec="seconds"),
            "revision": provenance.revision(),
            "machine": report.machine.document(),
            "settings": asdict(report.settings),
            "limits": limits,
            "architectures": [_architecture(results) for results in report.architectures],
            "missing": report.missing,
        }
    )


def write_json(report: Report, path: Path) -> None:
    """Whole or not at all."""
    atomic_write(path, (json.dumps(document(report), indent=1, allow_nan=False) + "\n").encode())
