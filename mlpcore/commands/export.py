"""Exports a trained network for other programs: as ONNX, as safetensors, or both.

The ONNX file takes the bytes of pictures, scales them, and returns the outputs of each class.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from mlpcore import InputError
from mlpcore.commands.options import Parser, add_network_argument, run_tool
from mlpcore.errors import shown
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store import export
from mlpcore.store.run_folder import check_result_file
from mlpcore.store.trained import TrainedNetwork


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add_network_argument(parser)
    add("--onnx", type=Path, metavar="FILE", help="with the scaling of pixels; needs onnx")
    add("--safetensors", type=Path, metavar="FILE", help="the weights, for programs of your own")
    return parser.parse_args(argv)


def check_options(options: argparse.Namespace) -> None:
    """Raises InputError unless the files can be written and replace nothing that is needed."""
    targets = [path for path in (options.onnx, options.safetensors) if path is not None]
    if not targets:
        raise InputError("nothing to write: expected --onnx FILE or --safetensors FILE")
    if options.onnx is not None:
        export.require_onnx()
    for path in targets:
        check_result_file(path)
        if _is_same(path, options.network):
            raise InputError(f"{shown(path)} is the network itself: expected another file")
    if len(targets) == 2 and os.path.realpath(targets[0]) == os.path.realpath(targets[1]):
        raise InputError(f"{shown(targets[0])} is named twice: expected two files")


def _is_same(a: Path, b: Path) -> bool:
    """Whether both are there and one file."""
    return os.path.exists(a) and os.path.exists(b) and os.path.samefile(a, b)


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0, or 2 for bad input."""

    def command() -> int:
        options = parse(argv)
        check_options(options)
        trained = TrainedNetwork.read(options.network)
        layers = format_layer_sizes(trained.network.layer_sizes)
        if trained.input.assumed:
            print(
                f"note: {shown(trained.path)} does not tell its data: assumed "
                f"{export.describe_input(trained.input)}",
                file=sys.stderr,
            )
        if options.onnx is not None:
            export.write_onnx(trained, options.onnx)
            print(f"{shown(options.onnx)}: {layers}, of {export.describe_input(trained.input)}")
        if options.safetensors is not None:
            export.write_safetensors(trained, options.safetensors)
            print(f"{shown(options.safetensors)}: {layers}, weights and biases")
        return 0

    return run_tool(command, smaller="a smaller network")
