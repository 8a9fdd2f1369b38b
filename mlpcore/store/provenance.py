"""Which source and which machine compute here, for files that outlive both."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path
from typing import TypeAlias

from mlpcore.cpu import available_cores, cpu_model

#: The repository, when the package is used from one.
ROOT = Path(__file__).resolve().parents[2]

Revisions: TypeAlias = tuple[tuple[int, str], ...]
"""Those that computed a run, in order, each with the first epoch that it had a part in."""


def read_revisions(values: object) -> Revisions:
    """Revisions from JSON; a ValueError when they are none."""
    if not isinstance(values, list):
        raise ValueError
    for pair in values:
        if not (isinstance(pair, list) and [type(each) for each in pair] == [int, str]):
            raise ValueError
    return tuple((epoch, revision) for epoch, revision in values)


@functools.cache
def revision() -> str:
    """The commit of this source, "" when not known.

    "+changes" follows when files differ from it. The first answer holds for the process, because
    modules that are loaded stay as they are.
    """
    if not (ROOT / ".git").exists():
        return ""
    describe = ["describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+changes"]
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(ROOT), *describe],
            capture_output=True,
            # A hook's environment may point to another repository.
            env={name: value for name, value in os.environ.items() if name[:4] != "GIT_"},
            text=True,
            check=False,
        )
    except OSError:  # no git
        return ""
    if done.returncode != 0:
        return ""
    return done.stdout.strip()


def machine() -> str:
    """The CPU and how much of it this process may use, in a few words."""
    cores = available_cores()
    return f"{cpu_model()}, {cores} core{'s' * (cores != 1)}"
