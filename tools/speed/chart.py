"""A chart of a routine's times: a dot for each network and library, from the medians of runs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from mlpcore.report.page import BLUE, DPI, GREY, LIGHT, RED
from speed.medians import by_routine, fastest, median, peers_of
from speed.results import Report
from speed.units import short_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: In inches. So narrow, text of 9 points can be read on a telephone.
WIDTH, LEFT, RIGHT, TOP, BOTTOM, ROW = 5.0, 0.6, 0.35, 1.35, 0.6, 0.45

#: Room for the name of a library, in inches.
NAME_WIDTH = 0.7

#: One colour a library, by the first word of its name.
OURS = "mlpcore"
COLOURS = {OURS: BLUE, "PyTorch": RED, "JAX": "#009E73"}


def chart(runs: Sequence[Report], routine: str) -> Figure:
    """The median times of a routine: our fastest backend and the peers, for each network.

    Raises
    ------
    InputError
        When the routine has not been timed.
    """
    from matplotlib.figure import Figure

    (series,) = by_routine(runs, [routine])
    networks = list(dict.fromkeys(key.network for key in series))
    height = TOP + ROW * len(networks) + BOTTOM
    figure = Figure(figsize=(WIDTH, height), dpi=DPI)
    width = (WIDTH - LEFT - RIGHT) / WIDTH
    axes = figure.add_axes((LEFT / WIDTH, BOTTOM / height, width, ROW * len(networks) / height))
    axes.set(xscale="log", ylim=(len(networks) - 0.5, -0.5))
    rows = []
    for network in networks:
        results = {OURS: fastest(series, network), **peers_of(series, network)}
        rows.append({name: median(some) for name, some in results.items() if some})
        _draw_row(axes, len(rows) - 1, rows[-1])
    axes.set_yticks(range(len(networks)), networks, size=10)
    _finish(axes)
    _name_dots(axes, rows[0])
    label, machine = next(iter(series)).label, runs[0].machine
    where = shown(f"{machine.cpu}, {machine.cores} cores, {runs[0].date[:10]}")
    x, y = 0.12 / WIDTH, 0.2 / height
    figure.text(x, 1 - y, label, va="center", size=10, weight="bold")
    figure.text(x, 1 - 2 * y, where, va="center", size=9)
    return figure


def _draw_row(axes: Axes, row: int, times: dict[str, float]) -> None:
    """A dot for each library, with our time. Another way of the same library is a ring."""
    axes.plot([min(times.values()), max(times.values())], [row, row], color=LIGHT, zorder=1)
    drawn = set()
    for name, seconds in times.items():
        colour = _colour(name)
        library = name.split()[0]
        inside = "white" if library in drawn else colour
        drawn.add(library)
        axes.plot(seconds, row, "o", color=colour, markerfacecolor=inside, markersize=8)
    if OURS in times:
        axes.annotate(short_time(times[OURS]), (times[OURS], row), (0, -6), size=9, color=BLUE,
                      textcoords="offset points", ha="center", va="top")  # fmt: skip


def _name_dots(axes: Axes, times: dict[str, float]) -> None:
    """The names of libraries above the dots of the first row, higher where there is no room."""
    ends = [float("-inf")] * len(times)  # of the names at each height, in inches
    scale = axes.figure.dpi_scale_trans.inverted()
    for name, seconds in sorted(times.items(), key=lambda item: item[1]):
        x = scale.transform(axes.transData.transform((seconds, 0)))[0]
        level = next(k for k, end in enumerate(ends) if x - NAME_WIDTH / 2 > end)
        ends[level] = x + NAME_WIDTH / 2
        axes.annotate(
            name.replace(" ", "\n", 1), (seconds, 0), (0, 10 + 28 * level), size=9,
            color=_colour(name), textcoords="offset points", ha="center", va="bottom",
            linespacing=1.0,
        )  # fmt: skip


def _colour(name: str) -> str:
    return COLOURS.get(name.split()[0], GREY)


def _finish(axes: Axes) -> None:
    """The axis of times, and no more lines than it needs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _round_time(seconds)))
    axes.tick_params(labelsize=9, length=0)
    axes.grid(axis="x", color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("time (logarithmic); less is better", size=9)
    low, high = axes.dataLim.intervalx
    axes.set_xlim(low / 1.4, high * 1.4)


def _round_time(seconds: float) -> str:
    """A power of ten: 100 µs."""
    number, unit = short_time(seconds).split()
    return f"{float(number):g} {unit}"


def write(path: Path, runs: Sequence[Report], routines: Sequence[str]) -> None:
    """Writes the chart of the only routine as a PNG file.

    Raises
    ------
    InputError
        When there is not one routine, or it has not been timed, or the file cannot be written.
    """
    if len(routines) != 1:
        raise InputError(f"--figure {shown(path)}: expected one --routine, not {len(routines)}")
    content = io.BytesIO()
    chart(runs, routines[0]).savefig(content, format="png", dpi=DPI)
    atomic_write(path, content.getvalue())
