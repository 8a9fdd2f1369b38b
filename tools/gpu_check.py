"""Everything that can only be checked on a machine with an NVIDIA GPU, in one command.

    python tools/gpu_check.py --results DIR

Builds in place, runs the GPU tests, compute-sanitizer, a short training and the measurements.
``summary.json`` in DIR has the results of all steps, ``details`` beside it a file for each and
the whole tables. Steps run in processes of their own, so that one that fails or hangs does not
take the others with it, but for those that all others need. No network and no virtual
environment are needed. Exit status 0 when no step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:  # which needs what `build` builds
    from mlpcore.backends.cuda.backend import CudaBackend

#: What a step has found, as JSON keeps it.
Result: TypeAlias = dict[str, Any]

#: Seconds that all steps may take together: well under ten minutes.
BUDGET = 540

#: Each step in the order in which they run, and its share of the budget in seconds: what an H200
#: with 16 cores took, and some more (a first build took 43 s). What a step leaves of its share is
#: the next one's; the shares of those to come are never touched.
STEPS = {
    "requirements": 5,
    "build": 85,
    "device": 10,
    "kernels": 30,
    "tests": 45,
    "memcheck": 10,
    "racecheck": 45,
    "accuracy": 30,
    "streaming_accuracy": 15,
    "repeats": 20,
    "resident": 15,
    "committee": 10,
    "exchange": 20,
    "bandwidth": 10,
    "deformation": 10,
    "launches": 15,
    "training": 30,
    "speedup": 135,
}

#: Steps that all later ones need.
ESSENTIAL = ("requirements", "build", "device")

#: Steps that are too long to be among all steps, by name alone.
OPTIONAL = {"soak": 660}

#: What `tools/speedup.py` measures: all of net1, and of the larger networks, on which the CPU's
#: peers and compilers take minutes, the on-line step on the GPU.
SPEEDUPS = {
    "net1": ["--peers"],
    "net2;net3;net4;net5": [
        *("--routine", "step", "--threads", "1", "--peers", "GPU,PyTorch CUDA graph"),
    ],
}


def details(results: Path) -> Path:
    """The folder of everything but the summary."""
    folder = results / "details"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(path: Path, result: Result) -> None:
    """Whole or not at all: the process may be killed meanwhile."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(result, indent=2) + "\n")
    new.replace(path)


def _run(command: list[str], **environment: str) -> Result:
    """A command in the root of the repository; what it says, line by line.

    Raises
    ------
    RuntimeError
        With the end of that, when its exit status is not 0.
    """
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = result.stdout.splitlines()
    if result.returncode:
        raise RuntimeError(f"exit status {result.returncode}: " + "\n".join(lines[-40:]))
    return {"output": lines}


def _import_path() -> dict[str, str]:
    """The variable that lets tools import mlpcore from here, and all else from where it was."""
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *([before] if before else [])])}


def build() -> Result:
    """The extensions and the kernels; what is said of these, not the compilers' command lines."""
    lines = _run([sys.executable, "setup.py", "build_ext", "--inplace"])["output"]
    return {"output": [line for line in lines if line.startswith("mlpcore:")]}


def tests() -> Result:
    """The suites over the device; those over the emulation run where there is none."""
    chosen = "([cuda] or [cuda- or -cuda]) and not emulated"  # by the parameters of the tests
    return _run([sys.executable, "-m", "pytest", "-q", "tests", "-k", chosen])


def exchange() -> Result:
    """What exchanges of resident training cost by themselves, in the program's own lines."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "exchange")
        source = str(ROOT / "benchmarks" / "exchange.cu")
        _run(["nvcc", "-O3", "-std=c++17", "-arch=native", "-o", program, source])
        return _run([program])


def speedup(results: Path) -> Result:
    """The on-line step of every preset beside peers; whole tables as ``speedup-net1.json`` etc.

    Required: a step faster than both of PyTorch's eager loops.
    """
    from gpu_measure import CheckError

    steps: Result = {}
    failures = []
    for presets, options in SPEEDUPS.items():
        file = details(results) / f"speedup-{presets.replace(';', '-')}.json"
        command = [sys.executable, "tools/speedup.py", "--arch", presets, "--backend", "cuda"]
        try:
            _run([*command, *options, "--quick", "--json", str(file)], **_import_path())
            architectures = json.loads(file.read_text())["architectures"]
            for preset, architecture in zip(presets.split(";"), architectures):
                steps[preset] = step_rows(architecture)
                failures += [f"{preset}: {line}" for line in missed(steps[preset])]
        except RuntimeError as error:
            failures.append(f"{presets}: {error}")
        # What there is if the rest takes too long.
        _write(details(results) / "speedup.json", {"ok": False, "steps": steps})
    if failures:
        raise CheckError("; ".join(failures), {"steps": steps})
    return {"steps": steps}


def step_rows(architecture: Result) -> list[Result]:
    """Whose on-line step takes how long, of an architecture in the tool's JSON."""
    (step,) = (row for row in architecture["routines"] if row["key"] == "step")
    return [
        {
            "name": line["name"],
            "threads": line["threads"],
            "us_per_sample": line["timing"] and 1e6 * line["timing"]["seconds"],
            **({"reason": line["reason"]} if line["reason"] else {}),
        }
        for line in step["results"]
    ]


def missed(rows: list[Result]) -> list[str]:
    """What is not as required: PyTorch's eager loops on the GPU are measured, and are slower."""
    times = {row["name"]: row["us_per_sample"] for row in rows if row["us_per_sample"]}
    eager = ("PyTorch by hand, GPU", "PyTorch autograd, GPU")
    absent = [name for name in ("cuda", *eager) if name not in times]
    if absent:
        return [f"not measured: {', '.join(absent)}"]
    return [
        f"beaten at the on-line step by {name}" for name in eager if times[name] <= times["cuda"]
    ]


def _sanitizer(tool: str) -> Result:
    """compute-sanitizer over every kernel at small sizes."""
    nvcc = shutil.which("nvcc")
    beside = Path(nvcc).resolve().with_name("compute-sanitizer") if nvcc else Path("none")
    places = [shutil.which("compute-sanitizer"), beside, "/usr/local/cuda/bin/compute-sanitizer"]
    found = next((str(place) for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise RuntimeError("compute-sanitizer was not found beside nvcc or on PATH")
    exercise = [sys.executable, str(Path(__file__).resolve()), "--step", "exercise"]
    # cuda-bindings asks the driver for functions that it may be too old for: no error of ours,
    # and mlpcore checks what every call of the driver returns.
    options = ["--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9"]
    return _run([found, *options, *exercise])


def device(backend: CudaBackend) -> Result:
    """What it is."""
    return {"description": backend.description, "free_bytes": _free(backend)}


def _free(backend: CudaBackend) -> int:
    with backend.driver.active():
        return backend.driver.free_memory()


def exercise(backend: CudaBackend) -> Result:
    """Every kernel at sizes around the edges of its blocks."""
    import numpy as np

    from gpu_measure import SHAPES, STREAMS, CheckError, streaming
    from mlpcore.backends.cuda.backend import CudaBackend
    from mlpcore.deformation.deform import DeformationParameters, deform
    from mlpcore.network import Network

    rng, plain = np.random.default_rng(0), CudaBackend(backend.driver, schedule="streaming")
    for each, sizes in product((plain, backend), SHAPES):
        network, n = each.load(Network(sizes, seed=1)), 70
        if streamed := streaming(each, sizes):
            raise CheckError(f"{STREAMS}: {streamed[0]}", {})
        images = each.put(rng.uniform(-1, 1, (n, sizes[0])).astype(np.float32))
        labels = each.put(rng.integers(0, sizes[-1], n).astype(np.uint8))
        each.train(network, images, labels, np.arange(n, dtype=np.int32), 1e-3)
        each.count_errors(network, images, labels)
    digits = backend.put(rng.uniform(-1, 1, (130, 5, 7)).astype(np.float32))
    classes = np.zeros(130, np.uint8)
    for n in (1, 256, 257):
        np.asarray(backend.permutation(n, 1, 1))
    np.asarray(deform(digits, classes, DeformationParameters(), 1, 1, backend, 95))
    noise = rng.uniform(-1, 1, (2, 53, 85)).astype(np.float32)
    backend.displacement_field_listing(noise, np.full(21, 0.05, np.float32), 36.0)
    few = rng.uniform(-1, 1, (3, 17, 19)).astype(np.float32)
    shift = np.zeros((3, 2, 17, 19), np.float32)
    backend.deform_by(few, np.tile(np.eye(2, dtype=np.float32), (3, 1, 1)), shift)
    return {}


def run_step(name: str, results: Path | None) -> Result:
    """One step in this process: its numbers, and ``ok`` with an ``error`` if it is false."""
    try:
        if name == "requirements":
            from gpu_requirements import requirements

            return {"ok": True, **requirements()}
        if plain := {"build": build, "tests": tests, "exchange": exchange}.get(name):
            return {"ok": True, **plain()}
        if name == "speedup":
            assert results is not None, "--results DIR is needed"
            return {"ok": True, **speedup(results)}
        if name in ("memcheck", "racecheck"):
            return {"ok": True, **_sanitizer(name)}
        import gpu_measure  # which needs what `build` has built
        from mlpcore import backends

        backend = cast("CudaBackend", backends.get("cuda"))
        if name == "kernels":
            from gpu_kernels import kernels

            return {"ok": True, **kernels(backend)}
        function = {"device": device, "exercise": exercise}.get(name)
        return {"ok": True, **(function or getattr(gpu_measure, name))(backend)}
    except Exception as error:
        measured = getattr(error, "result", None)  # of a gpu_measure.CheckError
        text = f"{type(error).__name__}: {error}" if measured is None else str(error)
        return {"ok": False, "error": text, **(measured or {})}


def supervise(name: str, results: Path, seconds: float) -> Result:
    """One step in a process of its own; a process that says nothing has failed."""
    output = details(results) / f"{name}.json"
    output.unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).resolve()), "--step", name]
    command += ["--results", str(results), "--parent", str(os.getpid())]
    start = time.monotonic()
    # A group of its own, so that what the step has started ends with it.
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        error = f"no result, exit status {process.wait(timeout=seconds)}"
    except subprocess.TimeoutExpired:
        error = f"not done within {seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    result: Result = json.loads(output.read_text()) if output.exists() else {"ok": False}
    if not result["ok"]:
        result.setdefault("error", error)  # which a step that was cut off could not write
    result["seconds"] = round(time.monotonic() - start, 1)
    _write(output, result)
    return result


def end_with(parent: int) -> None:
    """Ends this process, and all that it has started, soon after its parent has ended.

    A parent that is killed cannot do it. To be called by the leader of a process group.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _stop(number: int, frame: object) -> None:
    """A signal as an exception, so that what has been started is ended."""
    sys.exit(128 + number)


def check(results: Path, steps: list[str]) -> int:
    """The steps, until one fails that all later ones need; the number that failed."""
    budget = BUDGET + sum(OPTIONAL.get(name, 0) for name in steps)
    end, summary = time.monotonic() + budget, {}
    for i, name in enumerate(steps):
        to_come = sum({**STEPS, **OPTIONAL}[later] for later in steps[i + 1 :])
        result = summary[name] = supervise(name, results, end - time.monotonic() - to_come)
        line = "ok" if result["ok"] else f"FAILED: {result['error']}"
        note = f", {result['note']}" if "note" in result else ""
        print(f"{name}: {line}{note} ({result['seconds']} s)", flush=True)
        _write(results / "summary.json", summary)
        if name in ESSENTIAL and not result["ok"]:
            print(f"stopped: later steps need {name}; --steps runs them all the same", flush=True)
            break
    return sum(not result["ok"] for result in summary.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--results", type=Path, help="folder for the JSON files")
    parser.add_argument("--steps", nargs="+", choices=[*STEPS, *OPTIONAL], default=list(STEPS))
    parser.add_argument("--step", choices=[*STEPS, *OPTIONAL, "exercise"], help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    results: Path | None = arguments.results and arguments.results.resolve()
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    if arguments.step is None:
        if results is None:
            parser.error("--results DIR is needed")
        signal.signal(signal.SIGTERM, _stop)
        return 1 if check(results, arguments.steps) else 0
    if arguments.parent is not None:
        end_with(arguments.parent)
    result = run_step(arguments.step, results)
    if results is not None:
        _write(details(results) / f"{arguments.step}.json", result)
    elif not result["ok"]:
        print(result["error"], file=sys.stderr)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
