"""`mlpcore predict`: the digits in pictures, as a trained network reads them."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from mlpcore import backends
from mlpcore.commands.options import add_network_argument, command_parser, run_tool
from mlpcore.data.digit import read_digit
from mlpcore.data.scaling import normalise, resize, to_range
from mlpcore.errors import InputError, shown
from mlpcore.evaluation import evaluation
from mlpcore.files import atomic_write, check_writable, make_folder
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import UInt8Array

GREY_LEVELS = " .:-=+*#%@"

TEXT = """\
Prints which digits pictures show: the two best guesses, each with the output
of the network. A picture is a photograph or scan of one digit on an even
ground, darker or lighter than the digit. It is brought to MNIST's format."""


@dataclass(frozen=True)
class Answer:
    """What was found in a picture.

    Attributes
    ----------
    guesses : list of (int, float)
        Classes with their outputs, the best guess first; none after an error.
    pixels : ndarray of uint8, shape (28, 28), optional
        The digit that the network was given.
    error : str
        Why there is no guess, in a line.
    """

    path: Path
    guesses: list[tuple[int, float]]
    pixels: UInt8Array | None = None
    error: str = ""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "predict", "RUN|WEIGHTS PICTURE... [options]", TEXT, "runs/net1 scan.png photo.jpg"
    )
    add = parser.add_argument
    add_network_argument(parser)
    formats = "PNG, JPEG, GIF, BMP, TIFF, WebP or PPM"
    add("pictures", metavar="PICTURE", type=Path, nargs="+", help=formats)
    add("--json", action="store_true", help="print one JSON document")
    add("--show", action="store_true", help="draw what the network is given in characters")
    normalised = "save what the network is given as PNG files"
    add("--save-normalised", metavar="DIR", type=Path, help=normalised)
    return parser.parse_args(argv)


def read_network(path: Path) -> TrainedNetwork:
    """The network; an InputError unless it takes images in MNIST's format."""
    trained = TrainedNetwork.read(path)
    if not trained.input.is_mnist:
        height, width = trained.input.image_shape
        raise InputError(
            f"{shown(path)} is a network for images of {height} x {width}: expected 29 x 29, "
            "to which digits in MNIST's format are scaled"
        )
    return trained


def guess(trained: TrainedNetwork, pixels: UInt8Array) -> list[tuple[int, float]]:
    """The two best guesses for a digit (28, 28); of equal outputs the first counts."""
    image = to_range(resize(normalise(pixels[None]), 29, 29), trained.input.input_range)
    outputs = evaluation.outputs(trained.network, image, backends.get("cpu", 1))[0]
    if not np.isfinite(outputs).all():
        raise InputError(f"{shown(trained.path)}: its outputs are not finite, expected numbers")
    best = np.argsort(-outputs, kind="stable")[:2]
    return [(int(k), round(float(outputs[k]), 4)) for k in best]


def answer(trained: TrainedNetwork, path: Path) -> Answer:
    """What the network reads in a picture."""
    try:
        pixels = read_digit(path)
        return Answer(path, guess(trained, pixels), pixels)
    except InputError as error:
        return Answer(path, [], error=str(error))
    except MemoryError:
        return Answer(path, [], error=f"{shown(path)}: out of memory, expected a smaller picture")


def in_characters(pixels: UInt8Array) -> str:
    """A digit in two characters for each pixel, because characters are twice as high as wide."""
    levels = pixels.astype(int) * len(GREY_LEVELS) // 256
    return "\n".join("".join(GREY_LEVELS[k] * 2 for k in row).rstrip() for row in levels)


def document(trained: TrainedNetwork, answers: Sequence[Answer]) -> dict[str, object]:
    """Everything, for JSON."""
    pictures: list[dict[str, object]] = []
    for each in answers:
        guesses = [{"class": k, "output": output} for k, output in each.guesses]
        pictures.append({"file": str(each.path)})
        pictures[-1] |= {"error": each.error} if each.error else {"guesses": guesses}
    network = {"file": str(trained.path), "layer_sizes": trained.network.layer_sizes}
    return {"network": network, "pictures": pictures}


def save(folder: Path, number: int, path: Path, pixels: UInt8Array) -> None:
    """Writes what the network was given; the number tells pictures of one name apart."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    stem = os.fsencode(path.stem)[:100].decode(errors="replace")
    atomic_write(folder / f"{number:04d}-{stem}.png", content.getvalue())


def predict(options: argparse.Namespace) -> int:
    """Reads each picture and shows the guesses as the options say; returns the exit status."""
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
            guesses = (f"{label} ({output:.2f})" for label, output in found.guesses)
            print(f"{shown(path)}: {', then '.join(guesses)}", flush=True)
        if options.show:
            print(in_characters(found.pixels))
    if options.json:
        print(json.dumps(document(trained, answers), indent=2))
    return 2 if any(each.error for each in answers) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input, even if only some pictures are bad."""
    return run_tool(lambda: predict(parse(argv)), smaller="smaller pictures")
