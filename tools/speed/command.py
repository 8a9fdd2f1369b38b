"""The command line of `tools/speedup.py`."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import Parser, run_tool, whole_number
from mlpcore.cpu import available_cores, total_memory
from mlpcore.errors import InputError
from mlpcore.files import check_replaceable
from mlpcore.network.architecture import PRESETS, count_parameters, parse_hidden_layers
from speed import medians
from speed.measure import COLUMNS, Plan, measure_plan, unavailable
from speed.peers import PEERS
from speed.peers.base import Peer
from speed.problem import CLASSES, SIDE
from speed.routines import DENSE, ROUTINES, SPARSE
from speed.tables import Table, all_tables
from speed.timing import QUICK, Settings

DESCRIPTION = """\
Times the paper's routines on every backend, beside the machine's limits, the paper's figures
and, with --peers, other libraries on the same work. Several runs kept with --json become one table
by --medians."""


def _names(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an option with some of these names and commas between them."""

    def parse(text: str) -> list[str]:
        names = [name.strip().lower() for name in text.split(",")]
        for name in names:
            if name not in known:
                raise ArgumentTypeError(f"{name!r}, expected {', '.join(known)}")
        return names

    return parse


def _peers(text: str) -> list[Peer]:
    """The type of `--peers`: those with one of these parts in their names."""
    parts = [part.strip().lower() for part in text.split(",")]
    for part in parts:
        if not part or not any(part in peer.name.lower() for peer in PEERS):
            names = "; ".join(peer.name for peer in PEERS)
            raise ArgumentTypeError(f"{part!r}, expected a part of {names}")
    return [peer for peer in PEERS if any(part in peer.name.lower() for part in parts)]


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    presets, routines, columns = (", ".join(names) for names in (PRESETS, ROUTINES, COLUMNS))
    peers = "; ".join(peer.name for peer in PEERS)
    # fmt: off
    add("--arch", action="extend", metavar="A", type=lambda text: text.split(";"),
        help=f"{presets} or widths such as 1000,500; several with ; between them, or the option "
        "repeated (net1)")
    add("--backend", action="extend", metavar="B", type=_names(COLUMNS), default=[],
        help=f"{columns}; several with commas; scalar with one thread is always measured (all)")
    add("--routine", action="extend", metavar="R", type=_names(ROUTINES), default=[],
        help=f"{routines}; several with commas; {SPARSE} and {DENSE} train a network before, at "
        f"most {Settings.training:.0f} s, {QUICK.training:.0f} s with --quick (all)")
    add("--threads", metavar="N", type=lambda text: [whole_number(n) for n in text.split(",")],
        help="beside one thread; several with commas (all cores)")
    add("--peers", nargs="?", const=PEERS, metavar="P", type=_peers, default=(),
        help=f"other libraries, if they are installed: {peers}; several parts of these names "
        "with commas (all)")
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--markdown", action="store_true", help="tables as Markdown")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    add("--medians", nargs="+", type=Path, metavar="FILE",
        help="measures nothing: shows the medians of runs kept with --json")
    # fmt: on
    return result


def _architectures(texts: Sequence[str], peers: bool) -> tuple[tuple[int, ...], ...]:
    """Widths of hidden layers; an InputError for an architecture that would not fit."""
    found = {parse_hidden_layers(text): text for text in texts}
    for hidden, text in found.items():
        # Each backend has a float32 network, the oracle three arrays of float64; peers, both.
        needed = (120 + 120 * peers) * count_parameters((SIDE * SIDE, *hidden, CLASSES)) / 2**30
        have = total_memory() / 2**30
        if needed > have:
            raise InputError(f"architecture {text!r}: needs about {needed:,.1f} of {have:,.1f} GiB")
    return tuple(found)


def make_plan(options: argparse.Namespace, settings: Settings | None = None) -> Plan:
    """What to measure; an InputError for an option that cannot be met."""
    for name in options.backend:
        if reason := unavailable(name):
            raise InputError(f"backend {name!r} cannot run: {reason}")
    threads = sorted({1, *(options.threads or [available_cores()])})
    for count in (threads[0], threads[-1]):
        backends.get("scalar", count)  # refuses what no backend takes
    if options.json:
        check_replaceable(options.json)
    return Plan(
        architectures=_architectures(options.arch or ["net1"], bool(options.peers)),
        routines=tuple(ROUTINES[key] for key in ROUTINES if key in (options.routine or ROUTINES)),
        backends=tuple(options.backend) or COLUMNS,
        threads=tuple(threads),
        settings=settings or (QUICK if options.quick else Settings()),
        peers=tuple(options.peers),
    )


def _medians(options: argparse.Namespace) -> list[Table]:
    """What `--medians` shows; an InputError for options that go with measuring."""
    for name in ("arch", "backend", "threads", "peers", "quick", "json"):
        if getattr(options, name):
            raise InputError(f"--{name} together with --medians: expected --routine or --markdown")
    return medians.tables(medians.read_runs(options.medians), options.routine)


def main(argv: list[str] | None = None, settings: Settings | None = None) -> int:
    """Runs the tool; the exit status.

    It is 2 for bad input, and 1 when one of our backends had a wrong result. `settings` replaces
    those that the options choose.
    """

    def command() -> int:
        options = parser().parse_args(argv)
        if options.medians:
            tables, failed = _medians(options), False
        else:
            plan = make_plan(options, settings)
            report = measure_plan(plan, lambda title: print(title, file=sys.stderr, flush=True))
            if options.json:  # before the output, which may be closed
                report.write(options.json)
            tables, failed = all_tables(report), report.failed
        print("\n".join(table.text(options.markdown) for table in tables), end="")
        return int(failed)

    return run_tool(command, smaller="a smaller --arch")
