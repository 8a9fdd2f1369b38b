"""Standard streams that are closed, full, or left by their reader. No training is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mlpcore
from mlpcore.commands import main
from mlpcore.network import Network
from mlpcore.store.run_folder import read_history
from mlpcore.store.weights import write_network
from small_runs import write_idx
from torture import forked, judge

ROOT = Path(mlpcore.__file__).parents[1]

TRAIN = [
    "train",
    "--data",
    "data",
    "--recipe",
    "paper",
    "--arch",
    "4",
    "--epochs",
    "3",
    "--threads",
    "1",
    "--out",
    "run",
    "--seed",
    "1",
]

COMMANDS = [
    ["--help"],
    ["--version"],
    ["predict", "--help"],
    ["backends"],
    ["evaluate", "net", "--data", "data", "--threads", "1"],
    ["preview", "--data", "data", "--rows", "2", "--columns", "2", "--threads", "1"],
    ["export", "net", "--safetensors", "other"],
    ["predict", str(ROOT / "docs/images/drawn.png")],
    TRAIN,
]


NAMES = {1: "stdout", 2: "stderr"}


def closed(descriptor):
    os.close(descriptor)
    setattr(sys, NAMES[descriptor], None)  # as Python begins without one


def full(descriptor):
    os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)


def left(descriptor):
    """By whoever read it."""
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, descriptor)
    setattr(sys, NAMES[descriptor], os.fdopen(descriptor, "w", closefd=False))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    judge.warm()
    folder = tmp_path_factory.mktemp("streams")
    write_idx(folder / "data")
    write_network(folder / "net", Network((35, 4, 3), seed=1), {"input_range": "signed"} | SHAPES)
    return folder


SHAPES = {"dataset": "letters", "image_shape": "7,5", "pixel_shape": "7,5"}


def outcome(folder, argv, spoil, descriptors):
    """How a command ends when some of its streams are spoilt."""

    def work():
        os.chdir(folder)
        for descriptor in descriptors:
            spoil(descriptor)
        return main(argv)

    return forked.start(work).wait()


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: " ".join(argv[:2]))
@pytest.mark.parametrize("spoil", [closed, full, left])
def test_output_that_fails(folder, tmp_path, spoil, argv):
    """Whatever the work is: that of a training goes on, others end as the manual says."""
    os.symlink(folder / "data", tmp_path / "data")
    os.symlink(folder / "net", tmp_path / "net")
    found = outcome(tmp_path, argv, spoil, [1])
    err = found.err.decode()
    assert "Traceback" not in err and "Exception ignored" not in err
    notes = [line for line in err.splitlines() if line.startswith("note: no network is named")]
    lines = [line for line in err.splitlines() if line not in notes]
    if spoil is closed:
        assert (found.status, lines) == (0, [])
    elif argv is TRAIN:
        assert found.status == 0 and len(lines) == 1 and "the work goes on" in lines[0]
    elif spoil is full:
        assert (found.status, lines) == (2, ["error: [Errno 28] No space left on device"])
    else:
        assert (found.status, lines) == (128 + signal.SIGPIPE, [])
    if argv is TRAIN:
        assert len(read_history(tmp_path / "run")) == 3


@pytest.mark.parametrize("spoil", [closed, full, left])
def test_all_output_fails(folder, tmp_path, spoil):
    """There is nobody to tell, so only the status says it."""
    os.symlink(folder / "data", tmp_path / "data")
    status = {closed: 0, full: 2, left: 128 + signal.SIGPIPE}[spoil]
    assert outcome(tmp_path, ["--help"], spoil, [1, 2]).status == status
    assert outcome(tmp_path, ["trian"], spoil, [1, 2]).status == 2
    assert outcome(tmp_path, TRAIN, spoil, [1, 2]).status == 0
    assert len(read_history(tmp_path / "run")) == 3


def test_a_file_does_not_become_the_output(tmp_path):
    """A real process that begins without streams, whose first file would take their place."""
    shell = 'exec "$@" <&- >&- 2>&-'
    code = "import sys; from mlpcore.commands.options import run_tool; "
    code += "run_tool(lambda: open('file', 'w').write('content') and print('output') or 0)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = ["sh", "-c", shell, "sh", sys.executable, "-c", code]
    assert subprocess.run(command, cwd=tmp_path, env=environment).returncode == 0
    assert (tmp_path / "file").read_text() == "content"
