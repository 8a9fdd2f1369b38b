"""Help, exit statuses and one-line errors that all commands share."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import mlpcore
import pages
import pictures
from mlpcore import InputError, backends
from mlpcore.__main__ import COMMANDS
from mlpcore.commands import options
from mlpcore.commands.options import command_text, run_tool

#: What a command loads of packages that take long. `train` draws its figures by Matplotlib.
LOADED = {
    "--help": set(),
    "predict digit.png": {"numpy", "PIL", "cv2"},
    "read form.png": {"numpy", "PIL", "cv2", "scipy"},
    "evaluate run --data letters": {"numpy", "PIL"},
    "train --data letters --arch 3 --epochs 1": {"numpy", "PIL", "matplotlib"},
}
HEAVY = set().union(*LOADED.values(), ["scipy.signal", "joblib", "asyncio"])
HEAVY |= {"sklearn", "pandas", "rich", "onnx", "distributed", "pooch", "requests", "torch", "river"}
HEAVY.add("mlpcore.backends.cuda.sources")  # which parses the kernels


def python(code, **variables):
    """Runs code in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, env=os.environ | variables)


@pytest.mark.parametrize("argv", LOADED)
def test_a_command_loads_what_it_needs(made_here, argv):
    """A folder of the package's name, as above a clone, is in no way."""
    Path("mlpcore").mkdir()
    rng = np.random.default_rng(0)
    ink, _ = pages.form(pictures.DIGITS[:6], 3, rng)
    Path("form.png").write_bytes(pictures.encoded(pages.on_paper(ink, rng)))
    digit = pictures.written(pictures.enlarged(pictures.DIGITS[0]))
    Path("digit.png").write_bytes(pictures.encoded(digit))
    code = "import sys; sys.modules['pycuda'] = None; from mlpcore.__main__ import main; "
    code += f"status = main({argv.split()}); "
    result = python(code + f"print(*{HEAVY} & set(sys.modules)); sys.exit(status)")
    assert result.returncode == 0
    assert set(result.stdout.decode().splitlines()[-1].split()) == LOADED[argv]


def test_help_version_and_backends(call):
    assert set(COMMANDS) <= set(call().split())
    assert call() == call("--help") == call("-h")
    start, _, compiled = call("--version").strip().partition(", compiled for ")
    assert start == f"mlpcore {mlpcore.__version__}"
    can_run = {name for name in backends.INSTRUCTION_SETS if backends.available()[name] is None}
    assert can_run <= set(compiled.split(", ")) <= set(backends.INSTRUCTION_SETS)
    rows = [line.split(maxsplit=2) for line in call("backends").split("\n\n")[0].splitlines()[1:]]
    reasons = backends.available().items()
    for (name, runs, detail), (known, reason) in zip(rows, reasons, strict=True):
        assert (name, runs) == (known, "no" if reason else "yes")
        assert detail in (reason or backends.get(name).description)


def test_a_printed_command_is_called_as_this_process_was(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/opt/bin/python")
    for argv0, found, called in (
        ("/opt/bin/mlpcore", "/opt/bin/mlpcore", "mlpcore"),
        (".venv/bin/mlpcore", None, ".venv/bin/mlpcore"),
        ("/x/mlpcore/__main__.py", "/opt/bin/mlpcore", "/opt/bin/python -m mlpcore"),
    ):
        monkeypatch.setattr(sys, "argv", [argv0])
        monkeypatch.setattr(options.shutil, "which", mock.Mock(return_value=found))
        assert command_text("train", "a run\x1b") == f"{called} train 'a run\\x1b'"


def test_one_line_each_but_a_defect_is_not_hidden(capsys):
    for error, status, line in (
        (InputError("x 5:\nexpected y"), 2, "error: x 5: expected y\n"),
        (MemoryError("3 GiB"), 2, "error: out of memory: 3 GiB; expected less data\n"),
        (OSError(28, "No space left"), 2, "error: [Errno 28] No space left\n"),
        (KeyboardInterrupt(), 128 + signal.SIGINT, "interrupted\n"),
        (BrokenPipeError(), 128 + signal.SIGPIPE, ""),
    ):
        assert run_tool(mock.Mock(side_effect=error)) == status
        assert capsys.readouterr() == ("", line)
    with pytest.raises(ZeroDivisionError):
        run_tool(lambda: 1 // 0)


def test_what_the_output_cannot_show_is_escaped():
    """A path, for example, where a log is in ASCII."""
    code = "from mlpcore.commands.options import run_tool\n"
    code += "run_tool(lambda: print('\\u00e9pigraphe \\udcff') or 0)"
    for encoding in ("ascii", "ascii:surrogateescape"):
        result = python(code, PYTHONIOENCODING=encoding)
        assert (result.stdout.split(), result.stderr) == ([rb"\xe9pigraphe", rb"\udcff"], b"")
