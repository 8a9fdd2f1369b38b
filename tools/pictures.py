#!/usr/bin/env python3
"""Draws the pictures of README and documentation into docs/images, as `make pictures` does.

Pictures of the README are for a light and for a dark page. Charts show measurements that are kept
in benchmarks/results. The digits are MNIST's if it is found, else scikit-learn's.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle
from PIL import Image
from scipy.interpolate import make_interp_spline

import figure_style
import headless
import mlpcore
import read_pages
from figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from mlpcore import DeformationParameters, backends, dataset, deformation
from mlpcore.commands.options import run_tool
from mlpcore.data.digit import read_digit
from mlpcore.files import atomic_write
from mlpcore.web.page import to_page
from speed.chart import COLOURS, best_times, draw_bars
from speed.results import read_runs
from streaming import WINDOW
from table1.chart import error_by_hours
from table1.evidence import read_all

ROOT = Path(__file__).resolve().parents[1]
IMAGES, RESULTS = ROOT / "docs" / "images", ROOT / "benchmarks" / "results"
SPEED = RESULTS / "2026-11-24-epyc-2-cores-sparse"

#: Text and lines, faint lines, and ours, by the page's mode.
MODES = {
    "light": {"text": "#1f2328", "faint": "#8c959f", "ours": "#0969da", "page": "#ffffff"},
    "dark": {"text": "#e6edf3", "faint": "#7d8590", "ours": "#58a6ff", "page": "#0d1117"},
}
PALE = "#d9d9d9"

#: The strip: the number of a training image of MNIST, and how many epochs are shown.
SHOWN, EPOCHS = 0, 9

#: The 5 of drawn.png as a pen would draw it, in a square of side 1: two strokes of points.
STROKES = (
    ((0.34, 0.20), (0.31, 0.36), (0.29, 0.47), (0.38, 0.43), (0.52, 0.42), (0.65, 0.50),
     (0.68, 0.64), (0.60, 0.77), (0.45, 0.81), (0.30, 0.76)),
    ((0.34, 0.20), (0.50, 0.18), (0.69, 0.17)),
)  # fmt: skip


def write(figure: Figure, file: str, **options: Any) -> None:
    """Writes a figure, of which the same drawing gives the same file."""
    content, kind = io.BytesIO(), file.rpartition(".")[2]
    metadata = {"Date": None} if kind == "svg" else None
    figure.savefig(content, format=kind, transparent=True, dpi=110, metadata=metadata, **options)
    atomic_write(IMAGES / file, content.getvalue())
    print(f"docs/images/{file}: {len(content.getvalue()) / 1000:.0f} kB")


# ---- pictures of the README, in the colours of a page ---------------------------------------


@contextmanager
def page(mode: str) -> Iterator[Mapping[str, str]]:
    """Matplotlib's settings for text and lines on a page of this mode."""
    colours = MODES[mode]
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = dict.fromkeys(names, colours["text"])
    with mpl.rc_context(style | {"font.size": 10, "svg.fonttype": "path"}):
        yield colours


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
        axes.set_xlabel(title, fontsize=9, color=colours["text" if place else "faint"])
    return figure


def answer(colours: Mapping[str, str]) -> Figure:
    """A drawing, what the network is given, and its answer."""
    path = IMAGES / "drawn.png"
    probabilities = mlpcore.load("pretrained").predict_proba(path)[0]
    best = int(probabilities.argmax())
    figure = Figure(figsize=(9, 2.2))
    drawing, given, bars = figure.subplots(1, 3, width_ratios=(1, 1, 2))
    drawing.imshow(Image.open(path), "gray", vmin=0, vmax=255)
    drawing.set(xticks=[], yticks=[])
    drawing.set_title("your picture")
    show_digit(given, read_digit(path).pixels / 255, colours)
    given.set_title("as the network sees it")
    bars.bar(range(10), probabilities, color=[colours["faint"]] * 10)
    bars.patches[best].set_color(colours["ours"])
    bars.text(best, probabilities[best] + 0.02, f"{probabilities[best]:.1%}", ha="center")
    bars.set(xticks=range(10), yticks=[], ylim=(0, 1.15))
    bars.spines["left"].set_visible(False)
    bars.set_title(f"its answer: {best}")
    return figure


def error(colours: Mapping[str, str]) -> Figure:
    """The test error against the time that training takes, ours and others'."""
    learners: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for run in json.loads((SPEED / "to-error-net1.json").read_text())["runs"]:
        name = "mlpcore" if run["learner"] == "ours modern" else run["learner"]
        learners.setdefault(name, {}).setdefault(run["epochs"], []).append(run)
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    known = COLOURS | {"mlpcore": colours["ours"]}
    for name, budgets in learners.items():
        if name.startswith("ours"):  # by the paper's recipes
            continue
        seconds = [np.median([run["seconds"] for run in budgets[n]]) for n in sorted(budgets)]
        errors = [np.mean([run["error"] for run in budgets[n]]) for n in sorted(budgets)]
        colour, ours = known[name.split()[0]], name == "mlpcore"
        width, size, weight = (3, 8, "bold") if ours else (1.5, 5, "normal")
        axes.plot(seconds, errors, "o-", color=colour, lw=width, ms=size)
        offset = (7, -12 if name == "JAX SGD 256" else -3)  # two of JAX end side by side
        style: dict[str, Any] = {"textcoords": "offset points", "color": colour, "weight": weight}
        axes.annotate(name, (seconds[-1], errors[-1]), offset, **style)
    axes.set(xlim=(0, None), ylim=(0.8, None), ylabel="test error in percent")
    axes.set_xlabel("seconds on two cores, deformation included")
    axes.grid(axis="y", color=colours["faint"], alpha=0.3)
    return figure


def speed(colours: Mapping[str, str]) -> Figure:
    """The time of an on-line step, ours and other libraries'."""
    rows = {
        "mlpcore, step-sparse": "mlpcore, rectifiers",
        "mlpcore, step": "mlpcore, tanh",
        "PyTorch by hand, rectifiers": "PyTorch, rectifiers",
        "PyTorch by hand": "PyTorch, tanh",
        "JAX scan": "JAX, tanh",
    }
    named = {
        network: {name: own[key] for key, name in rows.items() if key in own}
        for network, own in best_times(read_runs(sorted(SPEED.glob("steps-*.json")))).items()
    }
    figure = Figure(figsize=(9, 2.4))
    draw_bars(figure, named, COLOURS | {"mlpcore": colours["ours"]})
    return figure


README: dict[str, Callable[[Mapping[str, str]], Figure]] = {
    "strip-{}.png": strip,
    "answer-{}.svg": answer,
    "error-{}.svg": error,
    "speed-{}.svg": speed,
}


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


# ---- diagrams of the documentation ----------------------------------------------------------


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure in inches from its upper left corner."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, w: float, h: float, colour: str) -> None:
    axes.add_patch(Rectangle((x, y), w, h, facecolor=colour, edgecolor="white", linewidth=0.8))


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    patch = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, shrinkA=0, shrinkB=0)
    patch.set_color(colour)
    axes.add_patch(patch)


def deferred() -> Figure:
    """Passes over the weights, sample by sample, of both schedules."""
    figure, axes = canvas(7.4, 3.5)
    titles = {"An update after every sample, as in the paper": 1, "Deferred, blocks of 4": 4}
    for top, (title, block) in zip((0.55, 1.95), titles.items()):
        axes.text(0.2, top - 0.17, title, size=10, weight="bold", va="bottom")
        for t in range(8):
            x, updated = 0.2 + 0.86 * t, t % block == block - 1
            axes.text(x, top - 0.02, f"sample {t + 1}", size=7.5, color=GREY, va="bottom")
            for part, colour in enumerate((BLUE, BLUE, RED) if updated else (BLUE, BLUE)):
                box(axes, x + 0.2 * part, top, 0.2, 0.75, colour)
            for earlier in range(t % block):
                for shift in (0.02, 0.22):
                    box(axes, x + shift, top + 0.80 + 0.06 * earlier, 0.16, 0.05, GREEN)
    legend = {BLUE: "weights read: forward, backward", RED: "weights read and written",
              GREEN: "a correction by an earlier sample: thin vectors"}  # fmt: skip
    handles = [Patch(color=colour, label=text) for colour, text in legend.items()]
    axes.legend(handles=handles, loc="lower left", ncols=3, fontsize=8, handlelength=1.2)
    return figure


def sparse() -> Figure:
    """Active inputs and the rows that are touched."""
    figure, axes = canvas(7.4, 2.7)
    active, cell = {1, 4, 5, 8}, 0.2
    for left, title, rows in ((0.35, "dense", set(range(10))), (3.95, "sparse", active)):
        axes.text(left, 0.22, title, size=10, weight="bold", va="center")
        for j in range(10):
            y = 0.42 + j * cell
            box(axes, left, y, cell, cell, BLUE if j in active else PALE)
            box(axes, left + 0.5, y, 1.9, cell, ORANGE if j in rows else PALE)
            if j in rows:
                arrow(axes, (left + 0.22, y + cell / 2), (left + 0.5, y + cell / 2), GREY)
        axes.text(left, 2.53, "x", size=9, va="center")
        axes.text(left + 0.5, 2.53, "W by inputs: a row each", size=9, va="center")
        axes.text(left + 2.5, 0.6, f"{len(rows)} rows\nmoved", size=9, color=GREY, va="top")
    return figure


def resident() -> Figure:
    """The grid of blocks, and who exchanges sums with whom."""
    figure, axes = canvas(7.4, 2.9)
    for left, layer, line, colour in ((0.35, 1, "row", BLUE), (4.05, 2, "column", GREEN)):
        title = f"Layer {layer}: sums meet along a {line}"
        axes.text(left, 0.2, title, size=10, weight="bold", va="center")
        for p, q in np.ndindex(3, 4):
            x, y, same = left + q * 0.75, 0.55 + p * 0.75, p == 1 if line == "row" else q == 2
            box(axes, x, y, 0.55, 0.55, colour if same else PALE)
            style: dict[str, Any] = {"size": 8.5, "color": "white" if same else GREY}
            axes.text(x + 0.275, y + 0.275, f"{p}, {q}", ha="center", va="center", **style)
            if same and line == "row" and q < 3:
                arrow(axes, (x + 0.55, y + 0.2), (x + 0.75, y + 0.2), RED)
                arrow(axes, (x + 0.75, y + 0.36), (x + 0.55, y + 0.36), RED)
            if same and line == "column" and p < 2:
                arrow(axes, (x + 0.2, y + 0.55), (x + 0.2, y + 0.75), RED)
                arrow(axes, (x + 0.36, y + 0.75), (x + 0.36, y + 0.55), RED)
    return figure


def few_digits() -> Figure:
    """Test errors on MNIST by the number of training digits, from the kept run."""
    kept = json.loads((RESULTS / "2026-11-24-few-digits.json").read_text())["test_error_percent"]
    figure = Figure(figsize=(7, 3.2))
    axes, digits = figure.subplots(), [row["digits"] for row in kept]
    for name, text in (("plain", "as they are"), ("deformed", "deformed anew every epoch")):
        errors = [row[name] for row in kept]
        axes.loglog(digits, errors, "o-", label=text)
        for n, each in zip(digits, errors):
            axes.annotate(f"{each:.1f}", (n, each), (0, 6), textcoords="offset points", size=8)
    axes.set_xticks(digits, [f"{n:,}" for n in digits])
    axes.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set(xlabel="training digits", ylabel="test error (%)", ylim=(1, 25))
    axes.set_title("841-500-10 on MNIST, 100 epochs")
    axes.legend()
    return figure


def stream_drift() -> Figure:
    """The accuracy on a stream that changes in its middle, from the kept measurement."""
    curves = json.loads((RESULTS / "streams.json").read_text())["curves"]
    colours = {
        "StreamMLPClassifier": BLUE,
        "MLPClassifier": GREEN,
        "adaptive random forest": RED,
        "adaptive Hoeffding tree": ORANGE,
        "softmax regression": PURPLE,
    }
    figure = Figure(figsize=(7, 3.4))
    axes = figure.subplots()
    for name, runs in curves.items():
        means = 100 * np.mean(runs, axis=0)
        seen = WINDOW * np.arange(1, len(means) + 1)
        shown = name in colours
        style: dict[str, Any] = {"color": colours.get(name, PALE), "zorder": 2 if shown else 1}
        axes.plot(seen, means, label=name if shown else None, **style)
    axes.plot([], [], color=PALE, label="the others of the table")
    axes.axvline(seen[-1] / 2, color=GREY, lw=0.8, zorder=0)
    axes.set(xlabel="samples of the stream", ylabel=f"right of the last {WINDOW} (%)")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def stream_calls() -> Figure:
    """What it costs to learn a sample, from the kept measurement."""
    kept = json.loads((RESULTS / "streams.json").read_text())["calls"]
    rows = {
        "StreamMLPClassifier.learn_one, a dictionary": "StreamMLPClassifier.learn_one",
        "OnlineMLPClassifier.partial_fit": "OnlineMLPClassifier.partial_fit",
        "PyTorch, SGD step": "PyTorch, a step of SGD",
        "MLPClassifier.partial_fit": "MLPClassifier.partial_fit",
        "SGDClassifier.partial_fit": "SGDClassifier.partial_fit (linear)",
        "River, LogisticRegression.learn_one, a dictionary": "River, LogisticRegression (linear)",
        "River, HoeffdingTree.learn_one, a dictionary": "River, HoeffdingTree",
    }
    figure = Figure(figsize=(8.4, 2.6))
    for axes, (network, times) in zip(figure.subplots(1, len(kept), sharey=True), kept.items()):
        for place, call in enumerate(rows):
            axes.barh(place, times[call], color=BLUE if place < 2 else GREY)
            text = f"{times[call]:,.0f}"
            axes.annotate(
                text, (times[call], place), (3, 0), textcoords="offset points", va="center"
            )
        axes.set(title=network, xscale="log", xlim=(1, 3e6), xticks=[1, 100, 10_000])
        axes.set_yticks(range(len(rows)), rows.values())
        axes.minorticks_off()
    axes.invert_yaxis()
    figure.supxlabel("µs to learn a sample, by one call", size=10)
    return figure


def ones_and_sevens() -> Figure:
    """The first ones and sevens of MNIST's training set as they are, and with strokes."""
    data = dataset.load(name="mnist")
    shown = np.concatenate([np.flatnonzero(data.train_labels == digit)[:8] for digit in (1, 7)])
    images, side = (each.train_images[shown] for each in (data, data.with_strokes(1, 0))), 0.5
    figure, axes = canvas(side * len(shown), 2 * side)
    rows = np.vstack([np.hstack([*each]) for each in images])
    axes.imshow(rows, "gray_r", interpolation="none", extent=(0, side * len(shown), 2 * side, 0))
    axes.set(xlim=(0, side * len(shown)), ylim=(2 * side, 0))
    return figure


DIAGRAMS: dict[str, Callable[[], Figure]] = {
    "deferred-updates.svg": deferred,
    "sparse-steps.svg": sparse,
    "resident-training.svg": resident,
    "few-digits.svg": few_digits,
    "stream-drift.svg": stream_drift,
    "stream-calls.svg": stream_calls,
    "ones-and-sevens.svg": ones_and_sevens,
    "table-1.svg": lambda: error_by_hours(read_all(RESULTS / "table1")),
}


def main() -> int:
    """Draws everything."""
    figure_style.apply()
    # Letters of diagrams stay letters.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mlpcore"})
    for file, draw in DIAGRAMS.items():
        write(draw(), file)
    for mode in MODES:
        for file, draw_in in README.items():
            with page(mode) as colours:
                write(draw_in(colours), file.format(mode), bbox_inches="tight")
    draw_page()
    for file, make in read_pages.PICTURES.items():
        atomic_write(IMAGES / file, read_pages.read_and_drawn(make())[0])
    return 0


if __name__ == "__main__":
    sys.exit(run_tool(main))
