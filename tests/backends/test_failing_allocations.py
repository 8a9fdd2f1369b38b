"""Without memory or threads, C changes nothing, leaks nothing, and says so."""

import os
import subprocess
import sys

import pytest

from emulated import ROOT, compiler

SUPPORT = ROOT / "tests" / "support"


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="it replaces malloc itself")
def test_every_allocation_and_every_start_of_a_thread_fails_once(tmp_path):
    if compiler() is None:
        pytest.skip("no C++ compiler")
    library = tmp_path / "failing_allocations.so"
    source = SUPPORT / "failing_allocations.c"
    command = [compiler(), "-x", "c", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True)
    if "__libc_" in built.stderr:
        pytest.skip("not the GNU C library")
    assert built.returncode == 0, built.stderr
    result = subprocess.run(
        [sys.executable, SUPPORT / "failing_allocations.py", library],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    calls = dict(line.split(": ") for line in result.stdout.splitlines())
    assert int(calls["network"]) == 1  # its layers; the weights are NumPy's
    assert int(calls["train scalar sparse"]) > 20
