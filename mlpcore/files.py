"""Files and folders: written completely or not at all, read with distrust, locked while in use.

Linux and macOS lock the folder itself, and replace files in the folder that is open. Windows can do
neither. There a file in the folder is locked, and an open file keeps its folder where it is.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Flags that open a file which is not there yet.
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL

#: Flags with which opening a pipe or a terminal does not wait. Windows lacks them.
WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

#: The file that stands for its folder where folders cannot be locked.
LOCK_FILE = ".lock"

#: Seconds in which Windows may replace a file that another process reads.
PATIENCE = 2.0


class InUse(InputError):
    """Another process has locked a folder."""


@dataclass(frozen=True)
class Lock:
    """The lock of a folder, until it is closed or the process ends.

    Attributes
    ----------
    close : callable
        Unlocks the folder.
    folder : int or None
        The descriptor of the folder, where the system has one.
    """

    close: Callable[[], object]
    folder: int | None = None


@contextlib.contextmanager
def _explained(action: str, path: StrPath) -> Iterator[None]:
    """Turn what the system says about a path into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:  # a ValueError: the path has a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot {action} {shown(path)}: {reason}") from None


def atomic_write(path: StrPath, *parts: bytes, locked: Lock | None = None) -> None:
    """Write a file so that it is complete or, if anything goes wrong, the old one.

    When several processes write the file at once, the last one wins. A killed process leaves a
    temporary file behind: see `remove_temporary`.

    Parameters
    ----------
    locked
        What `lock` returned for the folder of the file. Nothing is written to another folder that
        has taken its place.

    Raises
    ------
    InputError
        When the file cannot be written, for example because the disk is full. The old file is
        intact then, and no temporary file is left.
    """
    path = Path(path)
    _check_regular(path)
    temporary = _temporary(path)
    with _explained("write", path), _opened(path.parent, locked) as folder:
        if folder is not None:
            path, temporary = Path(path.name), Path(temporary.name)
        try:
            with open(os.open(temporary, NEW_FILE, 0o666, dir_fd=folder), "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            _replace(temporary, path, folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        if folder is not None:
            with contextlib.suppress(OSError):  # some file systems cannot make a rename durable
                os.fsync(folder)


def _replace(temporary: Path, path: Path, folder: int | None) -> None:
    """Give a file its name. Windows refuses that while another process reads the old file."""
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
        except PermissionError:
            if folder is not None or time.monotonic() > ends:
                raise
        time.sleep(0.02)


@contextlib.contextmanager
def _opened(folder: Path, locked: Lock | None) -> Iterator[int | None]:
    """The descriptor of a folder, which must be the locked one if there is one.

    None where the system has no descriptors of folders.
    """
    if os.open not in os.supports_dir_fd:
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        held = locked.folder if locked else None
        if held is not None and not os.path.sameopenfile(descriptor, held):
            raise InputError(
                f"{shown(folder)} has been replaced by another folder: expected the one that "
                "this process locked"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def check_replaceable(path: StrPath) -> None:
    """Raise InputError unless `atomic_write` can write a file that a user named; leave nothing.

    Links are refused, because the link itself would be replaced, even ``/dev/stdout``.
    """
    path = Path(path)
    _check_regular(path)
    check_no_link(path)
    with _explained("write", path):
        temporary = _temporary(path)
        temporary.touch(exist_ok=False)
        temporary.unlink()


def check_no_link(path: Path) -> None:
    """Raise InputError for a link, which leads somewhere that nobody named."""
    if os.path.islink(path):
        raise InputError(f"cannot write {shown(path)}, a link: expected a new name or no link")


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


def read_bounded(path: StrPath, limit: int) -> bytes:
    """The content of a regular file; an InputError if it has more than `limit` bytes."""
    content, size = read_start(path, limit)
    if size > limit:
        raise InputError(f"{shown(path)} is damaged: expected at most {limit:,} bytes")
    return content


def read_start(path: StrPath, limit: int) -> tuple[bytes, int]:
    """The first `limit` bytes of a regular file, and the file's size."""
    with open_regular(path) as file, _explained("read", path):
        return file.read(limit), os.fstat(file.fileno()).st_size


def open_regular(path: StrPath) -> IO[bytes]:
    """Open a regular file to read it; an InputError for anything else.

    Opening a pipe would wait for ever, so this does not wait, and looks at what it has opened.
    """
    with _explained("read", path):
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
        raise InputError(f"{shown(path)} is not a regular file")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | WITHOUT_WAITING)


def make_folder(folder: StrPath) -> None:
    """Create a folder and its parents unless they are there; an InputError if that fails."""
    folder = Path(folder)
    with _explained("create", folder):
        for parent in reversed(folder.parents):  # os.makedirs recurses, and so not a thousand deep
            if not parent.exists():
                parent.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)


def check_writable(folder: StrPath) -> None:
    """Raise InputError unless a folder, which need not exist, can get files; leave nothing."""
    folder = Path(folder)
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    with _explained("write to", folder):
        os.rmdir(tempfile.mkdtemp(prefix=".mlpcore-", dir=existing))


def lock(folder: Path) -> Lock:
    """Lock a folder until the returned lock is closed, or the process ends.

    On Linux and macOS the lock is on the folder itself, so no lock file can stay behind. A file
    system without locks lets every process in.

    Raises
    ------
    InUse
        When another process has the lock.
    InputError
        When the folder cannot be read.
    """
    if fcntl is None:
        return _lock_file_in(folder)
    with _explained("read", folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise _in_use(folder) from None
    except OSError:
        pass  # the file system has no locks
    return Lock(lambda: os.close(descriptor), descriptor)


def _lock_file_in(folder: Path) -> Lock:
    import filelock  # installed on Windows only

    found = filelock.FileLock(folder / LOCK_FILE)
    with _explained("lock", folder):
        try:
            found.acquire(blocking=False)
        except filelock.Timeout:
            raise _in_use(folder) from None
    return Lock(found.release)


def _in_use(folder: Path) -> InUse:
    return InUse(f"{shown(folder)} is in use by another process")
