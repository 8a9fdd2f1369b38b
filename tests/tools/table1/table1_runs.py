"""What the tests of the experiment call, and look at."""

import re
from pathlib import Path

from mlpcore.commands import runs
from mlpcore.store.run_folder import Run
from small_runs import assert_same_result
from table1.command import main

#: Instead of the paper's networks.
SMALL = {"net1": (8,), "net2": (9, 6)}


def arguments(data, *more):
    return ["--nets", "1,2", "--epochs", "3", "--threads", "1", "--data", data, *more]


def run_state(folder):
    run = Run.open(Path(folder), to_train=False)
    return run.load()


def contents(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def assert_finished(out, expected):
    """All runs in one folder have come to the same as those in another."""
    for name in ("net1-seed0", "net2-seed0"):
        assert_same_result(run_state(Path(out, name)), run_state(Path(expected, name)))
        assert Path(out, name, runs.REPORT).exists()


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    err = capsys.readouterr().err
    assert re.fullmatch(r"error: [^\n]+\n", err)
    return err
