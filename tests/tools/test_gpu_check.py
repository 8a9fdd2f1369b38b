"""`tools/gpu_check.py` as far as it goes without a GPU: on stand-ins, and where it must fail."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fake_pycuda
from mlpcore import backends, dataset
from mlpcore.backends.cuda import build as resident_build
from mlpcore.backends.cuda import driver as cuda_driver
from mlpcore.backends.cuda import emulated as cuda_emulated
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.plan import DoesNotFit
from mlpcore.network import Network
from speed.command import make_plan, parser

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def tools(monkeypatch):
    """The tool's modules, with networks small enough for the emulation."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import gpu_check
    import gpu_measure

    monkeypatch.setattr(gpu_measure, "PRESETS", {"net1": (9, 8), "net4": (12, 9, 8)})
    return gpu_check, gpu_measure


@pytest.fixture
def fake_cuda(monkeypatch, tmp_path):
    """A backend whose driver runs on stand-ins for PyCUDA and cuda-bindings."""
    if cuda_emulated.unavailable_reason() is not None:
        pytest.skip(cuda_emulated.unavailable_reason())
    driver, bindings = fake_pycuda.make()
    monkeypatch.setattr(cuda_driver, "FATBIN", tmp_path / "kernels.fatbin")
    cuda_driver.FATBIN.write_bytes(b"code")
    monkeypatch.setattr(cuda_driver, "_import_pycuda", lambda: driver)
    monkeypatch.setattr(cuda_driver, "_import_bindings", lambda: bindings)
    cuda_driver._driver_or_reason.cache_clear()
    monkeypatch.setattr(
        resident_build, "find", lambda plan, version, _: (plan.header(version).encode(), None)
    )
    yield CudaBackend(cuda_driver.CudaDriver())
    cuda_driver._driver_or_reason.cache_clear()


def test_every_kernel_is_exercised(tools, fake_cuda, monkeypatch):
    launched = set()
    emulated = fake_cuda.driver._cuda.device.emulated
    launch = emulated.launch
    monkeypatch.setattr(emulated, "launch", lambda one: (launched.add(one.kernel), launch(one)))
    assert tools[0].exercise(fake_cuda) == {}
    assert launched == set(cuda_driver.KERNELS)


def test_measurements(tools, fake_cuda, monkeypatch):
    """Times are those of stand-ins; what is measured, and how often, is real."""
    _, measure = tools
    monkeypatch.setattr(measure, "PAPERS_BANDWIDTH", 0.0)
    monkeypatch.setattr(measure, "MAX_DEFORMATION", float("inf"))
    assert measure.bandwidth(fake_cuda, copies=2)["layer"] == [841, 12]
    rows = measure.launches(fake_cuda, n=16)
    assert rows["net4"]["launches_per_sample"] == 1 + 8 + 1 + 6 + 4
    assert measure.deformation(fake_cuda, n=120, repetitions=1)["images"] == 120


def test_measurements_of_resident_training(tools, fake_cuda):
    _, measure = tools
    rows = measure.resident(fake_cuda, n=64, every_version=("net1",))
    assert set(rows["net1"]) == {"barrier", "flags", "overlap", "ahead"}
    assert rows["net4"]["ahead"]["predicted_us"] > 0
    result = measure.repeats(fake_cuda, n=70, times=2)
    assert result["net1"] == {"runs": 2, "different_bits": 0}
    assert set(measure.committee(fake_cuda, n=64, members=(2,))) == {"1", "2"}
    assert measure.soak(fake_cuda, seconds=1e-9, n=64)["samples"] in (0, 64)


@pytest.mark.parametrize(
    "step", ["exercise", "resident", "repeats", "committee", "soak", "accuracy"]
)
def test_a_network_that_fits_must_be_resident(tools, fake_cuda, monkeypatch, step):
    """Without its kernel it streams, slower and as right: nothing else would tell."""
    check, measure = tools

    def find(plan, version, capability):
        raise DoesNotFit("nvcc is not on PATH")

    monkeypatch.setattr(resident_build, "find", find)
    monkeypatch.setattr(measure, "PRESETS", {"net1": (9, 8), "net4": (9, 9, 8)})
    small = {
        "resident": {"n": 64, "every_version": ()},
        "repeats": {"n": 4, "times": 1},
        "committee": {"n": 4, "members": (2,)},
        "soak": {"seconds": 1e-9, "n": 4},
        "accuracy": {"n": 4, "device": "cpu", "presets": ("net1", "net4")},
    }
    if step == "accuracy":
        pytest.importorskip("torch")
    function = check.exercise if step == "exercise" else getattr(measure, step)
    with pytest.raises(measure.CheckError, match="streams although it fits: 1 of layers") as caught:
        function(fake_cuda, **small.get(step, {}))
    assert "(nvcc is not on PATH)" in str(caught.value)
    expected = {"exercise": 0, "committee": 2, "soak": 3}
    assert len(caught.value.result) == expected.get(step, 2)  # what was measured is kept


def test_a_network_that_does_not_fit_may_stream(tools, fake_cuda, monkeypatch):
    _, measure = tools
    monkeypatch.setattr(measure, "PRESETS", {"net1": (4000, 3000)})
    rows = measure.resident(fake_cuda, n=1)
    assert "need" in rows["net1"]["ahead"]["reason"]


def test_training_beside_the_cpu(tools, fake_cuda, monkeypatch):
    _, measure = tools
    digits = dataset.load(name="digits")
    few = {name: getattr(digits, name)[:300] for name in ("train_images", "train_labels")}
    monkeypatch.setattr(measure.dataset, "load", lambda *_, **__: replace(digits, **few))
    result = measure.training(fake_cuda, epochs=1, seeds=(1,))
    gpu, cpu = result["runs"]
    assert (gpu["backend"], cpu["backend"]) == ("cuda", result["cpu"])
    assert gpu["test_error_percent"] == pytest.approx(cpu["test_error_percent"], abs=0.75)


def test_a_missed_requirement_fails_and_keeps_the_numbers(tools, fake_cuda):
    with pytest.raises(tools[1].CheckError) as caught:
        tools[1].bandwidth(fake_cuda, copies=2)  # a stand-in takes 1 ms
    assert caught.value.result["from_memory_GB_per_s"] < 2


def test_accuracy_is_measured_against_the_oracle(tools, fake_cuda):
    pytest.importorskip("torch")
    result = tools[1].accuracy(fake_cuda, 30, ("net1", "net4"), device="cpu")
    assert result["net4"]["samples"] == 30
    assert 0 < result["net4"]["largest_error"] < 1e-3 * result["net4"]["largest_change"]


def test_float64_in_torch_is_the_oracle(tools, reference):
    pytest.importorskip("torch")
    from float64_twin import train_in_float64

    network, rng = Network((30, 20, 10, 4), seed=1), np.random.default_rng(0)
    images = rng.uniform(-1, 1, (50, 30)).astype(np.float32)
    labels, order = rng.integers(0, 4, 50).astype(np.uint8), np.arange(50, dtype=np.int32)
    rates = [0.02, 0.01, 0.005]
    twin = train_in_float64(network, images, labels, order, rates, "cpu", 1.3)
    reference.train(network, images, labels, order, rates, target=1.3)
    for got, expected in zip(twin, network.weights + network.biases):
        np.testing.assert_allclose(got, expected, rtol=0, atol=2.0**-24)  # rounded once, at the end


BY_HAND, AUTOGRAD = "PyTorch by hand, GPU", "PyTorch autograd, GPU"


def architecture(**seconds):
    """As `tools/speedup.py` writes one, with the seconds of a step by name."""
    results = [
        {
            "name": name,
            "threads": 1,
            "timing": time and {"seconds": time},
            "reason": "" if time else "failed",
        }
        for name, time in seconds.items()
    ]
    return {"routines": [{"key": "step", "results": results}]}


def test_eager_loops_must_be_slower(tools):
    check, _ = tools

    def missed(**seconds):
        return check.missed(check.step_rows(architecture(**seconds)))

    assert missed(cuda=1.0, **{BY_HAND: 2.0, AUTOGRAD: 3.0}) == []
    assert missed(cuda=2.0, **{BY_HAND: 2.0, AUTOGRAD: 3.0}) == [
        f"beaten at the on-line step by {BY_HAND}"
    ]
    assert missed(cuda=2.0, **{BY_HAND: 2.0, AUTOGRAD: None}) == [f"not measured: {AUTOGRAD}"]


def test_the_summary_has_the_steps_of_all_networks(tools, monkeypatch, tmp_path):
    """Of one table as well when the other cannot be had."""
    check, measure = tools
    seconds = {"cuda": 1e-6, BY_HAND: 2e-6, AUTOGRAD: 3e-6}

    def run(command, **environment):
        make_plan(parser().parse_args([*command[2:], "--backend", "scalar"]))  # or raises
        presets = command[command.index("--arch") + 1].split(";")
        table = {"architectures": [architecture(**seconds)] * len(presets)}
        Path(command[command.index("--json") + 1]).write_text(json.dumps(table))
        if "net5" in presets and seconds["cuda"] > 1:
            raise RuntimeError("exit status 1: out of memory")

    monkeypatch.setattr(check, "_run", run)
    monkeypatch.setattr("speed.command.unavailable", lambda name: None)
    steps = check.speedup(tmp_path)["steps"]
    assert list(steps) == ["net1", "net2", "net3", "net4", "net5"]
    assert steps["net5"][0] == {"name": "cuda", "threads": 1, "us_per_sample": 1.0}
    assert [path.name for path in tmp_path.iterdir()] == ["details"]
    seconds["cuda"] = 2.0
    with pytest.raises(
        measure.CheckError, match=r"net1: beaten.*; net2.*: exit status 1"
    ) as caught:
        check.speedup(tmp_path)
    assert list(caught.value.result["steps"]) == ["net1"]
    assert list(json.loads((tmp_path / "details" / "speedup.json").read_text())["steps"]) == [
        "net1"
    ]


def test_larger_networks_are_measured_without_compilers(tools):
    (_, peers) = (
        make_plan(parser().parse_args(options)).peers for options in tools[0].SPEEDUPS.values()
    )
    assert [peer.name for peer in peers] == [
        "JAX scan, GPU",
        "PyTorch by hand, GPU",
        "PyTorch autograd, GPU",
        "PyTorch CUDA graph",
    ]


def test_every_kernel_of_the_steps_is_compiled_before(tools, fake_cuda, monkeypatch):
    check, measure = tools
    import gpu_kernels

    monkeypatch.setattr(gpu_kernels, "PRESETS", measure.PRESETS)
    compiled = set()

    def find(plan, version, _):
        compiled.add(plan.digest(version))
        return plan.header(version).encode(), "32 registers, no spills"

    monkeypatch.setattr(resident_build, "find", find)
    reports = gpu_kernels.kernels(fake_cuda)["kernels"]
    assert reports["net4: barrier"] == "32 registers, no spills"
    ready, compiled = compiled, set()
    measure.resident(fake_cuda, n=1)
    measure.committee(fake_cuda, n=1)
    measure.repeats(fake_cuda, n=1, times=1)
    check.exercise(fake_cuda)
    assert compiled == ready

    def refuse(plan, version, _):
        raise DoesNotFit("nvcc is not on PATH")

    monkeypatch.setattr(resident_build, "find", refuse)
    with pytest.raises(measure.CheckError, match=r"no kernel for net1: barrier \(nvcc is not on"):
        gpu_kernels.kernels(fake_cuda)


# ---- what is missing -----------------------------------------------------------------------


def test_all_that_is_missing_is_one_line(tools, monkeypatch):
    import gpu_requirements

    absent = {"cuda.bindings", "sklearn", "jax"}

    def find_spec(module):
        if module == "pycuda":
            raise ModuleNotFoundError
        return None if module in absent else object()

    monkeypatch.setattr(gpu_requirements.importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(gpu_requirements.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError) as caught:
        gpu_requirements.requirements()
    assert str(caught.value) == (
        "no module cuda.bindings, pycuda, sklearn: pip install cuda-bindings pycuda scikit-learn; "
        "nvcc is not on PATH: install the CUDA toolkit, or name its bin in PATH"
    )
    monkeypatch.setattr(gpu_requirements, "REQUIRED", {"numpy": "numpy"})
    monkeypatch.setattr(gpu_requirements.shutil, "which", lambda name: "/usr/bin/nvcc")
    assert gpu_requirements.requirements() == {"note": "no jax: speedup leaves it out"}


def test_folders_of_the_cache_are_no_reason_not_to_start():
    """What only two functions import is missed where they are called."""
    code = "import sys; sys.modules['platformdirs'] = None; import mlpcore; print('imported')"
    result = subprocess.run([sys.executable, "-c", code], cwd=TOOLS.parent, capture_output=True)
    assert (result.stdout, result.stderr) == (b"imported\n", b"")


def test_everything_that_is_imported_is_required(tools):
    """By mlpcore, its build and its tests, when their modules are imported."""
    import gpu_requirements

    root = TOOLS.parent
    tests = {*root.glob("tests/*.py")} - {root / "tests" / "torch_workers.py"}  # a script
    own = {"mlpcore", "compile_fatbin", *(file.stem for file in tests)}
    imported = set()
    for file in [*root.glob("mlpcore/**/*.py"), *tests, root / "setup.py"]:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    imported -= {*sys.stdlib_module_names, *own}
    assert {"numpy", "pytest", "Cython"} <= imported <= set(gpu_requirements.REQUIRED)


# ---- steps and their processes -------------------------------------------------------------


def test_packages_are_found_where_the_caller_has_them(tools, monkeypatch, tmp_path):
    """Such as PyCUDA in a folder of its own, named by PYTHONPATH."""
    check, _ = tools
    sanitizer = tmp_path / "compute-sanitizer"
    sanitizer.write_text("#!/bin/sh\necho $PYTHONPATH\n")
    sanitizer.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", "/packages")
    assert check._sanitizer("memcheck")["output"] == ["/packages"]
    assert check._import_path() == {"PYTHONPATH": f"{check.ROOT}{os.pathsep}/packages"}
    monkeypatch.delenv("PYTHONPATH")
    assert check._import_path() == {"PYTHONPATH": str(check.ROOT)}


def test_the_lines_of_the_exchange_program_are_kept(tools, monkeypatch, tmp_path):
    check, _ = tools
    nvcc = tmp_path / "nvcc"  # the last argument is the source, the one before it the program
    nvcc.write_text(
        "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\ntest -f $2 || exit 1\n"
        'printf "#!/bin/sh\\necho 8 members: 667 cycles\\n" > $1; chmod +x $1\n'
    )
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert check.run_step("exchange", None) == {"ok": True, "output": ["8 members: 667 cycles"]}


def test_a_failing_step_is_reported_and_does_not_stop_the_others(tmp_path):
    if backends.available()["cuda"] is None:
        pytest.skip("there is a GPU here")
    command = [sys.executable, str(TOOLS / "gpu_check.py"), "--results", str(tmp_path)]
    result = subprocess.run(
        [*command, "--steps", "bandwidth", "device", "launches"], capture_output=True, text=True
    )
    assert result.returncode == 1, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("bandwidth: FAILED: InputError: backend 'cuda'")
    assert lines[1].startswith("device: FAILED: InputError: backend 'cuda'")
    assert lines[2] == "stopped: later steps need device; --steps runs them all the same"
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert set(summary) == {"device", "bandwidth"}
    assert not summary["bandwidth"]["ok"]
    details = tmp_path / "details"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["details", "summary.json"]
    assert json.loads((details / "device.json").read_text()) == summary["device"]


def test_shares_fit_the_budget(tools, monkeypatch, tmp_path):
    """Each step has its own at least, whatever those before it have taken."""
    check, _ = tools
    assert sum(check.STEPS.values()) <= check.BUDGET < 600
    assert tuple(check.STEPS)[:3] == check.ESSENTIAL
    given, clock = {}, [0.0]

    def supervise(name, results, seconds):
        given[name] = seconds
        clock[0] += seconds if name == "tests" else 1  # which hangs
        return {"ok": True, "seconds": 1}

    monkeypatch.setattr(check, "supervise", supervise)
    monkeypatch.setattr(check.time, "monotonic", lambda: clock[0])
    assert check.check(tmp_path, list(check.STEPS)) == 0
    assert all(given[name] >= share for name, share in check.STEPS.items())
    assert given["memcheck"] == check.STEPS["memcheck"]
    assert clock[0] <= check.BUDGET


def pretend(check, folder, monkeypatch, code):
    """Steps are started in a folder, as a script of this code."""
    (folder / "gpu_check.py").write_text(code)
    monkeypatch.setattr(check, "ROOT", folder)
    monkeypatch.setattr(check, "__file__", str(folder / "gpu_check.py"))


def test_what_a_step_has_found_outlasts_its_end(tools, tmp_path, monkeypatch):
    check, _ = tools
    code = (
        "import json, sys\n"
        'with open("details/speedup.json", "w") as file:\n'
        '    json.dump({"ok": False, "steps": {"net1": []}}, file)\n'
        "sys.exit(3)\n"
    )
    pretend(check, tmp_path, monkeypatch, code)
    result = check.supervise("speedup", tmp_path, 600)
    assert (result["error"], result["steps"]) == ("no result, exit status 3", {"net1": []})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_check_that_is_ended_takes_its_step_along(tmp_path, number):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "gpu_check.py").write_text((TOOLS / "gpu_check.py").read_text())
    (tmp_path / "setup.py").write_text(
        "import os, time\n"
        "open('new', 'w').write(str(os.getpid()))\n"
        "os.rename('new', 'child')\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "tools/gpu_check.py", "--results", "results", "--steps", "build"]
    process = subprocess.Popen(command, cwd=tmp_path)
    assert comes_true((tmp_path / "child").exists)
    process.send_signal(number)
    assert process.wait(30) in (128 + signal.SIGTERM, -signal.SIGKILL)
    child = int((tmp_path / "child").read_text())
    assert comes_true(lambda: not is_running(child))


def comes_true(condition):
    """Whether it does within a minute: processes take their time on a busy machine."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_the_build_needs_nothing_that_it_builds(tmp_path):
    """From a fresh checkout, where nothing compiled can be imported yet."""
    (tmp_path / "mlpcore").mkdir()
    (tmp_path / "tools").mkdir()
    for name in ("gpu_check.py", "gpu_measure.py"):
        (tmp_path / "tools" / name).write_text((TOOLS / name).read_text())
    (tmp_path / "setup.py").write_text("print('gcc -c x.c'); print('mlpcore: built')")
    (tmp_path / "mlpcore" / "__init__.py").write_text("raise ImportError('not built yet')")
    command = [sys.executable, "tools/gpu_check.py", "--results", "results", "--steps", "build"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    summary = json.loads((tmp_path / "results" / "summary.json").read_text())
    assert summary["build"]["output"] == ["mlpcore: built"]  # nor the compiler's command line


def test_nothing_that_a_command_says_is_lost_unless_it_fails(tools):
    check, _ = tools
    lines = "for i in range(50): print(i)"
    said = check._run([sys.executable, "-c", lines])["output"]
    assert said == [str(i) for i in range(50)]
    with pytest.raises(RuntimeError, match="exit status 3: 10\n11\n") as raised:
        check._run([sys.executable, "-c", f"{lines}\nraise SystemExit(3)"])
    assert str(raised.value).endswith("\n49")


def test_a_step_that_takes_too_long_ends_with_all_it_has_started(tools, tmp_path, monkeypatch):
    """Its time is over when its child is there, however long that takes on a busy machine."""
    check, _ = tools
    child = tmp_path / "child"

    class Patient(subprocess.Popen):
        def wait(self, timeout=None):
            while timeout is not None and not child.exists():
                assert self.poll() is None
                time.sleep(0.01)
            return super().wait(0.01 if timeout else None)

    monkeypatch.setattr(check.subprocess, "Popen", Patient)
    code = (
        "import subprocess, sys\n"
        'child = \'import os, time; open("new", "w").write(str(os.getpid()));'
        'os.rename("new", "child"); time.sleep(600)\'\n'
        "subprocess.run([sys.executable, '-c', child])\n"
    )
    pretend(check, tmp_path, monkeypatch, code)
    result = check.supervise("device", tmp_path, 3)
    assert result["error"] == "not done within 3 s"
    pid = int(child.read_text())
    assert comes_true(lambda: not is_running(pid))  # a killed process takes a moment to end


def is_running(pid):
    """Whether the process exists and has not ended."""
    try:
        if Path("/proc/self/stat").exists():  # which knows those that nobody has waited for
            return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True
