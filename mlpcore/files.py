"""Files and folders: written completely or not at all, read with distrust, locked while in use."""

import contextlib
import glob
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path

from mlpcore.errors import InputError, shown
from mlpcore.typing import StrPath

#: Flags with which opening a pipe or a terminal does not wait. Windows lacks them.
WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

#: Folders at the root of a file system, and in archives that macOS makes.
SYSTEM_FOLDERS = "lost+found", "System Volume Information", "$RECYCLE.BIN", "__MACOSX"

#: The file that stands for its folder in `Lock`.
LOCK_FILE = ".lock"

#: Seconds in which Windows may replace a file that another process reads.
PATIENCE = 2.0


class InUse(InputError):
    """Another process has locked a folder."""


class Lock:
    """The lock of a folder, until it is closed or the process ends.

    The file `LOCK_FILE` stays in the folder. A file system without locks lets every process in.
    InUse is raised when another process has the lock.
    """

    def __init__(self, folder: Path):
        import filelock  # not above: it takes 50 ms to import

        self._path = folder / LOCK_FILE
        # A soft lock, by a file that is there, would outlive a killed process.
        self._lock = filelock.FileLock(self._path, thread_local=False, fallback_to_soft=False)
        self._found: os.stat_result | None = None
        try:
            self._lock.acquire(blocking=False)
            self._found = self._path.stat()
        except filelock.Timeout:
            raise InUse(f"{shown(folder)} is in use by another process") from None
        except OSError:
            pass  # no locks here; or nothing can be written, which is said when that is tried

    def check(self) -> None:
        """Raise InputError if another folder has taken the place of the locked one.

        The system gives no other file the number of one that is open.
        """
        if self._found is None:
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(self._found, self._path.stat()):
                return
        raise InputError(
            f"{shown(self._path.parent)} has been replaced by another folder, or its {LOCK_FILE} "
            "has been removed: expected the folder that this process locked"
        )

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.release()


@contextlib.contextmanager
def explained(action: str, path: StrPath) -> Iterator[None]:
    """Turn what the system says about a path into an InputError."""
    try:
        yield
    except InputError:
        raise
    # A ValueError is raised for a zero byte, a RecursionError for 1,000 folders to create.
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot {action} {shown(path)}: {reason}") from None


def atomic_write(path: StrPath, *parts: bytes, locked: Lock | None = None) -> None:
    """Write a file so that it is complete or, if anything goes wrong, the old one.

    When several processes write the file at once, the last one wins. A killed process leaves a
    temporary file behind: see `remove_temporary`. `locked` is the lock of the folder: nothing is
    written to another folder that has taken its place. An InputError when the file cannot be
    written, for example because the disk is full. No temporary file is left then.
    """
    path = Path(path)
    _check_regular(path)
    temporary = _temporary(path)
    with explained("write", path):
        try:
            with open(temporary, "xb") as file:
                if locked is not None:
                    locked.check()  # from now on, another folder would lack the temporary file
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            _replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        with contextlib.suppress(OSError):  # some systems cannot make a rename durable
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _replace(temporary: Path, path: Path) -> None:
    """Give a file its name. Windows refuses that while another process reads the old file."""
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(temporary, path)
        except PermissionError:
            if time.monotonic() > ends:
                raise
        time.sleep(0.02)


def check_replaceable(path: StrPath) -> None:
    """Raise InputError unless `atomic_write` can write a file that a user named; leave nothing.

    Links are refused, because the link itself would be replaced, even ``/dev/stdout``.
    """
    path = Path(path)
    _check_regular(path)
    check_no_link(path)
    with explained("write", path):
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
    with open_regular(path) as file, explained("read", path):
        return file.read(limit), os.fstat(file.fileno()).st_size


def open_regular(path: StrPath) -> BufferedReader:
    """Open a regular file to read it; an InputError for anything else.

    Opening a pipe would wait for ever, so this does not wait, and looks at what it has opened.
    """
    with explained("read", path):
        file = open(path, "rb", opener=lambda p, flags: os.open(p, flags | WITHOUT_WAITING))  # noqa: SIM115
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
        raise InputError(f"{shown(path)} is not a regular file")


def is_hidden(name: str) -> bool:
    """Whether a file or folder is of no concern to users: a hidden one, or the system's own."""
    return name.startswith(".") or name in SYSTEM_FOLDERS


def make_folder(folder: StrPath) -> None:
    """Create a folder and its parents unless they are there; an InputError if that fails."""
    with explained("create", folder):
        Path(folder).mkdir(parents=True, exist_ok=True)


def check_writable(folder: StrPath) -> None:
    """Raise InputError unless a folder, which need not exist, can get files; leave nothing."""
    folder = Path(folder)
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    with explained("write to", folder):
        os.rmdir(tempfile.mkdtemp(prefix=".mlpcore-", dir=existing))
