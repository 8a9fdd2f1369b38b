"""Calls of the public functions with wrong arguments, under the sanitizers where they are built.

`make torture` builds the sanitized package. The calls run in a child process, which notes the
number of each call before it makes it: so a crash names the call, and the next child goes on.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torture import Result

ROOT = Path(__file__).resolve().parents[2]

#: Where `make sanitize` and `make torture` put the package.
SANITIZED = ROOT / "build" / "sanitize"

#: A call that takes longer hangs: the sanitizers make everything some ten times slower.
HANG = 60.0


def libraries() -> list[str]:
    """The libraries of the sanitizers, which have to be loaded before Python; none if not built."""
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None or not (SANITIZED / "mlpcore").is_dir():
        return []
    names = ("libasan.so", "libubsan.so")
    commands = ([compiler, f"-print-file-name={name}"] for name in names)
    found = [subprocess.run(c, capture_output=True, text=True).stdout.strip() for c in commands]
    return found if all(map(os.path.isabs, found)) else []


def environment(preloaded: list[str]) -> dict[str, str]:
    """The environment of a child: the sanitized package before others."""
    tools = str(ROOT / "tools")
    if not preloaded:
        return {**os.environ, "PYTHONPATH": tools}
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(preloaded),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2000",
        "PYTHONPATH": os.pathsep.join([str(SANITIZED), tools]),
        "OPENBLAS_NUM_THREADS": "1",
    }


def child(seed: int, first: int, seconds: float, preloaded: list[str], result: Result) -> int:
    """Makes calls from number `first` on; returns the number of the next call to make."""
    with tempfile.TemporaryFile() as noted, tempfile.TemporaryFile("w+") as out:
        noted.write(first.to_bytes(8, "little"))
        noted.flush()
        descriptor = noted.fileno()
        command = [
            sys.executable,
            "-m",
            "torture.calls",
            *map(str, (seed, first, seconds, descriptor)),
        ]
        process = subprocess.Popen(
            command, env=environment(preloaded), stdout=out, stderr=subprocess.STDOUT,
            pass_fds=[descriptor], start_new_session=True,
        )  # fmt: skip
        with mmap.mmap(descriptor, 8) as number:
            hung = _watch(process, number)
            last = int.from_bytes(number[:8], "little")
        out.seek(0)
        lines = out.read().splitlines()
    problems = dict(line.split(" ", 1) for line in lines if line.split(" ")[0].isdigit())
    if hung or process.returncode:
        report = next((line for line in lines if "ERROR" in line or "error" in line), "")
        end = "hangs" if hung else f"status {process.returncode}"
        problems[str(last)] = f"{end} {report or ' '.join(lines[-1:])}"[:500]
        last += 1
    for n in range(first, last):
        result.count(f"seed {seed}, call {n}: {problems[str(n)]}" if str(n) in problems else "")
    return last


def _watch(process: subprocess.Popen[bytes], number: mmap.mmap) -> bool:
    """Waits for the end; whether the process had to be killed because a call did not end."""
    before, since = number[:8], time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        if number[:8] != before:
            before, since = number[:8], time.monotonic()
        elif time.monotonic() - since > HANG:
            process.kill()
            process.wait()
            return True
    return False


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    result, end, first, preloaded = Result(), time.monotonic() + seconds, 0, libraries()
    result.note = "under AddressSanitizer and UndefinedBehaviorSanitizer"
    if not preloaded:
        result.note = "without the sanitizers: no sanitized build, or no shared libraries"
    while (left := end - time.monotonic()) > 0:
        first = child(seed, first, left, preloaded, result)
    return result
