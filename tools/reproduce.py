"""The paper's Table 1: trains its networks by its settings, and shows the runs beside its figures.

Called again after any stop, it goes on. What has come of each run is written beside the run's
folder, as JSON. Such files of the finished experiment are in benchmarks/results/table1.
"""

import argparse
import math
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import msgspec
from scipy.special import stdtrit

from mlpcore.commands import train
from mlpcore.commands.options import Parser, add_backend_options, run_tool, whole_number
from mlpcore.commands.runs import REPORT
from mlpcore.errors import InputError
from mlpcore.evaluation.evaluation import wilson_interval
from mlpcore.files import atomic_write
from mlpcore.network.architecture import PRESETS, format_hidden_layers
from mlpcore.report.results import TABLE_1
from mlpcore.report.tables import NONE, Rows, duration, text_table
from mlpcore.store.run_folder import LAST, Run, holds_run, read_run_network, read_settings
from mlpcore.store.weights import weights_sha256
from mlpcore.training.config import SCHEDULE_EPOCHS
from mlpcore.training.state import EpochMetrics


@dataclass(frozen=True)
class Evidence:
    """The outcome of a run: the epochs with the lowest errors, and the last one so far.

    `weights` has epoch, SHA-256, revision and machine of networks that are not kept.
    """

    name: str
    backend: str
    training: dict[str, Any]
    seconds: float
    best: EpochMetrics
    best_test: EpochMetrics
    last: EpochMetrics
    weights: list[dict[str, Any]]

    @property
    def network(self) -> str:
        """net1 ... net5, or the widths of other hidden layers."""
        return format_hidden_layers(tuple(self.training["hidden_layers"]))

    @property
    def group(self) -> tuple[int, str, str, int]:
        """The settings that runs with other seeds share; in the order of the table."""
        order, network = list(TABLE_1), self.network
        place = order.index(network) if network in order else len(order)
        return place, network, re.sub(r"-seed\d+$", "", self.name), -self.training["epochs"]

    @property
    def machine(self) -> str:
        if device := re.match("cuda: ([^,]+)", self.backend):
            return device[1]
        name = self.weights[-1]["machine"].partition(",")[0]
        threads = re.search(r"\d+ threads?", self.backend)
        return f"{re.sub(r'[(]R[)]| Processor', '', name)}, {threads[0] if threads else NONE}"


def evidence_of(folder: Path) -> Evidence:
    """The evidence of a run; an InputError if no epoch is done."""
    run = Run(folder, *read_settings(folder))
    state, content = run.load(), msgspec.json.decode((folder / "config.json").read_bytes())
    best, best_test = state.best_metrics, state.best_test_metrics
    if best is None or best_test is None:
        raise InputError("no epoch is done")
    network, found = read_run_network(folder / LAST, run.config, run.data)
    weights = {name: found[name] for name in ("epoch", "revision", "machine")}
    return Evidence(
        folder.name,
        content["backend"],
        content["training"],
        round(state.seconds, 1),
        best,
        best_test,
        state.history[-1],
        [weights | {"sha256": weights_sha256(network)}],
    )


def row(name: str, runs: Sequence[Evidence]) -> tuple[str, ...]:
    """One run, or the mean over runs with different seeds; 95 % intervals are in brackets.

    They are Wilson's for the errors of one network, and Student's t over the seeds for a mean.
    """
    run, errors = runs[0], [run.best.test_error for run in runs]
    if len(runs) == 1:
        low, high = (100 * end for end in wilson_interval(run.best.test_errors, run.best.n_test))
    else:
        half = stdtrit(len(runs) - 1, 0.975) * statistics.stdev(errors) / math.sqrt(len(runs))
        low, high = (max(0.0, statistics.mean(errors) + each) for each in (-half, half))
    epochs, machines = run.training["epochs"], {run.machine for run in runs}
    return (
        name,
        f"{epochs:,}" if run.last.epoch == epochs else f"{run.last.epoch:,} of {epochs:,}",
        f"{statistics.mean(run.best.validation_error for run in runs):.2f} %",
        f"{statistics.mean(errors):.2f} % ({low:.2f} to {high:.2f})",
        f"{statistics.mean(run.last.test_error for run in runs):.2f} %",
        f"{statistics.mean(run.best_test.test_error for run in runs):.2f} %",
        duration(statistics.mean(run.seconds for run in runs)),
        machines.pop() if len(machines) == 1 else NONE,
    )


def table(runs: Iterable[Evidence]) -> Rows:
    """The paper's row of each network, one for every run, and the mean over seeds of each group."""
    errors = "validation error", "test error", "last epoch", "best test error"
    rows: Rows = [("run", "epochs", *errors, "time", "machine")]
    ordered = sorted(runs, key=lambda run: (run.group, run.training["seed"]))
    shown = set()
    for (_, network, stem, _), group in groupby(ordered, lambda run: run.group):
        if network in TABLE_1 and network not in shown:
            shown.add(network)
            error, best, hours, _ = TABLE_1[network]
            cells = f"{error:.2f} %", NONE, f"{best:.2f} %", f"{hours} h", "NVIDIA GTX 280"
            rows.append((f"{network} in the paper", NONE, NONE, *cells))
        alike = list(group)
        rows += [row(run.name, [run]) for run in alike]
        finished = [run for run in alike if run.last.epoch == run.training["epochs"]]
        if len(finished) > 1:
            rows.append(row(f"{stem}, mean of {len(finished)} seeds", finished))
    return rows


def train_all(options: argparse.Namespace) -> int:
    """Trains what is left of all runs, those with the first seed first; returns the exit status."""
    status = 0
    for seed, net in product(options.seeds, options.nets):
        network = f"net{net}" if options.recipe == "paper" else f"net{net}-{options.recipe}"
        folder = options.out / f"{network}-seed{seed}"
        argv = ["--epochs", options.epochs, "--threads", options.threads, "--resume", folder]
        if not holds_run(folder):
            argv[-2:] = ["--out", folder, "--arch", f"net{net}", "--recipe", options.recipe]
            argv += ["--lr-end", 1e-6, "--seed", seed, "--dataset", "mnist"]
            argv += ["--backend", options.backend]
        elif (folder / REPORT).exists() and read_settings(folder)[0].epochs == options.epochs:
            continue
        pairs = (pair for pair in zip(argv[::2], argv[1::2]) if pair[1] is not None)
        print(f"\n{folder.name}:", flush=True)
        code = train.main([str(word) for pair in pairs for word in pair])
        if code > 2:
            print("The same command as before goes on with all runs.")
            return code
        status = max(status, code)
    return status


def report(out: Path) -> None:
    """Prints the table of the runs in a folder, and writes their evidence."""
    runs = []
    for config in sorted(out.glob("*/config.json")):
        try:
            runs.append(evidence_of(config.parent))
        except InputError as error:
            print(f"note: {config.parent.name} is left out: {error}", file=sys.stderr)
    for run in runs:
        content = msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"
        atomic_write(out / f"{run.name}.json", content)
    print(f"\n{text_table(table(runs))}")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 2 for bad input or if a run failed, 128 + n for signal n."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    nets = range(1, len(PRESETS) + 1)
    add("--nets", type=int, choices=nets, nargs="+", default=nets, help="the paper's (all)")
    add("--seeds", type=whole_number, nargs="+", default=[0], metavar="N", help="for each (0)")
    add("--recipe", choices=("paper", "saturating"), default="paper", help="settings (paper)")
    text = f"passes over the training set ({SCHEDULE_EPOCHS:,})"
    add("--epochs", type=whole_number, default=SCHEDULE_EPOCHS, help=text)
    add_backend_options(parser)
    add("--out", type=Path, default=Path("runs/table1"), help="folder of the runs (runs/table1)")
    add("--report", action="store_true", help="only show the runs so far")

    def command() -> int:
        options = parser.parse_args(argv)
        status = 0 if options.report else train_all(options)
        report(options.out)
        return status

    return run_tool(command)


if __name__ == "__main__":
    sys.exit(main())
