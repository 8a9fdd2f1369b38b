"""`make gpu-check` without a GPU: what it would run, and that it refuses to start."""

import subprocess
import sys

import gpu_check
from speed.command import parser


def test_the_speed_tool_knows_its_options(tmp_path):
    _, (_, _, *arguments) = gpu_check.steps(tmp_path)["speedup"]
    parser().parse_args(arguments)  # exits at an unknown option


def test_it_stops_where_no_device_is_visible(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    command = [sys.executable, gpu_check.__file__, str(tmp_path / "results")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("cannot start: ")
    assert not (tmp_path / "results").exists()
