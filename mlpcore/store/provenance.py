"""The source revision and the machine that compute here, for files that outlive both."""

import functools
import subprocess
from pathlib import Path

from mlpcore.cpu import available_cores, cpu_model

#: The repository, when the package is used from one.
ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def revision() -> str:
    """The commit of this source, with "+changes" when files differ from it; "" if unknown.

    The first answer holds for the whole process, because loaded modules do not change.
    """
    if not (ROOT / ".git").exists():
        return ""
    describe = ["describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+changes"]
    git = ["git", "--no-optional-locks", "-C", str(ROOT), *describe]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> str:
    """The CPU and the number of cores that this process may use, in a few words."""
    cores = available_cores()
    return f"{cpu_model()}, {cores} core{'s' * (cores != 1)}"
