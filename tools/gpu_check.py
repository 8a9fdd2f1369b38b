"""Checks on a machine with an NVIDIA GPU what no other machine can show, in nine minutes.

    python tools/gpu_check.py --results DIR [--steps NAME ...]

Each step is a command of its own with a time limit, so that one that fails or hangs does not
take the others with it. After each step DIR/summary.json has all figures so far; DIR/details has
every step's output and tables. It uses the Python that runs it, without network or installation.
The exit status is 0 when no step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]

#: Seconds for all steps together.
BUDGET = 540

#: The other steps make no sense when one of these has failed.
ESSENTIAL = ("requirements", "build", "device")


class Step(NamedTuple):
    """A command and its share of the budget in seconds."""

    seconds: int
    command: list[str]


def plan(details: Path) -> dict[str, Step]:
    """The steps in their order. Their shares are what an H200 with 16 cores took, and more.

    A step's figures go to NAME.json or NAME.xml in `details`.
    """
    python = sys.executable

    def measure(name: str) -> list[str]:
        return [python, "-m", "gpu.measure", name, str(details / f"{name}.json")]

    def pytest(name: str, *tests: str) -> list[str]:
        report = ["-o", "junit_family=xunit1", f"--junitxml={details / name}.xml"]
        # A package that is missing stops the tests that import it, and no others.
        options = ["-v", "-m", "gpu", "--continue-on-collection-errors", *report]
        return [python, "-m", "pytest", *options, *tests]

    def sanitizer(tool: str) -> list[str]:
        # cuda-bindings asks for functions that older drivers lack; mlpcore checks all its calls.
        options = ["--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9"]
        return ["compute-sanitizer", *options, python, "-m", "gpu.exercise"]

    def speedup(name: str, presets: str, *options: str) -> list[str]:
        choice = ["--arch", presets, "--backend", "cuda", *options, "--quick"]
        return [python, "tools/speedup.py", *choice, "--json", str(details / f"{name}.json")]

    program = shlex.quote(str(details / "exchange"))
    exchange = f"nvcc -O3 -std=c++17 -arch=native -o {program} benchmarks/exchange.cu && {program}"
    # The CPU's peers and compilers take minutes on the larger networks.
    on_gpu = ["--routine", "step", "--threads", "1", "--peers", "GPU,PyTorch CUDA graph"]
    return {
        "requirements": Step(5, [python, "-m", "gpu.requirements"]),
        "build": Step(85, [python, "setup.py", "build_ext", "--inplace"]),
        "device": Step(30, measure("device")),
        "equivalence": Step(45, pytest("equivalence", "tests", "--ignore=tests/gpu")),
        "memcheck": Step(20, sanitizer("memcheck")),
        "racecheck": Step(50, sanitizer("racecheck")),
        "synccheck": Step(20, sanitizer("synccheck")),
        "accuracy": Step(45, pytest("accuracy", "tests/gpu", "-k", "accuracy")),
        "repeats": Step(25, pytest("repeats", "tests/gpu", "-k", "repeats")),
        "training": Step(30, pytest("training", "tests/gpu", "-k", "training")),
        "steps": Step(20, measure("steps")),
        "delays": Step(10, measure("delays")),
        "exchange": Step(20, ["sh", "-c", exchange]),
        "speedup-net1": Step(65, speedup("speedup-net1", "net1", "--peers")),
        "speedup-larger": Step(70, speedup("speedup-larger", "net2;net3;net4;net5", *on_gpu)),
    }


def environment() -> dict[str, str]:
    """The variables of steps: they find this checkout, and compute-sanitizer beside nvcc."""
    nvcc = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").resolve()
    path = [os.environ.get("PATH", ""), str(nvcc.parent), "/usr/local/cuda/bin"]
    # What PYTHONPATH names stays, because PyCUDA may lie in a folder of its own.
    python = [str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]
    lists = {"PATH": path, "PYTHONPATH": python}
    return os.environ | {name: os.pathsep.join(filter(None, lists[name])) for name in lists}


def read_figures(log: Path) -> Any:
    """What a step has found: from its JSON or JUnit file beside its log, else the log's lines."""
    if (table := log.with_suffix(".json")).exists():
        figures = json.loads(table.read_text())
        if "architectures" not in figures:
            return figures
        return {each["name"]: times(each["routines"]) for each in figures["architectures"]}
    if (report := log.with_suffix(".xml")).exists():
        suite = next(ElementTree.parse(report).iter("testsuite"))
        result: dict[str, Any] = {name: suite.get(name) for name in ("tests", "skipped")}
        for case in suite.iter("testcase"):
            if recorded := [each.attrib for each in case.iter("property")]:
                result[case.attrib["name"]] = {each["name"]: each["value"] for each in recorded}
        return result
    lines = log.read_text(errors="replace").splitlines()
    # Of a build: registers and spills of the kernels, not the compilers' command lines.
    return [line for line in lines if line.startswith("mlpcore:") or log.stem != "build"]


def times(routines: list[dict[str, Any]]) -> dict[str, Any]:
    """Microseconds of each routine from `tools/speedup.py`, and how many times ours they are."""
    result: dict[str, Any] = {}
    for routine in routines:
        timed = [line for line in routine["results"] if line["timing"]]
        us = {f"{t['name']}, {t['threads']}": 1e6 * t["timing"]["seconds"] for t in timed}
        ours = us.get("cuda, 1")
        ratios = {name: ours and other / ours for name, other in us.items()}
        result[routine["key"]] = {"us": us, "times_ours": ratios}
    return result


def run(command: list[str], log: Path, seconds: int) -> dict[str, Any]:
    """Run a command in a group of processes that ends after so many seconds; its result."""
    for old in log.parent.glob(f"{log.stem}.*"):  # must not pass for what this run finds
        old.unlink()
    # timeout(1) ends all that the command has started, even if this process has been killed.
    command, start = ["timeout", "--signal=KILL", str(seconds), *command], time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            status = process.wait()
        finally:
            process.terminate()
    taken = time.monotonic() - start
    result: dict[str, Any] = {"ok": status == 0, "seconds": round(taken, 1)}
    if status:
        late = taken >= seconds
        result["error"] = f"not done within {seconds} s" if late else f"exit status {status}"
    try:
        result["figures"] = read_figures(log)
    except Exception as error:  # of a file that was cut off; later steps must run all the same
        result |= {"ok": False, "error": f"its figures cannot be read: {error!r}"}
    return result


def check(results: Path, names: list[str]) -> bool:
    """Run steps and write the summary after each; whether none has failed."""
    details, summary_file = results / "details", results / "summary.json"
    details.mkdir(parents=True, exist_ok=True)
    steps, summary = plan(details), {}
    if names != list(steps) and summary_file.exists():  # this run completes an earlier one
        summary = json.loads(summary_file.read_text())
    end = time.monotonic() + BUDGET
    for i, name in enumerate(names):
        # What a step leaves of its share is the next one's; later shares are never touched.
        later = sum(steps[other].seconds for other in names[i + 1 :])
        limit = max(1, int(end - time.monotonic()) - later)
        log = details / f"{name}.log"
        result = summary[name] = run(steps[name].command, log, limit)
        print(f"{name}: {result.get('error', 'ok')} ({result['seconds']} s)", flush=True)
        if not result["ok"] or name == "requirements":
            print(*log.read_text(errors="replace").splitlines()[-30:], sep="\n", flush=True)
        new = summary_file.with_suffix(".new")
        new.write_text(json.dumps(summary, indent=2) + "\n")
        new.replace(summary_file)  # whole or not at all
        if name in ESSENTIAL and not result["ok"]:
            print(f"stopped: the other steps need {name}; --steps can name them without it")
            break
    return all(summary[name]["ok"] for name in names if name in summary)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = list(plan(Path()))
    parser.add_argument("--results", type=Path, required=True, help="folder for the figures")
    parser.add_argument("--steps", nargs="+", choices=names, default=names, metavar="NAME")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the step that runs as well
    return 0 if check(arguments.results.resolve(), arguments.steps) else 1


if __name__ == "__main__":
    sys.exit(main())
