"""Options, names, one-line errors and exit statuses that all commands share."""

import argparse
import difflib
import functools
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar

from mlpcore import terminal
from mlpcore.errors import InputError, printable
from mlpcore.interrupts import raise_on_interrupt

#: What adds an option to a parser.
Add: TypeAlias = Callable[..., Any]

#: Not from `signal`, because Windows lacks it.
SIGPIPE = 13


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments like every other bad input."""

    def add_whole(self, flag: str, help: str, add: Add | None = None, **settings: Any) -> None:
        """Add an option that is a whole number, by `add_argument` or what `add` names."""
        (add or self.add_argument)(flag, type=whole_number, metavar="N", help=help, **settings)

    def add_number(self, flag: str, help: str, add: Add | None = None) -> None:
        """Add an option that is a number, by `add_argument` or what `add` names."""
        (add or self.add_argument)(flag, type=number, metavar="X", help=help)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, but refuse what is empty, as a shell's unset variable is, and ``--option=--``.

        argparse takes the value of the latter for an empty list.
        """
        args = sys.argv[1:] if args is None else args
        for before, each in zip([self.prog, *args], args):
            flag, equal, value = each.partition("=")
            if not each or (flag.startswith("--") and equal and value in ("", "--")):
                place = flag or f"after {before}"
                raise InputError(f"argument {place}: {value!r}, expected a value")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        raise InputError(
            message + meant(unknown[1] if unknown else "", self._option_string_actions)
        )


def meant(word: str, names: Iterable[str]) -> str:
    """The question whether one of some names was meant by a word, if one is like it."""
    near = difflib.get_close_matches(word, names, 1)
    return f"; did you mean {near[0]}?" if near else ""


def command_parser(name: str, arguments: str, text: str, example: str, **settings: Any) -> Parser:
    """The parser of a subcommand, whose help fits a screen and ends with an example.

    `arguments` and `example` follow the name in the line of usage and in the example; `settings`
    are those of `argparse.ArgumentParser`.
    """
    return Parser(
        prog=shlex.join(called_as(name)),
        usage=f"%(prog)s {arguments}".rstrip(),
        description=text,
        epilog=f"Example: %(prog)s {example}".rstrip(),
        formatter_class=functools.partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=26, width=80
        ),
        allow_abbrev=False,
        **settings,
    )


def called_as(name: str) -> list[str]:
    """The command line of this process up to the subcommand: ``["mlpcore", "train"]``."""
    program = sys.argv[0]
    if os.path.basename(program) != "mlpcore":
        return [sys.executable, "-m", "mlpcore", name]
    found = shutil.which("mlpcore")  # in a shell
    known = found is not None and os.path.abspath(found) == os.path.abspath(program)
    return ["mlpcore" if known else program, name]


def command_text(name: str, *arguments: str) -> str:
    """The line to type to call a subcommand in the way in which this process was called."""
    return printable(shlex.join([*called_as(name), *arguments]), sys.maxsize)


def number(text: str, kind: Callable[[str], Any] = float, expected: str = "a number") -> Any:
    """The type of an option: a real number, or one of another kind."""
    try:
        if text.isascii() and "_" not in text:  # which Python takes for digits
            return kind(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}, expected {expected}")


whole_number = functools.partial(number, kind=int, expected="a whole number")


DEFORMATION = {
    "sigma": "smoothness of the elastic deformation in pixels (6)",
    "alpha": "strength of the elastic deformation in pixels (36)",
    "beta": "greatest rotation or shear in degrees (15)",
    "gamma": "greatest change of width and of height in percent (15)",
}


def add_data_options(parser: Parser) -> None:
    """--data and --dataset, for `dataset.load(data, name=dataset)`."""
    files = "folder of IDX files, or of pictures by class; .npz or .csv file"
    parser.add_argument("--data", metavar="PATH", help=files)
    names = "mnist: only the published files; digits: scikit-learn's"
    parser.add_argument("--dataset", choices=("mnist", "digits"), metavar="NAME", help=names)


def add_backend_options(parser: Parser) -> None:
    """--backend and --threads, for `backends.get(backend, threads)`."""
    names = "auto, cpu, or a name that mlpcore backends lists (auto)"
    parser.add_argument("--backend", metavar="NAME", help=names)
    parser.add_whole("--threads", "number of threads (the available cores)")


def given_deformation(options: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the deformation that were given, by name."""
    return {name: options[name] for name in DEFORMATION if options.get(name) is not None}


T = TypeVar("T")


def command_main(
    parse: Callable[[Sequence[str]], T], command: Callable[[T], int], *words: str
) -> Callable[[Sequence[str]], int]:
    """The `main` of a subcommand: from its arguments to its exit status.

    `words` are further arguments of `run_tool`.
    """
    return lambda argv: run_tool(lambda: command(parse(argv)), *words)


def run_tool(
    command: Callable[[], int], smaller: str = "less data", interrupted: str = "interrupted"
) -> int:
    """Runs a command; bad input and failures of the system end in one line on stderr.

    `smaller` takes less memory, and is said when there is not enough; `interrupted` after Ctrl-C.
    Returns the exit status: that of `command`, 2 for bad input, 128 + n for signal n.
    """
    status, message = 2, ""
    terminal.open_streams()
    try:
        raise_on_interrupt()
        try:
            result = command()
        except SystemExit:  # by which argparse leaves after --help
            result = 0
        sys.stdout.flush()
        return result
    except MemoryError as error:
        message = f"error: out of memory: {str(error) or 'no details'}; expected {smaller}"
    except KeyboardInterrupt:
        status, message = 128 + signal.SIGINT, interrupted
    except BrokenPipeError:  # nobody reads the output any more
        status = 128 + SIGPIPE
    except (InputError, OSError) as error:  # OSError: such as a full disk behind stdout
        message = f"error: {error}"
    terminal.flush_or_discard(sys.stdout)
    if message:
        terminal.say(printable(message), sys.stderr)
    return status
