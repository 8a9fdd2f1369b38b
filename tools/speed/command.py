"""The command line of `tools/speedup.py`."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mlpcore import backends
from mlpcore.commands.options import Parser, run_tool, whole_number
from mlpcore.cpu import available_cores
from mlpcore.errors import InputError
from mlpcore.files import check_replaceable
from mlpcore.network.architecture import PRESETS, parse_hidden_layers
from speed import medians, output
from speed.machine import available_memory
from speed.peers import PEERS
from speed.peers.base import Peer
from speed.plot import check_plot, draw
from speed.problem import check_memory
from speed.routines import ROUTINES
from speed.run import COLUMNS, Plan, measure_plan, unavailable
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
    presets = ", ".join(PRESETS)
    add(
        "--arch",
        action="append",
        metavar="A",
        help=f"{presets} or widths such as 1000,500; "
        "several with ; between them, or the option repeated (net1)",
    )
    add(
        "--backend",
        action="append",
        metavar="B",
        help=f"{', '.join(COLUMNS)}; several with "
        "commas; scalar with one thread is always measured (all)",
    )
    add(
        "--routine",
        action="append",
        metavar="R",
        help=f"{', '.join(ROUTINES)}; several with commas (all)",
    )
    add("--threads", metavar="N", help="beside one thread; several with commas (all cores)")
    add(
        "--peers",
        nargs="?",
        const=True,
        metavar="P",
        help="other libraries too, as far as they are installed: all, "
        "or those with such a part in their names; several with commas",
    )
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--markdown", action="store_true", help="tables as Markdown")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    add("--plot", type=Path, metavar="FILE", help="a bar chart, .png, .pdf or .svg")
    add(
        "--medians",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="nothing is measured: the medians of runs whose --json are these",
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
    """Those that `--peers` asks for: all when it stands alone."""
    if text is None:
        return ()
    if text is True:
        return PEERS
    parts = [part.strip().lower() for part in str(text).split(",")]
    for part in parts:
        if not part or not any(part in peer.name.lower() for peer in PEERS):
            names = ", ".join(peer.name for peer in PEERS)
            raise InputError(f"peers {part!r}: expected a part of {names}")
    return tuple(p for p in PEERS if any(part in p.name.lower() for part in parts))


def _architectures(values: list[str] | None) -> tuple[tuple[int, ...], ...]:
    parts = [part for value in values or ["net1"] for part in value.split(";")]
    return tuple(dict.fromkeys(parse_hidden_layers(part) for part in parts))


def _thread_counts(text: str | None) -> tuple[int, ...]:
    """One thread, and as many as the option says, or as there are cores; ascending."""
    counts = {1, available_cores()}
    if text is not None:
        try:
            counts = {1, *(whole_number(part) for part in text.split(","))}
        except (ValueError, argparse.ArgumentTypeError):
            raise InputError(
                f"threads {text!r}: expected whole numbers with commas between them"
            ) from None
    for count in counts:
        backends.get("scalar", count)  # refuses what no backend takes
    return tuple(sorted(counts))


def make_plan(options: argparse.Namespace, settings: Settings | None = None) -> Plan:
    """What to measure.

    Raises
    ------
    InputError
        When an option is of no use, before any work has started.
    """
    wanted = _choices(options.backend, "backend", COLUMNS)
    for name in wanted:
        if reason := unavailable(name):
            raise InputError(f"backend {name!r} cannot run: {reason}")
    threads = _thread_counts(options.threads)
    routines = _choices(options.routine, "routine", ROUTINES)
    architectures = _architectures(options.arch)
    peers = _peers(options.peers)
    check_memory(architectures, available_memory(), bool(peers))
    if options.plot:
        check_plot(options.plot)
        check_replaceable(options.plot)
    if options.json:
        check_replaceable(options.json)
    return Plan(
        architectures=architectures,
        routines=tuple(r for key, r in ROUTINES.items() if not routines or key in routines),
        backends=tuple(wanted) or COLUMNS,
        threads=threads,
        settings=settings or (QUICK if options.quick else Settings()),
        peers=peers,
    )


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[str | None, int], object]]:
    """Yields what `measure_plan` reports to: a bar on a terminal, else a line for each row."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda title, steps: title and print(title, file=sys.stderr, flush=True)
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(title: str | None, steps: int) -> None:
            if title is None:
                bar.advance(task, steps)
            else:
                bar.reset(task, description=title, total=steps)

        yield report


def _medians(options: argparse.Namespace) -> list[Table]:
    """What `--medians` shows; an InputError for options that go with measuring."""
    for name in ("arch", "backend", "threads", "peers", "quick", "json", "plot"):
        if getattr(options, name):
            raise InputError(f"--{name} together with --medians: expected --routine or --markdown")
    routines = _choices(options.routine, "routine", ROUTINES)
    return medians.tables(medians.read_runs(options.medians), routines)


def _show(tables: Sequence[Table], as_markdown: bool) -> None:
    if as_markdown:
        print(output.markdown(tables))
    else:
        output.show(tables, output.console())


def main(argv: list[str] | None = None, settings: Settings | None = None) -> int:
    """Runs the tool; the exit status.

    2 for bad input, 1 when one of our backends had a wrong result. `settings` replaces those
    that the options choose.
    """

    def command() -> int:
        options = parser().parse_args(argv)
        if options.medians:
            _show(_medians(options), options.markdown)
            return 0
        plan = make_plan(options, settings)
        with show_progress() as progress:
            report = measure_plan(plan, progress)
        try:  # first, for whatever may close or refuse the output
            if options.json:
                output.write_json(report, options.json)
            if options.plot:
                draw(report, options.plot)
        finally:
            if options.markdown:
                print(f"Measured on {datetime.date.today().isoformat()} by `tools/speedup.py`.\n")
            _show(all_tables(report), options.markdown)
        return 1 if report.failed else 0

    return run_tool(command, smaller="a smaller --arch")
