"""`mlpcore export`: a trained network for other programs, as ONNX, as safetensors, or both."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore.commands.options import add_network_argument, command_parser, run_tool
from mlpcore.errors import InputError, shown
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store import export
from mlpcore.store.committee import with_members
from mlpcore.store.run_folder import check_result_file
from mlpcore.store.trained import TrainedNetwork
from mlpcore.terminal import say

TEXT = """\
Writes a trained network for other programs. The ONNX file takes the bytes of
pictures, scales them, and returns an output for each class. The folder of a
committee gives one ONNX file of all members and their mean."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser("export", "RUN|WEIGHTS [options]", TEXT, "runs/net1 --onnx net1.onnx")
    add = parser.add_argument
    add_network_argument(parser)
    add("--onnx", type=Path, metavar="FILE", help="network with input scaling; needs onnx")
    add("--safetensors", type=Path, metavar="FILE", help="weights and biases alone")
    return parser.parse_args(argv)


def check_targets(network: Path, targets: Sequence[Path]) -> None:
    """Raises InputError unless the files can be written and replace nothing that is needed."""
    if not targets:
        raise InputError("nothing to write: expected --onnx FILE or --safetensors FILE")
    for path in targets:
        check_result_file(path)
        if os.path.exists(path) and os.path.exists(network) and os.path.samefile(path, network):
            raise InputError(f"{shown(path)} is the network itself: expected another file")
    if len(set(map(os.path.realpath, targets))) < len(targets):
        raise InputError(f"{shown(targets[0])} is named twice: expected two files")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""

    def command() -> int:
        options = parse(argv)
        if options.onnx:
            export.require_onnx()
        targets = [path for path in (options.onnx, options.safetensors) if path]
        check_targets(options.network, targets)
        paths = with_members([options.network])
        if options.safetensors and len(paths) > 1:
            raise InputError(
                f"{shown(options.network)} is a committee of {len(paths)}: expected --onnx, or the "
                "folder of a member"
            )
        trained = [TrainedNetwork.read(path) for path in paths]
        first = trained[0]
        layers = format_layer_sizes(first.network.layer_sizes)
        pixels = export.describe_input(first.input)
        if first.input.assumed:
            note = f"note: {shown(first.path)} does not tell its data: assumed {pixels}"
            say(note, sys.stderr)
        if options.onnx:
            export.write_onnx(options.onnx, *trained)
            members = f"committee of {len(trained)}, {layers}" if len(trained) > 1 else layers
            say(f"{shown(options.onnx)}: {members}, of {pixels}")
        if options.safetensors:
            export.write_safetensors(first, options.safetensors)
            say(f"{shown(options.safetensors)}: {layers}, weights and biases")
        return 0

    return run_tool(command, smaller="a smaller network")
