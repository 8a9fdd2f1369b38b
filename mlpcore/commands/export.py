"""`mlpcore export`: trained networks for other programs: ONNX, safetensors, or a page of HTML."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore.commands.draw import add_precision_option, make_page
from mlpcore.commands.networks import add_network_arguments, networks_or_pretrained
from mlpcore.commands.options import command_main, command_parser
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from mlpcore.inference.classifier import load
from mlpcore.inference.exports import check_target, exported
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.export import describe_input
from mlpcore.terminal import say

TEXT = """\
Writes a trained network for other programs. The ONNX file takes pixels as they
were in the training data, scales them, and returns an output for each class.
The page needs no server: draw a digit in a browser, and see the answer.
Several networks, or a committee, answer with the mean of their outputs. If you
name none, the pretrained network is written."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "export", "[RUN|WEIGHTS...] [options]", TEXT, "runs/net1 --onnx net1.onnx"
    )
    add = parser.add_argument
    add_network_arguments(parser, "*")
    add("--onnx", type=Path, metavar="FILE", help="network with input scaling; needs onnx")
    add("--safetensors", type=Path, metavar="FILE", help="weights and biases alone")
    add("--html", type=Path, metavar="FILE", help="page to draw digits on")
    add_precision_option(parser)
    return parser.parse_args(argv)


def export(options: argparse.Namespace) -> int:
    """Writes the files, once all are made; returns the exit status."""
    files = {".onnx": options.onnx, ".safetensors": options.safetensors, ".html": options.html}
    if not any(files.values()):
        raise InputError("nothing to write: expected --onnx, --safetensors or --html with a FILE")
    if options.precision and not (options.safetensors or options.html):
        raise InputError(f"--precision {options.precision}: expected --safetensors or --html")
    paths, precision = networks_or_pretrained(options.networks), options.precision or "float32"
    for kind, path in files.items():
        if path:
            check_target(path, paths, kind)
    classifier, made = load(paths), {}
    first, n = classifier.networks[0], len(classifier.networks)
    sizes = [format_layer_sizes(each.network.layer_sizes) for each in classifier.networks]
    layers = ", ".join(dict.fromkeys(sizes))
    if options.onnx:
        members = f"committee of {n}: {layers}" if n > 1 else layers
        said = f"{members}, for {describe_input(first.pixels)}"
        made[options.onnx] = exported(classifier, ".onnx"), said
    if options.safetensors:
        content = exported(classifier, ".safetensors", precision)
        made[options.safetensors] = content, f"{layers}, weights and biases"
    if options.html:
        content, notes = make_page(paths, precision)
        for note in notes:
            say(f"note: {note}", sys.stderr)
        made[options.html] = content, f"a page of {len(content) / 1e6:.1f} MB"
    for path, (content, said) in made.items():
        atomic_write(path, content)
        say(f"{shown(path)}: {said}")
    return 0


main = command_main(parse, export, "a smaller network")
