"""Pages 7 inches wide: lines of text, and images in tiles below them.

Nothing in the figures uses pyplot, which has global state. Matplotlib takes half a second to
import, and so it is imported inside the functions. Colours also differ in lightness, for print and
for every eye.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlpcore.errors import printable
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS, format_hidden_layers, format_layer_sizes
from mlpcore.typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Lengths are in inches, font sizes in points.
WIDTH, MAX_HEIGHT, MARGIN = 7.0, 10.0, 0.3
DPI = 200

#: From a line of text to the next.
LINE = 0.2

#: Every eye tells Okabe and Ito's blue from their vermilion.
BLUE, RED, GREY, LIGHT = "#0072B2", "#D55E00", "#808080", "#e8e8e8"

#: The most images or neurons in a figure.
MAX_TILES = 100

#: The most characters of layers, and of a name of data, for which a title has room.
MAX_LAYERS, MAX_NAME = 38, 26


def title_of(network: Network, data_name: str) -> str:
    """Names a network and its data, if they have a name: ``net1 (841-1000-500-10) on MNIST``."""
    sizes = network.layer_sizes
    title, name = format_layer_sizes(sizes), format_hidden_layers(sizes[1:-1])
    if name in PRESETS:
        title = f"{name} ({title})"
    title = _shortened(title, MAX_LAYERS)
    return f"{title} on {_shortened(data_name, MAX_NAME)}" if data_name else title


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Tiles:
    """Images in rows on a page, with room for text above and below each image.

    Attributes
    ----------
    width
        Of a tile, in inches. A narrower image is in its centre.
    capacity
        The tiles that fit a page.
    """

    #: The mean side of an image, and the least width of two numbers beside each other.
    SIDE, LEAST, GAP = 0.52, 0.42, 0.1

    def __init__(self, image_shape: Sequence[int], above: float = 0.0, below: float = 0.0):
        height, width = image_shape
        scale = self.SIDE / math.sqrt(height * width)  # the same area for every shape
        scale = min(scale, (WIDTH - 2 * MARGIN) / width, 0.4 * MAX_HEIGHT / height)
        self._above, self._image_width = above, scale * width
        self.image_height = scale * height
        self.width = max(self._image_width, self.LEAST)
        self._row_height = above + self.image_height + below
        self._columns = max(1, int((WIDTH - 2 * MARGIN + self.GAP) / (self.width + self.GAP)))
        rows = max(1, int((MAX_HEIGHT - head_height(4) - MARGIN) / self._row_height))
        self.capacity = min(MAX_TILES, rows * self._columns)

    def height(self, n: int) -> float:
        """The height of n tiles and the margin below them."""
        return math.ceil(n / self._columns) * self._row_height + MARGIN

    def draw(
        self, axes: Axes, k: int, top: float, image: AnyArray, colours: str
    ) -> tuple[float, float]:
        """Draws an image in [-1, 1] with a frame in tile k; the rows begin at `top`.

        Returns the left edge of the tile and the upper edge of the image.
        """
        from matplotlib.patches import Rectangle

        row, column = divmod(k, self._columns)
        x = MARGIN + column * (self.width + self.GAP)
        y = top + row * self._row_height + self._above
        left, width, height = (
            x + (self.width - self._image_width) / 2,
            self._image_width,
            self.image_height,
        )
        frame = (left, left + width, y + height, y)
        axes.imshow(image, cmap=colours, vmin=-1, vmax=1, extent=frame, aspect="auto")
        edge: dict[str, Any] = {"fill": False, "edgecolor": GREY, "linewidth": 0.4}
        axes.add_patch(Rectangle((left, y), width, height, **edge))
        return x, y


def head_height(n_lines: int) -> float:
    """The height of lines of text at the top of a page."""
    return 0.25 + LINE * n_lines


def new_page(title: str, lines: Sequence[str], height: float) -> tuple[Figure, Axes, float]:
    """A new figure: a title and lines of text, and below them an empty space of a height.

    Also returns axes over the whole figure, in inches from its upper left corner, and where in
    them the empty space begins.
    """
    from matplotlib.figure import Figure

    top = head_height(len(lines) + bool(title))
    figure = Figure(figsize=(WIDTH, top + height), dpi=DPI)
    return figure, whole_page(figure, title, lines), top


def whole_page(figure: Figure, title: str, lines: Sequence[str]) -> Axes:
    """Axes over a whole figure, in inches from its upper left corner, with text at the top.

    A name of data may hold any characters, which are no formulas.
    """
    width, height = figure.get_size_inches()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    texts = [(10, "bold", title)] * bool(title) + [(9, "normal", line) for line in lines]
    for k, (size, weight, text) in enumerate(texts):
        y = 0.25 + LINE * k
        text = printable(text)
        axes.text(MARGIN, y, text, size=size, weight=weight, va="center", parse_math=False)
    return axes


def png(figure: Figure, **settings: Any) -> bytes:
    """A figure as a PNG file; the settings are those of Matplotlib's `savefig`.

    Matplotlib warns of characters that its font lacks. The picture shows boxes for them.
    """
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.savefig(content, format="png", **settings)
    return content.getvalue()
