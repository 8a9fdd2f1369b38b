"""Kills a training at random moments, goes on with it, and compares the bits at its end."""

from __future__ import annotations

import dataclasses
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from mlpcore.commands import runs
from mlpcore.data import dataset
from mlpcore.errors import InputError
from mlpcore.store.run_folder import CONFIG, Run
from mlpcore.store.weights import weights_sha256
from torture import Result, forked

#: The training that is killed.
ARGUMENTS = ("--arch", "64", "--epochs", "5", "--threads", "2", "--seed", "3")

#: A killed process has worked for a time between these, spread evenly in its logarithm.
SHORTEST, LONGEST = 0.002, 2.0

TIMES = ("deformation_seconds", "training_seconds", "evaluation_seconds")

#: A process that hangs is killed after so long.
HANG = 120.0


@contextmanager
def loaded() -> Iterator[str]:
    """Loads MNIST once for all children, or the embedded digits; yields the name."""
    try:
        data = dataset.load(name="mnist", download=False)
    except InputError:
        data = dataset.load(name="digits")
    load = mock.patch.object(dataset, "load", lambda *args, **kwargs: data)
    draw: Any = mock.patch.object(runs, "draw", lambda *args: [])  # takes longer than the training
    with load, draw:
        yield data.name


def begin_or_resume(folder: Path) -> forked.Work:
    """What a user types after a kill: the same command, or --resume if there is a run."""
    if os.path.lexists(folder / CONFIG):
        return forked.command(["train", "--resume", str(folder), "--threads", "2"])
    return forked.command(["train", *ARGUMENTS, "--out", str(folder)])


def result_of(folder: Path) -> tuple[Any, ...]:
    """All bits of a finished run, without its times."""
    state = Run.open(folder, to_train=False).load()
    times: dict[str, Any] = dict.fromkeys(TIMES, 0.0)
    assert state.best is not None
    networks = weights_sha256(state.network), weights_sha256(state.best)
    return *networks, [dataclasses.replace(metrics, **times) for metrics in state.history]


def finish(folder: Path) -> str:
    """Trains to the end; returns what went wrong, if anything."""
    outcome = forked.start(begin_or_resume(folder), HANG).wait()
    if outcome.status:
        return f"status {outcome.status}: {outcome.err.decode(errors='replace')[-300:]!r}"
    return ""


def kill_once(folder: Path, seconds: float) -> bool:
    """Trains for so long, unless the training ends before; returns whether it was killed."""
    child = forked.start(begin_or_resume(folder), HANG)
    time.sleep(seconds)
    child.kill()
    return child.wait().status == -9


def series(folder: Path, expected: tuple[Any, ...], rng: random.Random, result: Result) -> None:
    """Kills a training up to 20 times, and lets it end."""
    times = []
    for _ in range(rng.randint(1, 20)):
        times.append(round(SHORTEST * (LONGEST / SHORTEST) ** rng.random(), 4))
        if not kill_once(folder, times[-1]):
            break
        result.count()
    problem = finish(folder)
    try:
        if not problem and result_of(folder) != expected:
            problem = "other bits than without kills"
    except InputError as error:
        problem = str(error)
    if problem:
        result.violated += 1
        result.what.append(f"killed after {times} seconds: {problem}")


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    result, rng, end = Result(), random.Random(seed), time.monotonic() + seconds
    with loaded() as name, tempfile.TemporaryDirectory() as temporary:
        result.note = f"on {name}"
        problem = finish(Path(temporary, "whole"))
        if problem:
            result.count(f"without a kill: {problem}")
            return result
        expected, number = result_of(Path(temporary, "whole")), 0
        while time.monotonic() < end:
            number += 1
            series(Path(temporary, f"run{number}"), expected, rng, result)
    return result
