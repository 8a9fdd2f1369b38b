"""`mlpcore draw`: a page in the browser on which one draws digits for trained networks."""

import argparse
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.networks import add_network_arguments, networks_or_pretrained
from mlpcore.commands.options import command_main, command_parser
from mlpcore.data import dataset
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from mlpcore.inference import TrainedClassifier
from mlpcore.store.committee import with_members
from mlpcore.store.run_folder import read_settings
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import DTYPES
from mlpcore.terminal import say
from mlpcore.web.html import to_page

TEXT = """\
Opens a page in the browser: draw a digit, and see what the network gets and
what it answers. Several networks, or a committee, answer with their mean.
Without any, the pretrained network answers."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser("draw", "[RUN|WEIGHTS...] [options]", TEXT, "runs/net1")
    add_network_arguments(parser, "*")
    add_precision_option(parser)
    return parser.parse_args(argv)


def add_precision_option(parser: argparse.ArgumentParser) -> None:
    """--precision, of the weights in a file."""
    kinds = "float16 halves the file, and rounds weights to 11 bits (default: float32)"
    parser.add_argument("--precision", choices=DTYPES, metavar="NAME", help=kinds)


def make_page(paths: Sequence[Path], precision: str) -> tuple[bytes, list[str]]:
    """The page for networks, and notes about it in a line each.

    It shows misread test digits of the first network's data, if these need no download.
    """
    paths = with_members(paths)
    networks = [TrainedNetwork.read(path) for path in paths]
    first, notes, test = networks[0], [], None
    name = dataset.NAMES.get(first.data_name)
    try:
        if first.data is not None:
            test = first.data.load(download=False)
        elif name is not None:
            test = dataset.load(name=name, download=False)
        else:
            raise InputError(f"{shown(paths[0])} does not name its data")
    except InputError as error:
        notes.append(f"the page shows no misread test digits: {error}")
    deformation = read_settings(paths[0])[0].deformation if paths[0].is_dir() else None
    classifier = TrainedClassifier(networks, backends.get("cpu"))
    return to_page(classifier, test, precision, deformation), notes


def draw(options: argparse.Namespace) -> int:
    """Writes the page to a temporary file and opens it; returns the exit status."""
    paths = networks_or_pretrained(options.networks)
    say("making the page, which opens in the browser")
    content, notes = make_page(paths, options.precision or "float32")
    for note in notes:
        say(f"note: {note}")
    # The browser reads the file after this process has ended, so nobody can remove it here.
    file = Path(tempfile.mkdtemp(prefix="mlpcore-")) / "digit.html"
    atomic_write(file, content)
    opened = webbrowser.open(file.as_uri())
    say(f"{'page' if opened else 'open this in a browser'}: {shown(file)}")
    return 0


main = command_main(parse, draw, "a smaller network")
