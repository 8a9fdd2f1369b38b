"""Runs the campaigns one after another, and prints what each tried and what was violated."""

from __future__ import annotations

import argparse
import datetime
import importlib
from collections.abc import Sequence

from mlpcore.commands.options import Parser, number, run_tool, whole_number
from mlpcore.cpu import cpu_model
from mlpcore.errors import InputError
from mlpcore.report.tables import Rows, markdown_table
from mlpcore.store.provenance import revision
from torture import Result

#: The modules of this package, each with its share of the time and what it tries.
CAMPAIGNS = {
    "kills": (3, "SIGKILL at random moments of a training, which goes on to the same bits"),
    "power": (2, "power cuts of the disk that a training writes to"),
    "full": (1, "a disk that is full while a training writes to it"),
    "run_files": (2, "commands on runs with hostile values and checksums that fit"),
    "idx_files": (1, "commands on damaged IDX and .npz files"),
    "pictures": (1, "predictions of damaged pictures"),
    "api": (3, "calls of the public functions with wrong arguments"),
    "interrupts": (1, "Ctrl-C in the first half second of a command"),
}

MINUTES = 60.0

#: So many violations of a campaign are printed.
SHOWN = 20


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(prog="torture.py", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("campaigns", nargs="*", metavar="NAME", help=f"{', '.join(CAMPAIGNS)} (all)")
    add("--minutes", type=number, default=MINUTES, help="in all, roughly (%(default)g)")
    add("--seed", type=whole_number, default=0, help="of the random tries (0)")
    options = parser.parse_args(argv)
    for name in options.campaigns:
        if name not in CAMPAIGNS:
            raise InputError(f"campaign {name!r}: expected {', '.join(CAMPAIGNS)}")
    if not 0 < options.minutes <= 10_000:
        raise InputError(f"--minutes {options.minutes:g}: expected more than 0, at most 10,000")
    return options


def torture(names: Sequence[str], minutes: float, seed: int) -> dict[str, Result]:
    """Runs the campaigns; an interrupt ends with the results so far."""
    results: dict[str, Result] = {}
    shares = sum(CAMPAIGNS[name][0] for name in names)
    for name in names:
        share, text = CAMPAIGNS[name]
        seconds = 60 * minutes * share / shares
        print(f"{name}: {text}, {seconds:.0f} s", flush=True)
        try:
            results[name] = importlib.import_module(f"torture.{name}").run(seconds, seed)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            break
        for line in results[name].what[:SHOWN]:
            print(f"  VIOLATED {line}", flush=True)
    return results


def table(results: dict[str, Result]) -> str:
    """The results in Markdown."""
    rows: Rows = [("campaign", "tried", "violated", "")]
    for name, result in results.items():
        text = f"{CAMPAIGNS[name][1]}{f' ({result.note})' if result.note else ''}"
        rows.append((name, f"{result.tried:,}", f"{result.violated:,}", text))
    return markdown_table(rows, align="lrrl")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 when something was violated, 2 for bad input."""

    def command() -> int:
        options = parse(argv)
        names = options.campaigns or list(CAMPAIGNS)
        results = torture(names, options.minutes, options.seed)
        print(f"\n{datetime.date.today()}, revision {revision() or 'unknown'}, {cpu_model()}\n")
        print(table(results))
        return int(any(result.violated for result in results.values()))

    return run_tool(command)
