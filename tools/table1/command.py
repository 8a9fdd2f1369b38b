"""The command line of `tools/reproduce.py`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import (
    Parser,
    add_backend_options,
    folder_name,
    run_tool,
    whole_number,
)
from mlpcore.data import dataset
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, check_writable, read_bounded
from mlpcore.network.architecture import PRESETS
from mlpcore.report.tables import text_table
from mlpcore.training.recipes import PAPER_RECIPE
from mlpcore.training.schedule import SCHEDULE_EPOCHS
from table1 import evidence, report
from table1.experiment import Experiment, plan
from table1.records import Measured, measure
from table1.rerun import rerun
from table1.tables import table

DESCRIPTION = """\
Trains the paper's networks with its settings and puts the results beside its Table 1. Called
again after any stop, it goes on. Several processes with the same --out share the runs."""

OUT, RERUN_OUT = Path("runs/table1"), Path("runs/rerun")

#: The recipes whose learning rate falls as the paper's does.
CHOICES = (PAPER_RECIPE, "saturating")

#: The options that each mode takes besides its own; the last mode needs none.
MODES = {
    "rerun": ("data", "out", "threads"),
    "report": ("data", "out", "threads"),
    "evidence": ("data", "out", "threads", "unfinished"),
    "readme": (),
    "training": ("data", "out", "threads", "backend", "nets", "seeds", "recipe", "epochs"),
}


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    nets, folder = tuple(PRESETS), evidence.FOLDER
    add("--nets", type=_nets, default=nets, metavar="N,...", help="the paper's, 1 to 5 (all)")
    add("--seeds", type=_seeds, default=(0,), metavar="N,...", help="for each network (0)")
    add("--recipe", choices=CHOICES, default=PAPER_RECIPE, help=f"settings ({PAPER_RECIPE})")
    text = f"passes over the training set ({SCHEDULE_EPOCHS:,})"
    add("--epochs", type=whole_number, default=SCHEDULE_EPOCHS, help=text)
    add_backend_options(result)
    add("--data", type=_folder, help="folder with MNIST's four files, or others in their format")
    add("--out", type=_folder, help=f"folder of the runs ({OUT}; with --rerun {RERUN_OUT})")
    add("--report", action="store_true", help="only write table and figures of the runs so far")
    text = f"only keep finished runs, without their weights, for the repository ({folder})"
    add("--evidence", type=_folder, nargs="?", const=folder, metavar="DIR", help=text)
    add("--unfinished", action="store_true", help="with --evidence: unfinished runs too")
    text = "only put the table of the evidence between its two marks in a file (docs/table-1.md)"
    add("--readme", type=Path, nargs="?", const=Path("docs/table-1.md"), metavar="FILE", help=text)
    text = "only train a run of the evidence again and compare"
    add("--rerun", type=_folder, metavar="DIR", help=text)
    return result


def _nets(text: str) -> tuple[str, ...]:
    names = [f"net{part.strip().lower().removeprefix('net')}" for part in text.split(",")]
    if not set(names) <= set(PRESETS):
        raise argparse.ArgumentTypeError(f"{text!r}, expected some of {', '.join(PRESETS)}")
    return tuple(dict.fromkeys(names))


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(whole_number(part) for part in text.split(",")))


def _folder(text: str) -> Path:
    return Path(folder_name(text))


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status.

    It is 0 when all runs are finished, 1 when another process is still training one or when
    `--rerun` found a difference, 2 for bad input or a failed run, and 128 + n for signal n.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    again = shlex.join([sys.executable, os.path.relpath(sys.argv[0]), *arguments])
    return run_tool(lambda: _run(arguments, again), interrupted="stopped; called again, it goes on")


def _run(arguments: list[str], again: str) -> int:
    options = (known := parser()).parse_args(arguments)
    given = [name for name, value in vars(options).items() if value != known.get_default(name)]
    mode = next((name for name in MODES if name in given), "training")
    for name in given:
        if name != mode and name not in MODES[mode]:
            raise InputError(f"--{name} together with {mode}: expected one of them")
    if mode == "training":
        return _train(options, again)
    out, threads, data = options.out or OUT, options.threads, options.data
    if mode == "rerun":
        return rerun(options.rerun, options.out or RERUN_OUT, data, threads, again)
    if mode == "readme":
        _put_table(options.readme)
        return 0
    measured = measure(out, threads, data)
    if mode == "report":
        _report(out, measured)
    else:
        names = evidence.write_evidence(options.evidence, measured, options.unfinished)
        print(f"evidence of {', '.join(names)}: {shown(options.evidence)}")
        for line in measured.notes:
            print(f"note: {line}")
    return 0


def _put_table(page: Path) -> None:
    """Puts the table of the repository's evidence into a page."""
    text = read_bounded(page, evidence.MAX_BYTES).decode(errors="surrogateescape")
    records, summary = evidence.read_collection(evidence.FOLDER)
    table = report.table_text(records, summary, brief=True)
    new = report.replace_table(text, table, shown(page))
    atomic_write(page, new.encode(errors="surrogateescape"))
    print(f"table of {shown(evidence.FOLDER)}: {shown(page)}")


def _report(out: Path, measured: Measured) -> None:
    report.write_report(out, measured)
    print(text_table(table(measured.records, measured.committees)))
    print(f"report: {shown(out / report.REPORT)}")
    for line in measured.notes:
        print(f"note: {line}")


def _train(options: argparse.Namespace, again: str) -> int:
    """Trains what is left, then reports."""
    out, threads, chosen = options.out or OUT, options.threads, options.backend or "auto"
    backend = backends.get(chosen, threads)
    runs = plan(out, options.nets, options.seeds, options.epochs, options.recipe, backend)
    experiment = Experiment(runs, any_backend=chosen == "auto")
    if experiment.next_run():
        check_writable(out)
        # Other data than MNIST have to be named.
        data = dataset.load(options.data, name=None if options.data else "mnist")
        if stopped := experiment.train_all(data, again, threads):
            return stopped
    experiment.show()
    _report(out, measure(out, threads, options.data))
    if experiment.failed:
        return 2
    return int(not all(record.finished for record in experiment.records.values()))
