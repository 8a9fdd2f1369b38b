"""Runs a part of the tests in a process whose emulation is built with AddressSanitizer."""

import os
import subprocess
import sys

import pytest as test_runner

from emulated import ROOT, SANITIZE_VARIABLE, compiler


def sanitizer_library():
    """AddressSanitizer's library, which must be loaded before Python; skips without it."""
    if compiler() is None:
        test_runner.skip("no C++ compiler")
    command = [compiler(), "-print-file-name=libasan.so"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(found):
        test_runner.skip(f"{compiler()} has no shared AddressSanitizer")
    return found


def run(*arguments):
    """Python with arguments, in the root of the repository."""
    path = os.pathsep.join([str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "LD_PRELOAD": sanitizer_library(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": path,
        SANITIZE_VARIABLE: "address",
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def pytest(file, chosen):
    """The tests of a file that an expression of ``pytest -k`` chooses."""
    return run("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", file, "-k", chosen)
