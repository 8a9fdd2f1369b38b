"""`mlpcore backends`: what can compute here."""

import argparse
from collections.abc import Sequence

from mlpcore import backends
from mlpcore.commands.options import command_main, command_parser
from mlpcore.report.tables import Rows, text_table
from mlpcore.terminal import say


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """There are no options but --help."""
    text = "Lists the backends that run on this machine, and why the others do not."
    return command_parser("backends", "", text, "").parse_args(argv)


def show(options: argparse.Namespace) -> int:
    """Prints what each backend is, or why it cannot run, and what is chosen; returns the status."""
    rows: Rows = [("backend", "runs", "")]
    for name, reason in backends.available().items():
        if reason is None:
            _, _, detail = backends.get(name).description.partition(": ")
            rows.append((name, "yes", detail))
        else:
            rows.append((name, "no", reason))
    say(text_table(rows, ["left"] * 3))
    say(f"\n--backend auto chooses {backends.get().name}.")
    return 0


main = command_main(parse, show)
