"""The command line of `tools/speedup.py`."""

import argparse
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mlpcore import backends
from mlpcore.backends.simd import MAX_THREADS
from mlpcore.commands.options import Parser, add_data_options, number, run_tool, whole_number
from mlpcore.cpu import available_cores
from mlpcore.data import dataset
from mlpcore.errors import InputError
from mlpcore.files import atomic_write, check_replaceable
from mlpcore.network.architecture import PRESETS, parse_hidden_layers
from mlpcore.terminal import say
from mlpcore.training.config import MAX_EPOCHS
from speed import to_error
from speed.measure import Plan, measure_plan
from speed.peers import LEARNERS, PEERS
from speed.peers.base import Learner, Peer, Task
from speed.routines import ROUTINES
from speed.tables import all_tables
from speed.timing import QUICK, Settings

DESCRIPTION = """\
Times the paper's routines on every backend, beside the paper's figures and, with --peers, other
libraries on the same work. With --to-error it trains instead, ours and peers, until a test error
is reached."""

#: The options of one way to call the tool, and of the other, which --to-error is.
TIMES, TO_ERROR = ("backend", "routine", "quick"), ("epochs",)

#: Backends that can be named; what `backends.available` has here can run or says why not.
NAMES = (*backends.INSTRUCTION_SETS, "cuda")

Named = TypeVar("Named", Peer, Learner)


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


def up_to(most: int) -> Callable[[str], list[Any]]:
    """The type of an option: whole numbers with commas between them."""
    return several(whole_number, range(1, most + 1), f"1 to {most:,}")


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    names, routines, presets = (", ".join(each) for each in (NAMES, ROUTINES, PRESETS))
    peers, learners = ("; ".join(each.name for each in some) for some in (PEERS, LEARNERS))
    # fmt: off
    add("--arch", metavar="A", default=["net1"], type=lambda text: text.split(";"),
        help=f"{presets} or widths such as 1000,500; several with ; between them (net1)")
    add("--backend", metavar="B", type=several(str, NAMES, names),
        help=f"{names}; several with commas; scalar with one thread is always measured (all)")
    add("--routine", metavar="R", type=several(str, ROUTINES, routines),
        help=f"{routines}; several with commas (all)")
    add("--threads", metavar="N", type=up_to(MAX_THREADS), default=[available_cores()],
        help="beside one thread; several with commas (all cores)")
    add("--peers", nargs="?", const=[""], default=[], metavar="P",
        type=lambda text: [part.strip().lower() for part in text.split(",")],
        help=f"other libraries, if they are installed: {peers}; with --to-error: {learners}; "
        "several parts of these names with commas (all)")
    add("--quick", action="store_true", help="shorter and fewer repeats")
    add("--json", type=Path, metavar="FILE", help="all figures, for programs")
    add("--to-error", metavar="E", type=lambda text: [number(part) for part in text.split(",")],
        help="the time to these test errors in percent, with commas, on digits deformed anew every "
        "epoch")
    add("--epochs", metavar="N", type=up_to(MAX_EPOCHS),
        help=f"budgets of --to-error, with commas ({','.join(map(str, to_error.BUDGETS))})")
    # fmt: on
    add_data_options(result)
    return result


def progress(title: str) -> None:
    """Says what comes next."""
    say(title, sys.stderr)


def chosen(parts: Sequence[str], known: Sequence[Named]) -> tuple[Named, ...]:
    """The peers with one of these parts in their names that can run; a line for each that cannot.

    Raises InputError for a part of none.
    """
    for part in parts:
        if not any(part in each.name.lower() for each in known):
            names = "; ".join(each.name for each in known)
            raise InputError(f"--peers: {part!r}, expected a part of {names}")
    found = [each for each in known if any(part in each.name.lower() for part in parts)]
    for each in found:
        if reason := each.missing():
            progress(f"without {each.name}: {reason}")
    return tuple(each for each in found if not each.missing())


def time_routines(options: argparse.Namespace) -> tuple[list[str], object, int]:
    """Tables, the JSON document, and 1 when one of our backends had a wrong result."""
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
        chosen(options.peers, PEERS),
    )
    report = measure_plan(plan, progress)
    return all_tables(report), report, any(row.wrong and not row.peer for row in report.rows)


def train_to_error(options: argparse.Namespace) -> tuple[list[str], object, int]:
    """Tables and the JSON document of trainings, ours and peers'."""
    for name in ("arch", "threads"):
        if len(values := getattr(options, name)) > 1:
            raise InputError(f"--{name} {', '.join(map(str, values))}: expected only one")
    hidden = parse_hidden_layers(options.arch[0])
    task = Task(dataset.load(options.data, name=options.dataset), hidden, options.threads[0])
    learners = *to_error.OURS, *chosen(options.peers, LEARNERS)
    budgets = options.epochs or to_error.BUDGETS
    outcome = to_error.measure(task, learners, options.to_error, budgets, progress)
    data = ["--data", str(options.data)] if options.data else []
    data += ["--dataset", options.dataset] if options.dataset else []
    arch = ",".join(map(str, hidden))
    outcome = to_error.time_alone(outcome, options.to_error, arch, data, progress)
    return to_error.tables(outcome, options.to_error), outcome, 0


def main(argv: list[str] | None = None) -> int:
    """Runs the tool; the exit status, 2 for bad input."""

    def command() -> int:
        options = parser().parse_args(argv)
        how, other = ("together with", TIMES) if options.to_error else ("without", TO_ERROR)
        for name in other:
            if getattr(options, name):
                raise InputError(f"--{name} {how} --to-error: expected it the other way round")
        if options.json:
            check_replaceable(options.json)
        run = train_to_error if options.to_error else time_routines
        tables, document, status = run(options)
        if options.json:  # before the output, which may be closed
            content = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
            atomic_write(options.json, content)
        print("\n".join(tables), end="")
        return int(status)

    return run_tool(command, smaller="a smaller --arch")
