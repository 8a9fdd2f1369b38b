"""Figures of a trained network, for a page 7 inches wide.

Each function returns a new Matplotlib figure; `write_figures` writes figures as PNG files. The
first line of each names the network and the data, where these are given.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from mlpcore.data.dataset import Dataset, Images
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, check_no_link, make_folder
from mlpcore.network import Network
from mlpcore.report.curves import learning_curves
from mlpcore.report.layout import (
    GREY,
    LIGHT,
    MARGIN,
    RED,
    WIDTH,
    Tiles,
    new_page,
    png,
    text_width,
    title_of,
    write,
)
from mlpcore.report.results import describe_error, describe_second
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.state import EpochMetrics
from mlpcore.typing import AnyArray, Axes, Figure, StrPath

#: The cells of a confusion matrix of more classes have no room for numbers.
MAX_NUMBERED = 20


def misclassified(images: AnyArray | Images, evaluation: Evaluation, title: str = "") -> Figure:
    """The paper's Figure 1: misclassified images, label above, two most likely classes below.

    `images` (n, h, w) are those of the evaluation, such as `Dataset.test_set`. A page shows the
    first errors, at most `MAX_TILES`, and says so. `title` is the first line, such as
    `layout.title_of` a network and its data.
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
    figure = new_page(title, lines, tiles.height(n))
    if not n:
        return figure
    axes = figure.subplots()
    _, corners = tiles.draw(axes, images[wrong.indices[:n]], "gray_r")
    right, below = tiles.text_width, images.shape[1] + tiles.pad
    labels, (first, second) = wrong.labels[:n], wrong.guesses[:n].T
    write(axes, corners + np.array([right / 2, -tiles.pad]) - 0.5, labels, 7, (0.5, 0))
    write(axes, corners + np.array([0, below]) - 0.5, first, 7, (0, 1), RED)
    places = corners + np.array([right, below]) - 0.5
    for weight, shown in (("bold", second == labels), ("normal", second != labels)):
        write(axes, places[shown], second[shown], 7, (1, 1), weight=weight)
    return figure


def first_layer(network: Network, image_shape: tuple[int, int], title: str = "") -> Figure:
    """The weights of the first layer's neurons as images, neurons of large norm first.

    Zero is white, negative weights are blue, and positive weights are red. `image_shape` is height
    and width of the images in pixels; `title` is as for `misclassified`.
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
    height = tiles.height(len(shown)) + 0.5
    figure = new_page(title, lines, height, bottom=0.5)
    axes = figure.subplots()
    images = np.clip(weights[shown], -limit, limit) / np.float32(limit)
    image, _ = tiles.draw(axes, images.reshape(-1, *image_shape), "RdBu_r")
    place = figure.add_axes((MARGIN / WIDTH, 0.3 / height, 0.23, 0.08 / height))
    bar = figure.colorbar(image, place, orientation="horizontal")
    bar.set_ticks([-1, 0, 1], labels=[f"{value:.2g}" for value in (-limit, 0, limit)])
    bar.ax.tick_params(labelsize=7)
    return figure


def confusion(evaluation: Evaluation, title: str = "") -> Figure:
    """The confusion matrix. Shades show the number of errors, not the diagonal.

    `title` is as for `misclassified`.
    """
    matrix, n = evaluation.confusion, evaluation.n_classes
    errors = matrix - np.diag(matrix.diagonal())
    most = max(1, int(errors.max()))
    lines = [f"Confusion matrix: {describe_error(evaluation)}."]
    lines.append(f"The darker, the more errors, up to {most:,}. Right: errors of each label.")
    side = min(0.5 * n, 5.0)
    names = list(map(str, range(n)))
    totals = [f"{n_wrong:,} of {n:,}" for n_wrong, n in zip(errors.sum(axis=1), matrix.sum(axis=1))]
    figure = new_page(title, lines, side + 0.7, 0.5, text_width(totals, 7), 0.5)
    axes = figure.subplots()
    draw_matrix(axes, errors / most, matrix if n <= MAX_NUMBERED else None, names, side)
    axes.set_xlabel("first guess", size=9)
    axes.set_ylabel("label", size=9)
    axes.xaxis.set_label_position("top")
    axes.tick_params(labeltop=True, labelbottom=False)
    places = axes.get_yticks()
    right = axes.secondary_yaxis("right")
    right.set_yticks(places, [totals[k] for k in places])
    right.tick_params(length=0, labelsize=7)
    return figure


def draw_matrix(
    axes: Axes, shades: AnyArray, numbers: AnyArray | None, names: Sequence[str], side: float
) -> None:
    """Draws shades (n, n) from 0, white, to 1, with numbers on them; the diagonal is grey.

    `side` is that of the matrix in inches. Of many names, only some have room.
    """
    from matplotlib import colormaps

    n = len(names)
    blues = colormaps["Blues"].with_extremes(bad=LIGHT)
    off_diagonal = np.where(np.eye(n, dtype=bool), np.nan, shades)
    # Black numbers can be read on all shades up to two thirds of the map.
    axes.imshow(off_diagonal, blues, vmin=0, vmax=1.5, interpolation="nearest")
    axes.set_anchor("NW")
    if numbers is not None:
        size = min(9.0, 60 * side / n / (0.7 * max(2, len(f"{numbers.max()}"))))
        places = np.argwhere(numbers)
        write(axes, places[:, ::-1], numbers[tuple(places.T)], size)
    named = range(0, n, max(1, math.ceil(0.25 * n / side)))
    shown = [names[place] for place in named]
    axes.set_xticks(named, shown, parse_math=False)
    axes.set_yticks(named, shown, parse_math=False)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_color(GREY)


def evaluation_figures(
    images: AnyArray | Images, evaluation: Evaluation, title: str = ""
) -> Iterator[tuple[str, Figure]]:
    """Yields names and figures of an evaluation of images (n, h, w); `title` is their first line.

    Each figure is made when it is asked for, because one that is written takes 8 MB.
    """
    yield "misclassified", misclassified(images, evaluation, title)
    yield "confusion", confusion(evaluation, title)


def trained_figures(
    networks: Sequence[TrainedNetwork],
    histories: Sequence[Sequence[EpochMetrics]],
    data: Dataset,
    whole: Evaluation,
) -> Iterator[tuple[str, Figure]]:
    """Yields names and figures: of an evaluation of networks on data, and of each network.

    A network without a history has no learning curves.
    """
    several = len(networks) > 1
    title = title_of(networks[0].network, data.name)
    if several:
        title = f"Committee of {len(networks)} networks on {data.name}"
    yield from evaluation_figures(data.test_set, whole, title)
    for number, (each, history) in enumerate(zip(networks, histories), 1):
        suffix, title = f"-{number}" * several, title_of(each.network, each.data_name)
        if history:
            held_out = each.data.held_out if each.data else 0
            yield f"learning-curves{suffix}", learning_curves(history, held_out, title)
        yield f"first-layer{suffix}", first_layer(each.network, data.image_shape, title)


def write_figures(folder: StrPath, figures: Iterable[tuple[str, Figure]]) -> list[Path]:
    """Writes figures to ``NAME.png``; returns the paths.

    An InputError when a file cannot be written, or the folder is a link to another place.
    """
    folder = Path(folder)
    check_no_link(folder)
    make_folder(folder)
    paths = []
    for name, figure in figures:
        paths.append(folder / f"{name}.png")
        atomic_write(paths[-1], png(figure))
    return paths
