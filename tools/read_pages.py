"""The pages of docs/read.md, made of MNIST's test digits, with what was read in them."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import mlpcore
from mlpcore import dataset
from mlpcore.reading.drawing import draw
from mlpcore.typing import AnyArray, Float64Array, UInt8Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import pages


def digits(number: str, first: int = 0) -> list[UInt8Array]:
    """Digits (h, w) of the test set, from the `first` of each class on."""
    data = dataset.load()
    pixels = ((data.test_images + 1) * 127.5).astype(np.uint8)
    return [
        pixels[np.flatnonzero(data.test_labels == int(n))[first + k]] for k, n in enumerate(number)
    ]


def boxed_form() -> Float64Array:
    """A scanned form, turned by two degrees, with empty boxes."""
    rng = np.random.default_rng(1)
    written: list[UInt8Array | None] = [*digits("20100314159")]
    written[4:4], written[-1:] = [None], [None]
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


PICTURES = {
    "read-form.png": boxed_form,
    "read-number.png": number_on_paper,
    "read-photo.png": photographed_page,
}


def read_and_drawn(image: AnyArray) -> tuple[bytes, str]:
    """A PNG file of a page with what was read, and the text."""
    page = mlpcore.read(Image.fromarray(np.clip(np.rint(image), 0, 255).astype(np.uint8)))
    content = io.BytesIO()
    draw(page).quantize(64).save(content, "PNG", optimize=True)
    return content.getvalue(), page.text
