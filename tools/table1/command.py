"""The command line of `tools/reproduce.py`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import (
    Parser,
    add_backend_options,
    command_text,
    folder_name,
    run_tool,
    whole_number,
)
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, check_writable, read_bounded
from mlpcore.network.architecture import PRESETS
from mlpcore.report.console import Console
from mlpcore.report.tables import text_table
from mlpcore.training.config import SCHEDULE_EPOCHS
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES
from table1 import evidence, readme
from table1.collect import write_evidence
from table1.data import load
from table1.experiment import Experiment
from table1.measure import Measured, measure
from table1.records import read_records
from table1.report import REPORT, write_report
from table1.rerun import rerun
from table1.tables import table
from table1.work import Work

DESCRIPTION = """\
Trains the paper's networks with its settings and puts the results beside its Table 1. Called
again after a stop, of whatever kind, it goes on. Runs of several processes with the same --out
share the work."""

OUT, RERUN_OUT = "runs/table1", "runs/rerun"

MAX_README_BYTES = 2**24

#: Options that say what is to be trained.
TRAINING = ("nets", "seeds", "recipe", "epochs", "backend")


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    add("--nets", type=_nets, metavar="N,...", help="of the paper's networks 1 to 5 (all)")
    add("--seeds", type=_seeds, metavar="N,...", help="a run of each network with each (0)")
    add(
        "--recipe", choices=RECIPES, help=f"changes the paper's settings, or not ({DEFAULT_RECIPE})"
    )
    add("--epochs", type=whole_number, help=f"passes over the training set ({SCHEDULE_EPOCHS:,})")
    add_backend_options(result)
    add(
        "--data",
        type=folder_name,
        help="folder with the four files of MNIST, or of data in the same format",
    )
    add("--out", type=lambda text: Path(folder_name(text)), help=f"folder of the runs ({OUT})")
    add("--report", action="store_true", help="only write table and figures of what there is")
    add(
        "--evidence",
        type=Path,
        nargs="?",
        const=evidence.FOLDER,
        metavar="DIR",
        help="only collect finished runs, without their weights, for the repository "
        f"({evidence.FOLDER})",
    )
    add("--unfinished", action="store_true", help="with --evidence: unfinished runs too")
    add(
        "--readme",
        type=Path,
        nargs="?",
        const=Path("README.md"),
        metavar="FILE",
        help="only put the table of the evidence into a file, between its two marks (README.md)",
    )
    add("--rerun", type=Path, metavar="DIR", help="compute a run of the evidence again and compare")
    return result


def _nets(text: str) -> tuple[str, ...]:
    names = {name.removeprefix("net"): name for name in PRESETS}
    found = []
    for part in text.split(","):
        number = part.strip().lower().removeprefix("net")
        if number not in names:
            raise argparse.ArgumentTypeError(f"{part!r}, expected {', '.join(names)}")
        found.append(names[number])
    return tuple(dict.fromkeys(found))


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(whole_number(part) for part in text.split(",")))


def main(argv: Sequence[str] | None = None, script: str = "tools/reproduce.py") -> int:
    """The exit status.

    0 when all runs are finished, 1 when another process is still at one (or `--rerun` found a
    difference), 2 for bad input or a run that failed, 128 + n for signal n.
    """

    def command() -> int:
        arguments = list(sys.argv[1:] if argv is None else argv)
        options = parser().parse_args(arguments)
        again = command_text(script, *arguments)
        if options.rerun:
            others = "report", "evidence", "unfinished", "readme"
            _refuse(options, "--rerun", *TRAINING, *others)
            out = options.out or Path(RERUN_OUT)
            with Console(sys.stdout) as console:
                return rerun(options.rerun, out, console, again, options.threads, options.data)
        if options.report or options.evidence or options.readme:
            mode = next(name for name in ("report", "evidence", "readme") if getattr(options, name))
            _refuse(options, f"--{mode}", *TRAINING)
            if options.unfinished and not options.evidence:
                raise InputError(f"--unfinished together with --{mode}: expected --evidence")
            if mode == "readme":
                _refuse(options, "--readme without --evidence", "out", "threads", "data")
            return _present(options)
        if options.unfinished:
            raise InputError("--unfinished alone: expected it with --evidence")
        return _reproduce(options, again)

    return run_tool(command, "less data, or fewer --nets", "stopped; called again, it goes on")


def _refuse(options: argparse.Namespace, mode: str, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False:
            raise InputError(f"--{name} together with {mode}: expected one of them")


# ---- what there is -------------------------------------------------------------------------


def _present(options: argparse.Namespace) -> int:
    """Report, evidence and README, without training."""
    left_out: list[str] = []
    if options.report or options.evidence:
        out = options.out or Path(OUT)
        measured, problems = _measure(out, options)
        if options.report:
            left_out += _report(out, measured, problems)
        else:
            left_out += [*problems.values(), *measured.notes]
        if options.evidence:
            written, skipped = write_evidence(
                options.evidence, out, measured, problems, options.unfinished
            )
            left_out += skipped
            print(f"evidence of {', '.join(written)}: {shown(options.evidence)}")
    for line in left_out:
        print(f"note: {line}")
    if options.readme:
        folder = options.evidence or evidence.FOLDER
        text = read_bounded(options.readme, MAX_README_BYTES).decode(errors="surrogateescape")
        new = readme.readme_table(folder)
        try:
            text = readme.replace_table(text, new)
        except InputError as error:
            raise InputError(f"{shown(options.readme)}: {error}") from None
        atomic_write(options.readme, text.encode(errors="surrogateescape"))
        print(f"table of {shown(folder)}: {shown(options.readme)}")
    return 0


def _measure(out: Path, options: argparse.Namespace) -> tuple[Measured, dict[str, str]]:
    records, problems = read_records(out)
    if not records and not problems:
        raise InputError(f"{shown(out)} holds no runs: expected what this tool has trained")
    return measure(out, records, options.threads, options.data), problems


def _report(out: Path, measured: Measured, problems: Mapping[str, str]) -> list[str]:
    """Writes and shows the report; returns what is left out."""
    left_out = write_report(out, measured, problems)
    print(text_table(table(measured.records, measured.committees)))
    print(f"report: {shown(out / REPORT)}")
    return left_out


# ---- training ------------------------------------------------------------------------------


def _reproduce(options: argparse.Namespace, again: str) -> int:
    """Trains what is left, then reports."""
    chosen = options.backend or "auto"
    backend = backends.get(chosen, options.threads)
    experiment = Experiment(
        nets=options.nets or tuple(PRESETS),
        seeds=options.seeds or (0,),
        epochs=SCHEDULE_EPOCHS if options.epochs is None else options.epochs,
        out=options.out or Path(OUT),
        backend=None if chosen == "auto" else backend.name,
        recipe=options.recipe or DEFAULT_RECIPE,
    )
    for run in experiment.runs:  # bad settings are noticed before anything is read
        experiment.config(run, (), backend.name, backend.schedule)
    work = Work(experiment, backend.name, options.threads)
    if work.look():
        check_writable(experiment.out)
        stopped = work.train(load(options.data), again)
        if stopped:
            return stopped
    work.show()
    measured, problems = _measure(experiment.out, options)
    for line in _report(experiment.out, measured, problems):
        print(f"note: {line}")
    return work.status
