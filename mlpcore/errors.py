"""The exception for input that cannot be used, and paths in its messages."""

from __future__ import annotations

import os


class InputError(ValueError):
    """A value, a file or a setting from outside that cannot be used.

    The message is one line. It names the value and what was expected. The command-line tools
    print it and exit with status 2.
    """


def shown(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """Return a path as text that is safe in a one-line message."""
    text = os.fsdecode(path)
    return text if text.isprintable() and text else repr(text)
