#!/usr/bin/env python3
"""Draws the README's pictures into docs/images, each for a light and for a dark page.

The charts show the measurements that are kept in benchmarks/results. The digits are MNIST's if it
is found, else scikit-learn's.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFilter
from scipy.interpolate import make_interp_spline

import headless
import mlpcore
from mlpcore import DeformationParameters, backends, dataset, deformation
from mlpcore.commands.options import run_tool
from mlpcore.data.digit import read_digit
from mlpcore.files import atomic_write, make_folder
from mlpcore.web.page import to_page
from speed.chart import COLOURS, best_times, draw_bars
from speed.results import read_runs

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "benchmarks" / "results" / "2026-11-24-epyc-2-cores-sparse"

#: Text and lines, faint lines, and ours, by the page's mode.
MODES = {
    "light": {"text": "#1f2328", "faint": "#8c959f", "ours": "#0969da", "page": "#ffffff"},
    "dark": {"text": "#e6edf3", "faint": "#7d8590", "ours": "#58a6ff", "page": "#0d1117"},
}

#: The strip: the number of a training image of MNIST, and how many epochs are shown.
SHOWN, EPOCHS = 0, 9

#: A 5 as a pen would draw it, in a square of side 1: two strokes of points.
STROKES = (
    ((0.34, 0.20), (0.31, 0.36), (0.29, 0.47), (0.38, 0.43), (0.52, 0.42), (0.65, 0.50),
     (0.68, 0.64), (0.60, 0.77), (0.45, 0.81), (0.30, 0.76)),
    ((0.34, 0.20), (0.50, 0.18), (0.69, 0.17)),
)  # fmt: skip


@contextmanager
def page(mode: str) -> Iterator[dict[str, str]]:
    """Matplotlib's settings for text and lines on a page of this mode."""
    colours = MODES[mode]
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = dict.fromkeys(names, colours["text"])
    style |= {"font.size": 10, "svg.hashsalt": "mlpcore", "svg.fonttype": "path"}
    with matplotlib.rc_context(style):
        yield colours


def write(figure: Figure, name: str, kind: str = "svg") -> None:
    """Writes a figure with a transparent ground."""
    content = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    figure.savefig(
        content, format=kind, transparent=True, dpi=110, bbox_inches="tight", metadata=metadata
    )
    path = IMAGES / f"{name}.{kind}"
    atomic_write(path, content.getvalue())
    print(f"{path.relative_to(ROOT)}: {len(content.getvalue()) / 1000:.0f} kB")


def show_digit(axes: matplotlib.axes.Axes, image: np.ndarray, colours: dict[str, str]) -> None:
    """Draws an image in [0, 1] in the colour of text."""
    ink = matplotlib.colors.LinearSegmentedColormap.from_list(
        "ink", [colours["page"], colours["text"]]
    )
    axes.imshow(image, ink, vmin=0, vmax=1, interpolation="bilinear")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(colours["faint"])


def draw_strip(mode: str) -> None:
    """A training image, and what the first epochs make of it."""
    data = dataset.load()
    image, label = data.train_images[SHOWN : SHOWN + 1], data.train_labels[SHOWN : SHOWN + 1]
    parameters, backend = DeformationParameters(similar_labels=(1, 7)), backends.get("cpu")
    shown = [image] + [
        deformation.deform(image, label, parameters, 0, epoch, backend, first=SHOWN)
        for epoch in range(EPOCHS)
    ]
    with page(mode) as colours:
        figure = Figure(figsize=(9, 1.15))
        for place, each in enumerate(shown):
            axes = figure.add_subplot(1, EPOCHS + 1, place + 1)
            show_digit(axes, (each[0] + 1) / 2, colours)
            title = f"epoch {place}" if place else data.name
            axes.set_xlabel(title, fontsize=9, color=colours["text" if place else "faint"])
        figure.subplots_adjust(wspace=0.12)
        write(figure, f"strip-{mode}", "png")


def smoothed(stroke: Sequence[tuple[float, float]], n: int = 40) -> np.ndarray:
    """A curve (2, n) through the points of a stroke."""
    curve = make_interp_spline(np.arange(len(stroke)), np.array(stroke), k=2)
    return curve(np.linspace(0, len(stroke) - 1, n)).T


def draw_drawing(path: Path) -> None:
    """Draws a digit in ink on paper that is lit unevenly, as a photograph would show it."""
    side, scale = 360, 4
    picture = Image.new("L", (side * scale, side * scale), 0)
    pen = ImageDraw.Draw(picture)
    for stroke in STROKES:
        for x, y in smoothed(stroke, 400).T * side * scale:
            width = 0.022 * side * scale
            pen.ellipse((x - width, y - width, x + width, y + width), fill=255)
    soft = picture.filter(ImageFilter.GaussianBlur(3 * scale)).resize((side, side))
    ink = np.clip((np.asarray(soft, float) / 255 - 0.3) * 2.5, 0, 1)
    grain = np.random.default_rng(0).normal(0, 2.5, ink.shape)
    light = 226 - 34 * np.linspace(0, 1, side)[:, None] * np.linspace(0.3, 1, side)
    grey = np.clip(light * (1 - 0.75 * ink) + grain, 0, 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(grey).save(content, "PNG")
    atomic_write(path, content.getvalue())


def draw_answer(mode: str) -> None:
    """The drawing, what the network is given, and its answer."""
    path = IMAGES / "drawn.png"
    probabilities = mlpcore.load("pretrained").predict_proba(path)[0]
    with page(mode) as colours:
        figure = Figure(figsize=(9, 2.2))
        drawing, given, answer = figure.subplots(1, 3, width_ratios=(1, 1, 2))
        drawing.imshow(Image.open(path), "gray", vmin=0, vmax=255)
        drawing.set_xticks([])
        drawing.set_yticks([])
        drawing.set_title("your picture", fontsize=10)
        show_digit(given, read_digit(path).pixels / 255, colours)
        given.set_title("as the network sees it", fontsize=10)
        best = int(probabilities.argmax())
        bar_colours = [colours["ours" if k == best else "faint"] for k in range(10)]
        answer.bar(range(10), probabilities, color=bar_colours)
        answer.set_xticks(range(10))
        answer.set_yticks([])
        answer.spines[["top", "left", "right"]].set_visible(False)
        answer.set_title(f"its answer: {best}", fontsize=10)
        answer.text(best, probabilities[best] + 0.02, f"{probabilities[best]:.1%}", ha="center")
        answer.set_ylim(0, 1.15)
        write(figure, f"answer-{mode}")


def draw_page() -> None:
    """The page of `mlpcore draw` with the same digit, down to its deformed forms."""
    if headless.find_browser() is None:
        print("docs/images/page-*.png: not drawn, no browser is found")
        return
    with headless.browser() as browser, tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "digit.html")
        data = dataset.load()
        test = data if data.name == dataset.MNIST else None
        file.write_bytes(to_page(mlpcore.load("pretrained"), test))
        for mode in MODES:
            sheet = browser.new_page(
                viewport={"width": 960, "height": 1000}, color_scheme=mode, device_scale_factor=1.5
            )
            sheet.goto(file.as_uri())
            box = sheet.locator("#drawing").bounding_box()
            for xs, ys in map(smoothed, STROKES):
                sheet.mouse.move(box["x"] + box["width"] * xs[0], box["y"] + box["height"] * ys[0])
                sheet.mouse.down()
                for x, y in zip(xs, ys):
                    sheet.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
                sheet.mouse.up()
            sheet.locator("#forms canvas").first.wait_for()
            end = sheet.locator("section").nth(1).bounding_box()
            height = end["y"] + end["height"] + 16
            clip = {"x": 0, "y": 0, "width": 960, "height": height}
            content = sheet.screenshot(clip=clip, full_page=True)
            atomic_write(IMAGES / f"page-{mode}.png", content)
            print(f"docs/images/page-{mode}.png: {len(content) / 1000:.0f} kB")


def draw_error(mode: str) -> None:
    """The test error against the time that training takes, ours and others'."""
    document = json.loads((RESULTS / "to-error-net1.json").read_text())
    with page(mode) as colours:
        figure = Figure(figsize=(7, 3.6))
        axes = figure.add_subplot()
        for learner in dict.fromkeys(run["learner"] for run in document["runs"]):
            name = "mlpcore" if learner == "ours modern" else learner
            if name.startswith("ours"):
                continue
            colour = (COLOURS | {"mlpcore": colours["ours"]}).get(name.split()[0], colours["faint"])
            runs = [run for run in document["runs"] if run["learner"] == learner]
            budgets = sorted({run["epochs"] for run in runs})
            points = [[r for r in runs if r["epochs"] == budget] for budget in budgets]
            seconds = [np.median([r["seconds"] for r in some]) for some in points]
            errors = [np.mean([r["error"] for r in some]) for some in points]
            ours = name == "mlpcore"
            width, size, weight = (3, 8, "bold") if ours else (1.5, 5, "normal")
            axes.plot(seconds, errors, "o-", color=colour, lw=width, ms=size)
            end = (seconds[-1], errors[-1])
            offset = (7, -12 if name == "JAX SGD 256" else -3)  # two of JAX end side by side
            axes.annotate(
                name, end, offset, textcoords="offset points", color=colour, weight=weight
            )
        axes.set_xlim(0)
        axes.set_ylim(0.8)
        axes.set_xlabel("seconds on two cores, deformation included")
        axes.set_ylabel("test error in percent")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color=colours["faint"], alpha=0.3)
        write(figure, f"error-{mode}")


def draw_speed(mode: str) -> None:
    """The time of an on-line step, ours and other libraries'."""
    times = best_times(read_runs(sorted(RESULTS.glob("steps-*.json"))))
    rows = {
        "mlpcore, step-sparse": "mlpcore, rectifiers",
        "mlpcore, step": "mlpcore, tanh",
        "PyTorch by hand, rectifiers": "PyTorch, rectifiers",
        "PyTorch by hand": "PyTorch, tanh",
        "JAX scan": "JAX, tanh",
    }
    named = {
        network: {name: own[key] for key, name in rows.items() if key in own}
        for network, own in times.items()
    }
    with page(mode) as colours:
        figure = Figure(figsize=(9, 2.4))
        draw_bars(figure, named, COLOURS | {"mlpcore": colours["ours"]})
        write(figure, f"speed-{mode}")


def main() -> int:
    """Draws everything."""
    make_folder(IMAGES)
    draw_drawing(IMAGES / "drawn.png")
    draw_page()
    for mode in MODES:
        draw_strip(mode)
        draw_answer(mode)
        draw_error(mode)
        draw_speed(mode)
    return 0


if __name__ == "__main__":
    sys.exit(run_tool(main))
