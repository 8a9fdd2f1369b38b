"""The commands in a process from which everything has been taken that Windows lacks."""

import os
import subprocess
import sys

import pytest

from small_runs import write_idx

#: As a program: each argument is what `mlpcore` is asked to do.
WITHOUT_POSIX = """
import multiprocessing, os, signal, sys, warnings
import joblib, numpy, psutil, scipy, sklearn  # which ask what the system is
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork",
             "geteuid", "getuid", "mkfifo", "sched_getaffinity", "sysconf", "uname"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1"):
    delattr(signal, name)
os.supports_dir_fd.clear()
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
warnings.filterwarnings("ignore", "only soft file lock") # of filelock
from mlpcore import __main__, cpu
assert cpu.total_memory() > 2**20
for line in sys.argv[1:]:
    assert __main__.main(line.split()) == 0, line
"""


def test_commands_run_without_what_windows_lacks(tmp_path):
    pytest.importorskip("psutil")
    pytest.importorskip("onnx")
    write_idx(tmp_path / "data")
    command = [sys.executable, "-c", WITHOUT_POSIX]
    command += ["train --data data --arch 8 --epochs 1 --out run", "train --resume run --epochs 2"]
    command += ["evaluate run", "export run --onnx two.onnx --safetensors two.safetensors"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"data", "run", "two.onnx"} < set(os.listdir(tmp_path))
