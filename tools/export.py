"""Writes a trained network for other programs: as an ONNX model, as a file of weights."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from mlpcore import InputError
from mlpcore.architecture import format_layer_sizes
from mlpcore.command_line import Parser, run_tool
from mlpcore.export import (
    PIXEL_TYPES,
    check_onnx,
    describe_model,
    onnx_model,
    write_onnx,
    write_safetensors,
)
from mlpcore.files import check_replaceable
from mlpcore.idx import shown
from mlpcore.trained import TrainedNetwork


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add(
        "network",
        metavar="RUN|WEIGHTS",
        type=Path,
        help="folder of tools/train.py, whose best network is taken, or a .safetensors file",
    )
    add("--onnx", type=Path, metavar="FILE", help="the network and the scaling of its images")
    add("--pixels", choices=PIXEL_TYPES, help="type of the ONNX model's input (uint8)")
    add("--safetensors", type=Path, metavar="FILE", help="weights and what their inputs are")
    return parser.parse_args(argv)


def check_files(options: argparse.Namespace, source: Path) -> None:
    """Raises InputError unless the files to write are given, writable and no others."""
    files = [file for file in (options.onnx, options.safetensors) if file is not None]
    if not files:
        raise InputError("nothing to write: expected --onnx FILE, --safetensors FILE or both")
    if options.pixels and options.onnx is None:
        raise InputError("--pixels without --onnx: expected both")
    if len({os.path.realpath(file) for file in (*files, source)}) <= len(files):
        names = ", ".join(map(shown, files))
        raise InputError(f"{names}: expected a file for each, none of them {shown(source)}")
    for file in files:
        check_replaceable(file)


def export(options: argparse.Namespace) -> int:
    """Writes the files; returns the exit status."""
    if options.onnx is not None:
        check_onnx()
    trained = TrainedNetwork.read(options.network)
    check_files(options, trained.path)
    if trained.input.assumed:
        print(f"note: {trained.assumption}")
    print(f"network: {format_layer_sizes(trained.network.layer_sizes)} of {shown(trained.path)}")
    if options.onnx is not None:
        model = onnx_model(trained, options.pixels or PIXEL_TYPES[0])
        write_onnx(options.onnx, model)
        print(f"ONNX: {shown(options.onnx)}: {describe_model(model)}")
    if options.safetensors is not None:
        write_safetensors(options.safetensors, trained)
        print(f"safetensors: {shown(options.safetensors)}: layers.0.weight and so on")
    return 0


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0, or 2 for bad input."""
    return run_tool(lambda: export(parse(argv)), smaller="a smaller network")


if __name__ == "__main__":
    sys.exit(main())
