"""The driver of real devices on a stand-in for PyCUDA and cuda-bindings, and its refusals."""

import sys
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from fake_pycuda import FakeCuda
from mlpcore import DeformationParameters, InputError, backends
from mlpcore.backends.cuda import availability, network, nvcc, streaming
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.deformation import deform
from oracle import assert_near, bits, random_network, training_set

pytestmark = needs_emulation


@pytest.fixture
def cuda(monkeypatch):
    """A stand-in where PyCUDA and cuda-bindings would be; a plan stands for its machine code."""
    fake = FakeCuda()
    for name in ("pycuda", "cuda", "cuda.bindings"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(driver=fake))
    for name in ("pycuda.driver", "cuda.bindings.driver"):
        monkeypatch.setitem(sys.modules, name, fake)
    monkeypatch.setattr(nvcc, "compiled", lambda source, capability, plan="": [plan.encode()])
    availability._first_driver.cache_clear()
    yield fake
    availability._first_driver.cache_clear()


def failing(text):
    return Mock(side_effect=FakeCuda.Error(text))


def no_driver(name, *arguments, imported=__import__):
    """Finds PyCUDA, which fails as it does without a driver."""
    if name == "pycuda.driver":
        raise ImportError("libcuda.so.1: cannot open shared object file")
    return imported(name, *arguments)


STALE, NO_DEVICE = (
    failing("device kernel\n image is invalid"),
    failing("cuInit failed: no\n device"),
)
REFUSE = Mock(side_effect=nvcc.CannotCompile("nvcc is not on PATH"))

REFUSED = [
    (lambda _, cuda: setattr(cuda, "module_from_buffer", STALE), "image is invalid; expected othe"),
    (lambda _, cuda: setattr(cuda, "init", NO_DEVICE), "no CUDA device: cuInit"),
    (lambda _, cuda: setattr(cuda.Device, "count", int), "no CUDA device is visible"),
    (lambda _, cuda: setattr(cuda.emulated, "free", 100 << 20), "100 MiB of memory free, 256 need"),
    (lambda _, cuda: setattr(cuda, "Stream", failing("no\n room")), "Fake GPU failed: no room"),
    (lambda patch, _: patch.setitem(sys.modules, "cuda.bindings", None), "pip install 'mlpcore"),
    (lambda patch, _: patch.setattr("builtins.__import__", no_driver), "no NVIDIA driver: libcud"),
    (lambda patch, _: patch.setattr(nvcc, "compiled", REFUSE), "cannot be compiled: nvcc is"),
]


@pytest.mark.parametrize("spoil, expected", REFUSED, ids=lambda value: str(value)[:20])
def test_a_device_that_cannot_be_used(cuda, monkeypatch, spoil, expected):
    """The reason is one line, and `backends.get` gives it."""
    spoil(monkeypatch, cuda)
    reason = backends.available()["cuda"]
    assert expected in reason and "\n" not in reason
    with pytest.raises(InputError, match="backend 'cuda' cannot run: "):
        backends.get("cuda")
    assert backends.get("auto").name != "cuda"


def everything(backend):
    """Weights, the result of a training on deformed images, and errors of a validation."""
    start, (images, labels, order) = random_network((20, 7, 3), 1), training_set((20, 7, 3), 9, 1)
    loaded, images, labels = backend.load(start), backend.put(images), backend.put(labels)
    seen = deform(images.reshape(9, 5, 4), labels, DeformationParameters(), 1, 1, backend)
    result = backend.train(loaded, seen.reshape(9, 20), labels, order, 0.01)
    backend.store(loaded, start)
    return start, result, backend.count_errors(loaded, images, labels)


def test_training_and_deformation_through_the_driver(cuda, reference, monkeypatch):
    monkeypatch.setattr(network, "INTERVAL", 1e6)  # a slow first step does not make chunks short
    monkeypatch.setattr(streaming, "STEPS_PER_GRAPH", 4)
    backend = backends.get("auto")
    expected = "cuda: Fake GPU, compute capability 9.0, float32, resident schedule"
    assert (backend.name, backend.description) == ("cuda", expected)
    got, *counts = everything(CudaBackend(backend.driver, "streaming"))
    assert cuda.replayed == 1 + 2  # steps: one by itself, then two graphs of four
    expected, *wanted = everything(emulated_backend())
    assert bits(got) == bits(expected)
    assert counts == wanted
    assert cuda.stack == []  # no context stays current
    assert_near(everything(backend)[0], everything(reference)[0])


@pytest.mark.filterwarnings("error")
def test_memory_is_freed_in_any_thread_and_silently(cuda):
    arrays = [backends.get("cuda").put(np.zeros(1000, np.float32))]
    assert len(cuda.allocated) == 1
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert not cuda.allocated
    array = backends.get("cuda").put(np.zeros(1000, np.float32))
    cuda.Context.push = failing("the device was lost")
    del array  # nobody can act on what is raised while an object is collected


#: Compiles everything but the kernels of plans.
WITHOUT_PLANS = Mock(side_effect=lambda *of: REFUSE() if of[2] else [b""])

CANNOT = [
    (lambda _, cuda: cuda.attributes.update(COOPERATIVE_LAUNCH=0), "the device has no cooperative"),
    (lambda _, cuda: cuda.attributes.update(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=64), "layers 20, 7"),
    (lambda _, cuda: setattr(cuda, "resident", 0), "5 blocks must be resident at once, 0 can be"),
    (lambda patch, _: patch.setattr(nvcc, "compiled", WITHOUT_PLANS), "its kernel cannot be comp"),
]


@pytest.mark.parametrize("spoil, expected", CANNOT)
def test_devices_that_cannot_train_resident_stream(cuda, monkeypatch, spoil, expected):
    spoil(monkeypatch, cuda)
    backend = backends.get("cuda")
    got, *_ = everything(backend)
    assert f"streaming schedule: {expected}" in backend.description
    assert bits(got) == bits(everything(emulated_backend("streaming"))[0])


FAILING = [
    ("synchronize", failing("an illegal\n memory access"), "an illegal memory access"),
    ("cuLaunchCooperativeKernel", lambda *arguments: (720,), ".*: too many blocks in coop"),
]


@pytest.mark.parametrize("name, fails, expected", FAILING)
def test_a_failing_device_is_one_line(cuda, name, fails, expected):
    backend = backends.get("cuda")
    setattr(cuda, name, fails)
    with pytest.raises(InputError, match=f"^Fake GPU failed: {expected}"):
        everything(backend)
