"""A chart of the times of runs: a bar for each library, a panel for each network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mlpcore.errors import shown
from speed.results import Report
from speed.tables import median, short_time, timed

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
