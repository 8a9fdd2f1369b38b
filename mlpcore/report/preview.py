"""A contact sheet of training images, each as it is and as epochs of a training would show it."""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.deformation.deform import DeformationParameters, deform_selected, displacements
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array, UInt8Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of the sheet in images, and in pixels of all its images.
MAX_SIDE, MAX_PIXELS = 100, 2**24

#: Inches: the longer side of an image, the room for labels and around all.
CELL, LEFT, HEAD, MARGIN, MIN_WIDTH = 0.7, 0.85, 0.36, 0.12, 5.0

#: Inches from one image to the next that their labels need.
LEAST_WIDTH, LEAST_HEIGHT = 0.48, 0.3

#: Of the lines above: inches, and characters an inch.
LINE, CHARACTERS = 0.15, 14

#: Pixels an inch; fewer where a side of the picture would be longer than this.
DPI, MAX_PICTURE_SIDE = 200, 8000

#: Of the arrows, which every eye and a grey print tell from the ink, shown the paler for them.
VERMILION, PALE = "#D55E00", 0.35

#: Arrows along a side of an image.
ARROWS = 8


@dataclass(frozen=True, eq=False)
class Preview:
    """Training images and their deformations.

    Attributes
    ----------
    indices : ndarray of int, shape (rows,)
        Which images of the training set they are.
    labels : ndarray of uint8, shape (rows,)
        Their classes.
    epochs : range
        The epochs after the first column, counted from 1 like those of a training.
    images : ndarray of float32, shape (rows, columns, h, w)
        In the first column as they are, in the others as the epochs show them.
    displacements : ndarray of float32, shape (rows, columns - 1, 2, h, w), optional
        Of the epochs, as `deformation.displacements` has them.
    """

    indices: AnyArray
    labels: UInt8Array
    epochs: range
    images: Float32Array
    displacements: Float32Array | None


def make_preview(
    data: Dataset,
    parameters: DeformationParameters,
    seed: int,
    backend: Backend,
    rows: int = 10,
    columns: int = 8,
    first_epoch: int = 1,
    field: bool = False,
) -> Preview:
    """Images of every class in turn, deformed as a training with this seed would see them.

    Parameters
    ----------
    rows, columns
        Images, and versions of each, the image itself included.
    first_epoch
        The epoch of the second column.
    field
        Whether to add the displacements.

    Raises
    ------
    InputError
        When a number is out of range, or the sheet would be too large.
    """
    n_images = len(data.train_labels)
    for name, value, low, high in (
        ("rows", rows, 1, min(MAX_SIDE, n_images)),
        ("columns", columns, 2, MAX_SIDE),
        ("epoch", first_epoch, 1, 1_000_000),
        ("seed", seed, 0, 2**64 - 1),
    ):
        if not low <= value <= high:
            raise InputError(f"{name} {value}: expected a whole number from {low} to {high:,}")
    height, width = data.image_shape
    if rows * columns * height * width > MAX_PIXELS:
        raise InputError(
            f"{rows} x {columns} images of {height} x {width}: expected at most "
            f"{MAX_PIXELS:,} pixels in all, so fewer rows or columns"
        )
    indices = _of_every_class(data.train_labels, rows)
    epochs = range(first_epoch, first_epoch + columns - 1)
    originals, labels = data.train_images[indices], data.train_labels[indices]
    images = np.empty((rows, columns, height, width), np.float32)
    images[:, 0] = originals
    fields = np.empty((rows, len(epochs), 2, height, width), np.float32) if field else None
    for column, epoch in enumerate(epochs):
        drawn = indices, labels, parameters, seed, epoch - 1, backend  # a training begins at 0
        images[:, column + 1] = deform_selected(originals, *drawn)
        if fields is not None:
            fields[:, column] = displacements((height, width), *drawn)
    return Preview(indices, labels, epochs, images, fields)


def _of_every_class(labels: UInt8Array, n: int) -> AnyArray:
    """The first image of each class, then the second of each, and so on: n indices."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], labels[order])
    occurrence = np.arange(len(labels)) - starts
    return order[np.argsort(occurrence, kind="stable")[:n]]


def draw(preview: Preview, title: str) -> bytes:
    """The contact sheet as a PNG file."""
    from matplotlib.figure import Figure

    sheet, corners = _sheet(preview.images)
    tops, lefts = corners
    _, _, height, width = preview.images.shape
    scales = [CELL / max(height, width), LEAST_WIDTH / (lefts[-1] - lefts[-2])]
    if len(tops) > 1:
        scales.append(LEAST_HEIGHT / (tops[1] - tops[0]))
    scale = max(scales)
    sheet_height, sheet_width = (scale * side for side in sheet.shape)
    figure_width = max(MIN_WIDTH, LEFT + sheet_width + MARGIN)
    lines = textwrap.wrap(title, int(CHARACTERS * (figure_width - 2 * MARGIN)))
    if preview.displacements is not None:
        lines.append("Arrows: from where a point of the original was to where it is.")
    top = MARGIN + LINE * len(lines) + HEAD
    figure_height = top + sheet_height + MARGIN
    figure = Figure(figsize=(figure_width, figure_height))
    figure.text(
        MARGIN / figure_width,
        1 - MARGIN / figure_height,
        "\n".join(lines),
        size=8,
        va="top",
        linespacing=1.3,
    )
    axes = figure.add_axes(
        (
            LEFT / figure_width,
            MARGIN / figure_height,
            sheet_width / figure_width,
            sheet_height / figure_height,
        )
    )
    blackest = 1 if preview.displacements is None else 2 / PALE - 1
    axes.imshow(sheet, "gray_r", vmin=-1, vmax=blackest, interpolation="nearest")
    axes.autoscale(False)
    _label(axes, preview, corners)
    if preview.displacements is not None:
        _draw_arrows(axes, preview.displacements, corners)
    content = io.BytesIO()
    dpi = min(DPI, MAX_PICTURE_SIDE / max(figure_width, figure_height))
    figure.savefig(content, format="png", dpi=dpi)
    return content.getvalue()


def _sheet(images: Float32Array) -> tuple[Float32Array, tuple[AnyArray, AnyArray]]:
    """All images with NaN around them; the rows and columns where each begins."""
    rows, columns, height, width = images.shape
    gap = max(1, max(height, width) // 10)
    tops = gap + np.arange(rows) * (height + gap)
    lefts = gap + np.arange(columns) * (width + gap)
    lefts[1:] += gap  # between the originals and the rest
    sheet = np.full((tops[-1] + height + gap, lefts[-1] + width + gap), np.nan, np.float32)
    for row, top in enumerate(tops):
        for column, left in enumerate(lefts):
            sheet[top : top + height, left : left + width] = images[row, column]
    return sheet, (tops, lefts)


def _label(axes: Axes, preview: Preview, corners: tuple[AnyArray, AnyArray]) -> None:
    """Classes and numbers of the images to the left, epochs above."""
    _, _, height, width = preview.images.shape
    (tops, lefts), labels = corners, preview.labels
    names = [f"label {label}\nimage {index}" for label, index in zip(labels, preview.indices)]
    axes.set_yticks(tops + (height - 1) / 2, names, size=7)
    heads = ["original", *(f"epoch\n{epoch}" for epoch in preview.epochs)]
    axes.set_xticks(lefts + (width - 1) / 2, heads, size=7)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("#d8d8d8")


def _draw_arrows(axes: Axes, fields: Float32Array, corners: tuple[AnyArray, AnyArray]) -> None:
    """An arrow to every few pixels from where they were looked up, as far as that is inside."""
    _, _, _, height, width = fields.shape
    step = max(1, round(max(height, width) / ARROWS))
    y, x = np.mgrid[step // 2 : height : step, step // 2 : width : step]
    tops, lefts = corners
    arrows = []
    for row, top in enumerate(tops):
        for column, left in enumerate(lefts[1:]):
            dx, dy = fields[row, column][:, y, x]
            inside = (x + dx >= 0) & (x + dx < width) & (y + dy >= 0) & (y + dy < height)
            arrows.append(np.stack([left + x + dx, top + y + dy, -dx, -dy])[:, inside])
    axes.quiver(
        *np.concatenate(arrows, axis=1),
        angles="xy",
        scale_units="xy",
        scale=1,
        units="inches",
        width=0.008,
        headwidth=4,
        headlength=4,
        headaxislength=3.5,
        minlength=0,
        color=VERMILION,
    )
