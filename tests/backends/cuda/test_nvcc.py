"""Compiling kernels: with nvcc where it is there, else with a stand-in for it."""

import os
import shutil
from dataclasses import replace

import pytest

from emulated import ROOT
from mlpcore.backends.cuda import build, nvcc
from mlpcore.backends.cuda import plan as planning
from mlpcore.backends.cuda.launch import KERNELS, RELU, SOFTMAX, TANH
from mlpcore.backends.cuda.plan import DATA_CENTRE, DeviceLimits, DoesNotFit, make_plan

NET1 = (841, 1000, 500, 10)

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")


@pytest.fixture(autouse=True)
def folders(monkeypatch, tmp_path):
    """Nothing is built or kept but in the test's own folder."""
    monkeypatch.setattr(build, "BUILT", tmp_path / "built")
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path / "kernels")
    monkeypatch.setattr(build, "_refused", {})
    monkeypatch.delenv("MLPCORE_CUDA", raising=False)
    monkeypatch.delenv("MLPCORE_CUDA_ARCH", raising=False)


def program(folder, name, script):
    """A shell script on a path of its own."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return str(folder)


# ---- with nvcc -----------------------------------------------------------------------------


@needs_nvcc
def test_nvcc_compiles_every_kernel_for_every_architecture(tmp_path):
    """Without a warning: they are errors."""
    output = tmp_path / "out" / "kernels.fatbin"
    assert nvcc.build(output, tmp_path / "cache", lambda capability: {}) is None
    name = f"kernels-75-80-86-89-90-100-{nvcc.sources_digest()}.fatbin"
    assert (tmp_path / "cache" / name).exists()
    for name in KERNELS:
        assert output.read_bytes().count(name.encode()) >= len(nvcc.ARCHITECTURES)


@needs_nvcc
@pytest.mark.parametrize("hidden, output", [(TANH, TANH), (RELU, SOFTMAX)])
def test_nvcc_compiles_a_resident_kernel_once(monkeypatch, tmp_path, hidden, output):
    """Net1 on an H100 or H200, all its weights in registers: without spilling any."""
    plan = replace(make_plan(NET1, DATA_CENTRE[90]), hidden=hidden, output=output)
    cubin, report = build.find(plan, 90)
    assert b"resident_train_kernel" in cubin
    assert report.endswith("registers, no spills")
    assert int(report.split()[0]) > plan.weight_registers
    monkeypatch.setenv("PATH", "/nowhere")
    assert build.find(plan, 90) == (cubin, None)  # from the cache
    (tmp_path / "built").mkdir()
    name = nvcc.cubin_name(plan.header(), 90)
    (tmp_path / "built" / name).write_bytes(b"built with mlpcore")
    assert build.find(plan, 90)[0] == b"built with mlpcore"


@needs_nvcc
def test_spills_are_reported(monkeypatch, tmp_path):
    """The plan leaves a thread no registers except for weights."""
    monkeypatch.setattr(planning, "SPARE_REGISTERS", (0,))
    plan = planning.search_plan(NET1, DeviceLimits(16, 232448))
    report = nvcc.compile_resident("nvcc", plan.header(), 90, tmp_path / "k.cubin")
    assert "WARNING" in report


# ---- with a stand-in -----------------------------------------------------------------------


@pytest.fixture
def sources(monkeypatch, tmp_path):
    """A copy of the kernels' sources, and an nvcc that copies what it is to compile."""
    folder = shutil.copytree(ROOT / "cuda", tmp_path / "cuda")
    monkeypatch.setattr(nvcc, "SOURCES", folder)
    script = (
        '[ "$1" = --list-gpu-code ] && echo sm_90 && exit\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'cp "$3" "$2" && echo Used 32 registers, 0 bytes spill stores'
    )
    path = program(tmp_path / "bin", "nvcc", script)
    monkeypatch.setenv("PATH", path, prepend=os.pathsep)
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", "90")
    return folder


def test_kernels_are_those_of_the_sources(monkeypatch, sources, tmp_path):
    """Whatever the times of files say, and whether there was a build since or not."""
    plan = make_plan(NET1, DeviceLimits(6, 1 << 20))
    output = tmp_path / "built" / "k.fatbin"

    def make():
        headers = {"net1": plan.header()}
        assert nvcc.build(output, tmp_path / "c", lambda capability: headers) is None
        return output.read_bytes()

    assert make() == (sources / "kernels.cu").read_bytes()
    assert build.find(plan, 90) == ((sources / "resident.cu").read_bytes(), None)
    for name in ("kernels.cu", "resident.cu"):
        times = (sources / name).stat()
        (sources / name).write_bytes((sources / name).read_bytes() + b"// edited\n")
        os.utime(sources / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    edited, report = build.find(plan, 90)
    assert edited.endswith(b"// edited\n") and report == "32 registers, no spills"
    assert make().endswith(b"// edited\n")
    assert build.find(plan, 90) == (edited, None)


def test_a_kernel_that_cannot_be_kept(sources):
    plan = make_plan(NET1, DeviceLimits(6, 1 << 20))
    build.find(plan, 90)
    (kept,) = build.cache_folder().iterdir()
    kept.unlink()
    kept.mkdir()
    with pytest.raises(DoesNotFit, match="expected a file"):
        build.find(plan, 90)


def test_an_installed_package_has_the_kernels_that_were_built(monkeypatch, sources, tmp_path):
    plan = make_plan(NET1, DeviceLimits(6, 1 << 20))
    nvcc.build(tmp_path / "built" / "k.fatbin", tmp_path / "c", lambda _: {"net1": plan.header()})
    (tmp_path / "none").mkdir()  # such as the folder of cuda-bindings beside the package
    monkeypatch.setattr(nvcc, "SOURCES", tmp_path / "none")
    assert build.find(plan, 90) == ((sources / "resident.cu").read_bytes(), None)
    with pytest.raises(DoesNotFit, match="the sources are in a checkout only"):
        build.find(make_plan((20, 12, 3), DeviceLimits(6, 1 << 20)), 90)


def test_a_kernel_that_nvcc_refuses_is_compiled_once(monkeypatch, tmp_path):
    calls = tmp_path / "calls"
    script = f"echo called >> {calls}\necho no such option\nexit 1"
    monkeypatch.setenv("PATH", program(tmp_path / "bin", "nvcc", script))
    plan = make_plan((20, 12, 3), DeviceLimits(6, 48 << 10))
    for _ in range(2):
        with pytest.raises(DoesNotFit, match="compiled: nvcc failed: no such option"):
            build.find(plan, 90)
    assert calls.read_text() == "called\n"


def test_a_kernel_that_cannot_be_kept_is_one_line(monkeypatch, sources, tmp_path):
    (tmp_path / "kernels").write_bytes(b"a file where the folder should be")
    with pytest.raises(DoesNotFit, match=r"^its kernel cannot be kept in .*kernels: [\w ]+$"):
        build.find(make_plan((20, 12, 3), DeviceLimits(6, 48 << 10)), 90)


def test_a_compiler_that_is_not_understood(monkeypatch, tmp_path):
    path = program(tmp_path / "bin", "nvcc", "echo hello")
    monkeypatch.setenv("PATH", path)
    with pytest.raises(nvcc.NvccError):
        nvcc.build(tmp_path / "k.fatbin", tmp_path, lambda capability: {})
    with pytest.raises(nvcc.NvccError):
        nvcc.compile_resident(f"{path}/nvcc", "", 90, tmp_path / "k.cubin")


def test_resident_kernels_are_built_for_the_device_at_hand(monkeypatch, tmp_path):
    """They take minutes, which only such a machine should spend."""
    known = list(nvcc.ARCHITECTURES)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvcc.resident_architectures(known) == []
    program(tmp_path, "nvidia-smi", "echo 9.0\necho 7.0")
    assert nvcc.resident_architectures(known) == [90]
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", "80,100")
    assert nvcc.resident_architectures([80, 100]) == [80, 100]


@pytest.mark.parametrize("text", ["12", "ninety", "90,", "sm_90"])
def test_unknown_architectures_are_refused(monkeypatch, text):
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", "90,80")
    assert nvcc.chosen_architectures([75, 80, 90]) == [80, 90]
    monkeypatch.setenv("MLPCORE_CUDA_ARCH", text)
    with pytest.raises(nvcc.NvccError, match=f"{text}: expected some of 80,90$"):
        nvcc.chosen_architectures([80, 90])


@pytest.mark.parametrize(
    "variable, path, expected",
    [("0", os.environ["PATH"], "MLPCORE_CUDA=0"), ("", "/nowhere", "nvcc is not on PATH")],
)
def test_a_build_without_kernels_says_so(monkeypatch, tmp_path, variable, path, expected):
    monkeypatch.setenv("MLPCORE_CUDA", variable)
    monkeypatch.setenv("PATH", path)
    (tmp_path / "k.fatbin").write_bytes(b"from an earlier build")
    line = nvcc.build(tmp_path / "k.fatbin", tmp_path, lambda capability: {})
    assert line == f"CUDA kernels left out: {expected}"
    assert not (tmp_path / "k.fatbin").exists()
