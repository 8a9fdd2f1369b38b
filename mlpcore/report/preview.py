"""A contact sheet: training images in rows, the epochs' deformations of them in columns."""

from collections.abc import Sequence

import numpy as np

from mlpcore.report.layout import mosaic, png
from mlpcore.typing import Float32Array

#: The least inches from one image to the next: labels need them.
CELL_WIDTH, CELL_HEIGHT = 0.6, 0.5

#: Pixels an inch; fewer where a side of the picture would be longer than this.
DPI, MAX_PICTURE_SIDE = 200, 8000

#: Okabe and Ito's vermilion is distinct from ink to every eye, and in grey. Ink under it is paler.
ARROW_COLOUR, INK_UNDER_ARROWS = "#D55E00", 0.35

#: Arrows along the longer side of an image.
ARROWS = 8


def draw(
    images: Float32Array,
    row_names: Sequence[str],
    column_names: Sequence[str],
    title: str,
    displacements: Float32Array | None = None,
) -> bytes:
    """The contact sheet of images (rows, columns, h, w), in [-1, 1], as a PNG file.

    Arrows show displacements (rows, columns - 1, 2, h, w) on all columns but the first, from where
    a point of the original image was, if that is inside the image, to where it is.
    """
    from matplotlib.figure import Figure

    _, columns, height, width = images.shape
    gap = max(1, max(height, width) // 10)
    sheet, corners = mosaic(images.reshape(-1, height, width), columns, below=gap, beside=gap)
    sheet = sheet[:-gap]
    lefts, tops = corners[:columns, 0], corners[::columns, 1]
    scale = max(CELL_WIDTH / (width + gap), CELL_HEIGHT / (height + gap))
    figure = Figure(figsize=(scale * sheet.shape[1], scale * sheet.shape[0]))
    axes = figure.add_axes((0, 0, 1, 1))  # labels lie outside: `savefig` makes room for them
    darkest = 1 if displacements is None else 2 / INK_UNDER_ARROWS - 1
    axes.imshow(sheet, "gray_r", vmin=-1, vmax=darkest, interpolation="nearest")
    axes.set_yticks(tops + (height - 1) / 2, row_names, size=7, parse_math=False)
    axes.set_xticks(lefts + (width - 1) / 2, column_names, size=7)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("#d8d8d8")
    axes.set_title(title, loc="left", size=8, parse_math=False)
    if displacements is not None:
        axes.autoscale(False)  # arrows would add a margin
        step = max(1, round(max(height, width) / ARROWS))
        y, x = np.mgrid[step // 2 : height : step, step // 2 : width : step]
        dx, dy = np.moveaxis(displacements[..., y, x], 2, 0)  # (rows, columns, down, across)
        inside = (x + dx >= 0) & (x + dx < width) & (y + dy >= 0) & (y + dy < height)
        tips = lefts[1:, None, None] + x, tops[:, None, None, None] + y
        places = [np.broadcast_to(each, inside.shape)[inside] for each in tips]
        axes.quiver(
            *places, -dx[inside], -dy[inside], pivot="tip", color=ARROW_COLOUR, angles="xy",
            scale_units="xy", scale=1, units="inches", minlength=0, width=0.008, headwidth=4,
            headlength=4, headaxislength=3.5,
        )  # fmt: skip
    dpi = min(DPI, MAX_PICTURE_SIDE / (max(figure.get_size_inches()) + 2))
    return png(figure, dpi=dpi, bbox_inches="tight", pad_inches=0.12)
