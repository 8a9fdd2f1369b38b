"""`mlpcore read`: the digits of pages, fields and numbers, as trained networks read them."""

import argparse
import csv
import io
import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from mlpcore.commands.networks import (
    STDIN,
    Entry,
    add_picture_arguments,
    check_new_folder,
    for_each_picture,
    networks_and_pictures,
    numbered,
    read_networks,
    save_png,
)
from mlpcore.commands.options import command_main, command_parser
from mlpcore.data.image_files import Source, count_pages
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import atomic_write, check_replaceable, is_hidden, make_folder
from mlpcore.inference.classifier import PRETRAINED_FILE
from mlpcore.reading.drawing import draw
from mlpcore.reading.fields import DOUBT, FILE, Form, line_rows, write_fields
from mlpcore.reading.page import check_grid, read
from mlpcore.terminal import say

TEXT = """\
Prints the digits of pages, line by line. If a page has boxes, in a grid, a
table or a row, only these are read. A ? follows an answer in doubt, and
_ stands for an empty box. Pages with boxes may have 75 to 600 dpi and any
rotation. Others need 150 dpi; they may be sideways or upside down, and seven
degrees off. Several networks answer with the mean of their outputs. Without
any, the pretrained network answers: net1, trained on MNIST."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "read", "[RUN|WEIGHTS...] PICTURE... [options]", TEXT, "form.jpg --show found.png"
    )
    add_picture_arguments(parser)
    add = parser.add_argument
    add("--show", metavar="PATH", type=Path, help="draw what was found: a PNG file, or a folder")
    rows = "write a table: a row for each line or, with --fields, each page"
    add("--csv", metavar="FILE", type=Path, help=rows)
    add("--fields", metavar="FILE", type=Path, help="JSON: a sample page, and fields by name")
    boxes = "write a file of fields from the boxes found"
    add("--new-fields", metavar="FILE", type=Path, help=boxes)
    parser.add_whole("--columns", "number of columns, if the page has a single grid")
    parser.add_whole("--rows", "number of rows, if the page has a single grid")
    return parser.parse_intermixed_args(argv)


def read_pages(options: argparse.Namespace) -> int:
    """Reads each page and shows it as the options say; returns the exit status."""
    check_grid(options.columns, options.rows)
    networks, named = networks_and_pictures(options)
    for folder in options.paths:
        known = {path.relative_to(folder).parts[0] for path in named if folder in path.parents}
        inside = {path.name for path in folder.iterdir()} - known if known else set()
        if others := sorted(name for name in inside if not is_hidden(name)):
            say(printable(f"note: {shown(folder)}: not read: {', '.join(others)}"), sys.stderr)
    pages: dict[Path, tuple[Path, int]] = {}  # of files of several
    pictures: list[Path] = []
    for path in named:
        numbers = range(1, 1 + count_pages(path))
        own = {Path(f"{path}:{k}"): (path, k) for k in numbers if len(numbers) > 1}
        pages |= own
        pictures += own or [path]
    written = [("--csv", options.csv, ".csv"), ("--new-fields", options.new_fields, ".json")]
    to_folder = options.show is not None and not options.show.suffix
    if to_folder:
        check_new_folder(options.show)
    elif options.show is not None and len(pictures) > 1:
        raise InputError(f"--show with {len(pictures)} pictures: expected a folder")
    else:
        written.append(("--show", options.show, ".png"))
    if options.new_fields is not None and (len(pictures) > 1 or pictures[0] == STDIN):
        raise InputError("--new-fields: expected one file of a picture")
    for option, path, suffix in written:
        if path is not None:
            if path.suffix.lower() != suffix:
                raise InputError(f"{option} {shown(path)}: expected a name that ends in {suffix}")
            check_replaceable(path)
    if options.new_fields is not None and options.new_fields.exists():
        raise InputError(
            f"{shown(options.new_fields)} exists: expected a new file for --new-fields"
        )
    classifier = read_networks(networks or [PRETRAINED_FILE], options)
    form = None if options.fields is None else Form(options.fields, classifier)
    table: list[dict[str, str]] = []
    if to_folder:
        make_folder(options.show)

    def answer(number: int, path: Path, source: Source) -> Entry:
        n_rows = len(table)
        missing = {"line": "", DOUBT: "1"} if form is None else form.missing
        table.append({FILE: str(path)} | missing)
        source, of_file = pages.get(path, (source, None))
        page = read(source, classifier, columns=options.columns, rows=options.rows, page=of_file)
        rows = line_rows(page) if form is None else [form.record(page)]
        table[n_rows:] = [{FILE: str(path)} | row for row in rows]
        for note in page.notes:
            say(printable(f"note: {shown(path)}: {note}"), sys.stderr)
        if not options.json:
            text = [f"{shown(path)}:"] * (len(pictures) > 1)
            text += page.text.splitlines() if form is None else map(": ".join, rows[0].items())
            print("\n".join(printable(line, sys.maxsize) for line in text), flush=True)
        if options.show is not None:
            drawn = numbered(options.show, number, path) if to_folder else options.show
            save_png(drawn, draw(page))
        if options.new_fields is not None:
            sample = os.path.relpath(path, options.new_fields.parent)
            write_fields(options.new_fields, page, sample)
        document = page.to_json() | ({} if form is None else {"fields": rows[0]})
        if options.new_fields is not None and page.boxed and not page.n_unseen:
            document.pop("warning", None)  # a sample may be empty
        return document

    status = for_each_picture(classifier, pictures, answer, "pages", options.json)
    if options.csv is not None:
        content = io.StringIO(newline="")
        names = dict.fromkeys(chain.from_iterable(table))
        writer = csv.DictWriter(content, list(names), restval="")
        writer.writeheader()
        writer.writerows(table)
        atomic_write(options.csv, content.getvalue().encode())
    return status


main = command_main(parse, read_pages, "smaller pictures")
