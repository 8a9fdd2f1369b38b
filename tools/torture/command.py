"""Campaigns of hostile tries, one after another; prints what each tried and what was violated."""

from __future__ import annotations

import argparse
import datetime
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlpcore.checks import check_choice
from mlpcore.commands.options import Parser, number, run_tool, whole_number
from mlpcore.cpu import cpu_model
from mlpcore.errors import InputError
from mlpcore.report.tables import Rows, markdown_table
from mlpcore.store.provenance import revision
from torture import disasters

ROOT = Path(__file__).resolve().parents[2]

#: Each campaign's share of the time, and what it tries. `disasters` has the functions of the first
#: ones. The others are files of tests/robustness, whose properties Hypothesis tries.
DISASTERS = {
    "kills": (3, "SIGKILL at random moments of a training, which goes on to the same bits"),
    "committees": (2, "SIGKILL at random moments of two committees, begun at once in one folder"),
    "power_cuts": (2, "power cuts of the disk that a training writes to"),
    "full_disks": (1, "a disk that is full while a training writes to it"),
    "interrupts": (1, "Ctrl-C in the first half second of a command"),
}
PROPERTIES = {
    "hostile_runs": (2, "commands on runs with hostile values and checksums that fit"),
    "hostile_data": (1, "commands on damaged IDX and .npz files"),
    "hostile_pictures": (1, "predictions of damaged pictures"),
    "onnx_files": (1, "ONNX files of committees on data of any type and range, beside Python"),
    "integers": (1, "deformations of whole numbers of any type and size, beside float64"),
    "wrong_arguments": (3, "calls of the public functions with wrong arguments"),
}
CAMPAIGNS = DISASTERS | PROPERTIES

#: So many violations of a campaign, or lines of one, are printed.
SHOWN = 30

#: Where `make torture` puts the package that is built with sanitizers.
SANITIZED = ROOT / "build" / "sanitize"

#: The first examples of a property, which say how many fit into the time, and the most at once.
FIRST, MOST = 100, 20_000

#: A process that takes longer hangs, in seconds: Hypothesis shrinks a counterexample for 300.
HANG = 3600


@dataclass
class Result:
    """How many tries a campaign made, those that broke a promise, and what else there is to say."""

    tried: int = 0
    violations: list[str] = field(default_factory=list)
    note: str = ""


def let_happen(name: str, seconds: float, seed: int) -> Result:
    """The result of disasters for so many seconds."""
    result, rng, end = Result(), random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < end and not result.note:
        with tempfile.TemporaryDirectory() as folder:
            try:
                for problem in getattr(disasters, name)(Path(folder), rng):
                    result.tried += 1
                    result.violations += [problem] if problem else []
            except OSError as error:  # of mount
                result.note = f"not here: {error}"
    return result


def environment(preload: str) -> dict[str, str]:
    """The variables of properties; with the libraries of sanitizers, also those that these need."""
    common = os.environ | {"HYPOTHESIS_PROFILE": "torture"}
    if not preload:
        return common
    options = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2000"
    sanitizers = {"LD_PRELOAD": preload, "ASAN_OPTIONS": options, "OPENBLAS_NUM_THREADS": "1"}
    return common | sanitizers | {"PYTHONPATH": str(SANITIZED)}


def try_properties(name: str, seconds: float, seed: int, preload: str) -> Result:
    """The result of a file of properties for so many seconds, or until one is violated."""
    note = "under AddressSanitizer and UndefinedBehaviorSanitizer" if preload else ""
    result, examples, end = Result(note=note), FIRST, time.monotonic() + seconds
    while not result.violations:
        start = time.monotonic()
        _try_once(result, name, examples, seed, environment(preload))
        taken, left = time.monotonic() - start, end - time.monotonic()
        if left < taken:
            break
        examples, seed = min(int(examples * left / taken), MOST), seed + 1
    return result


def _try_once(
    result: Result, name: str, examples: int, seed: int, variables: dict[str, str]
) -> None:
    """Try so many examples of each property in a process, which may crash."""
    options = ["-n0", "-s", "-p", "no:cacheprovider", "--hypothesis-show-statistics"]
    test = [f"tests/robustness/test_{name}.py", f"--hypothesis-seed={seed}"]
    # `python -m pytest` would import the package in ROOT, and not the one on PYTHONPATH.
    pytest = Path(sys.executable).with_name("pytest")
    process = subprocess.Popen(
        [pytest, *options, *test], cwd=ROOT, text=True, errors="replace",
        env=variables | {"HYPOTHESIS_EXAMPLES": str(examples)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    counts = re.findall(r"(\d+) passing\D+(\d+) failing", output)
    result.tried += sum(int(count) for pair in counts for count in pair)
    if process.returncode:
        lines = output.splitlines()
        said = [line for line in lines if line.startswith("E  ")] or lines[-SHOWN:]
        head = f"seed {seed}, {examples} examples, status {process.returncode}"
        result.violations.append("\n    ".join([head, *said[:SHOWN]]))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(prog="torture.py", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("campaigns", nargs="*", metavar="NAME", help=f"{', '.join(CAMPAIGNS)} (all)")
    add("--minutes", type=number, default=60, help="in all, roughly (%(default)s)")
    add("--seed", type=whole_number, default=0, help="of the random tries (0)")
    add("--preload", default="", help="libraries of the sanitizers, for wrong_arguments")
    options = parser.parse_args(argv)
    for name in options.campaigns:
        check_choice("campaign", name, tuple(CAMPAIGNS))
    if not 0 < options.minutes <= 10_000:
        raise InputError(f"--minutes {options.minutes:g}: expected more than 0, at most 10,000")
    return options


def torture(options: argparse.Namespace) -> int:
    """Run the campaigns; returns the exit status."""
    names = options.campaigns or list(CAMPAIGNS)
    shares = sum(CAMPAIGNS[name][0] for name in names)
    rows: Rows = [("campaign", "tried", "violated", "")]
    violated = False
    for name in names:
        share, text = CAMPAIGNS[name]
        seconds = 60 * options.minutes * share / shares
        print(f"{name}: {text}, {seconds:.0f} s", flush=True)
        if name in DISASTERS:
            result = let_happen(name, seconds, options.seed)
        else:
            preload = options.preload if name == "wrong_arguments" else ""
            result = try_properties(name, seconds, options.seed, preload)
        for problem in result.violations[:SHOWN]:
            print(f"  VIOLATED {problem}", flush=True)
        text += f" ({result.note})" if result.note else ""
        rows.append((name, f"{result.tried:,}", f"{len(result.violations):,}", text))
        violated |= bool(result.violations)
    print(f"\n{datetime.date.today()}, revision {revision() or 'unknown'}, {cpu_model()}\n")
    print(markdown_table(rows, align="lrrl"))
    return int(violated)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 when something was violated, 2 for bad input."""
    return run_tool(lambda: torture(parse(argv)))
