"""JSON of the fields of a type, in files and in the metadata of networks.

Unknown fields are refused, and a missing one has its default, if it has one.
"""

import codecs
import json
from collections import Counter
from typing import TypeVar

import msgspec

from mlpcore.errors import InputError, brief, one_line, shown
from mlpcore.files import Lock, atomic_write, read_bounded
from mlpcore.typing import StrPath

MAX_BYTES = 2**24

T = TypeVar("T")


def to_json(value: object) -> str:
    """JSON of a record (`mlpcore.checks.Record`), or of a plain value."""
    return msgspec.json.encode(value).decode()


def to_metadata(**values: object) -> dict[str, str]:
    """The metadata of a file: text as it is, and JSON of anything else."""
    return {n: value if isinstance(value, str) else to_json(value) for n, value in values.items()}


def from_json(content: bytes | str, kind: type[T]) -> T:
    """The inverse of `to_json`.

    An InputError when the content is damaged, a field is unknown, one without a default is missing,
    or a value is out of range.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as error:
        raise InputError(one_line(error)) from None


def read_document(path: StrPath, kind: type[T]) -> T:
    """A value of a file; an InputError when this cannot be read, or as `from_json`.

    A name may occur once in an object. Editors on Windows begin a file with a byte order mark.
    """
    content = read_bounded(path, MAX_BYTES).removeprefix(codecs.BOM_UTF8)
    try:
        value = from_json(content, kind)
        json.loads(content, object_pairs_hook=_check_names)
        return value
    except InputError as error:
        raise InputError(f"{shown(path)} is damaged: {error}") from None


def _check_names(pairs: list[tuple[str, object]]) -> None:
    """Raise InputError when two members of an object have the same name."""
    for name, n in Counter(name for name, _ in pairs).items():
        if n > 1:
            raise InputError(f"the name {brief(name)} occurs {n} times, expected another for each")


def write_document(path: StrPath, value: object, locked: Lock | None = None) -> None:
    """Write a value for `read_document`, atomically; `locked` is as for `atomic_write`."""
    atomic_write(path, msgspec.json.format(to_json(value).encode(), indent=2), b"\n", locked=locked)
