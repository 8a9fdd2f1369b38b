"""Figures of a trained network, for a page 7 inches wide.

Each function returns a new Matplotlib figure; `write_figures` writes figures as PNG files. The
first line of each names the network and the data, where these are given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, check_no_link, make_folder
from mlpcore.network import Network
from mlpcore.report.curves import learning_curves
from mlpcore.report.page import (
    DPI,
    GREY,
    MARGIN,
    RED,
    WIDTH,
    Tiles,
    new_page,
    png,
    title_of,
)
from mlpcore.report.results import describe_error, describe_second
from mlpcore.training.state import EpochMetrics
from mlpcore.typing import AnyArray, StrPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The cells of a confusion matrix of more classes have no room for numbers.
MAX_NUMBERED = 20

#: Blue below zero, white at zero, red above.
DIVERGING = "RdBu_r"


def misclassified(images: AnyArray, evaluation: Evaluation, title: str = "") -> Figure:
    """The paper's Figure 1: misclassified images, label above, two most likely classes below.

    Parameters
    ----------
    images
        (n, h, w), the images of the evaluation.
    evaluation
        A page shows the first errors, at most `MAX_TILES`, and says so.
    title
        The first line, such as `title_of` a network and its data.
    """
    wrong = evaluation.misclassified
    tiles = Tiles(images.shape[1:], above=0.15, below=0.18)
    n = min(len(wrong), tiles.capacity)
    lines = [f"Misclassified: {describe_error(evaluation)}."]
    if n:
        lines.append("Above: label. Below: first guess (left) and second guess, bold if right.")
        lines.append(describe_second(evaluation))
        if n < len(wrong):
            lines[-1] += f" Shown are the first {n} of {len(wrong):,} misclassified."
    figure, axes, top = new_page(title, lines, tiles.height(n))
    for k in range(n):
        x, y = tiles.draw(axes, k, top, images[wrong.indices[k]], "gray_r")
        right, below = x + tiles.width, y + tiles.image_height + 0.03
        axes.text(right, y - 0.02, str(wrong.labels[k]), size=7, ha="right", va="bottom")
        first, second = wrong.guesses[k]
        axes.text(x, below, str(first), size=7, color=RED, ha="left", va="top")
        bold = "bold" if second == wrong.labels[k] else "normal"
        axes.text(right, below, str(second), size=7, weight=bold, ha="right", va="top")
    return figure


def first_layer(network: Network, image_shape: tuple[int, int], data_name: str = "") -> Figure:
    """The weights of the first layer's neurons as images, neurons of large norm first.

    Zero is white, negative weights are blue, and positive weights are red.

    Parameters
    ----------
    image_shape
        Height and width of the images in pixels.
    data_name
        The name of the data that the network was trained on, for the title.
    """
    weights = network.weights[0]
    squares = np.einsum("ij,ij->i", weights, weights, dtype=np.float64)
    tiles = Tiles(image_shape, below=0.08)
    shown = np.argsort(-squares, kind="stable")[: tiles.capacity]
    # If the scale included the very largest weights, all others would be pale.
    limit = float(np.quantile(np.abs(weights[shown]), 0.999)) or 1.0
    total = len(weights)
    which = f"all {total:,}" if len(shown) == total else f"{len(shown)} of {total:,}"
    lines = (
        f"Weights of the first layer's neurons: {which}, by decreasing norm.",
        "The scale ends where 0.1 % of these weights are beyond it.",
    )
    title = title_of(network, data_name)
    figure, axes, top = new_page(title, lines, tiles.height(len(shown)))
    _draw_scale(axes, limit, top - 0.24)
    for k, neuron in enumerate(shown):
        image = np.clip(weights[neuron].reshape(image_shape), -limit, limit) / np.float32(limit)
        tiles.draw(axes, k, top, image, DIVERGING)
    return figure


def _draw_scale(axes: Axes, limit: float, y: float) -> None:
    """Draws the colours from -limit to limit as a bar at the right edge of a page."""
    right, width, height = WIDTH - MARGIN, 1.5, 0.1
    frame = (right - width, right, y + height, y)
    axes.imshow(np.linspace(-1, 1, 255)[None], cmap=DIVERGING, extent=frame, aspect="auto")
    for x, value in ((0.0, -limit), (0.5, 0.0), (1.0, limit)):
        axes.text(
            right - width * (1 - x), y - 0.03, f"{value:.2g}", size=7,
            ha="center" if x < 1 else "right", va="bottom",
        )  # fmt: skip


def confusion(evaluation: Evaluation, title: str = "") -> Figure:
    """The confusion matrix. Shades show the number of errors, not the diagonal.

    `title` is as for `misclassified`.
    """
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
    figure, axes, top = new_page(title, lines, 0.25 + side + MARGIN)
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


def evaluation_figures(
    images: AnyArray, evaluation: Evaluation, title: str = ""
) -> dict[str, Figure]:
    """The figures of an evaluation of images (n, h, w), by name; their first line is `title`."""
    return {
        "misclassified": misclassified(images, evaluation, title),
        "confusion": confusion(evaluation, title),
    }


def network_figures(
    network: Network,
    image_shape: tuple[int, int],
    history: Sequence[EpochMetrics] = (),
    held_out: int = 0,
    data_name: str = "",
) -> dict[str, Figure]:
    """The figures of a network, and of its training if that is known, by name.

    `data_name` is that of the data that it was trained on.
    """
    curves = {}
    if history:
        title = title_of(network, data_name)
        curves["learning-curves"] = learning_curves(history, held_out, title)
    return curves | {"first-layer": first_layer(network, image_shape, data_name)}


def write_figures(folder: StrPath, figures: Mapping[str, Figure]) -> list[Path]:
    """Writes each figure to ``NAME.png``; returns the paths.

    Raises
    ------
    InputError
        When a file cannot be written, or the folder is a link to another place.
    """
    folder = Path(folder)
    check_no_link(folder)
    make_folder(folder)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        atomic_write(paths[-1], png(figure, dpi=DPI))
    return paths
