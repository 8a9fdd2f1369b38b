"""Standard streams that may be closed, full, or left by their reader."""

import contextlib
import io
import os
import sys
from typing import TextIO

from mlpcore.errors import printable_lines


def open_streams() -> None:
    """Give a process whose standard streams are closed ones that lead nowhere.

    Otherwise the next file that it opens would become its output. What the encoding of a stream
    lacks is escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, which is this one
    for name, mode, number in (("stdin", "r", 0), ("stdout", "w", 1), ("stderr", "w", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "", file: TextIO | None = None) -> None:
    """Print lines with control characters escaped, each shortened to `MAX_LINE` characters.

    They go to the standard output, whose failure is the caller's, or to the standard error, which
    may fail without anybody to tell.
    """
    with contextlib.suppress(OSError) if file is sys.stderr else contextlib.nullcontext():
        print(printable_lines(text), file=file, flush=True)


def flush_or_discard(stream: TextIO) -> None:
    """Write what is left in a stream; if that fails, this and all that follows goes nowhere.

    Python would complain of it at its end.
    """
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
