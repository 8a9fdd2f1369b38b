"""`mlpcore read`: the digits of pages, fields and numbers, as trained networks read them."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore.commands.networks import (
    Entry,
    add_picture_arguments,
    for_each_picture,
    networks_and_pictures,
    read_networks,
)
from mlpcore.commands.options import command_main, command_parser
from mlpcore.data.image_files import Source
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import atomic_write, check_replaceable
from mlpcore.reading.drawing import draw
from mlpcore.reading.page import check_grid, read

TEXT = """\
Prints the digits of pages, line by line: those in drawn boxes, in a grid, a
table or a row, or else all digits. A ? stands behind an answer in doubt, and
_ for an empty box. Pages are scans or photographs of 150 to 600 dpi, turned by
five degrees at most. Several networks answer by the mean of their outputs.
Without any, the network in the package answers: net1, trained on MNIST."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "read", "[RUN|WEIGHTS...] PICTURE... [options]", TEXT, "form.jpg --show found.png"
    )
    add_picture_arguments(parser)
    add = parser.add_argument
    add("--show", metavar="FILE", type=Path, help="draw what was found onto the page, a PNG file")
    parser.add_whole("--columns", "columns of the page's one grid")
    parser.add_whole("--rows", "rows of the page's one grid")
    return parser.parse_intermixed_args(argv)


def read_pages(options: argparse.Namespace) -> int:
    """Reads each page and shows it as the options say; returns the exit status."""
    check_grid(options.columns, options.rows)
    networks, pictures = networks_and_pictures(options)
    if options.show is not None:
        if options.show.suffix.lower() != ".png":
            raise InputError(f"--show {shown(options.show)}: expected a name that ends in .png")
        if len(pictures) > 1:
            raise InputError(f"--show with {len(pictures)} pictures: expected one")
        check_replaceable(options.show)
    classifier = read_networks(networks, options)

    def answer(_: int, path: Path, source: Source) -> Entry:
        page = read(source, classifier, columns=options.columns, rows=options.rows)
        if not options.json:
            text = [f"{shown(path)}:"] * (len(pictures) > 1) + page.text.splitlines()
            print("\n".join(printable(line, sys.maxsize) for line in text), flush=True)
        if options.show is not None:
            content = io.BytesIO()
            draw(page).save(content, "PNG")
            atomic_write(options.show, content.getvalue())
        lines = [
            [
                {
                    "box": each.box,
                    "answer": each.answer,
                    "probabilities": [round(float(p), 4) for p in each.probabilities],
                    "doubt": round(each.doubt, 4),
                    "in_doubt": each.in_doubt,
                }
                for each in line
            ]
            for line in page.lines
        ]
        warning = {"warning": page.warning} if page.warning else {}
        return {"text": page.text, "lines": lines} | warning

    return for_each_picture(classifier, pictures, answer, "pages", options.json)


main = command_main(parse, read_pages, "smaller pictures")
