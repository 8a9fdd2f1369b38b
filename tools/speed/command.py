"""The command line of `tools/speedup.py`."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mlpcore.backends.simd import MAX_THREADS
from mlpcore.commands.options import Parser, add_data_options, number, run_tool, whole_number
from mlpcore.cpu import available_cores
from mlpcore.data import dataset
from mlpcore.errors import InputError
from mlpcore.files import check_replaceable
from mlpcore.network.architecture import PRESETS, parse_hidden_layers
from mlpcore.terminal import say
from mlpcore.training.schedule import MAX_EPOCHS
from speed import to_error
from speed.measure import COLUMNS, Plan, measure_plan, unavailable
from speed.peers import LEARNERS, PEERS
from speed.peers.base import Learner, Peer, Task
from speed.results import read_runs, write_document
from speed.routines import ROUTINES
from speed.tables import all_tables
from speed.timing import QUICK, Settings

DESCRIPTION = """\
Times the paper's routines on every backend, beside the machine's limits, the paper's figures
and, with --peers, other libraries on the same work. Several runs kept with --json become one table
by --medians. With --to-error it trains instead, ours and peers, until a test error is reached."""

#: The options that go with each way to call the tool.
_TASK = ("arch", "threads", "peers", "data", "dataset")
MODES = {
    "to_error": ("to_error", *_TASK, "epochs", "repeats", "json"),
    "medians": ("medians", "routine"),
    "": (*_TASK, "backend", "routine", "quick", "json"),
}

Value = TypeVar("Value")
Named = TypeVar("Named", Peer, Learner)


# ---- options -----------------------------------------------------------------------------------


def several(one: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    """The type of an option: values with commas between them."""
    return lambda text: [one(part.strip()) for part in text.split(",")]


def one_of(known: Collection[str]) -> Callable[[str], str]:
    """The type of an option: one of these names."""

    def parse(name: str) -> str:
        if name not in known:
            raise ArgumentTypeError(f"{name!r}, expected {', '.join(known)}")
        return name

    return parse


def within(kind: Callable[[str], Any], low: float, high: float) -> Callable[[str], Any]:
    """The type of an option: a number within bounds."""

    def parse(text: str) -> Any:
        if not low <= (value := kind(text)) <= high:
            raise ArgumentTypeError(f"{text}, expected {low:g} to {high:,g}")
        return value

    return parse


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add, count = result.add_argument, within(whole_number, 1, MAX_EPOCHS)
    presets, routines, columns = (", ".join(names) for names in (PRESETS, ROUTINES, COLUMNS))
    peers, learners = ("; ".join(each.name for each in some) for some in (PEERS, LEARNERS))
    # fmt: off
    add("--arch", metavar="A", type=lambda text: text.split(";"),
        help=f"{presets} or widths such as 1000,500; several with ; between them (net1)")
    add("--backend", metavar="B", type=several(one_of(COLUMNS)),
        help=f"{columns}; several with commas; scalar with one thread is always measured (all)")
    add("--routine", metavar="R", type=several(one_of(ROUTINES)),
        help=f"{routines}; several with commas (all)")
    add("--threads", metavar="N", type=several(within(whole_number, 1, MAX_THREADS)),
        help="beside one thread; several with commas (all cores)")
    add("--peers", nargs="?", const=[""], default=[], metavar="P", type=several(str.lower),
        help=f"other libraries, if they are installed: {peers}; with --to-error: {learners}; "
        "several parts of these names with commas (all)")
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    add("--medians", nargs="+", type=Path, metavar="FILE",
        help="measures nothing: shows the medians of runs kept with --json")
    add("--to-error", metavar="E", type=several(within(number, 0.001, 99.999)),
        help="the time to these test errors in percent, with commas, on digits deformed anew every "
        "epoch")
    add("--epochs", metavar="N", type=several(count),
        help=f"budgets of --to-error, with commas ({','.join(map(str, to_error.BUDGETS))})")
    add("--repeats", metavar="N", type=count, help="seeds of --to-error (1)")
    # fmt: on
    add_data_options(result)
    return result


def mode_of(options: argparse.Namespace) -> str:
    """Which of `MODES`; an InputError for an option that does not go with it."""

    def text(name: str) -> str:
        return f"--{name.replace('_', '-')}"

    mode = next(name for name in MODES if not name or getattr(options, name))
    for name, value in vars(options).items():
        if value not in (None, False, []) and name not in MODES[mode]:
            what = f" together with {text(mode)}" if mode else ""
            expected = ", ".join(map(text, MODES[mode]))
            raise InputError(f"{text(name)}{what}: expected only {expected}")
    return mode


def chosen(parts: Sequence[str], known: Sequence[Named]) -> tuple[Named, ...]:
    """Those with one of these parts in their names; an InputError for a part of none."""
    for part in parts:
        if not any(part in each.name.lower() for each in known):
            names = "; ".join(each.name for each in known)
            raise InputError(f"--peers: {part!r}, expected a part of {names}")
    return tuple(each for each in known if any(part in each.name.lower() for part in parts))


# ---- ways to call the tool ---------------------------------------------------------------------


def progress(title: str) -> None:
    """Says what comes next."""
    say(title, sys.stderr)


def make_plan(options: argparse.Namespace) -> Plan:
    """What to measure; an InputError for an option that cannot be met."""
    for name in options.backend or ():
        if reason := unavailable(name):
            raise InputError(f"backend {name!r} cannot run: {reason}")
    return Plan(
        dataset.load(options.data, name=options.dataset, download=False),
        tuple(dict.fromkeys(map(parse_hidden_layers, options.arch or ["net1"]))),
        routines=tuple(key for key in ROUTINES if key in (options.routine or ROUTINES)),
        backends=tuple(options.backend or COLUMNS),
        threads=tuple(sorted({1, *(options.threads or [available_cores()])})),
        settings=QUICK if options.quick else Settings(),
        peers=chosen(options.peers, PEERS),
    )


def run_plan(options: argparse.Namespace) -> tuple[list[str], int]:
    """Measures; the status is 1 when one of our backends had a wrong result."""
    report = measure_plan(make_plan(options), progress)
    if options.json:  # before the output, which may be closed
        write_document(options.json, report)
    return all_tables([report]), any(row.wrong and not row.peer for row in report.rows)


def run_medians(options: argparse.Namespace) -> tuple[list[str], int]:
    """Shows what earlier runs have found."""
    return all_tables(read_runs(options.medians, options.routine or ())), 0


def make_task(options: argparse.Namespace) -> Task:
    """What is learnt; an InputError for an option that cannot be met."""
    architectures, threads = options.arch or ["net1"], options.threads or [available_cores()]
    for name, values in (("arch", architectures), ("threads", threads)):
        if len(values) > 1:
            raise InputError(f"--{name} {', '.join(map(str, values))}: expected only one")
    hidden = parse_hidden_layers(architectures[0])
    return Task(dataset.load(options.data, name=options.dataset), hidden, threads[0])


def run_to_error(options: argparse.Namespace) -> tuple[list[str], int]:
    """Trains ours and peers until a test error is reached."""
    comparison = to_error.Comparison(
        make_task(options),
        (*to_error.OURS, *chosen(options.peers, LEARNERS)),
        errors=tuple(sorted(options.to_error, reverse=True)),
        budgets=tuple(sorted({*(options.epochs or to_error.BUDGETS)})),
        repeats=options.repeats or 1,
    )
    outcome = to_error.measure(comparison, progress)
    if options.json:
        write_document(options.json, outcome)
    return to_error.tables(comparison, outcome), 0


RUN = {"to_error": run_to_error, "medians": run_medians, "": run_plan}


def main(argv: list[str] | None = None) -> int:
    """Runs the tool; the exit status, 2 for bad input."""

    def command() -> int:
        options = parser().parse_args(argv)
        run = RUN[mode_of(options)]
        if options.json:
            check_replaceable(options.json)
        tables, status = run(options)
        print("\n".join(tables), end="")
        return int(status)

    return run_tool(command, smaller="a smaller --arch")
