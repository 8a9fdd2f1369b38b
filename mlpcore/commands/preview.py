"""Draws training images and what epochs of a training would show of them, as a contact sheet."""

from __future__ import annotations

import argparse
from pathlib import Path

from mlpcore import InputError, backends
from mlpcore.commands.options import (
    Parser,
    add_backend_options,
    add_data_options,
    add_deformation_options,
    add_seed_option,
    given_deformation,
    run_tool,
    whole_number,
)
from mlpcore.data import dataset
from mlpcore.deformation.deform import DeformationParameters
from mlpcore.errors import shown
from mlpcore.files import atomic_write, check_replaceable
from mlpcore.report.preview import draw, make_preview


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add_deformation_options(parser)
    add_seed_option(parser)
    add("--epoch", type=whole_number, default=1, help="the first that is shown (1)")
    add("--rows", type=whole_number, default=10, help="images, of every class in turn (10)")
    add("--columns", type=whole_number, default=8, help="the original, and epochs (8)")
    add("--field", action="store_true", help="draw arrows of the displacement field")
    add_data_options(parser)
    add_backend_options(parser)
    add("--out", type=Path, default=Path("preview.png"), help="the PNG file (preview.png)")
    return parser.parse_args(argv)


def describe(parameters: DeformationParameters, seed: int, data: dataset.Dataset) -> str:
    """The settings in a line."""
    similar = ""
    if data.similar_labels and parameters.beta:
        labels = " and ".join(map(str, data.similar_labels))
        similar = f" ({labels}: {parameters.beta / 2:g})"
    return (
        f"{data.name}: sigma {parameters.sigma:g}, alpha {parameters.alpha:g}, "
        f"beta {parameters.beta:g}{similar}, gamma {parameters.gamma:g}, seed {seed}"
    )


def preview(options: argparse.Namespace) -> int:
    """Draws the contact sheet; returns the exit status."""
    given = given_deformation(vars(options))
    DeformationParameters(**given)  # refuses before data are loaded
    if options.out.suffix.lower() != ".png":
        raise InputError(f"--out {shown(options.out)}: expected a name that ends in .png")
    check_replaceable(options.out)
    backend = backends.get(options.backend or "auto", options.threads)
    data = dataset.load(options.data, name=options.dataset)
    parameters = DeformationParameters(**given, similar_labels=data.similar_labels)
    seed = options.seed or 0
    sheet = make_preview(
        data,
        parameters,
        seed,
        backend,
        rows=options.rows,
        columns=options.columns,
        first_epoch=options.epoch,
        field=options.field,
    )
    if data.notice:
        print(f"note: {data.notice}")
    title = describe(parameters, seed, data)
    atomic_write(options.out, draw(sheet, title))
    print(title)
    print(f"preview: {shown(options.out)}")
    return 0


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0, or 2 for bad input."""
    return run_tool(lambda: preview(parse(argv)), smaller="fewer rows or columns")
