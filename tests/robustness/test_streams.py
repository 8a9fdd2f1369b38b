"""Standard streams that are closed, full, or left by their reader. No training is lost."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forked
from mlpcore.__main__ import main
from mlpcore.commands import runs
from mlpcore.network import Network
from mlpcore.store.run_folder import read_history
from small_runs import write_idx, write_weights

TRAIN = "train --data data --recipe paper --arch 4 --epochs 1 --threads 1 --out run --seed 1"

COMMANDS = [
    *("--help", "backends", TRAIN),
    "evaluate net --data data --threads 1",
    "preview --data data --rows 2 --columns 2 --threads 1",
    "export net --safetensors other.safetensors",
    f"predict {Path(__file__).parents[2] / 'docs/images/drawn.png'}",
]


def closed(name, descriptor):
    os.close(descriptor)
    setattr(sys, name, None)  # as Python begins without one


def full(name, descriptor):
    os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)


def left(name, descriptor):
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, descriptor)
    setattr(sys, name, os.fdopen(descriptor, "w", closefd=False))


#: Statuses of commands that lose their output.
STATUS = {closed: 0, full: 2, left: 128 + signal.SIGPIPE}


@pytest.fixture
def folder(warm_folder, monkeypatch):
    write_idx(warm_folder / "data")
    write_weights(warm_folder / "net", Network((35, 4, 3), seed=1))
    monkeypatch.setattr(runs, "trained_figures", lambda *args: {})  # they take long
    return warm_folder


def outcome(folder, argv, spoil, *names):
    """The outcome of a command when some of its streams are spoilt."""

    def work():
        for name in names:
            spoil(name, {"stdout": 1, "stderr": 2}[name])
        return main(argv.split())

    shutil.rmtree(folder / "run", ignore_errors=True)
    return forked.run(work, folder)


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[:14])
@pytest.mark.parametrize("spoil", STATUS)
def test_output_that_fails(folder, spoil, argv):
    """Whatever the work is: that of a training goes on, others end as the manual says."""
    found = outcome(folder, argv, spoil, "stdout")
    lines = [line for line in found.err.splitlines() if not line.startswith("note: no network")]
    if argv == TRAIN and spoil is not closed:
        assert found.status == 0 and len(lines) == 1 and "the work continues" in lines[0]
    else:
        said = ["error: [Errno 28] No space left on device"] if spoil is full else []
        assert (found.status, lines) == (STATUS[spoil], said)
    if argv == TRAIN:
        assert len(read_history(folder / "run")) == 1


@pytest.mark.parametrize("spoil", STATUS)
def test_all_output_fails(folder, spoil):
    """There is nobody to tell, so only the status says it."""
    for argv, expected in (("--help", STATUS[spoil]), ("trian", 2), (TRAIN, 0)):
        assert outcome(folder, argv, spoil, "stdout", "stderr").status == expected
    assert len(read_history(folder / "run")) == 1


def test_a_file_does_not_become_the_output(tmp_path):
    """A real process that begins without streams, whose first file would take their place."""
    shell = 'exec "$@" <&- >&- 2>&-'
    code = "import sys; from mlpcore.commands.options import run_tool; "
    code += "run_tool(lambda: open('file', 'w').write('content') and print('output') or 0)"
    command = ["sh", "-c", shell, "sh", sys.executable, "-c", code]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    assert (tmp_path / "file").read_text() == "content"
