"""`mlpcore draw`: a page in the browser on which one draws digits for trained networks."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import command_parser, run_tool
from mlpcore.commands.predict import pretrained_note
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from mlpcore.inference import TrainedClassifier
from mlpcore.inference.classifier import PRETRAINED_FILE
from mlpcore.store.committee import holds_committee, with_members
from mlpcore.store.run_folder import BEST, read_settings
from mlpcore.store.trained import TrainedNetwork, read_saved
from mlpcore.store.weights import DTYPES
from mlpcore.terminal import say
from mlpcore.web.page import check_networks, rounded, to_page

#: The folder in which `mlpcore train` makes runs.
RUNS = Path("runs")

TEXT = """\
Opens a page in the browser. One draws a digit, and sees what the network gets
and what it answers. Several networks, or those of a committee, answer by their
mean. Without any, the newest run in runs/ answers, or else the network in the
package."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser("draw", "[RUN|WEIGHTS...] [options]", TEXT, "runs/net1")
    what = "folders of runs or committees, or .safetensors files"
    parser.add_argument("networks", metavar="RUN|WEIGHTS", type=Path, nargs="*", help=what)
    add_precision_option(parser)
    return parser.parse_args(argv)


def add_precision_option(parser: argparse.ArgumentParser) -> None:
    """--precision, of the weights in a file."""
    kinds = "float16 halves the file; weights are rounded to 11 bits (float32)"
    parser.add_argument("--precision", choices=DTYPES, metavar="NAME", help=kinds)


def newest_run() -> Path | None:
    """The run, or the committee, in `RUNS` that has the newest network."""
    found = [*RUNS.glob(f"*/{BEST}")]
    found += [path for path in RUNS.glob(f"*/*/{BEST}") if holds_committee(path.parents[1])]
    newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
    return newest and RUNS / newest.relative_to(RUNS).parts[0]


def make_page(paths: Sequence[Path], precision: str) -> tuple[bytes, list[str]]:
    """The page for networks, and notes about it in a line each."""
    paths = with_members(paths)
    networks = [TrainedNetwork.read(path) for path in paths]
    check_networks(networks, precision)
    notes = [each.assumption for each in networks if each.input.assumed]
    classifier = TrainedClassifier(rounded(networks, precision), backends.get("cpu"))
    try:
        test = test_data(paths[0], classifier)
    except InputError as error:
        test = None
        notes.append(f"the page shows no misread test digits: {error}")
    deformation = read_settings(paths[0])[0].deformation if paths[0].is_dir() else None
    return to_page(classifier, test, precision, deformation), notes


def test_data(path: Path, classifier: TrainedClassifier) -> Dataset:
    """The data of a run, or those that a file of weights names; nothing is downloaded."""
    data = read_saved(path)[2]
    if data is not None:
        found = data.load(download=False)
    elif classifier.input.data == dataset.EMBEDDED:
        found = dataset.load(name="digits")
    elif classifier.input.data == dataset.MNIST:
        found = dataset.load(name="mnist", download=False)
    else:
        raise InputError(f"{shown(path)} does not name its data")
    if (found.image_shape, found.n_classes) != (
        classifier.input.image_shape,
        len(classifier.classes),
    ):
        raise InputError(f"the data of {shown(path)} have changed")
    return found


def draw(options: argparse.Namespace) -> int:
    """Writes the page to a temporary file and opens it; returns the exit status."""
    paths, precision = options.networks, options.precision or "float32"
    if not paths:
        newest = newest_run()
        paths = [newest or PRETRAINED_FILE]
        pretrained = pretrained_note(TrainedNetwork.read(PRETRAINED_FILE))
        say(f"note: {shown(newest)}, the newest run" if newest else f"note: {pretrained}")
    content, notes = make_page(paths, precision)
    for note in notes:
        say(f"note: {note}")
    # The browser reads the file after this process has ended, so nobody can remove it here.
    file = Path(tempfile.mkdtemp(prefix="mlpcore-")) / "digit.html"
    atomic_write(file, content)
    opened = webbrowser.open(file.as_uri())
    say(f"{'page' if opened else 'open this in a browser'}: {shown(file)}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""
    return run_tool(lambda: draw(parse(argv)), smaller="a smaller network")
