"""`make gpu-check` without a GPU: what it would run, and that it refuses to start."""

import json
import subprocess
import sys

import gpu_check
from emulated import EmulatedDriver
from gpu.exercise import exercise
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.launch import KERNELS
from speed.command import parser


def test_the_exercise_launches_every_kernel():
    launched = set()

    class Recorder(EmulatedDriver):
        def launch(self, launch, *arguments):
            launched.add(launch.kernel)
            super().launch(launch, *arguments)

    exercise(CudaBackend(Recorder()))
    assert launched == set(KERNELS)


def test_the_steps_call_the_speed_tool_with_known_options(tmp_path):
    steps = gpu_check.plan(tmp_path)
    for name in ("speedup-net1", "speedup-larger"):
        parser().parse_args(steps[name].command[2:])  # exits at an unknown option


def test_it_stops_where_no_device_is_visible(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    command = [sys.executable, gpu_check.__file__, "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "cannot start: " in done.stdout
    assert list(json.loads((tmp_path / "summary.json").read_text())) == ["requirements"]
