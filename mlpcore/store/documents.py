"""JSON of exactly the fields of a type, in files and in the metadata of networks."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

import msgspec

from mlpcore.errors import InputError, shown
from mlpcore.files import Lock, atomic_write, read_bounded
from mlpcore.typing import StrPath

MAX_BYTES = 2**24

T = TypeVar("T")

LATER: dict[str, Any] = {"ones_and_sevens": 0.0}
"""Settings that earlier files lack, and the value that their training had. A setting of this value
is not written, so that files of before and of now are the same."""


EARLIER: dict[str, Any] = {"width": None}
"""Settings that earlier files have, and the only value of theirs that still has its meaning."""


def to_json(value: Any) -> str:
    """JSON of a dataclass, with all of its fields but for those of `LATER`, or of a plain value."""
    plain = value
    if dataclasses.is_dataclass(value):
        plain = dataclasses.asdict(value, dict_factory=_known_before)  # type: ignore[arg-type]
    return msgspec.json.encode(plain).decode()


def _known_before(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields without those of `LATER` that have the value of before."""
    return {name: value for name, value in fields if (name, value) not in LATER.items()}


def _still_known(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields without those of `EARLIER`."""
    return {name: value for name, value in fields.items() if (name, value) not in EARLIER.items()}


def from_json(content: bytes | str, kind: Any) -> Any:
    """A value of JSON that has all fields of its type, and no other: it would be lost in silence.

    A field of `LATER` may be missing, and one of `EARLIER` may be there.

    Raises
    ------
    InputError
        When the content is damaged or from another version, or a value is out of range.
    """
    try:
        value = msgspec.json.decode(content, type=kind)
        known = msgspec.json.decode(to_json(value))
        found = json.loads(content, object_hook=_still_known)
    except (ValueError, OverflowError, RecursionError) as error:
        raise InputError(" ".join(str(error).split())) from None
    if known != found:
        raise InputError("it has other fields than those of this version")
    return value


def read_document(path: StrPath, kind: type[T]) -> T:
    """A value of a file; an InputError when this cannot be read, or as `from_json`."""
    content = read_bounded(path, MAX_BYTES)
    try:
        return from_json(content, kind)
    except InputError as error:
        raise InputError(f"{shown(path)} is damaged: {error}") from None


def write_document(path: StrPath, value: object, locked: Lock | None = None) -> None:
    """Write a value for `read_document`, atomically; `locked` is as for `atomic_write`."""
    atomic_write(path, msgspec.json.format(to_json(value).encode(), indent=2), b"\n", locked=locked)
