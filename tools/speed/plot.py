"""A bar chart of the on-line step and of the gain at every routine."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from mlpcore.errors import InputError
from mlpcore.files import atomic_write
from mlpcore.report.tables import short_time
from speed.run import ArchitectureResults, Report


def check_plot(path: Path) -> None:
    """Raises an InputError when no chart can be drawn into such a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kinds = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix[1:].lower() not in kinds:
        raise InputError(f"plot {path}: expected a name that ends in .{', .'.join(kinds)}")


def _step_bars(axes: Any, results: ArchitectureResults) -> None:
    """Time per sample of an on-line step, or of the first routine that was measured."""
    keys = {row.key: row for row in results.rows}
    row = keys.get("step", results.rows[0])
    timed = [r.line for r in row.results if r.line.timing]
    timed.sort(key=lambda line: -line.seconds)
    values = [line.seconds for line in timed]
    timings = [line.timing for line in timed if line.timing]
    spread = [[t.seconds - t.low for t in timings], [t.high - t.seconds for t in timings]]
    colours = ["tab:grey" if line.peer else "tab:blue" for line in timed]
    bars = axes.barh([f"{v.label}, {v.threads}" for v in timed], values, xerr=spread, color=colours)
    axes.bar_label(bars, [short_time(v) for v in values], padding=4, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 2, max(values) * 4)
    axes.set_xlabel(f"seconds per {row.unit}")
    axes.set_title(f"{results.name}: {row.title.lower()}")


def _gain_bars(axes: Any, results: ArchitectureResults) -> None:
    """Of each backend at each routine, over the standard processor."""
    from matplotlib.ticker import LogLocator, NullFormatter

    names: list[tuple[str, int]] = []
    for row in results.rows:
        for line in (r.line for r in row.results if not r.line.peer):
            if (line.name, line.threads) not in names:
                names.append((line.name, line.threads))
    height = 0.8 / len(names)
    for i, (name, threads) in enumerate(names):
        each = [(n, row.find(name, threads)) for n, row in enumerate(results.rows)]
        found = [(n, r.ratio) for n, r in each if r and r.ratio]
        places = [n - 0.4 + (i + 0.5) * height for n, _ in found]
        axes.barh(places, [ratio for _, ratio in found], height, label=f"{name}, {threads}")
    axes.set_yticks(range(len(results.rows)), [row.title for row in results.rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as scalar with one thread")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(title="backend, threads", fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    axes.set_title(f"{results.name}: gain")


def draw(report: Report, path: Path) -> None:
    """Two charts for each architecture, one below the other."""
    from matplotlib.figure import Figure

    n = len(report.architectures)
    figure = Figure(figsize=(14, 6 * n), layout="constrained")
    for axes, results in zip(figure.subplots(n, 2, squeeze=False), report.architectures):
        _step_bars(axes[0], results)
        _gain_bars(axes[1], results)
    figure.suptitle(f"{report.machine.cpu}; device: {report.machine.device}", fontsize=9)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=150)
    atomic_write(path, content.getvalue())
