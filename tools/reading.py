"""Measures how well pages are read: forms and numbers that are made from MNIST's test digits, and
scanned pages of one digit. The result is a JSON file, which docs/read.md shows."""

import argparse
import difflib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain, product, repeat
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import mlpcore
from mlpcore import dataset
from mlpcore.files import atomic_write
from mlpcore.reading import Page, ReadDigit
from mlpcore.store.provenance import machine
from mlpcore.typing import AnyArray, UInt8Array

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import pages  # noqa: E402

#: The scanned pages: names that say which digit every box holds, columns and rows.
NAME, COLUMNS, ROWS = re.compile(r"(\d)s\.(jpg|png)$"), 25, 46


def read(image: AnyArray, network: mlpcore.TrainedClassifier) -> Page:
    return mlpcore.read(Image.fromarray(np.clip(np.rint(image), 0, 255).astype(np.uint8)), network)


def counted(digits: Iterable[tuple[ReadDigit, int]]) -> Counter[str]:
    """The numbers of digits that are read right and wrong, and in doubt, with their labels."""
    found: Counter[str] = Counter()
    for each, truth in digits:
        if each.answer is not None:
            answer = "right" if each.answer == truth else "wrong"
            found += Counter({answer: 1, f"{answer} in doubt": int(each.in_doubt)})
    return found


def shares(found: Counter[str]) -> dict[str, float]:
    """The number of digits read, the share that is right, and the shares of both in doubt."""
    of = {"right": found["right"] + found["wrong"]}
    of |= {f"{answer} in doubt": found[answer] for answer in ("right", "wrong")}
    return {"read": of["right"]} | {name: round(found[name] / n, 4) for name, n in of.items() if n}


def numbers(
    network: mlpcore.TrainedClassifier,
    pixels: UInt8Array,
    labels: AnyArray,
    n: int,
    gap: float,
    paper: Callable[[AnyArray, np.random.Generator], AnyArray] = pages.photographed,
) -> dict[str, Any]:
    """Numbers of 2 to 8 digits on paper, whose neighbours are from `gap` to 0.5 heights apart."""
    rng = np.random.default_rng(0)
    of, digits, whole = 0, 0, Counter[str]()
    for _ in range(n):
        chosen = rng.integers(0, len(pixels), rng.integers(2, 9))
        ink = pages.number(pixels[chosen], rng, int(rng.integers(25, 110)), (gap, 0.5))
        found = read(paper(ink, rng), network).digits
        truth = "".join(map(str, labels[chosen]))
        answer = "".join(str(each.answer) for each in found)
        same = difflib.SequenceMatcher(None, truth, answer, autojunk=False).get_matching_blocks()
        digits += sum(block.size for block in same)
        of += len(truth)
        name = "right" if answer == truth else "wrong"
        doubt = any(each.in_doubt for each in found)
        whole += Counter({name: 1, f"{name} in doubt": int(doubt)})
    return {"digits right": round(digits / of, 4)} | shares(whole)


def forms(
    network: mlpcore.TrainedClassifier, pixels: UInt8Array, labels: AnyArray
) -> dict[str, Any]:
    """Forms of 300 boxes and eight looks: scans, on dark ground, bent, turned, cut, or small.

    A digit counts where its box is in its place in a line of 15.
    """
    result = {}
    for kind, (broken, _) in pages.BROKEN.items():
        rng, found, seconds = np.random.default_rng(0), Counter[str](), 0.0
        for gap, line in product(((0, 0), (16, 24)), range(1, 5)):
            chosen = rng.integers(0, len(pixels), 300)
            box = int(rng.integers(70, 110)), int(rng.integers(60, 100))
            ink, centres = pages.form(pixels[chosen], 15, rng, box, gap, line)
            paper, pen = rng.uniform(190, 250), rng.uniform(30, 90)
            image, places = broken(pages.on_paper(ink, rng, paper, pen), centres)
            began = time.process_time()
            lines = [each for each in read(image, network).lines if len(each) == 15]
            seconds += (time.process_time() - began) / 8
            for of, at in zip(labels[chosen].reshape(-1, 15), places.reshape(-1, 15, 2)):
                for each in lines:
                    middles = [digit.corners.mean(axis=0) for digit in each]
                    if np.abs(middles - at).max() < np.linalg.norm(at[1] - at[0]) / 4:
                        found += counted(zip(each, map(int, of)))
        result[kind] = {"of": 2400} | shares(found) | {"seconds a page": round(seconds, 2)}
    return result


def scans(network: mlpcore.TrainedClassifier, folder: Path) -> dict[str, Any]:
    """Scanned pages of one digit: boxes in their place in a grid, and digits."""
    result = {}
    for path in sorted(folder.iterdir()):
        if name := NAME.search(path.name):
            began = time.process_time()
            lines = mlpcore.read(path, network).lines
            seconds = round(time.process_time() - began, 2)
            full = [line for line in lines if len(line) == COLUMNS][:ROWS]
            digits = counted(zip(chain.from_iterable(full), repeat(int(name[1]))))
            result[path.name] = {"of": COLUMNS * ROWS} | shares(digits) | {"seconds": seconds}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="pretrained", help="a run or a file (pretrained)")
    parser.add_argument("--numbers", type=int, default=300, help="how many numbers (300)")
    parser.add_argument("--scans", type=Path, help="a folder of scanned pages of one digit")
    output = ROOT / "benchmarks" / "results" / "reading.json"
    parser.add_argument("--output", type=Path, default=output)
    args = parser.parse_args()
    network = mlpcore.load(args.network, threads=1)
    data = dataset.load(name="mnist")
    digits = np.rint((data.test_images + 1) * 127.5).astype(np.uint8), data.test_labels
    record: dict[str, Any] = {"machine": machine(), "network": args.network}
    if args.scans:
        record["scans"] = scans(network, args.scans)
    for name, gap in (("numbers", 0.0), ("overlapping numbers", -0.05)):
        record[name] = numbers(network, *digits, args.numbers, gap)
    record["amounts"] = numbers(network, *digits, args.numbers, 0.0, pages.on_cheque)
    record["forms"] = forms(network, *digits)
    atomic_write(args.output, (json.dumps(record, indent=1) + "\n").encode())
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
