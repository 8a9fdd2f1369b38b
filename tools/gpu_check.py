"""Everything that can only be checked on a machine with an NVIDIA GPU, in one command.

    python tools/gpu_check.py --results DIR

Builds in place, runs the GPU tests, compute-sanitizer, a short training and the measurements,
and writes a JSON file for each step and ``summary.json`` into DIR. Steps run in processes of
their own, so that one that fails or hangs does not take the others with it. No network and no
virtual environment are needed. Exit status 0 when no step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:  # which needs what `build` builds
    from mlpcore.backends.cuda import CudaBackend

#: What a step has found, as JSON keeps it.
Result: TypeAlias = dict[str, Any]

#: Seconds that all steps may take together.
BUDGET = 590

#: Each step and the seconds that it may take at most, in the order in which they run.
STEPS = {
    "build": 120,
    "device": 30,
    "tests": 120,
    "memcheck": 60,
    "racecheck": 60,
    "accuracy": 90,
    "streaming_accuracy": 60,
    "repeats": 30,
    "resident": 60,
    "committee": 20,
    "bandwidth": 30,
    "deformation": 30,
    "launches": 60,
    "speedup": 130,
    "training": 100,
}

#: Layers around the edges of the kernels' blocks, for compute-sanitizer.
SHAPES = ((1, 1), (31, 257, 10), (32, 33, 255, 3), (15, 16, 17, 128))

#: Steps that are too long to be among all steps, by name alone.
OPTIONAL = {"soak": 660}


def _run(command: list[str], **environment: str) -> Result:
    """A command in the root of the repository; its exit status and the end of what it says."""
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    tail = result.stdout.splitlines()[-40:]
    if result.returncode:
        raise RuntimeError(f"exit status {result.returncode}: " + "\n".join(tail))
    return {"output": tail}


def _import_path() -> dict[str, str]:
    """The variable that lets tools import mlpcore from here, and all else from where it was."""
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *([before] if before else [])])}


def build() -> Result:
    """The extensions and the kernels, for this device's architecture and all others."""
    return _run([sys.executable, "setup.py", "build_ext", "--inplace"])


def tests() -> Result:
    """The suites over the device; those over the emulation run where there is none."""
    chosen = "([cuda] or [cuda- or -cuda]) and not emulated"  # by the parameters of the tests
    return _run([sys.executable, "-m", "pytest", "-q", "tests", "-k", chosen])


def speedup(results: Path) -> Result:
    """The table of `tools/speedup.py`, peers included, as ``speedup-net1.json`` and so on.

    Required: an on-line step of every preset faster than both of PyTorch's eager loops.
    """
    slower = []
    for preset in ("net1", "net2", "net3", "net4", "net5"):
        file = results / f"speedup-{preset}.json"
        command = [sys.executable, "tools/speedup.py", "--arch", preset, "--backend", "cuda"]
        only = ["--peers"]
        if preset != "net1":  # on the larger networks the CPU's peers take minutes
            only = ["--routine", "step", "--threads", "1", "--peers", "GPU,CUDA"]
        _run([*command, *only, "--quick", "--json", str(file)], **_import_path())
        slower += [
            f"{preset} by {peer}" for peer in faster_eager_loops(json.loads(file.read_text()))
        ]
    if slower:
        raise RuntimeError(f"beaten at the on-line step: {', '.join(slower)}")
    return {}


def faster_eager_loops(table: Result) -> list[str]:
    """Names of PyTorch's eager loops on the GPU whose on-line step is no slower than ours."""
    (architecture,) = table["architectures"]
    (step,) = (row for row in architecture["routines"] if row["key"] == "step")
    times = {r["name"]: r["timing"]["seconds"] for r in step["results"] if r["timing"]}
    eager = ("PyTorch by hand, GPU", "PyTorch autograd, GPU")
    missing = [name for name in ("cuda", *eager) if name not in times]
    if missing:
        raise RuntimeError(f"not measured: {', '.join(missing)}")
    return [name for name in eager if times[name] <= times["cuda"]]


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
    from gpu_measure import STREAMS, CheckError, streaming

    from mlpcore.backends.cuda import CudaBackend
    from mlpcore.deformation import DeformationParameters, deform
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
        if name in ("build", "tests"):
            return {"ok": True, **{"build": build, "tests": tests}[name]()}
        if name == "speedup":
            assert results is not None, "--results DIR is needed"
            return {"ok": True, **speedup(results)}
        if name in ("memcheck", "racecheck"):
            return {"ok": True, **_sanitizer(name)}
        import gpu_measure  # which needs what `build` has built

        from mlpcore import backends

        function = {"device": device, "exercise": exercise}.get(name)
        backend = cast("CudaBackend", backends.get("cuda"))
        return {"ok": True, **(function or getattr(gpu_measure, name))(backend)}
    except Exception as error:
        measured = getattr(error, "result", None)  # of a gpu_measure.CheckError
        text = f"{type(error).__name__}: {error}" if measured is None else str(error)
        return {"ok": False, "error": text, **(measured or {})}


def supervise(name: str, results: Path, seconds: float) -> Result:
    """One step in a process of its own; a process that says nothing has failed."""
    output = results / f"{name}.json"
    output.unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).resolve()), "--step", name]
    start = time.monotonic()
    # A group of its own, so that what the step has started ends with it.
    process = subprocess.Popen(
        [*command, "--results", str(results)], cwd=ROOT, start_new_session=True
    )
    try:
        error = f"no result, exit status {process.wait(timeout=seconds)}"
    except subprocess.TimeoutExpired:
        error = f"not done within {seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    result = json.loads(output.read_text()) if output.exists() else {"ok": False, "error": error}
    result["seconds"] = round(time.monotonic() - start, 1)
    output.write_text(json.dumps(result, indent=2) + "\n")
    return result


def check(results: Path, steps: list[str]) -> int:
    """All steps; the number that failed."""
    budget = BUDGET + sum(OPTIONAL.get(name, 0) for name in steps)
    end, summary = time.monotonic() + budget, {}
    for name in steps:
        seconds = min({**STEPS, **OPTIONAL}[name], end - time.monotonic())
        if seconds < 5:
            summary[name] = {"ok": False, "error": "no time left", "seconds": 0.0}
        else:
            summary[name] = supervise(name, results, seconds)
        line = "ok" if summary[name]["ok"] else f"FAILED: {summary[name]['error']}"
        print(f"{name}: {line} ({summary[name]['seconds']} s)", flush=True)
        (results / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    return sum(not result["ok"] for result in summary.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--results", type=Path, help="folder for the JSON files")
    parser.add_argument("--steps", nargs="+", choices=[*STEPS, *OPTIONAL], default=list(STEPS))
    parser.add_argument("--step", choices=[*STEPS, *OPTIONAL, "exercise"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    results: Path | None = arguments.results and arguments.results.resolve()
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    if arguments.step is None:
        if results is None:
            parser.error("--results DIR is needed")
        return 1 if check(results, arguments.steps) else 0
    result = run_step(arguments.step, results)
    if results is not None:
        output = results / f"{arguments.step}.json"
        output.write_text(json.dumps(result, indent=2) + "\n")
    elif not result["ok"]:
        print(result["error"], file=sys.stderr)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
