"""`mlpcore predict`: the digits in pictures, as trained networks read them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from mlpcore.commands.networks import (
    Entry,
    add_picture_arguments,
    check_new_folder,
    for_each_picture,
    networks_and_pictures,
    numbered,
    read_networks,
    save_png,
)
from mlpcore.commands.options import command_main, command_parser
from mlpcore.data.image_files import Source
from mlpcore.errors import InputError, shown
from mlpcore.files import make_folder
from mlpcore.terminal import say

GREY_LEVELS = " .:-=+*#%@"

TEXT = """\
Prints the digit that each picture shows: the two best guesses, each with the
output of the network. A picture is a photograph or scan of one digit on a plain
background, darker or lighter than the digit. It is converted to MNIST's format.
Several networks guess with the mean of their outputs. Without any, the
pretrained network guesses: net1, trained on MNIST."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "predict", "[RUN|WEIGHTS...] PICTURE... [options]", TEXT, "runs/net1 scan.png photos/"
    )
    add = parser.add_argument
    add_picture_arguments(parser)
    add("--show", action="store_true", help="print what the network is given, in characters")
    normalised = "save what the network is given as PNG files"
    add("--save-normalised", metavar="DIR", type=Path, help=normalised)
    return parser.parse_intermixed_args(argv)  # paths may stand on both sides of an option


def predict(options: argparse.Namespace) -> int:
    """Reads each picture and shows the guesses as the options say; returns the exit status."""
    if options.json and options.show:
        raise InputError("--show together with --json: expected one of them")
    folder = options.save_normalised
    if folder is not None:
        check_new_folder(folder)
    networks, pictures = networks_and_pictures(options)
    classifier = read_networks(networks, options)
    if folder is not None:
        make_folder(folder)

    def answer(number: int, path: Path, source: Source) -> Entry:
        """The two best guesses; of equal outputs the first."""
        found = classifier.answers(source)[0]
        outputs = [round(float(each), 4) for each in found.outputs]
        best = np.argsort(-np.array(outputs), kind="stable")[:2]
        guesses = [{"class": classifier.classes[k].item(), "output": outputs[k]} for k in best]
        pixels = found.digit.pixels
        if folder is not None:
            save_png(numbered(folder, number, path), Image.fromarray(pixels))
        if not options.json:
            texts = (f"{each['class']} ({each['output']:.2f})" for each in guesses)
            say(f"{shown(path)}: {', then '.join(texts)}")
        if options.show:  # characters are twice as high as wide
            for row in pixels.astype(int) * len(GREY_LEVELS) // 256:
                say("".join(GREY_LEVELS[k] * 2 for k in row).rstrip())
        warning = {"warning": found.warning} if found.warning else {}
        return {"guesses": guesses, "outputs": outputs} | warning

    return for_each_picture(classifier, pictures, answer, "pictures", options.json)


main = command_main(parse, predict, "smaller pictures")
