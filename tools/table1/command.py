"""The command line of `tools/reproduce.py`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mlpcore.commands import train
from mlpcore.commands.options import (
    Parser,
    add_backend_options,
    folder_name,
    run_tool,
    whole_number,
)
from mlpcore.commands.runs import REPORT
from mlpcore.errors import InputError, shown
from mlpcore.network.architecture import PRESETS
from mlpcore.report.tables import text_table
from mlpcore.store.run_folder import holds_run, read_settings
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import PAPER_RECIPE, RECIPES
from mlpcore.training.schedule import PAPER_LEARNING_RATE_END, SCHEDULE_EPOCHS
from table1.evidence import arguments, gather, keep, read_all
from table1.tables import put_tables, table, write_page

DESCRIPTION = """\
Trains the paper's networks with its settings and puts the results beside its Table 1. Called again
after any stop, it goes on. Several processes with the same --out share the runs."""

OUT, FOLDER = Path("runs/table1"), Path("benchmarks/results/table1")
PAGE = Path("docs/table-1.md")

#: The recipes whose learning rate falls as the paper's does.
CHOICES = (PAPER_RECIPE, "saturating")


def parser() -> Parser:
    """The options."""
    result = Parser(description=DESCRIPTION, allow_abbrev=False)
    add = result.add_argument
    add("--nets", type=_nets, default=tuple(PRESETS), metavar="N,...", help="the paper's, 1 to 5")
    add("--seeds", type=_seeds, default=(0,), metavar="N,...", help="for each network (0)")
    add("--recipe", choices=CHOICES, default=PAPER_RECIPE, help=f"settings ({PAPER_RECIPE})")
    text = f"passes over the training set ({SCHEDULE_EPOCHS:,})"
    add("--epochs", type=whole_number, default=SCHEDULE_EPOCHS, help=text)
    add_backend_options(result)
    add(
        "--data", type=folder_name, help="folder with MNIST's four files, or others in their format"
    )
    add("--out", type=_folder, default=OUT, help=f"folder of the runs ({OUT})")
    modes = result.add_mutually_exclusive_group()
    modes.add_argument("--report", action="store_true", help="only show the runs so far")
    text = f"only keep what has come of the runs for the repository ({FOLDER})"
    modes.add_argument("--evidence", type=Path, nargs="?", const=FOLDER, metavar="DIR", help=text)
    text = f"only put the table of the repository's evidence in a page ({PAGE})"
    modes.add_argument("--page", type=Path, nargs="?", const=PAGE, metavar="FILE", help=text)
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

    It is 0 when all runs are finished, 2 for bad input or when a run failed or is in use by
    another process, and 128 + n for signal n.
    """
    return run_tool(lambda: _run(parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    if options.page:
        put_tables(options.page, read_all(FOLDER))
        return 0
    if options.evidence:
        keep(options.evidence, gather(options.out))
        write_page(options.evidence / "README.md", read_all(options.evidence))
        return 0
    status = 0 if options.report else train_all(options)
    if status <= 2:
        runs = gather(options.out)
        print(f"\n{text_table(table(runs))}")
        write_page(options.out / "report.md", runs)
    return status


def plan(options: argparse.Namespace) -> dict[Path, TrainingConfig]:
    """The settings of every run by its folder: all networks with the first seed come first.

    They are the paper's where it states them, unless the recipe changes them. The learning rate
    takes `epochs` epochs from the paper's first value to its last.
    """
    stem = "" if options.recipe == PAPER_RECIPE else f"-{options.recipe}"
    return {
        options.out / f"{net}{stem}-seed{seed}": TrainingConfig(
            hidden_layers=PRESETS[net],
            epochs=options.epochs,
            learning_rate_end=PAPER_LEARNING_RATE_END,
            seed=seed,
            **RECIPES[options.recipe].settings_of(PRESETS[net]),
        )
        for seed in options.seeds
        for net in options.nets
    }


def left(folder: Path, config: TrainingConfig, options: argparse.Namespace) -> list[str]:
    """The options of `mlpcore train` for what is left of a run; none if that is nothing.

    Raises InputError when the run was started with other settings.
    """
    wanted = arguments(config)
    given = {"--data": options.data, "--threads": options.threads}
    if not holds_run(folder):
        # Other data than MNIST have to be named.
        given |= {"--backend": options.backend, "--dataset": None if options.data else "mnist"}
        result = [*wanted, "--out", str(folder)]
    else:
        found = arguments(read_settings(folder)[0])
        if found != wanted:
            raise InputError(
                f"{shown(folder)} was started with {' '.join(found)}, asked for "
                f"{' '.join(wanted)}: expected the same, or another --out"
            )
        # A run that was killed between its last epoch and its report needs the report.
        if (folder / REPORT).exists():
            return []
        result = ["--resume", str(folder)]
    return result + [word for pair in given.items() if pair[1] for word in map(str, pair)]


def train_all(options: argparse.Namespace) -> int:
    """Trains what is left of all runs, one after another; returns the exit status."""
    planned, status = plan(options), 0
    for folder, config in planned.items():
        left(folder, config, options)  # refuses before hours are spent
    for folder, config in planned.items():
        if argv := left(folder, config, options):
            print(f"\n{folder.name}:", flush=True)
            code = train.main(argv)
            if code > 2:
                print("The same command as before goes on with all runs.")
                return code
            status = max(status, code)
    return status
