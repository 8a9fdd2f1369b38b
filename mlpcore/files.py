"""Files and folders: written completely or not at all, read with distrust, locked while in use."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath

#: `is_locked` holds a shared lock for an instant, so `lock` tries several times.
LOCK_TRIES, LOCK_SECONDS = 5, 0.01


class InUse(InputError):
    """Another process has locked a folder."""


@contextlib.contextmanager
def _explained(action: str, path: StrPath) -> Iterator[None]:
    """Turn what the system says about a path into an InputError."""
    if "\0" in os.fspath(path):  # for which system calls raise a ValueError
        raise InputError(f"path {shown(path)}: expected one without a zero byte")
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot {action} {shown(path)}: {error.strerror or error}") from None


def atomic_write(path: StrPath, *parts: bytes) -> None:
    """Write a file so that it is complete or, if anything goes wrong, the old one.

    When several processes write the file at once, the last one wins. A killed process leaves a
    temporary file behind: see `remove_temporary`.

    Raises
    ------
    InputError
        When the file cannot be written, for example because the disk is full. The old file is
        intact then, and no temporary file is left.
    """
    path = Path(path)
    _check_regular(path)
    temporary = _temporary(path)
    with _explained("write", path):
        try:
            with open(temporary, "xb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise
        _sync_folder(path.parent)


def check_replaceable(path: StrPath) -> None:
    """Raise InputError unless `atomic_write` can write a file that a user named; leave nothing.

    Links are refused, because the link itself would be replaced, even ``/dev/stdout``.
    """
    path = Path(path)
    _check_regular(path)
    if os.path.islink(path):
        raise InputError(f"cannot write {shown(path)}, a link: expected a file or a new name")
    with _explained("write", path):
        temporary = _temporary(path)
        temporary.touch(exist_ok=False)
        temporary.unlink()


def _check_regular(path: Path) -> None:
    """Raise InputError for what must not be replaced, such as a device or a folder."""
    if os.path.lexists(path) and not os.path.isfile(path):
        raise InputError(f"cannot write {shown(path)}: expected a file or a new name")


def _temporary(path: Path) -> Path:
    """A name beside the file that no other writer uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def remove_temporary(folder: Path, names: Iterable[str]) -> None:
    """Remove the temporary files that killed processes left of these files.

    The caller must be the only one that writes them. Otherwise a temporary file may belong to a
    living process, perhaps on another machine.
    """
    for name in names:
        for path in folder.glob(f".{glob.escape(name)}.*.tmp"):
            with contextlib.suppress(OSError):
                os.remove(path)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable. Some file systems cannot, which is no error."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bounded(path: StrPath, limit: int) -> bytes:
    """The content of a regular file; an InputError if it has more than `limit` bytes."""
    content, size = read_start(path, limit)
    if size > limit:
        raise InputError(f"{shown(path)} is damaged: expected at most {limit:,} bytes")
    return content


def read_start(path: StrPath, limit: int) -> tuple[bytes, int]:
    """The first `limit` bytes of a regular file, and the file's size."""
    with _explained("read", path):
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            raise InputError(f"{shown(path)} is not a regular file")
        with open(path, "rb") as file:
            return file.read(limit), status.st_size


def make_folder(folder: StrPath) -> list[Path]:
    """Create a folder and its parents; return those that are new, the outermost first.

    If that fails, it raises an InputError and leaves no new folder.
    """
    folder = Path(folder)
    with _explained("create", folder):
        missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)][::-1]
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            remove_folders(missing)
            raise
    return missing


def remove_folders(folders: list[Path]) -> None:
    """Remove the folders that `make_folder` created, unless they hold something by now."""
    with contextlib.suppress(OSError):
        for folder in reversed(folders):
            os.rmdir(folder)


def check_writable(folder: StrPath) -> None:
    """Raise InputError unless a folder, which need not exist, can get files; leave nothing."""
    created = make_folder(folder)
    try:
        with _explained("write to", folder):
            os.rmdir(tempfile.mkdtemp(prefix=".mlpcore-", dir=folder))
    finally:
        remove_folders(created)


def lock(folder: Path) -> int:
    """Lock a folder until the returned descriptor is closed, or the process ends.

    The lock is on the folder itself, so no lock file can stay behind. A file system without
    locks lets every process in.

    Raises
    ------
    InUse
        When another process has the lock.
    InputError
        When the folder cannot be read.
    """
    return _lock(folder, fcntl.LOCK_EX, LOCK_TRIES)


def is_locked(folder: Path) -> bool:
    """Whether a process has locked a folder; an InputError when the folder cannot be read."""
    try:
        os.close(_lock(folder, fcntl.LOCK_SH, 1))
    except InUse:
        return True
    return False


def _lock(folder: Path, kind: int, tries: int) -> int:
    with _explained("read", folder):
        descriptor = os.open(folder, os.O_RDONLY)
    for attempt in range(tries):
        if attempt:
            time.sleep(LOCK_SECONDS)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            continue
        except OSError:  # the file system has no locks
            return descriptor
    os.close(descriptor)
    raise InUse(f"{shown(folder)} is in use by another process")
