"""What all commands share: help, exit statuses, one line for whatever is wrong."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mlpcore
from mlpcore import InputError, backends
from mlpcore.__main__ import COMMANDS, main
from mlpcore.commands import options
from mlpcore.commands.options import command_text, run_tool
from mlpcore.data import dataset
from mlpcore.network import Network
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.weights import write_network
from mlpcore.terminal import say

ROOT = Path(mlpcore.__file__).parents[1]
HEAVY = {"numpy", "mlpcore.backends", "matplotlib", "rich", "sklearn", "PIL"}


def python(code, **variables):
    """Runs code in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    return subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)


def test_help_lists_the_commands_and_loads_nothing(call):
    code = "import sys; from mlpcore.__main__ import main; main(['--help']); "
    result = python(code + f"assert not set(sys.modules) & {HEAVY}")
    assert (result.returncode, result.stderr) == (0, b"")
    for name, summary in COMMANDS.items():
        assert f"  {name:<10} {summary}\n" in result.stdout.decode()
    assert result.stdout.decode() == call() == call("-h")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_ends_with_an_example(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/mlpcore", name, "--help"])
    monkeypatch.setattr(options.shutil, "which", lambda program: f"/usr/bin/{program}")
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"usage: mlpcore {name}")
    assert lines[-1].startswith(f"Example: mlpcore {name}")
    importlib.import_module(f"mlpcore.commands.{name}").parse(lines[-1].split()[3:])
    if name in ("train", "committee"):
        assert main([name, "--help-all"]) == 0
        assert len(capsys.readouterr().out.splitlines()) > len(lines) + 10


def test_version(call):
    start, _, compiled = call("--version").strip().partition(", compiled for ")
    assert start == f"mlpcore {mlpcore.__version__}"
    can_run = {name for name in backends.INSTRUCTION_SETS if backends.available()[name] is None}
    assert can_run <= set(compiled.split(", ")) <= set(backends.INSTRUCTION_SETS)


def test_backends(call):
    rows = [line.split(maxsplit=2) for line in call("backends").split("\n\n")[0].splitlines()[1:]]
    for (name, runs, detail), (known, reason) in zip(
        rows, backends.available().items(), strict=True
    ):
        assert (name, runs) == (known, "no" if reason else "yes")
        assert detail in (reason or backends.get(name).description)


@pytest.mark.parametrize(
    ("argv0", "found", "called"),
    [
        ("/opt/bin/mlpcore", "/opt/bin/mlpcore", "mlpcore"),
        (".venv/bin/mlpcore", None, ".venv/bin/mlpcore"),
        ("/x/mlpcore/__main__.py", "/opt/bin/mlpcore", "/opt/bin/python -m mlpcore"),
    ],
)
def test_a_printed_command_is_called_as_this_process_was(monkeypatch, argv0, found, called):
    monkeypatch.setattr(sys, "argv", [argv0])
    monkeypatch.setattr(sys, "executable", "/opt/bin/python")
    monkeypatch.setattr(options.shutil, "which", lambda name: found)
    assert command_text("train", "--resume", "a run\x1b") == f"{called} train --resume 'a run\\x1b'"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("x 5:\nexpected y"), 2, "error: x 5: expected y\n"),
        (MemoryError("3 GiB"), 2, "error: out of memory: 3 GiB; expected less data\n"),
        (OSError(28, "No space left"), 2, "error: [Errno 28] No space left\n"),
        (KeyboardInterrupt(), 128 + signal.SIGINT, "interrupted\n"),
        (BrokenPipeError(), 128 + signal.SIGPIPE, ""),
    ],
)
def test_one_line_each(capsys, error, status, line):
    def command():
        raise error

    assert run_tool(command) == status
    assert capsys.readouterr() == ("", line)


def test_a_defect_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run_tool(lambda: 1 // 0)


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape"])
def test_what_the_output_cannot_show_is_escaped(encoding):
    """A path, for example, where a log is in ASCII."""
    code = "from mlpcore.commands.options import run_tool; import sys\n"
    code += "sys.exit(run_tool(lambda: print('\\u00e9pigraphe \\udcff') or 0))"
    result = python(code, PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.split() == [rb"\xe9pigraphe", rb"\udcff"]


# Bad arguments

BAD = [
    ("trian", "'trian': expected train, committee"),
    ("--verbose", "'--verbose': expected train"),
    ("backends now", "unrecognized arguments: now"),
    ("--version now", "'--version' before 'now'"),
    ("train --arch 99999999", "99,999,999"),
    (f"train --arch {'2,' * 29_999}", "30,000 hidden layers: expected at most 100"),
    ("train --epochs 0", "epochs 0"),
    ("train --lr fast", "'fast', expected a number"),
    ("train --lr-end 1e-5", "learning rate end 1e-05 with the decay linear"),
    ("train --target 1.5", "--target 1.5 with the loss cross-entropy"),
    ("train --minutes 0", "--minutes: 0, expected more than 0"),
    ("train --minutes 5 --epochs 2", "--epochs: not allowed with argument --minutes"),
    ("train --no-deform --sigma 5", "--no-deform together with --sigma"),
    ("train --backend mmx", "'mmx': expected auto, cpu, reference, scalar"),
    ("train --epoch 9", "--epoch"),  # no abbreviations
    ("train --out /proc/run", "/proc/run"),
    ("train --data=", "'', expected a folder"),
    ("train --out file", "file"),
    ("train --resume none", "none/config.json"),
    ("train --resume none --hold-out 5", "--hold-out together with --resume"),
    ("evaluate", "RUN|WEIGHTS"),
    ("evaluate none", "none does not exist: expected the folder of a run or of a committee"),
    ("evaluate .", ". holds no best.safetensors: expected a run of at least one epoch"),
    ("evaluate /dev/zero", "/dev/zero is not a regular file"),
    ("evaluate file", "not the expected safetensors file"),
    ("evaluate net --json none/x.json", "cannot write none/x.json: No such file"),
    ("evaluate net --json pipe", "cannot write pipe: expected a file or a new name"),
    ("evaluate net --figures file", "file"),
    ("evaluate net --figures link", "cannot write link, a link"),
    ("predict", "PATH"),
    ("predict net a.png --show --json", "--show together with --json"),
    ("predict net a.png --save-normalised file", "file exists: expected a new folder"),
    ("read", "PATH"),
    ("read a.png --columns 0", "columns 0: expected"),
    ("read a.png --show found.jpg", "--show found.jpg: expected a name that ends in .png"),
    ("read a.png b.png --show found.png", "--show with 2 pictures: expected one"),
    ("preview --rows 2.5", "'2.5', expected a whole number"),
    ("preview --seed -1", "seed -1: expected"),
    ("preview --out a.jpg", "--out a.jpg: expected a name that ends in .png"),
    ("predict pretrained", "is a network: expected pictures beside it"),
    ("predict runs/typo file", "runs/typo does not exist: expected a picture, a folder of"),
    (f"predict other.safetensors {ROOT}/docs/images/drawn.png", "a network for images of 29 x 31"),
    ("predict pretrained empty", "the folder empty holds no pictures"),
    ("draw ", "'', expected a path"),
    ("draw missing", "missing does not exist: expected the folder of a run"),
    ("draw other.safetensors", "grey pictures of one object"),
    ("train --data no\nwhere", "no\\nwhere"),
    ("train --arch 3\n4", "3\\n4"),
    ("train --dataset mnist", "MNIST was not found"),
    ("train --dataset digits --hold-out 1442", "expected 1 to 1,441"),
    ("train --dataset digits --arch 999999,999999", "GiB"),
    ("preview --dataset digits --rows 0", "rows 0: expected a whole number from 1 to 100"),
    ("preview --dataset digits --columns 1", "columns 1: expected a whole number from 2"),
    ("preview --dataset digits --epoch 0", "epoch 0: expected"),
]


@pytest.mark.parametrize(("argv", "words"), BAD)
def test_bad_arguments_are_refused_in_one_line(refusal, monkeypatch, argv, words):
    """Before data are read, unless these are what is wrong."""

    def load(*args, **kwargs):
        raise AssertionError("data are loaded first")

    if "--data" not in argv:
        monkeypatch.setattr(dataset, "load", load)
    Path("file").touch()
    Path("empty").mkdir()
    os.mkfifo("pipe")
    os.symlink(".", "link")
    mnist = NetworkInput("MNIST", (29, 29), (28, 28))
    write_network(Path("net"), Network((841, 10), seed=1), mnist.to_metadata())
    oblong = NetworkInput("letters", (29, 31), (29, 30))
    write_network(Path("other.safetensors"), Network((899, 10), seed=1), oblong.to_metadata())
    assert words in refusal(*argv.split(" "))


def test_what_would_control_the_terminal_is_escaped(refusal, capsys):
    """And long texts are shortened, on both streams, wherever they come from."""
    assert r"'\x1b]0;title\x07': expected" in refusal("\x1b]0;title\x07")
    text = refusal("train", "x" * 100_000)
    assert len(text) < 310 and text.startswith("error: unrecognized arguments: xxx")
    say("a\x1b[31m\u202e\n" + "y" * 1000)
    first, second = capsys.readouterr().out.splitlines()
    assert first == r"a\x1b[31m\u202e" and len(second) == 300
