"""The command line of `tools/speedup.py`."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import Parser, add_data_options, run_tool, whole_number
from mlpcore.cpu import available_cores, total_memory
from mlpcore.errors import InputError
from mlpcore.files import check_replaceable
from mlpcore.network.architecture import PRESETS, count_parameters, parse_hidden_layers
from mlpcore.terminal import say
from speed import chart, contests, medians
from speed.error_tables import error_tables
from speed.measure import COLUMNS, Plan, measure_plan, unavailable
from speed.peers import LEARNERS, PEERS
from speed.problem import CLASSES, SIDE
from speed.routines import DENSE, ROUTINES, SPARSE
from speed.tables import all_tables
from speed.timing import QUICK, Settings
from speed.to_error import BUDGETS, LIMIT, measure_contest

DESCRIPTION = """\
Times the paper's routines on every backend, beside the machine's limits, the paper's figures
and, with --peers, other libraries on the same work. Several runs kept with --json become one table
by --medians. With --to-error it trains instead, ours and peers, until a test error is reached."""

#: The options that go with each way to call the tool.
MODES = {
    "to_error": contests.OPTIONS,
    "search": contests.SEARCH_OPTIONS,
    "medians": ("routine", "markdown", "figure"),
    "": ("arch", "backend", "routine", "threads", "peers", "quick", "markdown", "json"),
}


def _names(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an option with some of these names and commas between them."""

    def parse(text: str) -> list[str]:
        names = [name.strip().lower() for name in text.split(",")]
        for name in names:
            if name not in known:
                raise ArgumentTypeError(f"{name!r}, expected {', '.join(known)}")
        return names

    return parse


def _list(text: str) -> list[str]:
    """The type of an option: texts with commas between them."""
    return [part.strip() for part in text.split(",")]


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    presets, routines, columns = (", ".join(names) for names in (PRESETS, ROUTINES, COLUMNS))
    peers, learners = ("; ".join(each.name for each in some) for some in (PEERS, LEARNERS))
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
    add("--peers", nargs="?", const=[""], metavar="P", type=_list, default=[],
        help=f"other libraries, if they are installed: {peers}; with --to-error: {learners}; "
        "several parts of these names with commas (all)")
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--markdown", action="store_true", help="tables as Markdown")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    add("--medians", nargs="+", type=Path, metavar="FILE",
        help="measures nothing: shows the medians of runs kept with --json")
    add("--figure", type=Path, metavar="FILE",
        help="with --medians and one --routine: draws a chart, a PNG file")
    add("--to-error", metavar="E", type=contests.percentages,
        help="the time to these test errors in percent, with commas, on digits deformed anew every "
        "epoch")
    add("--epochs", metavar="N", type=contests.counts,
        help=f"budgets of --to-error, with commas ({','.join(map(str, BUDGETS))}), or numbers of "
        "epochs for --search")
    add("--repeats", metavar="N", type=contests.count, help="seeds of --to-error (1)")
    add("--limit", metavar="MINUTES", type=contests.minutes,
        help=f"of training for each contestant of --to-error ({LIMIT:g})")
    add("--search", metavar="MINUTES", type=contests.minutes,
        help="tries learning rates of peers on held-out digits, for --to-error")
    # fmt: on
    add_data_options(result)
    return result


def _mode(options: argparse.Namespace) -> str:
    """Which of `MODES`; an InputError for an option that does not go with it."""
    mode = next(name for name in MODES if not name or getattr(options, name))
    for name, value in vars(options).items():
        if value and name != mode and name not in MODES[mode]:
            what, option = ("--" + each.replace("_", "-") for each in (mode, name))
            if not mode:
                having = (each for each in MODES if each and name in MODES[each])
                others = " or ".join("--" + each.replace("_", "-") for each in having)
                raise InputError(f"{option}: expected together with {others}")
            expected = ", ".join(f"--{each}" for each in MODES[mode])
            raise InputError(f"{option} together with {what}: expected only {expected}")
    return mode


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
        peers=tuple(contests.chosen(options.peers, PEERS)),
    )


def main(argv: list[str] | None = None, settings: Settings | None = None) -> int:
    """Runs the tool; the exit status.

    It is 2 for bad input, and 1 when one of our backends had a wrong result. `settings` replaces
    those that the options choose.
    """

    def progress(title: str) -> None:
        say(title, sys.stderr)

    def command() -> int:
        options, failed = parser().parse_args(argv), False
        mode = _mode(options)
        if mode == "medians":
            runs = medians.read_runs(options.medians)
            tables = medians.tables(runs, options.routine)
            if options.figure:
                chart.write(options.figure, runs, options.routine)
        elif mode == "search":
            contests.run_search(options, progress)
            return 0
        elif mode == "to_error":
            contest = measure_contest(contests.make_contest(options), progress)
            if options.json:
                contest.write(options.json)
            tables = error_tables(contest)
        else:
            report = measure_plan(make_plan(options, settings), progress)
            if options.json:  # before the output, which may be closed
                report.write(options.json)
            tables, failed = all_tables(report), report.failed
        print("\n".join(table.text(options.markdown) for table in tables), end="")
        return int(failed)

    return run_tool(command, smaller="a smaller --arch")
