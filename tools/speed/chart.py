"""A chart of the times of runs: a bar for each library, a panel for each network."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from speed.results import Report
from speed.tables import median, short_time, timed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's colours for libraries, which every eye tells apart.
COLOURS = {"mlpcore": "#0072B2", "PyTorch": "#D55E00", "JAX": "#CC79A7", "SciPy": "#009E73"}


def best_times(runs: Sequence[Report]) -> dict[str, dict[str, float]]:
    """Median seconds by network and by name, all with their best number of threads.

    Our fastest backend is "mlpcore, step" at that routine; plain C has no bar.
    """
    times: dict[str, dict[str, float]] = {}
    for (network, routine, name, _, peer), rows in timed(runs).items():
        if rows and name != "scalar":
            name, own = name if peer else f"mlpcore, {routine}", times.setdefault(network, {})
            own[name] = min(median(rows), own.get(name, float("inf")))
    return times


def draw_bars(
    figure: Figure, times: Mapping[str, Mapping[str, float]], colours: Mapping[str, str] = COLOURS
) -> None:
    """Draws seconds by network and name, whose first word decides the colour."""
    names = list(dict.fromkeys(name for own in times.values() for name in own))
    panels = figure.subplots(1, len(times), sharey=True, squeeze=False)[0]
    for axes, (network, own) in zip(panels, times.items()):
        for place, name in enumerate(names):
            if name in own:
                axes.barh(place, own[name], color=colours[name.replace(",", " ").split()[0]])
                axes.text(own[name], place, f" {short_time(own[name])}", va="center", fontsize=9)
        axes.set_title(shown(network), fontsize=10, loc="left")
        axes.set_xticks([])
        axes.set_xlim(0, 1.3 * max(own.values()))
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(left=False)
        axes.set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()


def write(path: Path, runs: Sequence[Report]) -> None:
    """Writes the chart as a PNG file."""
    from matplotlib.figure import Figure

    times, content = best_times(runs), io.BytesIO()
    if not times:
        raise InputError(f"--figure {shown(path)}: the runs have no times")
    names = {name for own in times.values() for name in own}
    figure = Figure(figsize=(2 + 3.5 * len(times), 0.8 + 0.32 * len(names)))
    draw_bars(figure, times)
    figure.suptitle(f"{runs[0].machine['CPU'].partition(' (')[0]}, {runs[0].date[:10]}")
    figure.savefig(content, format="png", dpi=150, bbox_inches="tight")
    atomic_write(path, content.getvalue())
