"""Learning curves: the errors and the learning rate of a run's epochs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpcore.report.layout import BLUE, GREY, LIGHT, RED, new_page
from mlpcore.report.tables import duration, kind_of_test
from mlpcore.training.state import EpochMetrics, best_of
from mlpcore.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Curves of fewer epochs are drawn as they are. Others are smoothed over a fiftieth on each side.
MIN_SMOOTHED = 50


def learning_curves(history: Sequence[EpochMetrics], held_out: int = 0, title: str = "") -> Figure:
    """The errors and the learning rate of every epoch.

    Training errors are those on the deformed images, each just before its update; validation errors
    those on the same images undeformed: see `EpochMetrics`. Errors of `MIN_SMOOTHED` epochs or more
    are also drawn as means over the epochs around each.

    Parameters
    ----------
    history
        At least one epoch.
    held_out
        That of the `Dataset`.
    title
        The first line, such as `layout.title_of` the network and its data.
    """
    best = best_of(history)
    assert best is not None
    kind = kind_of_test(held_out)
    text = f"Lowest validation error (circle): {best.validation_error:.2f} % after epoch "
    text += f"{best.epoch} of {len(history)}"
    if best.n_test:
        text += f"; {kind} error {best.test_error:.2f} %"
    lines = [f"{text}.", f"Time: {duration(sum(m.seconds for m in history))}."]
    reach = len(history) // MIN_SMOOTHED  # epochs on either side that are averaged with each
    if reach:
        lines[-1] += f" Lines: means over {2 * reach + 1} epochs. Pale: every epoch."
    figure = new_page(title, lines, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(5, 2))
    _draw_errors(upper, history, best, kind, reach)
    rates = [m.learning_rate for m in history]
    lower.plot([m.epoch for m in history], rates, color="black", **_line_style(len(history)))
    log_axis(lower, rates, 5)
    for axes, label in ((upper, "error (%)"), (lower, "learning rate")):
        axes.set_ylabel(label, size=9)
        axes.tick_params(labelsize=9)
        axes.grid(color=LIGHT)
        axes.spines[["top", "right"]].set_visible(False)
    figure.align_ylabels()
    _epoch_axis(lower, len(history), f"epoch of {best.n_train:,} images")
    return figure


def smoothed(values: Float64Array, reach: int) -> Float64Array:
    """Means (n,) over `reach` values on either side of each, over fewer near the ends."""
    place = np.arange(len(values))
    # As many on either side: otherwise the ends would lag behind.
    near = np.minimum(reach, np.minimum(place, len(values) - 1 - place))
    sums = np.concatenate([[0], np.cumsum(values)])
    return (sums[place + near + 1] - sums[place - near]) / (2 * near + 1)


def _draw_errors(
    axes: Axes, history: Sequence[EpochMetrics], best: EpochMetrics, kind: str, reach: int
) -> None:
    """The curves of errors, with a circle around the lowest validation error."""
    # A run that deforms spends time on it.
    deformed = " (deformed)" * any(m.deformation_seconds for m in history)
    curves = [
        (f"training{deformed}", [m.training_error for m in history], GREY, ":"),
        ("validation", [m.validation_error for m in history], BLUE, "-"),
    ]
    if best.n_test:
        curves.append((kind, [m.test_error for m in history], RED, "--"))
    style = _line_style(len(history))
    shown: list[Float64Array] = []
    for name, errors, colour, dashes in curves:
        measured = np.flatnonzero(np.isfinite(errors))
        epochs, values = measured + 1, np.array(errors)[measured]
        shown.append(values)
        if reach and len(values) == len(history):
            axes.plot(epochs, values, color=colour, linewidth=0.6, alpha=0.3, clip_on=False)
            values = smoothed(values, reach)
        axes.plot(epochs, values, color=colour, linestyle=dashes, label=name, **style)
    circle = style | {"marker": "o", "markersize": 8, "markerfacecolor": "none"}
    axes.plot(best.epoch, best.validation_error, color=BLUE, **circle)
    log_axis(axes, list(itertools.chain.from_iterable(shown)))
    axes.legend(ncols=3, fontsize=9, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))


def _line_style(n: int) -> dict[str, Any]:
    """How a curve of n epochs is drawn: few epochs as points, which would hide a long line."""
    return {
        "marker": "o" if n <= 30 else "",
        "markersize": 3,
        "linewidth": 1.5,
        "clip_on": False,  # a zero lies on the frame
    }


def _epoch_axis(axes: Axes, epochs: int, label: str) -> None:
    """Makes the x axis one of whole epochs, the first of which is 1."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(label, size=9)
    margin = 0.02 * (epochs - 1) or 0.5
    axes.set_xlim(max(0.5, 1 - margin), epochs + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def log_axis(axes: Axes, values: Sequence[float], most: int = 8) -> None:
    """Makes the y axis logarithmic, with ticks at 1, 2 and 5 times powers of ten.

    The outer ticks enclose the values. More than `most` give way to some of the powers of ten. If
    there are zeros, the lowest part of the axis is linear.
    """
    positive = [value for value in values if value > 0] or [1.0]
    exponents = range(
        math.floor(math.log10(min(positive))) - 1, math.floor(math.log10(max(positive))) + 2
    )
    ticks = [float(f"{m}e{e}") for e in exponents for m in (1, 2, 5)]
    low = max(tick for tick in ticks if tick < min(positive))
    high = min(tick for tick in ticks if tick > max(positive))
    ticks = [tick for tick in ticks if low <= tick <= high]
    if len(ticks) > most:
        decades = [tick for tick in ticks if f"{tick:e}".startswith("1")]
        ticks = decades[:: math.ceil(len(decades) / most)]
    if min(values) > 0:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
    else:
        axes.set_yscale("symlog", linthresh=low, linscale=0.5)
        axes.set_ylim(0, high)
        ticks = [0.0, *ticks]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
