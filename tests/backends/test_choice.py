"""The choice of a backend."""

import subprocess
import sys

import pytest

from emulated import SIMD
from mlpcore import backends
from mlpcore.errors import InputError


def test_the_environment_and_the_cpu_which_is_never_a_device(monkeypatch):
    reason = backends._reason
    monkeypatch.setattr(backends, "_reason", lambda name: None if name == "cuda" else reason(name))
    monkeypatch.delenv("MLPCORE_BACKEND", raising=False)
    assert backends._resolve("auto") == "cuda"
    assert backends.get("cpu").name == SIMD[-1]
    for name, expected in (("cpu", SIMD[-1]), ("scalar", "scalar")):
        monkeypatch.setenv("MLPCORE_BACKEND", name)
        assert backends.get().name == expected
    monkeypatch.setenv("MLPCORE_BACKEND", "abacus")
    with pytest.raises(InputError, match="abacus"):
        backends.get()


def test_without_a_device_nothing_else_of_its_backend_is_imported(monkeypatch):
    """Its sources were read and parsed before every training on a CPU: 40 ms."""
    code = """
import sys
sys.modules["pycuda"] = None
from mlpcore import backends
assert backends.get("auto").name in backends.INSTRUCTION_SETS
print([name for name in sys.modules if name.startswith("mlpcore.backends.cuda.")])
"""
    monkeypatch.delenv("MLPCORE_BACKEND", raising=False)
    command = [sys.executable, "-c", code]
    imported = subprocess.run(command, capture_output=True, text=True, check=True)
    assert imported.stdout == "['mlpcore.backends.cuda.availability']\n"
