"""`mlpcore draw`: a page in the browser on which one draws digits for trained networks."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.networks import add_network_arguments, networks_or_pretrained
from mlpcore.commands.options import command_main, command_parser
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
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
Opens a page in the browser. One draws a digit, and sees what the network gets
and what it answers. Several networks, or those of a committee, answer by their
mean. Without any, the network in the package answers."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser("draw", "[RUN|WEIGHTS...] [options]", TEXT, "runs/net1")
    add_network_arguments(parser, "*")
    add_precision_option(parser)
    return parser.parse_args(argv)


def add_precision_option(parser: argparse.ArgumentParser) -> None:
    """--precision, of the weights in a file."""
    kinds = "float16 halves the file; weights are rounded to 11 bits (float32)"
    parser.add_argument("--precision", choices=DTYPES, metavar="NAME", help=kinds)


def make_page(paths: Sequence[Path], precision: str) -> tuple[bytes, list[str]]:
    """The page for networks, and notes about it in a line each."""
    paths = with_members(paths)
    networks = [TrainedNetwork.read(path) for path in paths]
    notes: list[str] = []
    classifier = TrainedClassifier(networks, backends.get("cpu"))
    try:
        test = test_data(paths[0], classifier)
    except InputError as error:
        test = None
        notes.append(f"the page shows no misread test digits: {error}")
    deformation = read_settings(paths[0])[0].deformation if paths[0].is_dir() else None
    return to_page(classifier, test, precision, deformation), notes


def test_data(path: Path, classifier: TrainedClassifier) -> Dataset:
    """The data of a run, or those that a file of weights names; nothing is downloaded."""
    if (summary := classifier.networks[0].data) is not None:
        return summary.load(download=False)
    name = dataset.NAMES.get(classifier.networks[0].data_name)
    if name is None:
        raise InputError(f"{shown(path)} does not name its data")
    return dataset.load(name=name, download=False)


def draw(options: argparse.Namespace) -> int:
    """Writes the page to a temporary file and opens it; returns the exit status."""
    paths = networks_or_pretrained(options.networks)
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
