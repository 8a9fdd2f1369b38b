"""Compiling kernels: with nvcc where it is there, and with a stand-in for it."""

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest

from emulated import ROOT
from mlpcore.backends.cuda import nvcc
from mlpcore.backends.cuda.launch import CU, KERNELS
from mlpcore.backends.cuda.plan import DeviceLimits, make_plan

NVCC = nvcc.find_nvcc()
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="there is no nvcc")


def compiled(*of):
    """The machine code that is tried first."""
    return next(nvcc.compiled(*of))


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache of the test's own, a copy of the kernels' sources, and no CUDA but on PATH."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(nvcc, "SYSTEM_FOLDER", tmp_path / "system" / "bin")
    monkeypatch.setattr(nvcc, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(nvcc, "SOURCES", shutil.copytree(ROOT / "cuda", tmp_path / "cuda"))
    return tmp_path / "cache"


def program(monkeypatch, folder, script):
    """A shell script as nvcc, with nothing but the shell's own commands beside it."""
    (folder / "nvcc").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@needs_nvcc
def test_nvcc_compiles_every_kernel(cache):
    """For the oldest devices, and without a warning: they are errors."""
    assert all(name.encode() in compiled("kernels.cu", 75) for name in KERNELS)


@needs_nvcc
@pytest.mark.parametrize("hidden, output", [(CU.TANH, CU.TANH), (CU.RELU, CU.SOFTMAX)])
def test_nvcc_compiles_a_resident_kernel(cache, tmp_path, hidden, output):
    """Net1 on an H100 or H200, all its weights in registers: without spilling any."""
    plan = make_plan((841, 1000, 500, 10), DeviceLimits(132, 232448))
    plan = replace(plan, hidden=hidden, output=output)
    (tmp_path / "resident_plan.h").write_text(plan.header())
    command = [NVCC, *nvcc.FLAGS, "-arch=sm_90", "-Xptxas", "-v", f"-I{tmp_path}"]
    command += ["-o", tmp_path / "made.cubin", nvcc.SOURCES / "resident.cu"]
    report = subprocess.run(command, capture_output=True, text=True).stderr
    assert " 0 bytes spill stores" in report
    assert int(re.search(r"Used (\d+) registers", report)[1]) > sum(
        layer.registers for layer in plan.layers
    )


def test_kernels_are_those_of_the_sources_and_of_the_compiler(cache, monkeypatch, tmp_path):
    """Whatever the times of files say; each is compiled once, and then needs no compiler."""
    calls = tmp_path / "calls"

    def install(version):
        script = (
            f'[ "$1" = --version ] && echo {version} && exit\necho called >> {calls}\n'
            'while [ "$1" != -o ]; do shift; done\ncp "$3" "$2"'  # a copy of what it is to compile
        )
        program(monkeypatch, tmp_path, script)

    install("release 12.6")
    source = nvcc.SOURCES / "resident.cu"
    for _ in range(2):
        assert compiled("resident.cu", 90, "a plan") == source.read_bytes()
    times = source.stat()
    source.write_bytes(source.read_bytes() + b"// edited\n")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert compiled("resident.cu", 90, "a plan").endswith(b"// edited\n")
    compiled("resident.cu", 90, "another plan")
    compiled("resident.cu", 80, "another plan")
    install("release 13.0")
    compiled("resident.cu", 90, "a plan")
    assert calls.read_text() == "called\n" * 5
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        assert compiled("resident.cu", 90, "a plan") == source.read_bytes()
    # What the device refuses is compiled anew.
    assert list(nvcc.compiled("resident.cu", 90, "a plan")) == 2 * [source.read_bytes()]
    shutil.rmtree(cache)
    cache.write_bytes(b"a file where the folder should be")
    assert compiled("resident.cu", 90, "a plan") == source.read_bytes()


def test_a_compiler_that_refuses_is_one_line(cache, monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "echo nvcc fatal\necho no such architecture >&2\nexit 1")
    with pytest.raises(nvcc.CannotCompile, match=r"^nvcc failed: nvcc fatal no such architecture$"):
        compiled("kernels.cu", 90)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(nvcc.CannotCompile, match=r"^nvcc is not on PATH, in"):
        compiled("kernels.cu", 90)


def test_nvcc_is_found_where_cuda_is_installed(cache, monkeypatch, tmp_path):
    packages = tmp_path / "packages"
    folders = [tmp_path / name / "bin" for name in ("home", "path", "search", "system")]
    folders += [packages / "cu13" / "bin"]
    for folder in folders:
        folder.mkdir(parents=True)
        program(monkeypatch, folder, "")
    monkeypatch.setenv("PATH", str(folders[2]))
    spec = SimpleNamespace(submodule_search_locations=[str(packages)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "path"))
    for folder in folders:
        assert nvcc.find_nvcc() == str(folder / "nvcc")
        (folder / "nvcc").unlink()
