"""`mlpcore read`: the digits of pages, fields and numbers, as trained networks read them."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mlpcore.commands.copies import add_copies_options, given_copies
from mlpcore.commands.networks import document, read_networks
from mlpcore.commands.options import command_parser, run_tool, whole_number
from mlpcore.commands.pictures import (
    add_paths,
    content_of,
    each_picture,
    name_of,
    networks_and_pictures,
)
from mlpcore.data.pictures import decode_page
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import atomic_write, check_replaceable
from mlpcore.inference import TrainedClassifier
from mlpcore.reading.drawing import draw
from mlpcore.reading.opencv import import_opencv
from mlpcore.reading.page import Page, check_grid, read_page
from mlpcore.terminal import say

TEXT = """\
Prints the digits of pages, line by line: those in drawn boxes, in a grid, a
table or a row, or else all digits. A ? stands behind an answer in doubt, and
_ for an empty box. Pages are scans or photographs of 150 to 600 dpi, turned by
five degrees at most. Several networks answer by the mean of their outputs.
Without any, the network in the package answers: net1, trained on MNIST."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "read", "[RUN|WEIGHTS...] PICTURE... [options]", TEXT, "form.jpg --show found.png"
    )
    add_paths(parser)
    add = parser.add_argument
    add("--json", action="store_true", help="print one JSON document, with boxes and probabilities")
    add("--show", metavar="FILE", type=Path, help="draw what was found onto the page, a PNG file")
    add("--columns", type=whole_number, metavar="N", help="columns of the page's one grid")
    add("--rows", type=whole_number, metavar="N", help="rows of the page's one grid")
    add_copies_options(parser)
    return parser.parse_intermixed_args(argv)


def to_json(page: Page) -> dict[str, Any]:
    """A page's part of the JSON document."""
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


@contextlib.contextmanager
def progress(n_pages: int) -> Iterator[Any]:
    """A bar below what is printed, if there are several pages and somebody who looks on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    out = sys.stderr
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        "pages",
        TimeRemainingColumn(),
        console=Console(file=out, markup=False, highlight=False),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
        disable=n_pages < 2 or not out.isatty(),
    ) as bar:
        task = bar.add_task("", total=n_pages)
        yield lambda: bar.advance(task)


def read_one(
    classifier: TrainedClassifier, path: Path, options: argparse.Namespace, heading: bool
) -> dict[str, Any]:
    """Reads and shows a page as the options say; returns its part of the JSON document."""
    name = name_of(path)
    grey, scale = decode_page(content_of(path), name)
    page = read_page(grey, scale, name, classifier, options.columns, options.rows)
    if page.warning:
        say(printable(f"warning: {page.warning}"), sys.stderr)
    if not options.json:
        text = [f"{shown(path)}:"] * heading + page.text.splitlines()
        print("\n".join(printable(line, sys.maxsize) for line in text), flush=True)
    if options.show is not None:
        content = io.BytesIO()
        draw(page).save(content, "PNG")
        atomic_write(options.show, content.getvalue())
    return to_json(page)


def read(options: argparse.Namespace) -> int:
    """Reads each page and shows it as the options say; returns the exit status."""
    import_opencv()
    check_grid(options.columns, options.rows)
    copies = given_copies(options)
    networks, paths = networks_and_pictures(options.paths)
    pictures = list(each_picture(paths))
    if options.show is not None:
        if options.show.suffix.lower() != ".png":
            raise InputError(f"--show {shown(options.show)}: expected a name that ends in .png")
        if len(pictures) > 1:
            raise InputError(f"--show with {len(pictures)} pictures: expected one")
        check_replaceable(options.show)
    classifier = read_networks(networks, copies)
    entries = []
    with progress(len(pictures)) as advance:
        for path, error in pictures:
            entry: dict[str, Any] = {"file": str(path)}
            try:
                if error is not None:
                    raise error
                entry |= read_one(classifier, path, options, len(pictures) > 1)
            except InputError as refused:
                say(printable(f"error: {refused}"), sys.stderr)
                entry["error"] = str(refused)
            entries.append(entry)
            advance()
    if options.json:
        print(json.dumps(document(classifier, "pages", entries), indent=2))
    return 2 if any("error" in each for each in entries) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input, even if only some pages are bad."""
    return run_tool(lambda: read(parse(argv)), smaller="smaller pictures")
