"""Pages 7 inches wide: lines of text, and axes below them.

Nothing in the figures uses pyplot, which has global state. Matplotlib takes half a second to
import, and so it is imported inside the functions. Colours also differ in lightness, for print and
for every eye.
"""

import io
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mlpcore.errors import printable
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS, format_hidden_layers, format_layer_sizes
from mlpcore.typing import AnyArray, Axes, AxesImage, Figure

#: Lengths are in inches, font sizes in points.
WIDTH, MAX_HEIGHT, MARGIN = 7.0, 10.0, 0.3
DPI = 150

#: From a line of text to the next.
LINE = 0.2

#: Every eye tells Okabe and Ito's blue from their vermilion.
BLUE, RED, GREY, LIGHT = "#0072B2", "#D55E00", "#808080", "#e8e8e8"

#: The most images or neurons in a figure.
MAX_TILES = 100

#: The mean side of an image in a mosaic, the least width of two numbers beside each other, and the
#: least distance between images.
SIDE, LEAST, GAP = 0.52, 0.42, 0.1

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


def new_page(
    title: str,
    lines: Sequence[str],
    height: float,
    left: float = 0.0,
    right: float = 0.0,
    top: float = 0.0,
    bottom: float = 0.0,
) -> Figure:
    """A new figure: a title and lines of text, and below them room of a height for `subplots`.

    The labels of the subplots get `left`, `right`, `top` and `bottom` of it: the layouts of
    Matplotlib, which measure labels, take a quarter of the time of drawing. Names of data may hold
    any characters, so no text is read as a formula.
    """
    from matplotlib.figure import Figure

    texts = [(10, "bold", title)] * bool(title) + [(9, "normal", line) for line in lines]
    whole = height + LINE * len(texts) + MARGIN
    figure = Figure(figsize=(WIDTH, whole), dpi=DPI)
    figure.subplots_adjust(
        left=(MARGIN + left) / WIDTH,
        right=1 - (MARGIN + right) / WIDTH,
        bottom=bottom / whole,
        top=(height - top) / whole,
        hspace=0.1,
    )
    for k, (size, weight, text) in enumerate(texts):
        y = 1 - (LINE * k + MARGIN - LINE / 2) / whole
        figure.text(
            MARGIN / WIDTH, y, printable(text), size=size, weight=weight, va="center",
            parse_math=False,
        )  # fmt: skip
    return figure


def write(
    axes: Axes,
    places: AnyArray,
    numbers: AnyArray,
    size: float,
    align: tuple[float, float] = (0.5, 0.5),
    color: str = "black",
    weight: str = "normal",
) -> None:
    """Writes numbers (n,) at places (n, 2) of the data, in a tenth of the time of `axes.text`.

    `align` is the point of a number that is at its place, (0, 0) being at the bottom left.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    font, shapes = FontProperties(weight=weight), {}
    for number in np.unique(numbers).tolist():
        path = TextPath((0, 0), str(number), size, font)
        corners = path.vertices[path.codes != path.CLOSEPOLY]  # `get_extents` solves for extremes
        low, high = corners.min(axis=0), corners.max(axis=0)
        place = -low - align * (high - low)
        shapes[number] = path.transformed(Affine2D().translate(*place).scale(DPI / 72))
    paths = [shapes[number] for number in numbers.tolist()]
    group = PathCollection(
        paths, offsets=places, offset_transform=axes.transData, color=color, linewidth=0
    )
    group.set_transform(Affine2D())
    axes.add_collection(group, autolim=False)


def text_width(texts: Iterable[str], size: float) -> float:
    """The width of the longest of some texts, about."""
    return 0.65 * size / 72 * max(map(len, texts))


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


class Tiles:
    """A mosaic of images on a page, with room for text above and below each image.

    `capacity` images fit a page. `pad` is the distance from an image to its text and `text_width`
    the width of this, in pixels.
    """

    def __init__(self, image_shape: Sequence[int], above: float = 0.0, below: float = GAP):
        height, width = image_shape
        inches = SIDE / math.sqrt(height * width)  # of a pixel: the same area for every shape
        inches = min(inches, (WIDTH - 2 * MARGIN) / width, 0.4 * MAX_HEIGHT / height)
        beside = max(GAP, LEAST + GAP - inches * width)
        self._room = [math.ceil(each / inches) for each in (above, below, beside)]
        self._row_height = inches * (self._room[0] + height + self._room[1])
        tile = width + self._room[2]
        self._columns = max(1, int((WIDTH - 2 * MARGIN) / inches + self._room[2]) // tile)
        rows = max(1, int((MAX_HEIGHT - 4 * LINE - 2 * MARGIN) / self._row_height))
        self.capacity, self.pad = min(MAX_TILES, rows * self._columns), 0.03 / inches
        self.text_width = max(width, LEAST / inches)

    def height(self, n: int) -> float:
        """The height of n images and the margin below them."""
        return math.ceil(n / self._columns) * self._row_height + MARGIN / 2

    def draw(self, axes: Axes, images: AnyArray, colours: str) -> tuple[AxesImage, AnyArray]:
        """Draws images (n, h, w) in [-1, 1]; returns also the corners of `mosaic`."""
        from matplotlib import colormaps

        sheet, corners = mosaic(images, min(self._columns, max(1, len(images))), *self._room)
        shades = colormaps[colours].with_extremes(bad=LIGHT)
        axes.set_anchor("NW")
        axes.axis("off")
        # A pixel is enlarged and then coloured: the other way takes twice as long.
        quick: dict[str, Any] = {"interpolation": "nearest", "interpolation_stage": "data"}
        return axes.imshow(sheet, shades, vmin=-1, vmax=1, **quick), corners


def png(figure: Figure, **settings: Any) -> bytes:
    """A figure as a PNG file; the settings are those of Matplotlib's `savefig`.

    Matplotlib warns of characters that its font lacks. The picture shows boxes for them.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if settings:
            figure.savefig(content, format="png", **settings)
        else:  # the same picture, which `savefig` would draw twice
            quick = {"compress_level": 3}  # 6 takes twice as long for 5 % less
            FigureCanvasAgg(figure).print_png(  # type: ignore[no-untyped-call]
                content, pil_kwargs=quick
            )
    return content.getvalue()
