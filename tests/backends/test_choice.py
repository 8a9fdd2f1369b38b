"""The choice of a backend."""

import pytest

from mlpcore import backends
from mlpcore.backends.simd import SimdBackend
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


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("sse9",), "'sse9': expected auto, cpu, reference, scalar"),
        (("scalar", 0), "threads 0: expected a whole number from 1 to 1,024"),
        (("reference", -5), "threads -5: expected a whole number"),
        *((("scalar", each), "threads .*: expected a whole number") for each in (1.5, True, "2")),
        (("scalar", 1, "later"), "'later': expected sparse, packed or deferred"),
        (("reference", 1, "deferred"), "'deferred': the reference backend has no schedules"),
    ],
)
def test_unknown_backends_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        backends.get(*arguments)


@pytest.mark.parametrize("choice", [("postponed", 32), ("deferred", 0), ("deferred", 1025)])
def test_unknown_schedules_and_blocks_are_refused(choice):
    with pytest.raises(InputError):
        SimdBackend("scalar", 1, *choice)


def test_environment_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")
    assert backends.get().name == "scalar"
    monkeypatch.setenv("MLPCORE_BACKEND", "abacus")
    with pytest.raises(InputError, match="abacus"):
        backends.get()
