"""`mlpcore predict`: the digits in pictures, as trained networks read them."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image

from mlpcore.commands.copies import add_copies_options, given_copies
from mlpcore.commands.networks import document, read_networks
from mlpcore.commands.options import command_parser, run_tool
from mlpcore.commands.pictures import (
    add_paths,
    content_of,
    each_picture,
    name_of,
    networks_and_pictures,
)
from mlpcore.data.digit import Digit, find_digit
from mlpcore.data.pictures import decode_grey
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import atomic_write, check_writable, make_folder
from mlpcore.inference import TrainedClassifier
from mlpcore.terminal import say
from mlpcore.typing import UInt8Array

GREY_LEVELS = " .:-=+*#%@"

#: A part of the JSON document.
Entry: TypeAlias = dict[str, Any]

TEXT = """\
Prints which digits pictures show: the two best guesses, each with the output
of the network. A picture is a photograph or scan of one digit on an even
ground, darker or lighter than the digit. It is brought to MNIST's format.
Several networks guess by the mean of their outputs. Without any, the network
in the package guesses: net1, trained on MNIST."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "predict", "[RUN|WEIGHTS...] PICTURE... [options]", TEXT, "runs/net1 scan.png photos/"
    )
    add = parser.add_argument
    add_paths(parser)
    add_copies_options(parser)
    add("--json", action="store_true", help="print one JSON document, with all outputs")
    add("--show", action="store_true", help="draw what the network is given in characters")
    normalised = "save what the network is given as PNG files"
    add("--save-normalised", metavar="DIR", type=Path, help=normalised)
    return parser.parse_intermixed_args(argv)  # paths may stand on both sides of an option


def answers(
    classifier: TrainedClassifier, paths: Sequence[Path]
) -> Iterator[tuple[Path, Entry, Digit | None]]:
    """What the networks read in each picture, those of a folder sorted by name.

    Each comes with its path, its part of the JSON document, and what the networks were given, which
    is None after an error.
    """
    for path, error in each_picture(paths):
        if error is not None:
            yield path, {"file": str(path), "error": str(error)}, None
        else:
            yield path, *answer(classifier, path)


def answer(classifier: TrainedClassifier, path: Path) -> tuple[Entry, Digit | None]:
    """What the networks read in a picture: the two best guesses; of equal outputs the first."""
    entry: Entry = {"file": str(path)}
    try:
        name = name_of(path)
        digit = find_digit(decode_grey(content_of(path), name), name)
        found = classifier.outputs_of_digits(digit.image[None])[0]
    except InputError as error:
        return entry | {"error": str(error)}, None
    outputs = [round(float(each), 4) for each in found]
    best = np.argsort(-np.array(outputs), kind="stable")[:2]
    guesses = [{"class": classifier.classes[k].item(), "output": outputs[k]} for k in best]
    entry |= {"guesses": guesses, "outputs": outputs}
    if warning := classifier.warnings_of([digit])[0]:
        entry["warning"] = warning
    return entry, digit


def in_characters(pixels: UInt8Array) -> str:
    """A digit in two characters for each pixel, because characters are twice as high as wide."""
    levels = pixels.astype(int) * len(GREY_LEVELS) // 256
    return "\n".join("".join(GREY_LEVELS[k] * 2 for k in row).rstrip() for row in levels)


def save(folder: Path, number: int, path: Path, pixels: UInt8Array) -> None:
    """Writes what the network was given; the number tells pictures of one name apart."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    stem = os.fsencode(path.stem)[:100].decode(errors="replace")
    atomic_write(folder / f"{number:04d}-{stem}.png", content.getvalue())


def report(
    path: Path, entry: Entry, digit: Digit | None, number: int, options: argparse.Namespace
) -> None:
    """Shows and saves an answer as the options say."""
    for kind in ("error", "warning"):
        if kind in entry:
            say(printable(f"{kind}: {entry[kind]}"), sys.stderr)
    if digit is None:
        return
    if options.save_normalised is not None:
        save(options.save_normalised, number, path, digit.pixels)
    if not options.json:
        guesses = (f"{each['class']} ({each['output']:.2f})" for each in entry["guesses"])
        say(f"{shown(path)}: {', then '.join(guesses)}")
    if options.show:
        say(in_characters(digit.pixels))


def predict(options: argparse.Namespace) -> int:
    """Reads each picture and shows the guesses as the options say; returns the exit status."""
    if options.json and options.show:
        raise InputError("--show together with --json: expected one of them")
    folder = options.save_normalised
    if folder is not None:
        if os.path.lexists(folder):
            raise InputError(f"{shown(folder)} exists: expected a new folder")
        check_writable(folder)
    copies = given_copies(options)
    networks, paths = networks_and_pictures(options.paths)
    classifier = read_networks(networks, copies)
    if folder is not None:
        make_folder(folder)
    entries = []
    for number, (path, entry, digit) in enumerate(answers(classifier, paths), 1):
        entries.append(entry)
        report(path, entry, digit, number, options)
    if options.json:
        print(json.dumps(document(classifier, "pictures", entries), indent=2))
    return 2 if any("error" in each for each in entries) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input, even if only some pictures are bad."""
    return run_tool(lambda: predict(parse(argv)), smaller="smaller pictures")
