"""The choice of a backend."""

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
