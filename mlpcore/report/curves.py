"""Learning curves: the errors and the learning rate of a run's epochs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlpcore.report.layout import BLUE, GREY, LIGHT, RED, new_page
from mlpcore.report.tables import duration, kind_of_test
from mlpcore.training.state import EpochMetrics, best_of
from mlpcore.typing import Axes, Figure


def learning_curves(history: Sequence[EpochMetrics], held_out: int = 0, title: str = "") -> Figure:
    """The errors and the learning rate of every epoch.

    Training errors are those on the deformed images, each just before its update; validation errors
    those on the same images undeformed: see `EpochMetrics`.

    There is at least one epoch. `held_out` is that of the `Dataset`, and `title` the first line,
    such as `layout.title_of` the network and its data.
    """
    from matplotlib.ticker import MaxNLocator

    best = best_of(history)
    assert best is not None
    kind = kind_of_test(held_out)
    text = f"Lowest validation error (circle): {best.validation_error:.2f} % after epoch "
    text += f"{best.epoch} of {len(history)}"
    if best.n_test:
        text += f"; {kind} error {best.test_error:.2f} %"
    lines = [f"{text}.", f"Time: {duration(sum(m.seconds for m in history))}."]
    figure = new_page(title, lines, 4.6, left=0.75, top=0.3, bottom=0.5)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(5, 2))
    # Few epochs are points, which would hide a long line; and a zero lies on the frame.
    style: dict[str, Any] = {"marker": "o" * (len(history) <= 30), "markersize": 3}
    style["clip_on"] = False
    # A run that deforms spends time on it.
    deformed = " (deformed)" * any(m.deformation_seconds for m in history)
    validated = [m for m in history if m.validation_errors is not None]
    curves = [
        (f"training{deformed}", history, "training_error", GREY, ":"),
        ("validation", validated, "validation_error", BLUE, "-"),
        (kind, history if best.n_test else [], "test_error", RED, "--"),
    ]
    for name, rated, field, colour, dashes in curves:
        if rated:
            points = [m.epoch for m in rated], [getattr(m, field) for m in rated]
            upper.plot(*points, color=colour, linestyle=dashes, label=name, **style)
    circle = style | {"marker": "o", "markersize": 8, "markerfacecolor": "none"}
    upper.plot(best.epoch, best.validation_error, color=BLUE, **circle)
    upper.legend(ncols=3, fontsize=9, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    rates = [m.learning_rate for m in history]
    lower.plot([m.epoch for m in history], rates, color="black", **style)
    for axes, label in ((upper, "error (%)"), (lower, "learning rate")):
        _log_axis(axes)
        axes.set_ylabel(label, size=9)
        axes.yaxis.set_label_coords(-0.1, 0.5)
        axes.tick_params(labelsize=9)
        axes.grid(color=LIGHT)
        axes.spines[["top", "right"]].set_visible(False)
    lower.set_xlabel(f"epoch of {best.n_train:,} images", size=9)
    margin = 0.02 * (len(history) - 1) or 0.5
    lower.set_xlim(max(0.5, 1 - margin), len(history) + margin)
    whole = MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1)
    lower.xaxis.set_major_locator(whole)
    return figure


def _log_axis(axes: Axes) -> None:
    """Makes the y axis logarithmic, from tick to tick, or linear below if there are zeros."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    values = np.concatenate([np.asarray(line.get_ydata()) for line in axes.lines])
    if values.min() > 0:
        axes.set_yscale("log")
        low, high = values.min() / 1.01, values.max() * 1.01
        locator = LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,))
        ticks = locator.tick_values(low, high)
        below, above = ticks[ticks <= low], ticks[ticks >= high]
        axes.set_ylim(max(below, default=low), min(above, default=high))
        axes.yaxis.set_major_locator(locator)
    else:
        least = values.min(initial=1, where=values > 0)
        axes.set_yscale("symlog", linthresh=least, linscale=0.5)
        axes.set_ylim(0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.minorticks_off()
