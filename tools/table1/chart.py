"""The figure of the page of Table 1: what each network reaches in which time."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import GREY
from mlpcore.network.architecture import PRESETS
from mlpcore.report.results import TABLE_1
from table1.evidence import Evidence, recipe_of

MARKERS = {"modern": "o", "saturating": "s", "paper": "v"}


def error_by_hours(runs: Sequence[Evidence]) -> Figure:
    """The test error of each finished run at its last epoch by its hours, beside the paper's."""
    figure = Figure(figsize=(7, 4))
    axes, colours = figure.subplots(), dict(zip(PRESETS, mpl.rcParams["axes.prop_cycle"]))
    for run in (each for each in runs if each.finished and each.network in PRESETS):
        place = run.seconds / 3600, run.last.test_error
        axes.plot(*place, MARKERS.get(recipe_of(run), "v"), **colours[run.network], ms=7, alpha=0.8)
    for name, (error, _, hours, _) in TABLE_1.items():
        axes.plot(hours, error, "*", **colours[name], ms=12)
    axes.set_xscale("log")
    ticks = [0.03, 0.1, 0.3, 1, 3, 10, 30, 100]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="hours, GPU or CPU", ylabel="test error (%)", ylim=(0.3, 0.85))
    entries = [Line2D([], [], marker="o", ls="", label=name, **colours[name]) for name in PRESETS]
    shapes = MARKERS | {"the paper, on its GPU": "*"}
    entries += [
        Line2D([], [], marker=marker, ls="", color=GREY, label=name)
        for name, marker in shapes.items()
    ]
    axes.legend(handles=entries, ncols=2, fontsize="small", loc="upper right")
    return figure
