"""Ctrl-C at random moments of the first half second of every command: a quiet end, status 130."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import mlpcore
from torture import Result

#: The commands, which all take longer than this many seconds.
SECONDS = 0.5
COMMANDS = (
    ("-m", "mlpcore", "train", "--dataset", "digits", "--arch", "30", "--epochs", "1000"),
    ("-m", "mlpcore", "evaluate", "none", "--dataset", "digits"),
    ("-m", "mlpcore", "predict", "none.png"),
    ("-m", "mlpcore", "preview", "--dataset", "digits"),
    ("-m", "mlpcore", "backends"),
)

PACKAGE = os.path.dirname(mlpcore.__file__)

#: What may stand on stderr: nothing, or that the command was interrupted.
SAID = ("", "interrupted\n", "stopped before training began\n")


def interrupted(command: tuple[str, ...], seconds: float, folder: str) -> str:
    """What is wrong with how a command ends when it is interrupted after so long."""
    environment = os.environ | {"PYTHONPATH": os.path.dirname(PACKAGE)}
    child = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        text=True,
    )
    time.sleep(seconds)
    child.send_signal(signal.SIGINT)
    try:
        _, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return "it hangs"
    if "Traceback" in err and PACKAGE not in err:
        return ""  # Python has not come to our code yet
    ended = child.returncode in (0, 2) and "interrupted" not in err  # it was done before
    if "Traceback" in err or (not ended and (child.returncode not in (130, -2) or err not in SAID)):
        return f"status {child.returncode}, {err[-300:]!r}"
    return ""


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    result, rng, end = Result(), random.Random(seed), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            command, after = rng.choice(COMMANDS), SECONDS * rng.random()
            problem = interrupted(command, after, folder)
            text = f"{' '.join(command)}, interrupted after {after:.4f} s: {problem}"
            result.count(text if problem else "")
    return result
