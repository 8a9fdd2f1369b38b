"""Trained networks, their copies, and pictures as arguments of commands; the loop over pictures."""

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from PIL import Image

from mlpcore import backends
from mlpcore.commands.options import Parser
from mlpcore.data.class_folders import pictures_in
from mlpcore.data.image_files import Source
from mlpcore.errors import InputError, printable, shown
from mlpcore.evaluation.copies import Copies
from mlpcore.files import atomic_write, check_writable
from mlpcore.inference import TrainedClassifier
from mlpcore.inference.classifier import PRETRAINED, PRETRAINED_FILE
from mlpcore.inference.inputs import check_takes_digits
from mlpcore.report.console import ProgressBar
from mlpcore.store.committee import holds_committee, with_members
from mlpcore.store.run_folder import holds_run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.terminal import say

#: The picture on the standard input.
STDIN = Path("-")

#: A part of the JSON document.
Entry: TypeAlias = dict[str, Any]


def network_path(text: str) -> Path:
    """The type of an argument: a path. `PRETRAINED` is that of the network in the package."""
    return PRETRAINED_FILE if text == PRETRAINED else Path(text)


def network_name(path: Path) -> str:
    """A network in messages and tables."""
    return PRETRAINED if path == PRETRAINED_FILE else shown(path)


def add_network_arguments(parser: argparse.ArgumentParser, nargs: str) -> None:
    """Runs, committees or files of weights, for `with_members`."""
    what = f"runs, committees, .safetensors files, or {PRETRAINED}, the network in the package"
    parser.add_argument(
        "networks", metavar="RUN|WEIGHTS", type=network_path, nargs=nargs, help=what
    )


def add_copies_options(parser: Parser) -> None:
    """--copies, --strength and --seed, read by `given_copies`."""
    parser.add_whole("--copies", "average over N deformed copies of each image; each costs a pass")
    parser.add_number("--strength", "deformation of the copies, relative to the default's (0.5)")
    parser.add_whole("--seed", "seed of the copies (0)")


def given_copies(options: argparse.Namespace) -> Copies | None:
    """The copies that the options name, if any."""
    values = {"strength": options.strength, "seed": options.seed}
    given = {name: value for name, value in values.items() if value is not None}
    if options.copies is not None:
        return Copies(options.copies, **given)
    if given:
        raise InputError(f"--{next(iter(given))} without --copies: expected both or none")
    return None


def networks_or_pretrained(paths: Sequence[Path]) -> Sequence[Path]:
    """The networks that are named, or that of the package, and a line that says how good it is."""
    if paths:
        return paths
    metadata = TrainedNetwork.read(PRETRAINED_FILE).metadata
    errors, n = int(metadata["test_errors"]), int(metadata["n_test"])
    say(
        f"note: no network named: using the pretrained {PRETRAINED_FILE.stem}, which "
        f"misreads {100 * errors / n:.2f} % of MNIST's test digits",
        sys.stderr,
    )
    return [PRETRAINED_FILE]


def add_picture_arguments(parser: Parser) -> None:
    """Networks and pictures in any order, copies, and --json, for `networks_and_pictures`."""
    what = (
        "networks: folders of runs or committees, .safetensors files, pretrained; pictures: PNG, "
        "JPEG, GIF, BMP, TIFF, WebP or PPM files, folders of them, or - for standard input"
    )
    parser.add_argument("paths", metavar="PATH", type=network_path, nargs="+", help=what)
    add_copies_options(parser)
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")


def networks_and_pictures(options: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """The networks and the pictures that are named, those of a folder sorted by name."""
    networks = [
        path
        for path in options.paths
        if path.suffix == ".safetensors"
        or (path.is_dir() and (holds_run(path) or holds_committee(path)))
    ]
    named = [path for path in options.paths if path not in networks]
    if not named:
        raise InputError(f"{network_name(networks[0])} is a network: expected pictures, too")
    missing = [path for path in named if path != STDIN and not os.path.lexists(path)]
    for path in missing if not networks else ():
        # It may be a misspelt run, which the network of the package should not answer for.
        if not path.suffix or missing == named:
            expected = "a picture, a folder of pictures, a run, a committee or a .safetensors file"
            raise InputError(f"{shown(path)} does not exist: expected {expected}")
    found: list[Path] = []
    for path in named:
        try:
            found += pictures_in(path) if path.is_dir() else [path]
        except InputError:
            if len(named) == 1:
                raise
            found.append(path)  # it is refused in its turn
    return networks, found


def read_networks(paths: Sequence[Path], options: argparse.Namespace) -> TrainedClassifier:
    """The networks, or that of the package; an InputError unless they take MNIST's format.

    They average over the copies that the options name.
    """
    copies = given_copies(options)
    networks = [TrainedNetwork.read(path) for path in with_members(networks_or_pretrained(paths))]
    for each in networks:
        check_takes_digits(each.pixels, shown(each.path))
    if copies is not None:
        say(f"note: {copies.describe(len(networks))}", sys.stderr)
    return TrainedClassifier(networks, backends.get("cpu", 1), copies)


def for_each_picture(
    classifier: TrainedClassifier,
    pictures: Sequence[Path],
    answer: Callable[[int, Path, Source], Entry],
    kind: str,
    as_json: bool,
) -> int:
    """Calls a function with number, path and source of each picture; returns the exit status.

    A picture that is refused does not stop the others. The function shows the answer, and returns
    its part of the JSON document, in which all are the value of `kind`.
    """
    entries = []
    with ProgressBar(sys.stderr) as console:
        for place, path in enumerate(pictures, 1):
            entry: Entry = {"file": str(path)}
            try:
                entry |= answer(place, path, sys.stdin.buffer if path == STDIN else path)
            except InputError as error:
                entry["error"] = str(error)
            for message in ("error", "warning"):
                if message in entry:
                    say(printable(f"{message}: {entry[message]}"), sys.stderr)
            entries.append(entry)
            if len(pictures) > 1:
                console.show_bar("all", "", place, len(pictures), f"{place}/{len(pictures)}")
    if as_json:
        networks = [
            {"file": str(each.path), "layer_sizes": each.network.layer_sizes}
            for each in classifier.networks
        ]
        document: Entry = {"networks": networks, kind: entries}
        if classifier.copies is not None:
            document["copies"] = classifier.copies.to_json(len(networks))
        print(json.dumps(document, indent=2))
    return 2 if any("error" in each for each in entries) else 0


def check_new_folder(folder: Path) -> None:
    """Raise InputError unless a folder of pictures can be made."""
    if os.path.lexists(folder):
        raise InputError(f"{shown(folder)} exists: expected a new folder")
    check_writable(folder)


def numbered(folder: Path, number: int, path: Path) -> Path:
    """A PNG file in a folder for a picture, whose number tells it from others of its name."""
    stem = os.fsencode(path.stem)[:100].decode(errors="replace")
    return folder / f"{number:04d}-{stem}.png"


def save_png(path: Path, image: Image.Image) -> None:
    """Write an image, atomically."""
    content = io.BytesIO()
    image.save(content, "PNG")
    atomic_write(path, content.getvalue())
