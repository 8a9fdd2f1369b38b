"""Backends under test: every one that this machine has, and each thread count that matters."""

import os

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

import emulated
from mlpcore import backends
from mlpcore.backends import simd

# Deadlines would make tests depend on the machine's speed.
settings.register_profile(
    "mlpcore",
    deadline=None,
    derandomize=True,
    max_examples=75,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "torture",
    settings.get_profile("mlpcore"),
    derandomize=False,
    database=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", 400)),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "mlpcore"))

#: Backends that can run here, except the oracle that they are compared with.
BACKENDS = [name for name in emulated.BACKENDS if name != "reference"]


def pytest_collection_modifyitems(items):
    """Marks tests that take the CUDA device as a parameter; skips all marked where it is absent."""
    reason = backends.available()["cuda"]
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if any(isinstance(value, str) and value == "cuda" for value in parameters.values()):
            item.add_marker(pytest.mark.gpu)
        if reason and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=f"no CUDA device can be used: {reason}"))


@pytest.fixture(scope="session", autouse=True)
def surroundings():
    """Any number of threads, since the bits must not depend on it, but one of the oracle's BLAS.

    Test processes share the cores. Only a power cut could show whether files reach the disk.
    """
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1, "blas"):
        patch.setattr(simd, "_at_most_cores", int)
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Works in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request):
    """Each backend, with two threads where there are threads.

    A GPU streams: resident training has tests of its own, and compiles a kernel for every size.
    """
    return emulated.get_backend(request.param, 2, "streaming" if request.param == "cuda" else None)


@pytest.fixture(scope="session", params=emulated.SIMD)
def simd_name(request):
    """Each instruction set of the C backend."""
    return request.param


@pytest.fixture(scope="session", params=["reference", *emulated.SIMD])
def cpu_name(request):
    """Each backend of the CPU, the oracle included."""
    return request.param


@pytest.fixture(scope="session")
def reference():
    """The float64 oracle."""
    return backends.get("reference")
