"""The driver of real devices on stand-ins for PyCUDA and cuda-bindings, and its refusals."""

import os
import shutil
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import fake_pycuda
from mlpcore import backends
from mlpcore.backends.cuda import build as resident_build
from mlpcore.backends.cuda import driver as cuda_driver
from mlpcore.backends.cuda import emulated as cuda_emulated
from mlpcore.backends.cuda import plan as resident_plan
from mlpcore.backends.cuda import streaming as cuda_training
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.deformation.deform import DeformationParameters, deform
from mlpcore.errors import InputError
from mlpcore.network import Network

ROOT = Path(__file__).resolve().parents[3]

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
def test_training_and_deformation_through_the_driver(install, monkeypatch):
    # However slow the first step is, as many as are allowed follow it at once.
    monkeypatch.setattr(cuda_training, "INTERVAL", 1e6)
    device = install(*fake_pycuda.make())
    backend, emulated = backends.get("auto"), backends.get("cuda-emulated")
    assert backend.name == "cuda"
    assert (
        backend.description == "cuda: Fake GPU, compute capability 9.0, float32, resident schedule"
    )
    rng = np.random.default_rng(1)
    images = rng.uniform(-1, 1, (9, 5, 4)).astype(np.float32)
    labels, order = rng.integers(0, 3, 9).astype(np.uint8), rng.permutation(9).astype(np.int32)
    results = []
    for each in (CudaBackend(backend.driver, 4, "streaming"), emulated):
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


# ---- resident training ---------------------------------------------------------------------


def train_a_little(backend):
    """A network, small enough for any device, after 70 samples; and what the backend says."""
    network, rng = Network((20, 12, 9, 3), seed=1), np.random.default_rng(1)
    images = rng.uniform(-1, 1, (70, 20)).astype(np.float32)
    labels = rng.integers(0, 3, 70).astype(np.uint8)
    loaded = backend.load(network)
    backend.train(loaded, images, labels, np.arange(70, dtype=np.int32), 0.01)
    backend.store(loaded, network)
    return network, backend.description


@pytest.fixture
def compiled(monkeypatch):
    """What nvcc would make of a plan: here its header, which the stand-ins compile themselves."""
    plans = []

    def find(plan, version, capability):
        plans.append((plan, capability))
        return plan.header(version).encode(), None

    monkeypatch.setattr(resident_build, "find", find)
    return plans


@needs_emulation
def test_resident_training_through_the_driver(install, compiled, reference):
    device = install(*fake_pycuda.make())
    network, description = train_a_little(backends.get("cuda"))
    assert description.endswith("float32, resident schedule")
    ((plan, capability),) = compiled
    assert (plan.blocks, capability, device.launched) == (6, 90, 0)
    expected, _ = train_a_little(reference)
    for got, wanted in zip(network.weights, expected.weights):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=70 * 2.0**-24)


@needs_emulation
@pytest.mark.parametrize(
    "attributes, expected",
    [
        ({"COOPERATIVE_LAUNCH": 0}, "the device has no cooperative launch"),
        ({"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 64}, "layers 20, 12, 9, 3 need "),
    ],
    ids=["no cooperative launch", "no room"],
)
def test_devices_that_cannot_train_resident_stream(
    install, compiled, monkeypatch, attributes, expected
):
    monkeypatch.setattr(fake_pycuda, "ATTRIBUTES", {**fake_pycuda.ATTRIBUTES, **attributes})
    install(*fake_pycuda.make())
    assert f"streaming schedule: {expected}" in train_a_little(backends.get("cuda"))[1]


@needs_emulation
def test_a_device_that_others_occupy_streams(install, compiled):
    driver, bindings = fake_pycuda.make()
    bindings.cuOccupancyMaxActiveBlocksPerMultiprocessor = lambda *arguments: (0, 0)
    install(driver, bindings)
    _, description = train_a_little(backends.get("cuda"))
    assert "streaming schedule: 6 blocks must be resident at once, 0 can be" in description


@needs_emulation
def test_a_launch_that_the_device_refuses_is_one_line(install, compiled):
    driver, bindings = fake_pycuda.make()
    bindings.cuLaunchCooperativeKernel = lambda *arguments: (720,)
    bindings.cuGetErrorString = lambda error: (0, b"too many blocks in cooperative launch")
    install(driver, bindings)
    with pytest.raises(InputError, match=r"^Fake GPU failed: .*: too many blocks in cooperative"):
        train_a_little(backends.get("cuda"))


@needs_emulation
def test_without_a_compiler_networks_stream(install, monkeypatch, tmp_path):
    install(*fake_pycuda.make())
    monkeypatch.setattr(resident_build, "cache_folder", lambda: tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    _, description = train_a_little(backends.get("cuda"))
    assert "streaming schedule: its kernel is not built, and nvcc is not on PATH" in description


@needs_emulation
def test_a_kernel_that_ends_with_its_device_is_silent(install, compiled, monkeypatch):
    """Nobody can act on what is raised while an object is collected."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    install(*fake_pycuda.make())
    backend = backends.get("cuda")
    loaded = backend.load(Network((20, 12, 9, 3), seed=1))
    kernel, loaded.resident._kernel = loaded.resident._kernel, None

    def fail():
        raise fake_pycuda.FakeError("cuCtxPushCurrent failed: the device was lost")

    monkeypatch.setattr(backend.driver._context, "push", fail)
    del kernel
    assert unraisable == []


@needs_emulation
def test_memory_is_freed_in_whatever_thread(install):
    device = install(*fake_pycuda.make())
    arrays = [backends.get("cuda").put(np.zeros(1000, np.float32))]
    before = len(device.allocated)
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert len(device.allocated) == before - 1


# ---- nvcc ----------------------------------------------------------------------------------


@pytest.fixture
def compile_fatbin(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "cuda"))
    import compile_fatbin

    return compile_fatbin


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_nvcc_compiles_every_kernel_for_every_architecture(compile_fatbin, monkeypatch, tmp_path):
    """Without a warning: they are errors."""
    monkeypatch.setattr(compile_fatbin, "DATA_CENTRE", {})
    monkeypatch.delenv("MLPCORE_CUDA", raising=False)
    monkeypatch.delenv("MLPCORE_CUDA_ARCH", raising=False)
    output = tmp_path / "out" / "kernels.fatbin"
    assert compile_fatbin.compile_fatbin(output, tmp_path / "cache") is None
    name = f"kernels-75-80-86-89-90-100-{compile_fatbin.sources_digest()}.fatbin"
    assert (tmp_path / "cache" / name).exists()
    for name in cuda_driver.KERNELS:
        assert output.read_bytes().count(name.encode()) >= len(compile_fatbin.ARCHITECTURES)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_nvcc_compiles_a_resident_kernel_once(compile_fatbin, monkeypatch, tmp_path):
    """Net1 on an H100 or H200, all its weights in registers: without spilling any."""
    monkeypatch.setattr(resident_build, "cache_folder", lambda: tmp_path / "kernels")
    monkeypatch.setattr(resident_build, "BUILT", tmp_path)
    device = resident_plan.Device(*compile_fatbin.DATA_CENTRE[90])
    plan = resident_plan.make_plan((841, 1000, 500, 10), device)
    cubin, report = resident_build.find(plan, "ahead", 90)
    assert b"resident_train_kernel" in cubin
    assert report.endswith("registers, no spills")
    assert int(report.split()[0]) > plan.weight_registers
    monkeypatch.setenv("PATH", "/nowhere")
    assert resident_build.find(plan, "ahead", 90) == (cubin, None)  # from the cache
    name = compile_fatbin.cubin_name(plan, "ahead", 90)
    (tmp_path / name).write_bytes(b"built with mlpcore")
    assert resident_build.find(plan, "ahead", 90)[0] == b"built with mlpcore"


@pytest.fixture
def sources(compile_fatbin, monkeypatch, tmp_path):
    """A copy of the kernels' sources, and an nvcc that copies what it is to compile."""
    folder = tmp_path / "cuda"
    shutil.copytree(ROOT / "cuda", folder)
    monkeypatch.setattr(compile_fatbin, "SOURCES", folder)
    monkeypatch.setattr(resident_build, "_compiler", lambda: compile_fatbin)
    monkeypatch.setattr(resident_build, "BUILT", tmp_path / "built")
    monkeypatch.setattr(resident_build, "cache_folder", lambda: tmp_path / "kernels")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --list-gpu-code ] && echo sm_90 && exit\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'cp "$3" "$2" && echo Used 32 registers, 0 bytes spill stores\n'
    )
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(nvcc.parent), prepend=os.pathsep)
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", "90")
    monkeypatch.delenv("MLPCORE_CUDA", raising=False)
    return folder


def test_kernels_are_those_of_the_sources(compile_fatbin, monkeypatch, sources, tmp_path):
    """Whatever the times of files say, and whether a build has been since or not."""
    monkeypatch.setattr(compile_fatbin, "DATA_CENTRE", {90: (6, 1 << 20)})
    plan = resident_plan.make_plan((841, 1000, 500, 10), resident_plan.Device(6, 1 << 20))

    def build():
        assert (
            compile_fatbin.compile_fatbin(tmp_path / "built" / "k.fatbin", tmp_path / "c") is None
        )
        return (tmp_path / "built" / "k.fatbin").read_bytes()

    before = build(), resident_build.find(plan, "ahead", 90)
    assert before == (
        (sources / "kernels.cu").read_bytes(),
        ((sources / "resident.cu").read_bytes(), None),
    )
    for name in ("kernels.cu", "resident.cu"):
        times = (sources / name).stat()
        (sources / name).write_bytes((sources / name).read_bytes() + b"// edited\n")
        os.utime(sources / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    edited, report = resident_build.find(plan, "ahead", 90)
    assert edited.endswith(b"// edited\n") and report == "32 registers, no spills"
    assert build().endswith(b"// edited\n")
    assert resident_build.find(plan, "ahead", 90) == (edited, None)
    monkeypatch.setattr(resident_build, "COMPILE", tmp_path / "none")  # installed without sources
    assert resident_build.find(plan, "ahead", 90) == (edited, None)
    with pytest.raises(resident_plan.DoesNotFit, match="the sources are in a checkout only"):
        resident_build.find(plan, "flags", 90)


def test_a_kernel_that_nvcc_refuses_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setattr(resident_build, "cache_folder", lambda: tmp_path / "kernels")
    monkeypatch.setattr(resident_build, "BUILT", tmp_path)
    monkeypatch.setattr(resident_build, "_refused", {})
    nvcc, calls = tmp_path / "nvcc", tmp_path / "calls"
    nvcc.write_text(f"#!/bin/sh\necho called >> {calls}\necho no such option\nexit 1\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    plan = resident_plan.make_plan((20, 12, 3), resident_plan.Device(6, 48 << 10))
    for _ in range(2):
        with pytest.raises(resident_plan.DoesNotFit, match="compiled: nvcc failed: no such option"):
            resident_build.find(plan, "ahead", 90)
    assert calls.read_text() == "called\n"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_spills_are_reported(compile_fatbin, monkeypatch, tmp_path):
    """A plan that leaves a thread no registers but for weights."""
    monkeypatch.setattr(resident_plan, "SPARE_REGISTERS", (0,))
    device = resident_plan.Device(16, 232448)
    plan = resident_plan.search_plan((841, 1000, 500, 10), device)
    report = compile_fatbin.compile_resident("nvcc", plan.header(), 90, tmp_path / "k.cubin")
    assert "WARNING" in report


def test_resident_kernels_are_built_for_the_device_at_hand(compile_fatbin, monkeypatch, tmp_path):
    """They take minutes, which only such a machine should spend."""
    known = list(compile_fatbin.ARCHITECTURES)
    monkeypatch.delenv("MLPCORE_CUDA_ARCH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compile_fatbin._ahead(known) == []
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 9.0\necho 7.0\n")
    smi.chmod(0o755)
    assert compile_fatbin._ahead(known) == [90]
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", "80,100")
    assert compile_fatbin._ahead([80, 100]) == [80, 100]


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
