"""`mlpcore export`: trained networks for other programs: ONNX, safetensors, or a page of HTML."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore.commands.draw import add_precision_option, make_page
from mlpcore.commands.networks import add_network_arguments, pretrained_note
from mlpcore.commands.options import command_parser, run_tool
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from mlpcore.inference.classifier import PRETRAINED_FILE
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store import export
from mlpcore.store.committee import with_members
from mlpcore.store.run_folder import check_result_file
from mlpcore.store.trained import TrainedNetwork
from mlpcore.terminal import say

TEXT = """\
Writes a trained network for other programs. The ONNX file takes the bytes of
pictures, scales them, and returns an output for each class. The page needs no
server: one draws a digit in a browser, and sees the answer. Several networks,
or the folder of a committee, answer by their mean in both. Without any, it is
the network in the package."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "export", "[RUN|WEIGHTS...] [options]", TEXT, "runs/net1 --onnx net1.onnx"
    )
    add = parser.add_argument
    add_network_arguments(parser, "*")
    add("--onnx", type=Path, metavar="FILE", help="network with input scaling; needs onnx")
    add("--safetensors", type=Path, metavar="FILE", help="weights and biases alone")
    add("--html", type=Path, metavar="FILE", help="page on which one draws digits")
    add_precision_option(parser)
    return parser.parse_args(argv)


def check_targets(networks: Sequence[Path], targets: Sequence[Path]) -> None:
    """Raises InputError unless the files can be written and replace nothing that is needed."""
    if not targets:
        raise InputError("nothing to write: expected --onnx, --safetensors or --html with a FILE")
    for path in targets:
        check_result_file(path)
        for network in networks:
            if os.path.exists(path) and os.path.exists(network) and os.path.samefile(path, network):
                raise InputError(f"{shown(path)} is the network itself: expected another file")


def check_options(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Raises InputError for options that do not fit each other or the networks."""
    if options.safetensors and len(paths) > 1:
        several = f"{len(paths)} networks for {shown(options.safetensors)}"
        raise InputError(f"{several}: expected one, or --onnx or --html")
    if options.precision and not (options.safetensors or options.html):
        raise InputError(f"--precision {options.precision}: expected --safetensors or --html")


def write_networks(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Writes the networks as ONNX, or the only one as safetensors, as the options say."""
    trained = [TrainedNetwork.read(path) for path in paths]
    first = trained[0]
    layers = format_layer_sizes(first.network.layer_sizes)
    pixels = export.describe_input(first.input)
    if options.onnx:
        export.write_onnx(options.onnx, *trained)
        members = f"committee of {len(trained)}, {layers}" if len(trained) > 1 else layers
        say(f"{shown(options.onnx)}: {members}, of {pixels}")
    if options.safetensors:
        export.write_safetensors(first, options.safetensors, dtype=options.precision or "float32")
        say(f"{shown(options.safetensors)}: {layers}, weights and biases")


def write_page(options: argparse.Namespace) -> None:
    """Writes the page for all networks."""
    content, notes = make_page(options.networks, options.precision or "float32")
    for note in notes:
        say(f"note: {note}", sys.stderr)
    atomic_write(options.html, content)
    say(f"{shown(options.html)}: a page of {len(content) / 1e6:.1f} MB")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""

    def command() -> int:
        options = parse(argv)
        if options.onnx:
            export.import_onnx()
        targets = [path for path in (options.onnx, options.safetensors, options.html) if path]
        if not options.networks:
            options.networks = [PRETRAINED_FILE]
            say(f"note: {pretrained_note(TrainedNetwork.read(PRETRAINED_FILE))}", sys.stderr)
        check_targets(options.networks, targets)
        paths = with_members(options.networks)
        check_options(options, paths)
        if options.onnx or options.safetensors:
            write_networks(options, paths)
        if options.html:
            write_page(options)
        return 0

    return run_tool(command, smaller="a smaller network")
