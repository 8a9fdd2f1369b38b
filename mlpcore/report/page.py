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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Tiles:
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
    def of(cls, image_shape: Sequence[int], above: float, below: float) -> Tiles:
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
        rows = max(1, int((MAX_HEIGHT - head_height(4) - MARGIN) / self.row_height))
        return min(MAX_TILES, rows * self.columns)

    def height(self, n: int) -> float:
        """The height of n tiles and the margin below them."""
        return math.ceil(n / self.columns) * self.row_height + MARGIN

    def place(self, k: int, top: float) -> tuple[float, float]:
        """The upper left corner of the image in tile k; the rows begin at `top`."""
        row, column = divmod(k, self.columns)
        x = MARGIN + column * (self.width + self.GAP)
        return x, top + row * self.row_height + self.above


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


def draw_image(
    axes: Axes,
    image: AnyArray,
    x: float,
    y: float,
    tiles: Tiles,
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
