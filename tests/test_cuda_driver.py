"""The driver of real devices on stand-ins for PyCUDA and cuda-bindings, and its refusals."""

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import fake_pycuda
from mlpcore import backends
from mlpcore.backends import cuda_driver, cuda_emulated
from mlpcore.backends.cuda import CudaBackend
from mlpcore.deformation import DeformationParameters, deform
from mlpcore.errors import InputError
from mlpcore.network import Network

ROOT = Path(__file__).resolve().parents[1]

needs_emulation = pytest.mark.skipif(
    cuda_emulated.unavailable_reason() is not None, reason=str(cuda_emulated.unavailable_reason())
)


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Puts modules where PyCUDA and cuda-bindings would be, and a file where the fatbin is."""
    fatbin = tmp_path / "kernels.fatbin"
    fatbin.write_bytes(b"code")
    monkeypatch.setattr(cuda_driver, "FATBIN", fatbin)

    def put(driver, bindings):
        parents = {"pycuda": driver, "cuda": bindings, "cuda.bindings": bindings}
        for name in parents:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
        monkeypatch.setattr(sys.modules["pycuda"], "driver", driver, raising=False)
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", bindings)
        monkeypatch.setattr(sys.modules["cuda.bindings"], "driver", bindings, raising=False)
        return driver.device if hasattr(driver, "device") else None

    cuda_driver._driver_or_reason.cache_clear()
    yield put
    cuda_driver._driver_or_reason.cache_clear()


def assert_reason(expected):
    """The reason is one line, and everything that is asked for the backend tells it."""
    reason = backends.available()["cuda"]
    assert expected in reason
    assert "\n" not in reason
    with pytest.raises(InputError, match="backend 'cuda' cannot run: "):
        backends.get("cuda")
    assert backends.get("auto").name not in ("cuda", "cuda-emulated")


# ---- refusals ------------------------------------------------------------------------------


@needs_emulation
@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"error": "cuInit failed: no\n CUDA-capable device is detected"}, "no CUDA device: cuIn"),
        ({"count": 0}, "no CUDA device is visible"),
        ({"free": 100 << 20}, "Fake GPU has 100 MiB of memory free, 256 needed"),
        ({"no_code": True}, "no code for Fake GPU, compute capability 9.0: module_from_buffer"),
    ],
    ids=["no device", "none visible", "too little memory", "no code"],
)
def test_a_device_that_cannot_be_used(install, arguments, expected):
    install(*fake_pycuda.make(**arguments))
    assert_reason(expected)


@needs_emulation
def test_a_device_that_fails_as_soon_as_it_is_used(install):
    driver, bindings = fake_pycuda.make()

    def fail():
        raise driver.Error("cuStreamCreate failed: out of\n memory")

    driver.Stream = fail
    install(driver, bindings)
    assert_reason("Fake GPU failed: cuStreamCreate failed: out of")


def test_not_built(install, monkeypatch, tmp_path):
    monkeypatch.setattr(cuda_driver, "FATBIN", tmp_path / "none")
    assert_reason("built without CUDA kernels")


@needs_emulation
def test_cuda_bindings_missing(install, monkeypatch):
    install(*fake_pycuda.make())
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert_reason("cuda-bindings is not installed (pip install 'mlpcore[cuda]')")


@pytest.mark.parametrize(
    "error, expected",
    [
        (ModuleNotFoundError("No module named 'pycuda'", name="pycuda"), "PyCUDA is not installed"),
        (ImportError("libcuda.so.1: cannot open shared object file"), "no NVIDIA driver: libcuda"),
        (ImportError("something else"), "PyCUDA cannot be imported: something else"),
    ],
)
def test_pycuda_that_cannot_be_imported(install, monkeypatch, error, expected):
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.split(".")[0] == "pycuda":
                raise error

    for name in [name for name in sys.modules if name.split(".")[0] == "pycuda"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert_reason(expected)


def test_no_visible_device_is_one_line():
    """In a process of its own, as a user would meet it, whatever this machine has."""
    code = "from mlpcore import backends; print(backends.available()['cuda'])"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout != "None\n"


# ---- the driver itself ---------------------------------------------------------------------


@needs_emulation
def test_training_and_deformation_through_the_driver(install):
    device = install(*fake_pycuda.make())
    backend, emulated = backends.get("auto"), backends.get("cuda-emulated")
    assert backend.name == "cuda"
    assert backend.description == "cuda: Fake GPU, compute capability 9.0, float32"
    rng = np.random.default_rng(1)
    images = rng.uniform(-1, 1, (9, 5, 4)).astype(np.float32)
    labels, order = rng.integers(0, 3, 9).astype(np.uint8), rng.permutation(9).astype(np.int32)
    results = []
    for each in (CudaBackend(backend.driver, steps_per_graph=4), emulated):
        network = Network((20, 7, 3), seed=1)
        loaded, resident = each.load(network), each.put(images)
        seen = deform(resident, labels, DeformationParameters(), 1, 1, each)
        result = each.train(loaded, seen.reshape(9, 20), each.put(labels), order, 0.01)
        each.store(loaded, network)
        errors = each.count_errors(loaded, resident.reshape(9, 20), each.put(labels))
        results.append((network.weights, network.biases, result, errors))
    assert device.launched == 1 + 2  # steps: one by itself, then two graphs of four
    for got, expected in zip(*results):
        if isinstance(got, list):
            assert all(np.array_equal(a, b) for a, b in zip(got, expected))
        else:
            assert got == expected
    assert device.stack == []  # no context stays current
    assert backend.driver.time([], 3) > 0
    called = []
    assert backend.driver.time_call(lambda: called.append(device.stack != [])) == 1e-3
    assert called == [True]  # once, its context current


@needs_emulation
def test_a_failing_device_is_one_line(install):
    install(*fake_pycuda.make())
    backend = backends.get("cuda")

    def fail():
        raise fake_pycuda.FakeError("cuStreamSynchronize failed:\n an illegal memory access")

    backend.driver._stream.synchronize = fail
    with pytest.raises(InputError, match=r"^Fake GPU failed: cuStreamSynchronize failed: an ille"):
        backend.put(np.zeros(3, np.float32))


# ---- nvcc ----------------------------------------------------------------------------------


@pytest.fixture
def compile_fatbin(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "cuda"))
    import compile_fatbin

    return compile_fatbin


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_nvcc_compiles_every_kernel_for_every_architecture(compile_fatbin, monkeypatch, tmp_path):
    """Without a warning: they are errors."""
    monkeypatch.delenv("MLPCORE_CUDA", raising=False)
    monkeypatch.delenv("MLPCORE_CUDA_ARCH", raising=False)
    output = tmp_path / "out" / "kernels.fatbin"
    assert compile_fatbin.compile_fatbin(output, tmp_path / "cache") is None
    assert (tmp_path / "cache" / "kernels-75-80-86-89-90-100.fatbin").exists()
    for name in cuda_driver.KERNELS:
        assert output.read_bytes().count(name.encode()) >= len(compile_fatbin.ARCHITECTURES)


@pytest.mark.parametrize("text", ["12", "ninety", "90,", "sm_90"])
def test_unknown_architectures_are_refused(compile_fatbin, monkeypatch, text):
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", text)
    with pytest.raises(compile_fatbin.CudaBuildError, match=f"{text}: expected some of 80,90$"):
        compile_fatbin._wanted([80, 90])


def test_architectures_can_be_chosen(compile_fatbin, monkeypatch):
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", "90,80")
    assert compile_fatbin._wanted([75, 80, 90]) == [80, 90]
    words = compile_fatbin.command("nvcc", Path("k.fatbin"), [80, 90])
    assert "arch=compute_90,code=compute_90" in words
    assert "arch=compute_80,code=compute_80" not in words


@pytest.mark.parametrize(
    "variable, path, expected",
    [("0", os.environ["PATH"], "MLPCORE_CUDA=0"), ("", "/nowhere", "nvcc is not on PATH")],
)
def test_a_build_without_kernels_says_so(
    compile_fatbin, monkeypatch, tmp_path, variable, path, expected
):
    monkeypatch.setenv("MLPCORE_CUDA", variable)
    monkeypatch.setenv("PATH", path)
    (tmp_path / "k.fatbin").write_bytes(b"from an earlier build")
    line = compile_fatbin.compile_fatbin(tmp_path / "k.fatbin", tmp_path)
    assert line == f"CUDA kernels left out: {expected}"
    assert not (tmp_path / "k.fatbin").exists()
