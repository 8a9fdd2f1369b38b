"""Draws the diagrams in docs/images: ``python docs/diagrams.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from figure_style import BLUE, GREEN, GREY, ORANGE, RED, apply
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from mlpcore import dataset
from mlpcore.data.width import normalise_width

DOCS = Path(__file__).resolve().parent
FEW_DIGITS = DOCS.parent / "benchmarks" / "results" / "2026-11-24-few-digits.json"
PALE = "#d9d9d9"

#: Training images of MNIST: 0, four times 1, and 2 to 9.
WIDTH_DIGITS = [21, 8, 6, 3, 23, 16, 7, 26, 0, 18, 15, 41, 22]


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure in inches from its upper left corner."""
    figure = Figure(figsize=(width, height), layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, w: float, h: float, colour: str, text: str = "") -> None:
    axes.add_patch(Rectangle((x, y), w, h, facecolor=colour, edgecolor="white", linewidth=0.8))
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", size=8.5, color="white")


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 9, "color": colour, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **style))


def deferred() -> Figure:
    """Passes over the weights, sample by sample, of both schedules."""
    figure, axes = canvas(7.4, 3.5)
    samples, left, step, pass_width = 8, 0.2, 0.86, 0.2
    titles = "An update after every sample, as in the paper", "Deferred, blocks of 4"
    for top, title in zip((0.55, 1.95), titles):
        axes.text(left, top - 0.17, title, size=10, weight="bold", va="bottom")
        for t in range(samples):
            x = left + t * step
            axes.text(x, top - 0.02, f"sample {t + 1}", size=7.5, color=GREY, va="bottom")
            box(axes, x, top, pass_width, 0.75, BLUE)
            box(axes, x + pass_width, top, pass_width, 0.75, BLUE)
            if top < 1:
                box(axes, x + 2 * pass_width, top, pass_width, 0.75, RED)
                continue
            for earlier in range(t % 4):
                for shift in (0, pass_width):
                    y = top + 0.80 + 0.06 * earlier
                    box(axes, x + shift + 0.02, y, pass_width - 0.04, 0.05, GREEN)
            if t % 4 == 3:
                box(axes, x + 2 * pass_width, top, pass_width, 0.75, RED)
    legend = ((BLUE, "weights read: forward, backward"), (RED, "weights read and written"),
              (GREEN, "a correction by an earlier sample: thin vectors"))  # fmt: skip
    x = left
    for colour, text in legend:
        box(axes, x, 3.22, 0.16, 0.13, colour)
        axes.text(x + 0.22, 3.285, text, size=8, va="center")
        x += 0.42 + 0.063 * len(text)
    return figure


def packed() -> Figure:
    """Three weights in two words."""
    figure, axes = canvas(7.4, 1.75)
    left, bit = 0.2, 0.1
    for row, number in enumerate((1, 2)):
        y, colour = 0.4 + 0.62 * row, (BLUE, GREEN)[row]
        axes.text(left, y - 0.05, f"word {number}: 32 bits", size=8.5, color=GREY, va="bottom")
        box(axes, left, y, 21 * bit, 0.34, colour, f"weight {number}: 21 bits")
        box(axes, left + 21 * bit, y, 11 * bit, 0.34, ORANGE, "11 of weight 3")
    text = (
        "Weights 1 and 2 are the words as they are. Nobody\n"
        "masks the last 11 bits: they are known when the 21\n"
        "are chosen, so all 32 together come closest.\n"
        "Weight 3 has 22 bits. Two shifts and an and-or\n"
        "put them together."
    )
    axes.text(3.65, 0.88, text, size=8.5, va="center", linespacing=1.5)
    return figure


def sparse() -> Figure:
    """Active inputs and the rows that are touched."""
    figure, axes = canvas(7.4, 2.7)
    active = {1, 4, 5, 8}
    rows, cell = 10, 0.2
    for left, title, chosen in ((0.35, "dense", set(range(rows))), (3.95, "sparse", active)):
        axes.text(left, 0.22, title, size=10, weight="bold", va="center")
        for j in range(rows):
            y = 0.42 + j * cell
            box(axes, left, y, cell, cell, BLUE if j in active else PALE)
            box(axes, left + 0.5, y, 1.9, cell, ORANGE if j in chosen else PALE)
            if j in chosen:
                arrow(axes, (left + 0.22, y + cell / 2), (left + 0.5, y + cell / 2), GREY)
        axes.text(left, 2.53, "x", size=9, va="center")
        axes.text(left + 0.5, 2.53, "W by inputs: a row each", size=9, va="center")
    fewer = "4 rows\nmoved, with\nthe same\nresult: the\nothers are\nmultiplied\nby zero"
    for x, text in ((2.85, "10 rows\nmoved"), (6.45, fewer)):
        axes.text(x, 0.6, text, size=9, color=GREY, va="top")
    return figure


def resident() -> Figure:
    """The grid of blocks, and who exchanges sums with whom."""
    figure, axes = canvas(7.4, 3.2)
    for left, title, forward in (
        (0.3, "Layer 1: sums meet along a row", True),
        (4.0, "Layer 2: sums meet along a column", False),
    ):
        axes.text(left, 0.2, title, size=10, weight="bold", va="center")
        for p in range(3):
            for q in range(4):
                x, y = left + 0.05 + q * 0.75, 0.55 + p * 0.75
                same = p == 1 if forward else q == 2
                box(axes, x, y, 0.55, 0.55, (BLUE if forward else GREEN) if same else PALE)
                axes.text(x + 0.275, y + 0.275, f"{p}, {q}", size=8.5, ha="center", va="center",
                          color="white" if same else GREY)  # fmt: skip
                if forward and same and q < 3:
                    arrow(axes, (x + 0.55, y + 0.2), (x + 0.75, y + 0.2), RED)
                    arrow(axes, (x + 0.75, y + 0.36), (x + 0.55, y + 0.36), RED)
                if not forward and same and p < 2:
                    arrow(axes, (x + 0.2, y + 0.55), (x + 0.2, y + 0.75), RED)
                    arrow(axes, (x + 0.36, y + 0.75), (x + 0.36, y + 0.55), RED)
    axes.text(0.35, 2.98, "A square is a multiprocessor with its share of all weights. "
              "Only sums of a few numbers travel.", size=8.5, va="center")  # fmt: skip
    return figure


def few_digits() -> Figure:
    """Test errors on MNIST by the number of training digits, from the kept run."""
    rows = json.loads(FEW_DIGITS.read_text())["test_error_percent"]
    figure = Figure(figsize=(7, 3.2))
    axes = figure.subplots()
    digits = [row["digits"] for row in rows]
    for name, text in (("plain", "as they are"), ("deformed", "deformed anew every epoch")):
        errors = [row[name] for row in rows]
        axes.loglog(digits, errors, "o-", label=text)
        for n, error in zip(digits, errors):
            axes.annotate(f"{error:.1f}", (n, error), (0, 6), textcoords="offset points", size=8)
    axes.set_xticks(digits, [f"{n:,}" for n in digits])
    axes.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set(xlabel="training digits", ylabel="test error (%)", ylim=(1, 25))
    axes.set_title("841-500-10 on MNIST, 100 epochs")
    axes.legend()
    return figure


def widths() -> Figure:
    """The same digits of MNIST as they are and in all widths, a row each."""
    images = dataset.load(name="mnist").train_images[WIDTH_DIGITS]
    rows, side, left = (None, 10, 12, 14, 16, 18, 20), 0.5, 0.85
    right = left + side * len(images)
    figure, axes = canvas(right, side * len(rows))
    for row, width in enumerate(rows):
        y = row * side
        text = "original" if width is None else f"width {width}"
        axes.text(left - 0.1, y + side / 2, text, size=9, ha="right", va="center")
        strip = np.hstack(list(normalise_width(images, width)))
        axes.imshow(strip, "gray_r", interpolation="none", extent=(left, right, y + side, y))
    axes.set(xlim=(0, right), ylim=(side * len(rows), 0))
    return figure


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "deferred-updates": deferred,
    "packed-weights": packed,
    "sparse-steps": sparse,
    "resident-training": resident,
    "few-digits": few_digits,
    "widths": widths,
}


def main() -> None:
    apply()
    # Letters stay letters, and the same drawing gives the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mlpcore"})
    for name, draw in DRAWINGS.items():
        draw().savefig(DOCS / "images" / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
