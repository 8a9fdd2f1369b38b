"""What the tools share: exit statuses, one line for whatever goes wrong."""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mlpcore
from mlpcore import InputError
from mlpcore.commands.options import (
    Parser,
    add_backend_options,
    add_data_options,
    number,
    run_tool,
    whole_number,
)


def raising(error):
    def command():
        raise error

    return command


def test_the_commands_own_status(capsys):
    assert [run_tool(lambda status=status: status) for status in (0, 1, 143)] == [0, 1, 143]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("x 5:\nexpected y"), 2, "error: x 5: expected y\n"),
        (MemoryError("3 GiB"), 2, "error: out of memory: 3 GiB; expected less data\n"),
        (OSError(28, "No space left"), 2, "error: [Errno 28] No space left\n"),
        (KeyboardInterrupt(), 128 + signal.SIGINT, "interrupted\n"),
    ],
)
def test_one_line_each(capsys, error, status, line):
    assert run_tool(raising(error)) == status
    assert capsys.readouterr() == ("", line)


def test_a_defect_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run_tool(raising(ZeroDivisionError()))


def test_whoever_read_the_output_has_gone():
    code = "from mlpcore.commands.options import run_tool; import sys\n"
    code += "sys.exit(run_tool(lambda: print('a line') or 0))"
    read, write = os.pipe()
    os.close(read)
    root = str(Path(mlpcore.__file__).parents[1])
    with os.fdopen(write, "wb") as pipe:
        result = subprocess.run(
            [sys.executable, "-c", code],
            stdout=pipe,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": root, "PYTHONUNBUFFERED": ""},
        )
    assert (result.returncode, result.stderr) == (128 + signal.SIGPIPE, b"")


def test_what_the_output_cannot_show_is_escaped():
    """A path, for example, where a log is of ASCII."""
    code = "from mlpcore.commands.options import run_tool; import sys\n"
    code += "sys.exit(run_tool(lambda: print('\\u00e9pigraphe \\udcff') or 0))"
    root = str(Path(mlpcore.__file__).parents[1])
    for encoding in ("ascii", "ascii:surrogateescape"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            env=os.environ | {"PYTHONPATH": root, "PYTHONIOENCODING": encoding},
        )
        assert (result.returncode, result.stderr) == (0, b"")
        assert result.stdout.split() == [rb"\xe9pigraphe", rb"\udcff"]


def test_the_options():
    parser = Parser()
    add_data_options(parser)
    add_backend_options(parser)
    argv = ["--data", "d", "--dataset", "digits", "--backend", "sse2", "--threads", "3"]
    options = parser.parse_args(argv)
    assert vars(options) == {"data": "d", "dataset": "digits", "backend": "sse2", "threads": 3}
    with pytest.raises(InputError, match="'two', expected a whole number"):
        parser.parse_args(["--threads", "two"])


def test_numbers():
    assert (whole_number("-7"), number("1e-3")) == (-7, 1e-3)
    for kind in (whole_number, number):
        with pytest.raises(argparse.ArgumentTypeError, match=r"'1\.x', expected a"):
            kind("1.x")
