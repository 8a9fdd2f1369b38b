"""The choice of a backend."""

import os
import subprocess
import sys

import pytest

from mlpcore import backends
from mlpcore.errors import InputError


def test_the_cpu_is_never_a_device(monkeypatch):
    widest = [isa for isa in backends.INSTRUCTION_SETS if backends.available()[isa] is None][-1]
    assert backends.get("cpu").name == widest
    reason = backends._reason
    monkeypatch.setattr(backends, "_reason", lambda name: None if name == "cuda" else reason(name))
    assert backends._resolve("auto") == "cuda"
    assert backends.get("cpu").name == widest
    monkeypatch.setenv("MLPCORE_BACKEND", "cpu")
    assert backends.get().name == widest


def test_environment_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")
    assert backends.get().name == "scalar"
    monkeypatch.setenv("MLPCORE_BACKEND", "abacus")
    with pytest.raises(InputError, match="abacus"):
        backends.get()


def test_without_a_device_nothing_else_of_its_backend_is_imported():
    """Its sources were read and parsed before every training on a CPU: 40 ms."""
    code = """
import sys
sys.modules["pycuda"] = None
from mlpcore import backends
assert backends.get("auto").name in backends.INSTRUCTION_SETS
print([name for name in sys.modules if name.startswith("mlpcore.backends.cuda.")])
"""
    environment = {key: value for key, value in os.environ.items() if key != "MLPCORE_BACKEND"}
    command = [sys.executable, "-c", code]
    imported = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert imported.stdout == "['mlpcore.backends.cuda.availability']\n"
