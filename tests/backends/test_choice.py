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


def test_unknown_backends_are_refused():
    with pytest.raises(InputError, match="'sse9': expected auto, cpu, reference, scalar"):
        backends.get("sse9")
    with pytest.raises(InputError, match="threads 0: expected a whole number from 1 to 1,024"):
        backends.get("scalar", threads=0)
    with pytest.raises(InputError, match="threads -5: expected a whole number"):
        backends.get("reference", threads=-5)
    for threads in (1.5, True, "2"):
        with pytest.raises(InputError, match=r"threads .*: expected a whole number"):
            backends.get("scalar", threads=threads)
    with pytest.raises(InputError, match="'later': expected sparse, packed, deferred or immediate"):
        backends.get("scalar", schedule="later")
    with pytest.raises(InputError, match="'deferred': the reference backend has no schedules"):
        backends.get("reference", schedule="deferred")


def test_environment_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")
    assert backends.get().name == "scalar"
    monkeypatch.setenv("MLPCORE_BACKEND", "abacus")
    with pytest.raises(InputError, match="abacus"):
        backends.get()
