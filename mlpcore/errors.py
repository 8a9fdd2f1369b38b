"""The exception for input that cannot be used, and foreign text in its messages."""

from __future__ import annotations

import os
import reprlib

#: The most characters of a line, and of a path or a name in it.
MAX_LINE, MAX_NAME = 300, 200


class InputError(ValueError):
    """A value, a file or a setting from outside that cannot be used.

    The message is one line. It names the value and what was expected. The command-line tools
    print it and exit with status 2.
    """

    def __init__(self, message: str) -> None:
        # An array or a pandas.Series in it has several.
        super().__init__(" ".join(map(str.strip, message.splitlines())))


class PictureWarning(UserWarning):
    """A picture or an array whose answer may mean nothing, because it seems to show no digit."""


def one_line(text: object) -> str:
    """Return foreign text, or the message of an exception, as one line."""
    return " ".join(str(text).split())


class _Repr(reprlib.Repr):
    """Python writes no whole number of more than 4,300 digits."""

    def repr_int(self, x: int, level: int) -> str:
        n = x.bit_length()
        return super().repr_int(x, level) if n < 10_000 else f"a whole number of {n:,} bits"


#: A value in few characters.
brief = _Repr().repr


def printable(text: str, most: int = MAX_LINE) -> str:
    """Return text of any origin as one line that is safe on a terminal.

    Characters that would control the terminal are escaped, and the middle of a long text is left
    out.

    Examples
    --------
    >>> print(printable("ab\\x1b[31m"), printable("abcdefghi", 5))
    ab\\x1b[31m ab…hi
    """
    line = " ".join(text.splitlines())
    if len(line) > most:
        line = f"{line[: most // 2]}…{line[len(line) - (most - 1) // 2 :]}"
    if line.isprintable():
        return line
    line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
    return line if len(line) <= most else printable(line, most)


def printable_lines(text: str) -> str:
    """Return text with each of its lines as `printable` shows it."""
    return "\n".join(map(printable, text.split("\n")))


def shown(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """Return a path or a name as text that is safe in a one-line message."""
    text = os.fsdecode(path)
    if text and text.isprintable() and len(text) <= MAX_NAME:
        return text
    return printable(text if text and text.isprintable() else repr(text), MAX_NAME)
