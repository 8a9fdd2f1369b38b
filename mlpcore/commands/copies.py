"""--copies and what belongs to it, for the commands that ask networks."""

from __future__ import annotations

import argparse

from mlpcore.commands.options import Parser, number, whole_number
from mlpcore.errors import InputError
from mlpcore.evaluation.copies import Copies


def add_copies_options(parser: Parser) -> None:
    """--copies, --strength and --seed, read by `given_copies`."""
    add = parser.add_argument
    what = "average over N deformed copies of each image; each costs a pass"
    add("--copies", type=whole_number, metavar="N", help=what)
    strength = "factor of the default deformation (0.5)"
    add("--strength", type=number, metavar="X", help=strength)
    add("--seed", type=whole_number, metavar="N", help="seed of the copies (0)")


def given_copies(options: argparse.Namespace) -> Copies | None:
    """The copies that the options name, if any."""
    given = {
        name: getattr(options, name)
        for name in ("strength", "seed")
        if getattr(options, name) is not None
    }
    if options.copies is not None:
        return Copies(options.copies, **given)
    if given:
        raise InputError(f"--{next(iter(given))} without --copies: expected both or none")
    return None
