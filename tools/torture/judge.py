"""One judge of all commands on files of any origin, and the loop of the campaigns that ask it."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias
from unittest import mock

from mlpcore.commands import COMMANDS
from mlpcore.data import mnist
from mlpcore.errors import MAX_LINE
from mlpcore.store import provenance
from torture import Result
from torture.forked import Outcome

#: What a command may take on a small file, beyond what the process has before: bytes and seconds.
#: The seconds leave room for other work on the machine.
MAX_MEMORY, MAX_SECONDS = 2**29, 10.0

#: Makes something hostile in an empty folder, runs a command on it, and returns what is wrong.
Attempt: TypeAlias = Callable[[random.Random, Path], str]


def fault(outcome: Outcome) -> str:
    """What is wrong with how a command ended; nothing if it worked, or refused in one line."""
    err = outcome.err.decode(errors="surrogateescape")
    lines = [*outcome.out.decode(errors="surrogateescape").split("\n"), *err.split("\n")]
    refusals = [line for line in err.splitlines() if line.startswith("error: ")]
    checks = {
        f"status {outcome.status}": outcome.status not in (0, 2),
        "a traceback": "Traceback" in err,
        f"{len(refusals)} lines of errors with status 2": outcome.status == 2
        and len(refusals) != 1,
        "an error with status 0": outcome.status == 0 and bool(refusals),
        "a strange line on stderr": any(
            not line.startswith(("error: ", "note: ", "warning: ")) for line in err.splitlines()
        ),
        "control characters": not all(line.isprintable() for line in lines),
        f"a line of {max(map(len, lines)):,} characters": max(map(len, lines)) > MAX_LINE,
        f"{outcome.seconds:.1f} seconds": outcome.seconds > MAX_SECONDS,
        f"{outcome.memory / 2**20:,.0f} MiB": outcome.memory > MAX_MEMORY,
    }
    found = "; ".join(text for text, wrong in checks.items() if wrong)
    return f"{found}: {err[-500:]!r}" if found else ""


@contextlib.contextmanager
def isolated(cache: Path) -> Iterator[None]:
    """Without the user's data, and without a network."""
    with (
        mock.patch.dict(os.environ, MLPCORE_DATA=""),
        mock.patch.object(mnist, "cache_folder", lambda: cache),
        mock.patch.object(mnist, "download", lambda *args: "no network here"),
    ):
        yield


def warm() -> None:
    """Imports and finds out now what each child would."""
    provenance.revision()
    provenance.machine()
    for name in COMMANDS:
        importlib.import_module(f"mlpcore.commands.{name}")
    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg", "onnx"):
        importlib.import_module(name)


def attempts(attempt: Attempt, seeds: range) -> Result:
    """The result of one attempt for each seed, each in a folder of its own."""
    warm()
    result = Result()
    for seed in seeds:
        _try(attempt, seed, result)
    return result


def repeat(attempt: Attempt, seconds: float, seed: int) -> Result:
    """The result of attempts for so many seconds; their seeds begin at a million times `seed`."""
    warm()
    result, end = Result(), time.monotonic() + seconds
    while time.monotonic() < end:
        _try(attempt, 1_000_000 * seed + result.tried, result)
    return result


def _try(attempt: Attempt, seed: int, result: Result) -> None:
    with tempfile.TemporaryDirectory() as name, isolated(Path(name, "cache")):
        work = Path(name, "work")
        work.mkdir()
        problem = attempt(random.Random(seed), work)
    result.count(f"{attempt.__module__}, seed {seed}: {problem}" if problem else "")
