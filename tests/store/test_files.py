"""Files and folders: whole or not there, full disks, names that cannot be, locks."""

import errno
import fcntl
import inspect
import os
import resource
import stat
import subprocess
import sys

import pytest

from mlpcore import files
from mlpcore.errors import InputError


@pytest.fixture(params=[False, True], ids=["posix", "as-windows"])
def system(request, monkeypatch):
    """The code that takes away what Windows lacks, if it has been taken away here."""
    if not request.param:
        return ""
    pytest.importorskip("filelock")
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.delattr(os, "O_DIRECTORY")
    return "files.fcntl = None; "


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_only_files_are_replaced(tmp_path):
    """Not a device, for which a pipe stands here, a folder, or a link to a file."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("file")
    for path in (pipe, tmp_path, link, tmp_path / "none" / "file", tmp_path / "\0"):
        with pytest.raises(InputError):
            files.check_replaceable(path)
    for path in (pipe, tmp_path):
        with pytest.raises(InputError):
            files.atomic_write(path, b"x")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_several_may_write_a_file_at_once(tmp_path, monkeypatch, system):
    """The second begins when all of the first is written but its name."""
    path, fsync, contents = tmp_path / "file", os.fsync, []

    def write_another(descriptor):
        monkeypatch.setattr(os, "fsync", fsync)
        files.check_replaceable(path)
        assert not path.exists()
        files.atomic_write(path, b"sec", b"ond")
        files.check_replaceable(path)
        contents.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", write_another)
    files.atomic_write(path, b"first")
    assert [*contents, path.read_bytes()] == [b"second", b"first"]
    assert os.listdir(tmp_path) == ["file"]
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("call", ["fsync", "replace", None])
def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch, system, call):
    """Simulated in two system calls, and by a limit of the system for its files."""
    path = tmp_path / "file"
    files.atomic_write(path, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if call:
        monkeypatch.setattr(os, call, full)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        with pytest.raises(InputError, match="file"):
            files.atomic_write(path, bytes(6000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"long")
    for name in ("pipe", ".", "none", "\0", "long"):
        with pytest.raises(InputError):
            files.read_bounded(tmp_path / name, 3)
    assert files.read_start(tmp_path / "long", 3) == (b"lon", 4)


def test_folders_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    for name in ("file", "file/folder", "/proc/folder"):
        with pytest.raises(InputError):
            files.check_writable(tmp_path / name)
    files.check_writable(tmp_path / "a" / "b")
    monkeypatch.setattr(files.tempfile, "mkdtemp", full)
    with pytest.raises(InputError):
        files.check_writable(tmp_path / "a" / "b")
    assert os.listdir(tmp_path) == ["file"]


def test_folders_are_made_however_deep(tmp_path):
    deep, limit = tmp_path.joinpath(*"a" * 200), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        files.make_folder(deep)
    finally:
        sys.setrecursionlimit(limit)
    assert deep.is_dir()


def test_a_killed_process_leaves_no_lock(tmp_path, system):
    code = "import sys, time; from mlpcore import files; from pathlib import Path; "
    code += system + "held = files.lock(Path(sys.argv[1])); print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        with pytest.raises(files.InUse):
            files.lock(tmp_path)
    finally:
        process.kill()
        process.communicate()
    files.lock(tmp_path).close()
    files.lock(tmp_path).close()
    assert os.listdir(tmp_path) in ([], [files.LOCK_FILE] if system else [])


def test_a_reader_delays_the_replacing_on_windows(tmp_path, monkeypatch):
    """There it fails while another process has the old file open, and here at once."""
    replace, refused = os.replace, [PermissionError("in use")] * 2

    def replace_later(*args, **kwargs):
        if refused:
            raise refused.pop()
        replace(*args, **kwargs)

    monkeypatch.setattr(os, "replace", replace_later)
    with pytest.raises(InputError):
        files.atomic_write(tmp_path / "file", b"new")
    monkeypatch.setattr(os, "supports_dir_fd", set())
    files.atomic_write(tmp_path / "file", b"new")
    assert not refused and (tmp_path / "file").read_bytes() == b"new"
    refused.append(PermissionError("in use"))
    monkeypatch.setattr(files, "PATIENCE", -1)
    with pytest.raises(InputError, match="in use"):
        files.atomic_write(tmp_path / "file", b"newer")
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_system_without_locks_lets_everybody_in(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", full)
    files.lock(tmp_path).close()
    with pytest.raises(InputError):
        files.lock(tmp_path / "none")
