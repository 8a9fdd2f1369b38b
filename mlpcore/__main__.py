"""`python -m mlpcore`, the command `mlpcore`, and the start of the scripts in tools/.

Nothing is imported before it is needed: a command starts sooner, and Ctrl-C may come meanwhile.
"""

import gc
import importlib
import sys
from collections.abc import Sequence

from mlpcore.interrupts import leave_on_interrupt

COMMANDS = {
    "train": "train a network on deformed digits, or resume a stopped run",
    "committee": "train several networks that decide together, here or on a cluster",
    "info": "show settings, curve and errors of a run, and how to resume it",
    "evaluate": "count the errors of networks, alone and as a committee",
    "predict": "read pictures that show one digit each",
    "read": "read pages: forms, fields, numbers on paper",
    "preview": "draw training images and their deformations",
    "draw": "open a page in the browser: draw a digit, see the answer",
    "export": "write a network for other programs: ONNX, safetensors, a page",
    "backends": "list the backends that run here, and why the others do not",
}

HELP = f"""\
usage: mlpcore COMMAND [arguments]

Plain multilayer perceptrons, trained by on-line back-propagation on digits
that are deformed anew every epoch.

commands:
{chr(10).join(f"  {name:<10} {summary}" for name, summary in COMMANDS.items())}

options:
  --help     show this text; after a command, its arguments and an example
  --version  show the version and the compiled instruction sets

Example: mlpcore train --arch 100 --epochs 2 --dataset digits"""


def run(module: str = "mlpcore.__main__") -> int:
    """Import a module and return the exit status of its `main`, by default the command `mlpcore`.

    Ctrl-C ends the process without a traceback while modules are imported, and at its end.
    """
    leave_on_interrupt()
    gc.set_threshold(100_000)  # modules make many objects, and no garbage
    try:
        status: int = importlib.import_module(module).main()
        return status
    finally:
        gc.freeze()  # else the interpreter searches all for cycles before it ends
        leave_on_interrupt()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a subcommand and returns its exit status: 0, 2 for bad input, 128 + n for signal n."""
    name, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in COMMANDS:
        status: int = importlib.import_module(f"mlpcore.commands.{name}").main(arguments)
        return status
    from mlpcore.commands.options import run_tool

    return run_tool(lambda: _answer(name, arguments))


def _answer(name: str, arguments: Sequence[str]) -> int:
    """Answer --help, --version, or a mistake instead of a subcommand."""
    from mlpcore.commands.options import meant
    from mlpcore.errors import InputError
    from mlpcore.terminal import say

    expected = f"expected {', '.join(COMMANDS)}"
    if arguments:
        raise InputError(f"{name!r} before {arguments[0]!r}: {expected}{meant(name, COMMANDS)}")
    if name in ("-h", "--help"):
        say(HELP)
    elif name == "--version":
        say(_version())
    else:
        expected += ", --help or --version"
        raise InputError(f"no command {name!r}: {expected}{meant(name, COMMANDS)}")
    return 0


def _version() -> str:
    from mlpcore.backends import available
    from mlpcore.backends.simd import INSTRUCTION_SETS
    from mlpcore.version import __version__

    reasons = available()
    compiled = [name for name in INSTRUCTION_SETS if "not compiled" not in (reasons[name] or "")]
    return f"mlpcore {__version__}, compiled for {', '.join(compiled)}"


if __name__ == "__main__":
    sys.exit(run())
