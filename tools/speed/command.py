"""The command line of `tools/speedup.py`."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mlpcore import backends
from mlpcore.backends.simd import MAX_THREADS
from mlpcore.commands.options import Parser, add_data_options, run_tool, whole_number
from mlpcore.cpu import available_cores
from mlpcore.data import dataset
from mlpcore.errors import InputError
from mlpcore.files import atomic_write, check_replaceable
from mlpcore.network.architecture import PRESETS, parse_hidden_layers
from mlpcore.terminal import say
from speed.measure import Plan, Report, measure_plan
from speed.peers import PEERS
from speed.peers.base import Peer
from speed.routines import ROUTINES
from speed.tables import all_tables
from speed.timing import QUICK, Settings

DESCRIPTION = """\
Times the paper's routines on every backend, beside the paper's figures and, with --peers, other
libraries on the same work."""

#: Backends that can be named; what `backends.available` has here can run or says why not.
NAMES = (*backends.INSTRUCTION_SETS, "cuda")


def several(
    kind: Callable[[str], Any], known: Container[Any], expected: str
) -> Callable[[str], list[Any]]:
    """The type of an option: known values with commas between them."""

    def parse(text: str) -> list[Any]:
        values = [kind(part.strip()) for part in text.split(",")]
        for value in values:
            if value not in known:
                raise ArgumentTypeError(f"{value!r}, expected {expected}")
        return values

    return parse


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    names, routines, presets = (", ".join(each) for each in (NAMES, ROUTINES, PRESETS))
    threads = several(whole_number, range(1, MAX_THREADS + 1), f"1 to {MAX_THREADS:,}")
    peers = "; ".join(each.name for each in PEERS)
    # fmt: off
    add("--arch", metavar="A", default=["net1"], type=lambda text: text.split(";"),
        help=f"{presets} or widths such as 1000,500; several with ; between them (net1)")
    add("--backend", metavar="B", type=several(str, NAMES, names),
        help=f"{names}; several with commas; scalar with one thread is always measured (all)")
    add("--routine", metavar="R", type=several(str, ROUTINES, routines),
        help=f"{routines}; several with commas (all)")
    add("--threads", metavar="N", type=threads, default=[available_cores()],
        help="beside one thread; several with commas (all cores)")
    add("--peers", nargs="?", const=[""], default=[], metavar="P",
        type=lambda text: [part.strip().lower() for part in text.split(",")],
        help=f"other libraries, if they are installed: {peers}; several parts of these names with "
        "commas (all)")
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    # fmt: on
    add_data_options(result)
    return result


def progress(title: str) -> None:
    """Says what comes next."""
    say(title, sys.stderr)


def chosen(parts: Sequence[str]) -> tuple[Peer, ...]:
    """The peers with one of these parts in their names that can run; a line for each that cannot.

    Raises InputError for a part of none.
    """
    for part in parts:
        if not any(part in each.name.lower() for each in PEERS):
            names = "; ".join(each.name for each in PEERS)
            raise InputError(f"--peers: {part!r}, expected a part of {names}")
    found = [each for each in PEERS if any(part in each.name.lower() for part in parts)]
    for each in found:
        if reason := each.missing():
            progress(f"without {each.name}: {reason}")
    return tuple(each for each in found if not each.missing())


def measured(options: argparse.Namespace) -> Report:
    """The times that the options ask for."""
    reasons = backends.available()
    for name in options.backend or ():
        if reason := reasons.get(name, "this build has no such backend"):
            raise InputError(f"backend {name!r} cannot run: {reason}")
    plan = Plan(
        dataset.load(options.data, name=options.dataset, download=False),
        tuple(dict.fromkeys(map(parse_hidden_layers, options.arch))),
        tuple(key for key in ROUTINES if key in (options.routine or ROUTINES)),
        tuple(n for n in NAMES if n in (options.backend or reasons) and reasons.get(n, "") is None),
        tuple(sorted({1, *options.threads})),
        QUICK if options.quick else Settings(),
        chosen(options.peers),
    )
    return measure_plan(plan, progress)


def main(argv: list[str] | None = None) -> int:
    """Runs the tool; the exit status: 2 for bad input, 1 if a backend of ours is wrong."""

    def command() -> int:
        options = parser().parse_args(argv)
        if options.json:
            check_replaceable(options.json)
        report = measured(options)
        if options.json:  # before the output, which may be closed
            content = msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
            atomic_write(options.json, content)
        print("\n".join(all_tables(report)), end="")
        return int(any(row.wrong and not row.peer for row in report.rows))

    return run_tool(command, smaller="a smaller --arch")
