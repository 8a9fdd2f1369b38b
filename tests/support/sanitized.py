"""Runs a part of the tests in a process whose emulation is built with AddressSanitizer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlpcore.backends.cuda import emulated as cuda_emulated

ROOT = Path(__file__).resolve().parents[2]


def sanitizer_library() -> str:
    """AddressSanitizer's library, which must be loaded before Python; skips without it."""
    compiler = cuda_emulated.compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    found = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True
    ).stdout.strip()
    if not os.path.isabs(found):
        pytest.skip(f"{compiler} brings no shared AddressSanitizer")
    return found


def run(*arguments: str) -> subprocess.CompletedProcess:
    """Python with arguments, in the root of the repository."""
    environment = {
        **os.environ,
        "LD_PRELOAD": sanitizer_library(),
        "ASAN_OPTIONS": "detect_leaks=0",
        cuda_emulated.SANITIZE_VARIABLE: "address",
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
