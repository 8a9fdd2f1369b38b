"""What the tools' command lines have in common: options, one-line errors, exit statuses."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from mlpcore import backends
from mlpcore.errors import InputError


class Parser(argparse.ArgumentParser):
    """Reports errors like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message)


def whole_number(text: str) -> int:
    """The type of an option."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number") from None


def folder_name(text: str) -> str:
    """A folder's name, which is not empty, as that of an unset variable of a shell is."""
    if not text:
        raise argparse.ArgumentTypeError("'', expected a folder")
    return text


def number(text: str) -> float:
    """The type of an option."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number") from None


def add_network_argument(parser: argparse.ArgumentParser) -> None:
    """A run or its weights, for `TrainedNetwork.read(network)`."""
    parser.add_argument(
        "network",
        metavar="RUN|WEIGHTS",
        type=Path,
        help="folder of tools/train.py, whose best network is taken, or a .safetensors file",
    )


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """--data and --dataset, for `dataset.load(data, name=dataset)`."""
    add = parser.add_argument
    add(
        "--data",
        type=folder_name,
        help="folder with the four files of MNIST, or of data in the same format",
    )
    add("--dataset", choices=("mnist", "digits"), help="accept nothing else")


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    """--backend and --threads, for `backends.get(backend, threads)`."""
    add = parser.add_argument
    add("--backend", help=f"auto, cpu, {', '.join(backends.names())} (auto)")
    add("--threads", type=whole_number, help="threads (the cores available)")


def command_text(name: str, *arguments: str) -> str:
    """What to type to call a subcommand in the way in which this process was called."""
    called = sys.argv[0]
    if os.path.basename(called) == "mlpcore":
        return shlex.join(["mlpcore", name, *arguments])
    python = shutil.which("python")
    same = python is not None and os.path.realpath(python) == os.path.realpath(sys.executable)
    words = ["-m", "mlpcore", name]
    if os.path.basename(called) == f"{name}.py":  # of tools/
        words = [os.path.relpath(called)]
    return shlex.join(["python" if same else sys.executable, *words, *arguments])


def add_deformation_options(parser: argparse.ArgumentParser) -> None:
    """--sigma, --alpha, --beta and --gamma, read by `given_deformation`."""
    add = parser.add_argument
    add("--sigma", type=number, help="smoothness of the elastic deformation, pixels (6)")
    add("--alpha", type=number, help="strength of the elastic deformation, pixels (36)")
    add("--beta", type=number, help="greatest rotation or shear, degrees (15)")
    add("--gamma", type=number, help="greatest change of width and height, percent (15)")


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """--seed."""
    parser.add_argument("--seed", type=whole_number, help="of all random numbers (0)")


def given_deformation(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options of `add_deformation_options` that were given, by name."""
    names = ("sigma", "alpha", "beta", "gamma")
    return {name: options[name] for name in names if options.get(name) is not None}


def run_tool(
    command: Callable[[], int],
    smaller: str = "less data",
    interrupted: str = "interrupted",
) -> int:
    """Runs a tool; whatever goes wrong by bad input or from outside is one line on stderr.

    Parameters
    ----------
    command
        Parses its arguments, works, and returns the exit status.
    smaller
        What would take less memory, said when there is not enough.
    interrupted
        Said after Ctrl-C.

    Returns
    -------
    int
        The exit status: that of `command`, 2 for bad input, 128 + n for signal n.
    """
    for stream in (sys.stdout, sys.stderr):  # what its encoding lacks is escaped, not an error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = command()
        sys.stdout.flush()
        return status
    except InputError as error:
        message = str(error)
    except MemoryError as error:
        message = f"out of memory: {str(error) or 'no details'}; expected {smaller}"
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # whoever read the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:  # such as a full disk behind stdout
        message = str(error)
    print(f"error: {' '.join(message.splitlines())}", file=sys.stderr)
    return 2
