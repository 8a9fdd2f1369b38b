"""What users are told: the one exception for input that cannot be used, and paths in messages."""

from __future__ import annotations

import os


class InputError(ValueError):
    """A value, file or setting from outside that cannot be used.

    The message is one line that names the value and what was expected. The
    command-line tools print it and exit with status 2.
    """


def shown(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """A path as text that is safe in a one-line message."""
    text = os.fsdecode(path)
    return text if text.isprintable() and text else repr(text)
