"""The choice of a backend."""

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
