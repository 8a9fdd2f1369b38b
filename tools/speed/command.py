"""The command line of `tools/speedup.py`."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import Parser, run_tool, whole_number
from mlpcore.cpu import available_cores, total_memory
from mlpcore.errors import InputError
from mlpcore.files import check_replaceable
from mlpcore.network.architecture import (
    PRESETS,
    count_parameters,
    format_hidden_layers,
    parse_hidden_layers,
)
from speed import medians
from speed.measure import COLUMNS, Plan, measure_plan, unavailable
from speed.peers import PEERS
from speed.peers.base import Peer
from speed.problem import CLASSES, SIDE
from speed.routines import ROUTINES
from speed.tables import Table, all_tables
from speed.timing import QUICK, Settings

DESCRIPTION = """\
Times the paper's routines on every backend, beside the machine's limits, the paper's figures
and, with --peers, other libraries on the same work. Several runs kept with --json become one table
by --medians."""


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    presets, routines, columns = (", ".join(names) for names in (PRESETS, ROUTINES, COLUMNS))
    add(
        "--arch",
        action="append",
        metavar="A",
        help=f"{presets} or widths such as 1000,500; several with ; between them, or the option "
        "repeated (net1)",
    )
    add(
        "--backend",
        action="append",
        metavar="B",
        help=f"{columns}; several with commas; scalar with one thread is always measured (all)",
    )
    add("--routine", action="append", metavar="R", help=f"{routines}; several with commas (all)")
    add("--threads", metavar="N", help="beside one thread; several with commas (all cores)")
    add(
        "--peers",
        nargs="?",
        const=True,
        metavar="P",
        help=f"other libraries, if they are installed: {', '.join(peer.name for peer in PEERS)}; "
        "several parts of their names with commas (all)",
    )
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--markdown", action="store_true", help="tables as Markdown")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    add(
        "--medians",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="measures nothing: shows the medians of runs kept with --json",
    )
    return result  # fmt: skip


def _choices(values: list[str] | None, what: str, known: Collection[str]) -> list[str]:
    """The names in options that may be repeated and hold several with commas."""
    names = [n.strip().lower() for value in values or [] for n in value.split(",")]
    for name in names:
        if name not in known:
            raise InputError(f"{what} {name!r}: expected {', '.join(known)}")
    return names


def _peers(text: str | bool | None) -> tuple[Peer, ...]:
    """The peers that `--peers` asks for: all when it stands alone."""
    if text is None or text is True:
        return PEERS if text else ()
    parts = [part.strip().lower() for part in str(text).split(",")]
    for part in parts:
        if not part or not any(part in peer.name.lower() for peer in PEERS):
            names = ", ".join(peer.name for peer in PEERS)
            raise InputError(f"peers {part!r}: expected a part of {names}")
    return tuple(p for p in PEERS if any(part in p.name.lower() for part in parts))


def _thread_counts(text: str | None) -> tuple[int, ...]:
    """One thread, and as many as the option says, or as there are cores; ascending."""
    counts = {1, available_cores()}
    if text is not None:
        try:
            counts = {1, *(whole_number(part) for part in text.split(","))}
        except argparse.ArgumentTypeError:
            expected = "expected whole numbers with commas between them"
            raise InputError(f"threads {text!r}: {expected}") from None
    for count in counts:
        backends.get("scalar", count)  # refuses what no backend takes
    return tuple(sorted(counts))


def _check_memory(hidden: Sequence[int], peers: bool) -> None:
    """Raises an InputError for an architecture that would not fit."""
    # Each backend has a float32 network, the oracle three arrays of float64; peers more of both.
    needed = (120 + 120 * peers) * count_parameters((SIDE * SIDE, *hidden, CLASSES))
    if needed > total_memory():
        have, need = total_memory() / 2**30, needed / 2**30
        name = format_hidden_layers(hidden)
        raise InputError(f"architecture {name}: needs about {need:,.1f} of {have:,.1f} GiB")


def make_plan(options: argparse.Namespace, settings: Settings | None = None) -> Plan:
    """What to measure.

    Raises
    ------
    InputError
        For an option that cannot be met, before any work has started.
    """
    wanted = _choices(options.backend, "backend", COLUMNS)
    for name in wanted:
        if reason := unavailable(name):
            raise InputError(f"backend {name!r} cannot run: {reason}")
    routines = _choices(options.routine, "routine", ROUTINES)
    parts = [part for value in options.arch or ["net1"] for part in value.split(";")]
    plan = Plan(
        architectures=tuple(dict.fromkeys(map(parse_hidden_layers, parts))),
        routines=tuple(r for key, r in ROUTINES.items() if not routines or key in routines),
        backends=tuple(wanted) or COLUMNS,
        threads=_thread_counts(options.threads),
        settings=settings or (QUICK if options.quick else Settings()),
        peers=_peers(options.peers),
    )
    for hidden in plan.architectures:
        _check_memory(hidden, bool(plan.peers))
    if options.json:
        check_replaceable(options.json)
    return plan


def _medians(options: argparse.Namespace) -> list[Table]:
    """What `--medians` shows; an InputError for options that go with measuring."""
    for name in ("arch", "backend", "threads", "peers", "quick", "json"):
        if getattr(options, name):
            raise InputError(f"--{name} together with --medians: expected --routine or --markdown")
    routines = _choices(options.routine, "routine", ROUTINES)
    return medians.tables(medians.read_runs(options.medians), routines)


def _show(tables: Sequence[Table], as_markdown: bool) -> None:
    print("\n".join(table.text(as_markdown) for table in tables), end="")


def main(argv: list[str] | None = None, settings: Settings | None = None) -> int:
    """Runs the tool; the exit status.

    It is 2 for bad input, and 1 when one of our backends had a wrong result. `settings` replaces
    those that the options choose.
    """

    def command() -> int:
        options = parser().parse_args(argv)
        if options.medians:
            _show(_medians(options), options.markdown)
            return 0
        plan = make_plan(options, settings)
        report = measure_plan(plan, lambda title: print(title, file=sys.stderr, flush=True))
        if options.json:  # before the output, which may be closed or refuse a character
            report.write(options.json)
        if options.markdown:
            print(f"Measured on {datetime.date.today().isoformat()} by `tools/speedup.py`.\n")
        _show(all_tables(report), options.markdown)
        return 1 if report.failed else 0

    return run_tool(command, smaller="a smaller --arch")
