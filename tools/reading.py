#!/usr/bin/env python3
"""Measures how well pages are read: forms and numbers that are made from MNIST's test digits, and
scanned pages of one digit. The result is a JSON file, which docs/read.md shows."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import mlpcore
from mlpcore import dataset
from mlpcore.files import atomic_write
from mlpcore.reading import Page
from mlpcore.store.provenance import machine
from mlpcore.typing import AnyArray, UInt8Array

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import pages  # noqa: E402

#: The scanned pages: names that say which digit every box holds, columns and rows.
NAME, COLUMNS, ROWS = re.compile(r"(\d)s\.(jpg|png)$"), 25, 46

#: Boxes of a form, and where they lie.
LAYOUTS = {
    "grid": (10, {"box": (90, 70), "line": 3}),
    "table of shared lines": (6, {"box": (110, 80), "line": 4}),
    "boxes with gaps": (8, {"box": (80, 90), "gap": (24, 40), "line": 3}),
    "one row": (20, {"box": (70, 80), "line": 3}),
}


def test_digits() -> tuple[UInt8Array, AnyArray]:
    """MNIST's test digits (n, 28, 28), and their labels."""
    data = dataset.load(name="mnist")
    pixels = np.rint((data.test_images + 1) * 127.5).astype(np.uint8)
    return pixels, data.test_labels


def read(image: AnyArray, network: mlpcore.TrainedClassifier) -> Page:
    return mlpcore.read(Image.fromarray(np.clip(np.rint(image), 0, 255).astype(np.uint8)), network)


def numbers(
    network: mlpcore.TrainedClassifier, n: int, seed: int, least_gap: float
) -> dict[str, Any]:
    """Numbers of 2 to 8 digits on paper: the shares of digits and of numbers that are right.

    Neighbours are from `least_gap` to half of their height apart.
    """
    pixels, labels = test_digits()
    rng = np.random.default_rng(seed)
    right = digits = of = marked = unmarked = 0
    for _ in range(n):
        chosen = rng.integers(0, len(pixels), rng.integers(2, 9))
        height, gap = int(rng.integers(25, 110)), (least_gap, 0.5)
        ink = pages.number(pixels[chosen], rng, height, gap)
        found = read(pages.photographed(ink, rng), network)
        truth = "".join(map(str, labels[chosen]))
        answer = "".join(str(each.answer) for each in found.digits)
        same = difflib.SequenceMatcher(None, truth, answer, autojunk=False).get_matching_blocks()
        digits += sum(block.size for block in same)
        of += len(truth)
        right += answer == truth
        if answer != truth:
            marked += any(each.in_doubt for each in found.digits)
        else:
            unmarked += not any(each.in_doubt for each in found.digits)
    wrong = max(1, n - right)
    return {
        "numbers": n,
        "seed": seed,
        "digits_right": round(digits / of, 4),
        "numbers_right": round(right / n, 4),
        "wrong_numbers_with_a_mark": round(marked / wrong, 4),
        "right_numbers_without": round(unmarked / max(1, right), 4),
    }


def forms(network: mlpcore.TrainedClassifier, seed: int) -> list[dict[str, Any]]:
    """Forms of 120 boxes, turned, at several resolutions, in a gradient of light."""
    pixels, labels = test_digits()
    rng = np.random.default_rng(seed)
    result = []
    for layout, (columns, settings) in LAYOUTS.items():
        for angle in (-5, -2, 0, 2, 5):
            for dpi in (150, 300, 600):
                n = columns if layout == "one row" else 120 // columns * columns
                chosen = rng.integers(0, len(pixels), n)
                ink, centres = pages.form(pixels[chosen], columns, rng, **settings)
                image = pages.on_paper(pages.rotated(ink, angle), rng)
                size = [round(dpi / 300 * side) for side in image.shape[::-1]]
                scan = Image.fromarray(np.rint(image).astype(np.uint8)).resize(size)
                found = read(pages.lit(np.asarray(scan, float)), network)
                places = pages.turned_points(centres, ink.shape, angle) * dpi / 300
                boxes, right = compared(found, places, labels[chosen].tolist())
                result.append(
                    {"layout": layout, "angle": angle, "dpi": dpi, "of": n}
                    | {"boxes": boxes, "digits": right}
                )
    return result


def compared(found: Page, places: AnyArray, labels: list[int]) -> tuple[int, int]:
    """How many boxes are in their place in the order, and how many of these are read rightly."""
    boxes = right = 0
    for each, (x, y), label in zip(found.digits, places, labels):
        left, top, end, bottom = each.box
        if left < x < end and top < y < bottom:
            boxes += 1
            right += each.answer == label
    return boxes, right


def scans(network: mlpcore.TrainedClassifier, folder: Path) -> dict[str, Any]:
    """Scanned pages of one digit: boxes in their place in a grid, digits, and seconds."""
    result = {}
    for path in sorted(folder.iterdir()):
        if not (name := NAME.search(path.name)):
            continue
        times = []
        for _ in range(3):
            start = time.perf_counter()
            found = mlpcore.read(path, network)
            times.append(time.perf_counter() - start)
        full = [line for line in found.lines if len(line) == COLUMNS][:ROWS]
        answers = [each.answer for line in full for each in line]
        result[path.name] = {
            "of": COLUMNS * ROWS,
            "boxes": len(answers),
            "digits": sum(answer == int(name[1]) for answer in answers),
            "seconds": round(min(times), 2),
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="pretrained", help="a run or a file (pretrained)")
    parser.add_argument("--numbers", type=int, default=300, help="how many numbers (300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scans", type=Path, help="a folder of scanned pages of one digit")
    output = ROOT / "benchmarks" / "results" / "reading.json"
    parser.add_argument("--output", type=Path, default=output)
    args = parser.parse_args()
    network = mlpcore.load(args.network, threads=1)
    record: dict[str, Any] = {"machine": machine(), "network": args.network}
    if args.scans:
        record["scans"] = scans(network, args.scans)
    for name, least_gap in (("numbers", 0.0), ("overlapping numbers", -0.05)):
        record[name] = numbers(network, args.numbers, args.seed, least_gap)
    record["forms"] = forms(network, args.seed)
    atomic_write(args.output, (json.dumps(record, indent=1) + "\n").encode())
    print(json.dumps(record | {"forms": summary(record["forms"])}, indent=1))


def summary(forms: list[dict[str, Any]]) -> dict[str, str]:
    """Boxes and digits of each layout."""
    result = {}
    for layout in LAYOUTS:
        own = [each for each in forms if each["layout"] == layout]
        of, boxes, digits = (sum(each[k] for each in own) for k in ("of", "boxes", "digits"))
        result[layout] = f"{boxes / of:.2%} of {of:,} boxes, {digits / of:.2%} of the digits"
    return result


if __name__ == "__main__":
    main()
