"""Draws the pictures of what the program does into docs/images, as `make pictures` does.

Pictures of the README are for a light and for a dark page. The digits are MNIST's if it is found,
else scikit-learn's.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image
from scipy.interpolate import make_interp_spline

import figure_style
import mlpcore
from mlpcore import DeformationParameters, backends, dataset, deformation
from mlpcore.commands.options import Parser, run_tool
from mlpcore.files import atomic_write
from mlpcore.reading.drawing import draw as draw_read
from mlpcore.typing import Float64Array, UInt8Array
from mlpcore.web.html import to_page

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests" / "support"))

import headless  # noqa: E402
import pages  # noqa: E402

#: Text and lines, faint lines, and ours, by the page's mode.
MODES = {
    "light": {"text": "#1f2328", "faint": "#8c959f", "ours": "#0969da", "page": "#ffffff"},
    "dark": {"text": "#e6edf3", "faint": "#7d8590", "ours": "#58a6ff", "page": "#0d1117"},
}

#: The strip: the number of a training image of MNIST, and how many epochs are shown.
SHOWN, EPOCHS = 0, 9

#: The 5 of drawn.png as a pen would draw it, in a square of side 1: two strokes of points.
STROKES = (
    ((0.34, 0.20), (0.31, 0.36), (0.29, 0.47), (0.38, 0.43), (0.52, 0.42), (0.65, 0.50),
     (0.68, 0.64), (0.60, 0.77), (0.45, 0.81), (0.30, 0.76)),
    ((0.34, 0.20), (0.50, 0.18), (0.69, 0.17)),
)  # fmt: skip


def write(figure: Figure, file: str) -> None:
    """Writes a figure; the same drawing gives the same file."""
    content, kind = io.BytesIO(), file.rpartition(".")[2]
    metadata: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {}
    figure.savefig(content, format=kind, transparent=True, dpi=110, bbox_inches="tight", **metadata)
    atomic_write(IMAGES / file, content.getvalue())
    print(f"docs/images/{file}: {len(content.getvalue()) / 1000:.0f} kB")


# ---- pictures of the README, in the colours of a page ---------------------------------------


def show_digit(axes: Axes, image: np.ndarray, colours: Mapping[str, str]) -> None:
    """Draws an image in [0, 1] in the colour of text."""
    ink = LinearSegmentedColormap.from_list("ink", [colours["page"], colours["text"]])
    axes.imshow(image, ink, vmin=0, vmax=1, interpolation="bilinear")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=colours["faint"], visible=True)


def strip(colours: Mapping[str, str]) -> Figure:
    """A training image, and what the first epochs make of it."""
    data = dataset.load()
    image, label = data.train_images[SHOWN : SHOWN + 1], data.train_labels[SHOWN : SHOWN + 1]
    parameters, backend = DeformationParameters(similar_labels=(1, 7)), backends.get("cpu")
    shown = [image] + [
        deformation.deform(image, label, parameters, 0, epoch, backend, first=SHOWN)
        for epoch in range(EPOCHS)
    ]
    figure = Figure(figsize=(9, 1.15))
    for place, (axes, each) in enumerate(zip(figure.subplots(1, EPOCHS + 1), shown)):
        show_digit(axes, (each[0] + 1) / 2, colours)
        title = f"epoch {place}" if place else data.name
        axes.set_xlabel(title, fontsize=9)
    return figure


def answer(colours: Mapping[str, str]) -> Figure:
    """A drawing, what the network is given, and its answer."""
    path = IMAGES / "drawn.png"
    network = mlpcore.load("pretrained")
    probabilities = network.predict_proba(path)[0]
    best = int(probabilities.argmax())
    figure = Figure(figsize=(9, 2.2))
    drawing, given, bars = figure.subplots(1, 3, width_ratios=(1, 1, 2))
    drawing.imshow(Image.open(path), "gray", vmin=0, vmax=255)
    drawing.set(xticks=[], yticks=[])
    drawing.spines[:].set(color=colours["faint"], visible=True)
    drawing.set_title("your picture")
    show_digit(given, network.answers(path)[0].digit.pixels / 255, colours)
    given.set_title("as the network sees it")
    bars.bar(range(10), probabilities, color=[colours["faint"]] * 10)
    bars.patches[best].set_color(colours["ours"])
    bars.text(best, probabilities[best] + 0.02, f"{100 * probabilities[best]:.0f} %", ha="center")
    bars.set(xticks=range(10), yticks=[], ylim=(0, 1.15))
    bars.spines["left"].set_visible(False)
    bars.set_title(f"its answer: {best}")
    return figure


def draw_page() -> None:
    """The page of `mlpcore draw` with a digit, down to its deformed forms."""
    if headless.find_browser() is None:
        print("docs/images/page-*.png: not drawn, no browser is found")
        return
    data = dataset.load()
    with headless.browser() as browser, tempfile.TemporaryDirectory() as folder:
        file, test = Path(folder, "digit.html"), data if data.name == dataset.MNIST else None
        file.write_bytes(to_page(mlpcore.load("pretrained"), test))
        for mode in MODES:
            sheet = browser.new_page(
                viewport={"width": 960, "height": 1000}, color_scheme=mode, device_scale_factor=1.5
            )
            sheet.goto(file.as_uri())
            box = sheet.locator("#drawing").bounding_box()
            for stroke in STROKES:
                curve = make_interp_spline(range(len(stroke)), stroke, k=2)
                for place, (x, y) in enumerate(curve(np.linspace(0, len(stroke) - 1, 40))):
                    sheet.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
                    if place == 0:
                        sheet.mouse.down()
                sheet.mouse.up()
            sheet.locator("#forms canvas").first.wait_for()
            end = sheet.locator("section").nth(1).bounding_box()
            clip = {"x": 0, "y": 0, "width": 960, "height": end["y"] + end["height"] + 16}
            atomic_write(IMAGES / f"page-{mode}.png", sheet.screenshot(clip=clip, full_page=True))
            print(f"docs/images/page-{mode}.png")


# ---- pages that are read, of test digits --------------------------------------------------------


def digits(number: str, first: int = 0) -> list[UInt8Array]:
    """Digits (h, w) of the test set, from the `first` of each class on."""
    data = dataset.load()
    pixels = ((data.test_images + 1) * 127.5).astype(np.uint8)
    classes = [np.flatnonzero(data.test_labels == int(n)) for n in number]
    return [pixels[each[(first + k) % len(each)]] for k, each in enumerate(classes)]


def boxed_form() -> Float64Array:
    """A scanned form, turned by two degrees, with empty boxes and a digit that is hard to read."""
    rng = np.random.default_rng(1)
    written: list[UInt8Array | None] = [*digits("20100314159")]
    written[4:4], written[-2:] = [None], [*digits("5", 184), None]
    ink, _ = pages.form(written, 6, rng, box=(70, 80), gap=(0, 30), line=3)
    return pages.on_paper(pages.rotated(ink, 2), rng)


def number_on_paper() -> Float64Array:
    """A slanted number on squared paper, two of whose digits touch."""
    rng = np.random.default_rng(3)
    ink = pages.number(digits("8128496"), rng, 80, gap=(-0.03, 0.2), slant=0.2, angle=3)
    ground = pages.ruled(np.full(ink.shape, 225.0), 46, True, 0.12)
    return pages.noisy(ground + (60 - ground) * ink, rng, 5)


def photographed_page() -> Float64Array:
    """Lines of numbers, photographed in light from the side."""
    rng = np.random.default_rng(4)
    sheet = np.zeros((420, 760))
    for row, line in enumerate((("1905", "35"), ("1917", "610"), ("2010", "784"))):
        for column, number in enumerate(line):
            left = 70 + 400 * column
            for digit in digits(number, 3 * row + column):
                ink = pages.written(digit, 60)
                pages.put(sheet, ink, left, 60 + 110 * row)
                left += ink.shape[1] + 14
    paper = pages.on_paper(pages.rotated(sheet, -4), rng)
    return pages.compressed(pages.lit(paper, 0.35), 70)


def memory() -> Figure:
    """The table of docs/large-data.md: megabytes by the number of digits."""
    figure = Figure(figsize=(6, 2.6))
    axes = figure.subplots()
    for label, used in {"pixels": (47, 627, 6350), "peak memory": (137, 103, 228)}.items():
        axes.plot((60_000, 800_000, 8_100_000), used, "o-", label=label)
    axes.set(xscale="log", yscale="log", xlabel="digits", ylabel="MB")
    axes.legend(frameon=False)
    return figure


PAGES = {"form": boxed_form, "number": number_on_paper, "photo": photographed_page}


def main() -> int:
    """Draws everything."""
    Parser(description=__doc__).parse_args()
    figure_style.apply()
    mpl.rcParams.update({"svg.hashsalt": "mlpcore", "font.size": 10})
    write(memory(), "memory.svg")
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    for mode, colours in MODES.items():
        style: dict[Any, Any] = dict.fromkeys(names, colours["text"])
        mpl.rcParams.update(style)
        write(strip(colours), f"strip-{mode}.png")
        write(answer(colours), f"answer-{mode}.svg")
    draw_page()
    for name, make in PAGES.items():
        picture = Image.fromarray(np.rint(make()).clip(0, 255).astype(np.uint8)).quantize(32)
        for file, image in (name, picture), (f"read-{name}", draw_read(mlpcore.read(picture))):
            content = io.BytesIO()
            image.quantize(64).save(content, "PNG", optimize=True)
            atomic_write(IMAGES / f"{file}.png", content.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(run_tool(main))
