"""Files and folders: written all or nothing, read with distrust, locked while in use."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from mlpcore.errors import InputError, shown

#: Whoever asks whether a folder is locked keeps others from it for an instant.
LOCK_TRIES, LOCK_SECONDS = 5, 0.01


class InUse(InputError):
    """Another process is at a folder."""


def atomic_write(path: Path, *parts: bytes) -> None:
    """Writes a file so that, whatever happens, it is either the old one or complete.

    Of several processes that write it at once, the last has its way. One that is killed leaves a
    temporary file: see `remove_temporary`.

    Raises
    ------
    InputError
        When it cannot be written, for example because the disk is full; the old file is
        still there then, and no other.
    """
    _check_regular(path)
    temporary = _temporary(path)
    try:
        try:
            with open(temporary, "xb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise
    except OSError as error:
        raise InputError(f"cannot write {shown(path)}: {error.strerror or error}") from None


def check_replaceable(path: Path) -> None:
    """Checks that `atomic_write` can write a file that a user names; leaves nothing.

    A link is refused whatever it leads to: it would be replaced itself, be it ``/dev/stdout``.

    Raises
    ------
    InputError
        When it cannot.
    """
    _check_path(path)
    _check_regular(path)
    if os.path.islink(path):
        raise InputError(f"cannot write {shown(path)}, a link: expected a file or a new name")
    temporary = _temporary(path)
    try:
        with open(temporary, "xb"):
            pass
        os.remove(temporary)
    except OSError as error:
        raise InputError(f"cannot write {shown(path)}: {error.strerror or error}") from None


def _check_regular(path: Path) -> None:
    """Raises InputError for what must not be replaced, such as a device."""
    if os.path.lexists(path) and not os.path.isfile(path):
        raise InputError(f"cannot write {shown(path)}: expected a file or a new name")


def _temporary(path: Path) -> Path:
    """Where a file is written before it gets its name: another place for every writer."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def remove_temporary(folder: Path, names: Iterable[str]) -> None:
    """Removes what killed processes have left of files that only the caller writes now.

    Nothing else does: of other files nobody can tell whether a living process, maybe on another
    machine, is about to finish them.
    """
    for name in names:
        for path in folder.glob(f".{glob.escape(name)}.*.tmp"):
            with contextlib.suppress(OSError):
                os.remove(path)


def _sync_folder(folder: Path) -> None:
    """Makes a rename last; some file systems cannot, and need not be asked again."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes, else an InputError."""
    content, size = read_start(path, limit)
    if size > limit:
        raise InputError(f"{shown(path)} is damaged: expected at most {limit:,} bytes")
    return content


def read_start(path: Path, limit: int) -> tuple[bytes, int]:
    """The first `limit` bytes of a regular file, and its size; an InputError if that fails."""
    _check_path(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            raise InputError(f"{shown(path)} is not a regular file")
        with open(path, "rb") as file:
            return file.read(limit), status.st_size
    except OSError as error:
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from None


def _check_path(path: Path) -> None:
    """Raises InputError for what no system call takes."""
    if "\0" in os.fspath(path):
        raise InputError(f"path {shown(path)}: expected one without a zero byte")


def make_folder(folder: Path) -> list[Path]:
    """Creates a folder and its parents; returns those that are new, the outermost first.

    Raises
    ------
    InputError
        When that fails; none is left then.
    """
    _check_path(folder)
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)][::-1]
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        remove_folders(missing)
        raise InputError(f"cannot create {shown(folder)}: {error.strerror or error}") from None
    return missing


def remove_folders(folders: list[Path]) -> None:
    """Removes what `make_folder` created, as far as it is empty."""
    with contextlib.suppress(OSError):
        for folder in reversed(folders):
            os.rmdir(folder)


def check_writable(folder: Path) -> None:
    """Checks that files can be created in a folder, itself created if need be; leaves nothing.

    Raises
    ------
    InputError
        When they cannot.
    """
    created = make_folder(folder)
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".mlpcore-", dir=folder))
    except OSError as error:
        raise InputError(f"cannot write to {shown(folder)}: {error.strerror or error}") from None
    finally:
        remove_folders(created)


def lock(folder: Path) -> int:
    """Keeps other processes that ask from a folder until the descriptor is closed.

    Raises
    ------
    InUse
        When another process has it.
    InputError
        When the folder cannot be read.
    """
    return _lock(folder, fcntl.LOCK_EX)


def is_locked(folder: Path) -> bool:
    """Whether a process keeps others from a folder; an InputError when it cannot be read."""
    try:
        os.close(_lock(folder, fcntl.LOCK_SH))
    except InUse:
        return True
    return False


def _lock(folder: Path, kind: int) -> int:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"cannot read {shown(folder)}: {error.strerror or error}") from None
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if kind == fcntl.LOCK_SH:
                break
            time.sleep(LOCK_SECONDS)
        except OSError:
            return descriptor  # a file system without locks
        else:
            return descriptor
    os.close(descriptor)
    raise InUse(f"{shown(folder)} is in use by another process")
