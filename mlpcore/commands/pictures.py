"""Pictures as arguments of commands, beside networks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlpcore.commands.networks import is_network, network_path
from mlpcore.commands.options import Parser
from mlpcore.data.class_folders import pictures_in
from mlpcore.data.pictures import MAX_FILE_BYTES, read_picture
from mlpcore.errors import InputError, shown

#: The picture on the standard input.
STDIN = Path("-")


def add_paths(parser: Parser) -> None:
    """Networks and pictures in any order, for `networks_and_pictures`."""
    what = (
        "networks: folders of runs or committees, .safetensors files, pretrained; pictures: PNG, "
        "JPEG, GIF, BMP, TIFF, WebP or PPM files, folders of them, or - for the standard input"
    )
    parser.add_argument("paths", metavar="PATH", type=network_path, nargs="+", help=what)


def networks_and_pictures(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The paths of networks and of pictures; an InputError if there are no pictures."""
    networks = [path for path in paths if is_network(path)]
    pictures = [path for path in paths if not is_network(path)]
    if not pictures:
        raise InputError(f"{shown(networks[0])} is a network: expected pictures beside it")
    for path in pictures if not networks else ():
        # It may be a misspelt run, which the network of the package should not answer for.
        if not path.suffix and path != STDIN and not os.path.lexists(path):
            raise InputError(_missing(path))
    return networks, pictures


def each_picture(paths: Sequence[Path]) -> Iterator[tuple[Path, InputError | None]]:
    """The pictures, those of a folder sorted by name, or why there is none."""
    for path in paths:
        try:
            if path != STDIN and not os.path.lexists(path):
                raise InputError(_missing(path))
            found = pictures_in(path) if path.is_dir() else [path]
        except InputError as error:
            yield path, error
            continue
        yield from ((each, None) for each in found)


def content_of(path: Path) -> bytes:
    """The bytes of a picture."""
    return sys.stdin.buffer.read(MAX_FILE_BYTES + 1) if path == STDIN else read_picture(path)


def name_of(path: Path) -> str:
    """A picture's name for messages."""
    return "the standard input" if path == STDIN else shown(path)


def _missing(path: Path) -> str:
    expected = "a picture, a folder of pictures, a run, a committee or a .safetensors file"
    return f"{shown(path)} does not exist: expected {expected}"
