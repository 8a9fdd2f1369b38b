"""Figures of a trained network, for a page 7 inches wide.

Each function returns a new Matplotlib figure; `write_figures` writes figures as PNG files. Nothing
here uses pyplot, which has global state. Matplotlib takes half a second to import, and so it is
imported inside the functions. Colours also differ in lightness, for print and for every eye.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpcore.data.dataset import kind_of_test
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, make_folder
from mlpcore.network import Network
from mlpcore.report.results import describe_error, describe_second
from mlpcore.training.state import EpochMetrics
from mlpcore.typing import AnyArray, StrPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Lengths are in inches, font sizes in points.
WIDTH, MAX_HEIGHT, MARGIN = 7.0, 9.7, 0.3
DPI = 200

#: Every eye tells Okabe and Ito's blue from their vermilion.
BLUE, RED, GREY, LIGHT = "#0072B2", "#D55E00", "#808080", "#e8e8e8"

#: The most images or neurons in a figure.
MAX_TILES = 100

#: The cells of a confusion matrix of more classes have no room for numbers.
MAX_NUMBERED = 20

#: A page has fewer pixels: of more epochs only some are drawn.
MAX_EPOCHS = 2000


def misclassified(images: AnyArray, evaluation: Evaluation) -> Figure:
    """The paper's Figure 1: misclassified images, label above, two most likely classes below.

    Parameters
    ----------
    images
        (n, h, w), the images of the evaluation.
    evaluation
        A page shows the first errors, at most `MAX_TILES`, and says so.
    """
    wrong = evaluation.misclassified
    tiles = _Tiles.of(images.shape[1:], above=0.15, below=0.18)
    n = min(len(wrong), tiles.capacity)
    lines = [f"Misclassified: {describe_error(evaluation)}."]
    if n:
        lines.append("Above: label. Below: first guess (left) and second guess, bold if right.")
        lines.append(describe_second(evaluation))
        if n < len(wrong):
            lines[-1] += f" Shown are the first {n} of {len(wrong):,} misclassified."
    figure, axes, top = _page(lines, tiles.height(n))
    for k in range(n):
        x, y = tiles.place(k, top)
        _image(axes, images[wrong.indices[k]], x, y, tiles, "gray_r", (-1.0, 1.0))
        right, below = x + tiles.width, y + tiles.image_height + 0.03
        axes.text(right, y - 0.02, str(wrong.labels[k]), size=7, ha="right", va="bottom")
        first, second = wrong.guesses[k]
        axes.text(x, below, str(first), size=7, color=RED, ha="left", va="top")
        bold = "bold" if second == wrong.labels[k] else "normal"
        axes.text(right, below, str(second), size=7, weight=bold, ha="right", va="top")
    return figure


def first_layer(network: Network, image_shape: tuple[int, int]) -> Figure:
    """The weights of the first layer's neurons as images, neurons of large norm first."""
    weights = network.weights[0]
    squares = np.einsum("ij,ij->i", weights, weights, dtype=np.float64)
    tiles = _Tiles.of(image_shape, above=0.0, below=0.08)
    shown = np.argsort(-squares, kind="stable")[: tiles.capacity]
    # If the scale included the very largest weights, all others would be grey.
    limit = float(np.quantile(np.abs(weights[shown]), 0.999)) or 1.0
    total = len(weights)
    which = f"all {total:,}" if len(shown) == total else f"{len(shown)} of {total:,}"
    lines = (
        f"Weights of the first layer's neurons: {which}, by decreasing norm.",
        f"Black: {-limit:.2g} or less. White: {limit:.2g} or more.",
    )
    figure, axes, top = _page(lines, tiles.height(len(shown)))
    for k, neuron in enumerate(shown):
        image = weights[neuron].reshape(image_shape)
        _image(axes, image, *tiles.place(k, top), tiles, "gray", (-limit, limit))
    return figure


def confusion(evaluation: Evaluation) -> Figure:
    """The confusion matrix. Shades show the number of errors, not the diagonal."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    matrix, n_classes = evaluation.confusion, evaluation.n_classes
    numbered = n_classes <= MAX_NUMBERED
    side = min(0.5 * n_classes, 5.0)
    cell = side / n_classes
    lines = [
        f"Confusion matrix: {describe_error(evaluation)}.",
        "Rows: label. Columns: first guess.",
    ]
    errors = np.where(np.eye(n_classes, dtype=bool), 0, matrix)
    most = max(1, int(errors.max()))
    lines[-1] += " Right: errors of each label." if numbered else f" Darkest: {most:,} errors."
    figure, axes, top = _page(lines, 0.25 + side + MARGIN)
    left, top = MARGIN + 0.35, top + 0.25
    shades = colormaps["Blues"](0.1 + 0.7 * errors / most)
    shades[errors == 0] = 1.0
    shades[np.diag_indices(n_classes)] = (0.9, 0.9, 0.9, 1.0)
    frame = (left, left + side, top + side, top)
    axes.imshow(shades, extent=frame, aspect="auto", interpolation="nearest")
    axes.add_patch(Rectangle((left, top), side, side, fill=False, edgecolor=GREY, linewidth=0.6))
    size = min(9.0, 72 * cell / (0.7 * max(2, len(f"{matrix.max()}"))))
    label_size, step = max(6.0, min(9.0, size + 1)), max(1, math.ceil(0.25 / cell))
    for k in range(0, n_classes, step):
        centre = (k + 0.5) * cell
        axes.text(left - 0.06, top + centre, str(k), size=label_size, ha="right", va="center")
        axes.text(left + centre, top - 0.12, str(k), size=label_size, ha="center", va="center")
    for i, row in enumerate(matrix if numbered else ()):
        y = top + (i + 0.5) * cell
        for j in np.flatnonzero(row):
            dark = i != j and errors[i, j] > 0.7 * most
            axes.text(
                left + (j + 0.5) * cell, y, str(row[j]), size=size, ha="center", va="center",
                color="white" if dark else "black",
            )  # fmt: skip
        total = int(row.sum())
        text = f"{total - row[i]:,} of {total:,}"
        axes.text(left + side + 0.08, y, text, size=min(8.0, size), va="center")
    return figure


def learning_curves(history: Sequence[EpochMetrics], held_out: int = 0) -> Figure:
    """The errors and the learning rate of every epoch.

    Training errors are those on the deformed images, validation errors those on the same images
    undeformed: see `EpochMetrics`.

    Parameters
    ----------
    history
        At least one epoch.
    held_out
        That of the `Dataset`.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    best = min(history, key=lambda m: m.validation_errors)
    kind = kind_of_test(held_out)
    drawn = list(history[:: math.ceil(len(history) / MAX_EPOCHS)])
    if drawn[-1] is not history[-1]:
        drawn.append(history[-1])
    epochs = [m.epoch for m in drawn]
    figure = Figure(figsize=(WIDTH, 4.9), dpi=DPI)
    upper = figure.add_axes((0.11, 0.41, 0.86, 0.45))
    lower = figure.add_axes((0.11, 0.1, 0.86, 0.25), sharex=upper)
    _draw_errors(upper, drawn, best, kind)
    rates = [m.learning_rate for m in drawn]
    lower.plot(epochs, rates, color="black", **_line_style(len(drawn)))
    log_axis(lower, rates)
    for axes, label in ((upper, "error (%)"), (lower, "learning rate")):
        axes.set_ylabel(label, size=9)
        axes.yaxis.set_label_coords(-0.095, 0.5)
        axes.tick_params(labelsize=8)
        axes.grid(color=LIGHT)
        axes.spines[["top", "right"]].set_visible(False)
    upper.tick_params(labelbottom=False)
    lower.set_xlabel(f"epoch of {best.n_train:,} images", size=9)
    lower.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if len(epochs) == 1:
        lower.set(xlim=(0.5, 1.5), xticks=[1])
    text = f"Lowest validation error (circle): {best.validation_error:.2f} % after epoch "
    text += f"{best.epoch} of {len(history)}"
    if best.n_test:
        text += f"; {kind} error {best.test_error:.2f} %"
    figure.text(MARGIN / WIDTH, 0.955, f"{text}.", size=9, va="center")
    return figure


def _draw_errors(
    axes: Axes, history: Sequence[EpochMetrics], best: EpochMetrics, kind: str
) -> None:
    """The curves of errors, with a circle around the lowest validation error."""
    curves = [
        ("training", [m.training_error for m in history], GREY, ":"),
        ("validation", [m.validation_error for m in history], BLUE, "-"),
    ]
    if best.n_test:
        curves.append((kind, [m.test_error for m in history], RED, "--"))
    epochs, style = [m.epoch for m in history], _line_style(len(history))
    for name, values, colour, dashes in curves:
        axes.plot(epochs, values, color=colour, linestyle=dashes, label=name, **style)
    circle = style | {"marker": "o", "markersize": 8, "markerfacecolor": "none"}
    axes.plot(best.epoch, best.validation_error, color=BLUE, **circle)
    log_axis(axes, [value for _, values, _, _ in curves for value in values])
    axes.legend(
        ncols=3, fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0
    )


def _line_style(n: int) -> dict[str, Any]:
    """How a curve of n epochs is drawn: few epochs as points, which would hide a long line."""
    return {
        "marker": "o" if n <= 30 else "",
        "markersize": 3,
        "linewidth": 1.5 if n <= 200 else 1.0,
        "clip_on": False,  # a zero lies on the frame
    }


def evaluation_figures(images: AnyArray, evaluation: Evaluation) -> dict[str, Figure]:
    """The figures of an evaluation of images (n, h, w), by name."""
    return {
        "misclassified": misclassified(images, evaluation),
        "confusion": confusion(evaluation),
    }


def network_figures(
    network: Network,
    image_shape: tuple[int, int],
    history: Sequence[EpochMetrics] = (),
    held_out: int = 0,
) -> dict[str, Figure]:
    """The figures of a network, and of its training if that is known, by name."""
    curves = {"learning-curves": learning_curves(history, held_out)} if history else {}
    return curves | {"first-layer": first_layer(network, image_shape)}


def write_figures(folder: StrPath, figures: Mapping[str, Figure]) -> list[Path]:
    """Writes each figure to ``NAME.png``; returns the paths.

    Raises
    ------
    InputError
        When a file cannot be written.
    """
    folder = Path(folder)
    make_folder(folder)
    paths = []
    for name, figure in figures.items():
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI)
        paths.append(folder / f"{name}.png")
        atomic_write(paths[-1], content.getvalue())
    return paths


@dataclass(frozen=True)
class _Tiles:
    """Images in rows on a page, with room for text above and below each image.

    `width` is the width of a tile. A narrower image is in its centre.
    """

    width: float
    image_width: float
    image_height: float
    above: float
    below: float

    #: The mean side of an image, and the least width of two numbers beside each other.
    SIDE = 0.52
    LEAST = 0.42
    GAP = 0.1

    @classmethod
    def of(cls, image_shape: Sequence[int], above: float, below: float) -> _Tiles:
        """Tiles of about the same area whatever the shape of the images."""
        height, width = image_shape
        scale = cls.SIDE / math.sqrt(height * width)
        scale = min(scale, (WIDTH - 2 * MARGIN) / width, 0.4 * MAX_HEIGHT / height)
        shown = scale * width
        return cls(max(shown, cls.LEAST), shown, scale * height, above, below)

    @property
    def columns(self) -> int:
        return max(1, int((WIDTH - 2 * MARGIN + self.GAP) / (self.width + self.GAP)))

    @property
    def row_height(self) -> float:
        return self.above + self.image_height + self.below

    @property
    def capacity(self) -> int:
        """Tiles that fit a page."""
        rows = max(1, int((MAX_HEIGHT - _head_height(3) - MARGIN) / self.row_height))
        return min(MAX_TILES, rows * self.columns)

    def height(self, n: int) -> float:
        """The height of n tiles and the margin below them."""
        return math.ceil(n / self.columns) * self.row_height + MARGIN

    def place(self, k: int, top: float) -> tuple[float, float]:
        """The upper left corner of the image in tile k; the rows begin at `top`."""
        row, column = divmod(k, self.columns)
        x = MARGIN + column * (self.width + self.GAP)
        return x, top + row * self.row_height + self.above


def _head_height(n_lines: int) -> float:
    return 0.27 + 0.18 * n_lines


def _page(lines: Sequence[str], height: float) -> tuple[Figure, Axes, float]:
    """A new figure: lines of text, and below them an empty space of a height.

    Also returns axes over the whole figure, in inches from its upper left corner, and where in
    them the empty space begins.
    """
    from matplotlib.figure import Figure

    top = _head_height(len(lines))
    figure = Figure(figsize=(WIDTH, top + height), dpi=DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(top + height, 0))
    axes.axis("off")
    for k, line in enumerate(lines):
        axes.text(MARGIN, 0.25 + 0.18 * k, line, size=9 if k == 0 else 8, va="center")
    return figure, axes, top


def _image(
    axes: Axes,
    image: AnyArray,
    x: float,
    y: float,
    tiles: _Tiles,
    colours: str,
    limits: tuple[float, float],
) -> None:
    """Draws an image with a frame in its tile."""
    from matplotlib.patches import Rectangle

    x += (tiles.width - tiles.image_width) / 2
    width, height = tiles.image_width, tiles.image_height
    low, high = limits
    frame = (x, x + width, y + height, y)
    axes.imshow(image, cmap=colours, vmin=low, vmax=high, extent=frame, aspect="auto")
    axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=GREY, linewidth=0.4))


def log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Makes the y axis logarithmic, with ticks at 1, 2 and 5 times powers of ten.

    The outer ticks enclose the values. If there are zeros, the lowest part of the axis is linear.
    """
    positive = [value for value in values if value > 0] or [1.0]
    exponents = range(
        math.floor(math.log10(min(positive))) - 1, math.floor(math.log10(max(positive))) + 2
    )
    ticks = [float(f"{m}e{e}") for e in exponents for m in (1, 2, 5)]
    low = max(tick for tick in ticks if tick < min(positive))
    high = min(tick for tick in ticks if tick > max(positive))
    ticks = [tick for tick in ticks if low <= tick <= high]
    if len(ticks) > 8:
        decades = [tick for tick in ticks if f"{tick:e}".startswith("1")]
        ticks = decades[:: math.ceil(len(decades) / 8)]
    if min(values) > 0:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
    else:
        axes.set_yscale("symlog", linthresh=low, linscale=0.5)
        axes.set_ylim(0, high)
        ticks = [0.0, *ticks]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
