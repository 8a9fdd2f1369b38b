"""Reads digits: what a trained network takes pictures of single digits for.

A picture is a photograph or scan of one digit on an even ground without anything else, darker
or lighter than it. It is brought to the format of MNIST's digits first.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image

from mlpcore import InputError
from mlpcore.backends import inference
from mlpcore.commands.options import Parser, add_network_argument, run_tool
from mlpcore.data import scaling as images
from mlpcore.data.digit import read_digit
from mlpcore.errors import shown
from mlpcore.files import atomic_write, check_writable, make_folder
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import Float32Array, UInt8Array

#: Classes with their outputs, the greatest first.
Guesses: TypeAlias = list[tuple[int, float]]

GREY_LEVELS = " .:-=+*#%@"


@dataclass(frozen=True)
class Answer:
    """The guesses for a picture and the digit that the network was given, or an error."""

    path: Path
    guesses: Guesses
    pixels: UInt8Array | None = None
    error: str = ""


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add_network_argument(parser)
    add(
        "pictures",
        metavar="PICTURE",
        type=Path,
        nargs="+",
        help="PNG, JPEG, GIF, BMP, TIFF, WebP or PPM",
    )
    add("--json", action="store_true", help="print one JSON document")
    add("--show", action="store_true", help="draw what the network is given in characters")
    add(
        "--save-normalised",
        metavar="DIR",
        type=Path,
        help="write it to a new folder, as PNG files of 28 x 28 pixels",
    )
    return parser.parse_args(argv)


def read_network(path: Path) -> TrainedNetwork:
    """The network, if it is one for images in MNIST's format; else an InputError."""
    trained = TrainedNetwork.read(path)
    if not trained.input.is_mnist:
        height, width = trained.input.image_shape
        raise InputError(
            f"{shown(path)} is a network for images of {height} x {width}: expected 29 x 29, "
            "to which digits in MNIST's format are scaled"
        )
    return trained


def guess(trained: TrainedNetwork, pixels: UInt8Array) -> Guesses:
    """The two best guesses for a digit in MNIST's format; of equal outputs the first counts."""
    image = as_input(pixels)
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = inference.predict(trained.network, image, threads=1)[0]
    if not np.isfinite(outputs).all():
        raise InputError(f"{shown(trained.path)}: its outputs are not finite, expected numbers")
    best = np.argsort(-outputs, kind="stable")[:2]
    return [(int(k), round(float(outputs[k]), 4)) for k in best]


def as_input(pixels: UInt8Array) -> Float32Array:
    """A digit (28, 28) as a network's inputs (1, 841)."""
    image = images.resize(images.normalise(pixels[None]), 29, 29)
    return image.reshape(1, -1)


def answer(trained: TrainedNetwork, path: Path) -> Answer:
    """What the network takes a picture for."""
    try:
        pixels = read_digit(path)
        return Answer(path, guess(trained, pixels), pixels)
    except InputError as error:
        return Answer(path, [], error=str(error))
    except MemoryError:
        return Answer(path, [], error=f"{shown(path)}: out of memory, expected a smaller picture")


def in_words(guesses: Guesses) -> str:
    """``7 (1.02), then 1 (-0.85)``."""
    return ", then ".join(f"{label} ({output:.2f})" for label, output in guesses)


def in_characters(pixels: UInt8Array) -> str:
    """A digit, two characters for each pixel, whose height is about twice their width."""
    levels = pixels.astype(int) * len(GREY_LEVELS) // 256
    return "\n".join("".join(GREY_LEVELS[k] * 2 for k in row).rstrip() for row in levels)


def document(trained: TrainedNetwork, answers: list[Answer]) -> dict[str, object]:
    """Everything, for JSON."""
    pictures = []
    for each in answers:
        found: dict[str, object] = {"file": str(each.path)}
        if each.error:
            found["error"] = each.error
        else:
            found["guesses"] = [{"class": k, "output": output} for k, output in each.guesses]
        pictures.append(found)
    network = {"file": str(trained.path), "layer_sizes": trained.network.layer_sizes}
    return {"network": network, "pictures": pictures}


def save(folder: Path, number: int, path: Path, pixels: UInt8Array) -> None:
    """Writes what the network was given; numbers tell pictures of one name apart."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    stem = os.fsencode(path.stem)[:100].decode(errors="replace")
    atomic_write(folder / f"{number:04d}-{stem}.png", content.getvalue())


def predict(options: argparse.Namespace) -> int:
    """Answers for each picture, as the options say; returns the exit status."""
    if options.json and options.show:
        raise InputError("--show together with --json: expected one of them")
    folder = options.save_normalised
    if folder is not None:
        if os.path.lexists(folder):
            raise InputError(f"{shown(folder)} exists: expected a new folder")
        check_writable(folder)
    trained = read_network(options.network)
    if trained.input.assumed:
        print(f"note: {trained.assumption}", file=sys.stderr)
    if folder is not None:
        make_folder(folder)
    answers = []
    for number, path in enumerate(options.pictures, 1):
        found = answer(trained, path)
        answers.append(found)
        if found.pixels is None:
            print(f"error: {found.error}", file=sys.stderr)
            continue
        if folder is not None:
            save(folder, number, path, found.pixels)
        if not options.json:
            print(f"{shown(path)}: {in_words(found.guesses)}", flush=True)
        if options.show:
            print(in_characters(found.pixels))
    if options.json:
        print(json.dumps(document(trained, answers), indent=2))
    return 2 if any(each.error for each in answers) else 0


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0, or 2 for bad input, which may be some of the pictures only."""
    return run_tool(lambda: predict(parse(argv)), smaller="smaller pictures")
