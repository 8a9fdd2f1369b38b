"""The driver of real devices on stand-ins for PyCUDA and cuda-bindings, and its refusals."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import fake_pycuda
from emulated import emulated_backend, needs_emulation
from mlpcore import backends
from mlpcore.backends.cuda import availability, network, nvcc, streaming
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.deformation.deform import deform
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from oracle import assert_near, bits, random_network, trained, training_set

pytestmark = needs_emulation

SIZES = (20, 12, 9, 3)


@pytest.fixture
def install(monkeypatch):
    """Puts stand-ins where PyCUDA and cuda-bindings would be.

    A kernel's plan stands for its machine code.
    """

    def put(pycuda, bindings):
        for name, child in (("pycuda", pycuda), ("cuda", bindings), ("cuda.bindings", bindings)):
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(driver=child))
        monkeypatch.setitem(sys.modules, "pycuda.driver", pycuda)
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", bindings)
        return pycuda.device

    monkeypatch.setattr(nvcc, "compiled", lambda source, capability, plan="": plan.encode())
    availability._first_driver.cache_clear()
    yield put
    availability._first_driver.cache_clear()


# ---- refusals ------------------------------------------------------------------------------


class NoDriver:
    """Finds PyCUDA, which fails as it does without a driver."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pycuda":
            raise ImportError("libcuda.so.1: cannot open shared object file")


def refuse(*arguments):
    raise nvcc.CannotCompile("nvcc is not on PATH")


def without_driver(patch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pycuda"]:
        patch.delitem(sys.modules, name)
    patch.setattr(sys, "meta_path", [NoDriver, *sys.meta_path])


REFUSED = [
    ({"error": "cuInit failed: no\n CUDA-capable device is detected"}, "no CUDA device: cuInit"),
    ({"count": 0}, "no CUDA device is visible"),
    ({"free": 100 << 20}, "Fake GPU has 100 MiB of memory free, 256 needed"),
    ({"stream_error": "out of\n memory"}, "Fake GPU failed: out of memory"),
    (lambda patch: patch.setitem(sys.modules, "pycuda.driver", None), "install 'mlpcore[cuda]'"),
    (lambda patch: patch.setitem(sys.modules, "cuda.bindings", None), "install 'mlpcore[cuda]'"),
    (without_driver, "no NVIDIA driver: libcuda.so.1: cannot open"),
    (lambda patch: patch.setattr(nvcc, "compiled", refuse), "cannot be compiled: nvcc is not on"),
]


@pytest.mark.parametrize("spoil, expected", REFUSED, ids=lambda value: str(value)[:20])
def test_a_device_that_cannot_be_used(install, monkeypatch, spoil, expected):
    """The reason is one line, and `backends.get` gives it."""
    install(*fake_pycuda.make(**(spoil if isinstance(spoil, dict) else {})))
    if callable(spoil):
        spoil(monkeypatch)
    reason = backends.available()["cuda"]
    assert expected in reason and "\n" not in reason
    with pytest.raises(InputError, match="backend 'cuda' cannot run: "):
        backends.get("cuda")
    assert backends.get("auto").name != "cuda"


# ---- the driver itself ---------------------------------------------------------------------


def everything(backend):
    """Weights, the result of a training on deformed images, and errors of a validation."""
    start, (images, labels, order) = random_network((20, 7, 3), 1), training_set((20, 7, 3), 9, 1)
    loaded, images, labels = backend.load(start), backend.put(images), backend.put(labels)
    seen = deform(images.reshape(9, 5, 4), labels, DeformationParameters(), 1, 1, backend)
    result = backend.train(loaded, seen.reshape(9, 20), labels, order, 0.01)
    backend.store(loaded, start)
    return start, result, backend.count_errors(loaded, images, labels)


def test_training_and_deformation_through_the_driver(install, monkeypatch):
    monkeypatch.setattr(network, "INTERVAL", 1e6)  # a slow first step does not make chunks short
    monkeypatch.setattr(streaming, "STEPS_PER_GRAPH", 4)
    device = install(*fake_pycuda.make())
    backend = backends.get("auto")
    expected = "cuda: Fake GPU, compute capability 9.0, float32, resident schedule"
    assert (backend.name, backend.description) == ("cuda", expected)
    got, *counts = everything(CudaBackend(backend.driver, "streaming"))
    assert device.launched == 1 + 2  # steps: one by itself, then two graphs of four
    expected, *wanted = everything(emulated_backend())
    assert bits(got) == bits(expected)
    assert counts == wanted
    assert device.stack == []  # no context stays current


def test_a_failing_device_is_one_line(install):
    install(*fake_pycuda.make())
    backend = backends.get("cuda")

    def fail():
        raise fake_pycuda.FakeError("cuStreamSynchronize failed:\n an illegal memory access")

    backend.driver.stream.synchronize = fail
    with pytest.raises(InputError, match=r"^Fake GPU failed: cuStreamSynchronize failed: an ille"):
        backend.put(np.zeros(3, np.float32))


def test_memory_is_freed_in_any_thread(install):
    device = install(*fake_pycuda.make())
    arrays = [backends.get("cuda").put(np.zeros(1000, np.float32))]
    assert len(device.allocated) == 1
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert not device.allocated


# ---- resident training ---------------------------------------------------------------------


def train_a_little(backend):
    """A network, small enough for any device, after 70 samples; and what the backend says."""
    got, _ = trained(backend, random_network(SIZES, 1), *training_set(SIZES, 70, 1), 0.01)
    return got, backend.description


def test_resident_training_through_the_driver(install, reference):
    pycuda, bindings = fake_pycuda.make()
    bindings.cuFuncGetAttribute = lambda *arguments: (0, 8)
    install(pycuda, bindings)
    with pytest.warns(UserWarning, match="resident kernel: 8 bytes of a thread are spilled"):
        got, description = train_a_little(backends.get("cuda"))
    assert description.endswith("float32, resident schedule")
    assert_near(got, train_a_little(reference)[0])


@pytest.mark.parametrize(
    "attributes, expected",
    [
        ({"COOPERATIVE_LAUNCH": 0}, "the device has no cooperative launch"),
        ({"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 64}, "layers 20, 12, 9, 3 need "),
        ("occupied by others", "6 blocks must be resident at once, 0 can be"),
        ("no compiler", "its kernel cannot be compiled: nvcc is not on PATH"),
    ],
    ids=str,
)
def test_devices_that_cannot_train_resident_stream(install, monkeypatch, attributes, expected):
    if isinstance(attributes, dict):
        monkeypatch.setattr(fake_pycuda, "ATTRIBUTES", {**fake_pycuda.ATTRIBUTES, **attributes})
    pycuda, bindings = fake_pycuda.make()
    if attributes == "occupied by others":
        bindings.cuOccupancyMaxActiveBlocksPerMultiprocessor = lambda *arguments: (0, 0)
    install(pycuda, bindings)
    backend = backends.get("cuda")
    if attributes == "no compiler":
        monkeypatch.setattr(nvcc, "compiled", refuse)
    got, description = train_a_little(backend)
    assert f"streaming schedule: {expected}" in description
    assert bits(got) == bits(train_a_little(emulated_backend("streaming"))[0])


def test_a_launch_that_the_device_refuses_is_one_line(install):
    pycuda, bindings = fake_pycuda.make()
    bindings.cuLaunchCooperativeKernel = lambda *arguments: (720,)
    bindings.cuGetErrorString = lambda error: (0, b"too many blocks in cooperative launch")
    install(pycuda, bindings)
    with pytest.raises(InputError, match=r"^Fake GPU failed: .*: too many blocks in cooperative"):
        train_a_little(backends.get("cuda"))
