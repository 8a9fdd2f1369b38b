"""Pages 7 inches wide: lines of text, and axes below them.

Nothing in the figures uses pyplot, which has global state. Matplotlib takes half a second to
import, and so it is imported inside the functions. Colours also differ in lightness, for print and
for every eye.
"""

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlpcore.errors import printable
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS, format_hidden_layers, format_layer_sizes
from mlpcore.typing import AnyArray, AxesImage, Figure

#: Lengths are in inches, font sizes in points. The second is from a line of text to the next.
WIDTH, LINE = 7.0, 0.15

#: Every eye tells Okabe and Ito's blue from their vermilion.
BLUE, RED, GREY, LIGHT = "#0072B2", "#D55E00", "#808080", "#e8e8e8"

#: The most images or neurons in a figure.
MAX_TILES = 100

#: The mean side of an image in a mosaic and the greatest, and the least distance between images.
SIDE, MAX_SIDE, GAP = 0.52, 1.5, 0.1

#: The most characters of layers, and of a name of data, for which a title has room.
MAX_LAYERS, MAX_NAME = 38, 26


def title_of(network: Network, data_name: str) -> str:
    """Names a network and its data, if they have a name: ``net1 (841-1000-500-10) on MNIST``."""
    sizes = network.layer_sizes
    title, name = format_layer_sizes(sizes), format_hidden_layers(sizes[1:-1])
    if name in PRESETS:
        title = f"{name} ({title})"
    title = printable(title, MAX_LAYERS)
    return f"{title} on {printable(data_name, MAX_NAME)}" if data_name else title


def new_page(title: str, lines: Sequence[str], height: float) -> Figure:
    """A new figure: a title and lines of text, and below them room of a height for `subplots`.

    Names of data may hold any characters, so no text is read as a formula.
    """
    from matplotlib.figure import Figure

    texts = [printable(text) for text in (title, *lines) if text]
    whole = height + LINE * (len(texts) + 1)
    figure = Figure(figsize=(WIDTH, whole), dpi=150, layout="constrained")
    figure.suptitle("\n".join(texts), x=0.01, ha="left", size=9, parse_math=False)
    return figure


def mosaic(
    images: AnyArray, columns: int, above: int = 0, below: int = 1, beside: int = 1
) -> tuple[AnyArray, AnyArray]:
    """Images (n, h, w) in rows of so many, as one image with NaN around them.

    Each has so many pixels above, below and at its right for itself. Returns also the column and
    the row of the first pixel of each, (n, 2).
    """
    n, height, width = images.shape
    rows, tile = -(-n // columns), (above + height + below, width + beside)
    sheet = np.full((rows, tile[0], columns, tile[1]), np.nan)
    row, column = np.divmod(np.arange(n), columns)
    sheet[row, above : above + height, column, :width] = images
    corners = np.stack([column * tile[1], row * tile[0] + above], axis=-1)
    return sheet.reshape(rows * tile[0], columns * tile[1])[:, :-beside], corners


def tiled_page(
    title: str, lines: Sequence[str], images: AnyArray, colours: str, line: float = 0.0
) -> tuple[Figure, AxesImage, AnyArray]:
    """A page of images (n, h, w) in [-1, 1], with a line of text of a height above and below each.

    Images of every shape have the same area, unless they are very long. Returns also what shows
    them and the corners of `mosaic`.
    """
    from matplotlib import colormaps

    _, height, width = images.shape
    inches = min(SIDE / math.sqrt(height * width), MAX_SIDE / max(height, width))  # of a pixel
    beside = max(GAP, 3 * line + GAP - inches * width)  # two numbers have room below an image
    room = [math.ceil(each / inches) for each in (line, line + GAP, beside)]
    sheet, corners = mosaic(images, int(WIDTH / inches) // (width + room[2]), *room)
    figure = new_page(title, lines, WIDTH * len(sheet) / sheet.shape[1])
    axes = figure.subplots()
    axes.set_anchor("NW")
    axes.axis("off")
    shades = colormaps[colours].with_extremes(bad=LIGHT)
    # A pixel is enlarged and then coloured: the other way takes twice as long.
    quick: dict[str, Any] = {"interpolation": "nearest", "interpolation_stage": "data"}
    return figure, axes.imshow(sheet, shades, vmin=-1, vmax=1, **quick), corners


def png(figure: Figure, **settings: Any) -> bytes:
    """A figure as a PNG file; the settings are those of Matplotlib's `savefig`.

    Matplotlib warns of characters that its font lacks. The picture shows boxes for them.
    """
    content = io.BytesIO()
    quick = {"compress_level": 3}  # 6 takes twice as long for 5 % less
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.savefig(content, format="png", pil_kwargs=quick, **settings)
    return content.getvalue()
