"""Files and folders: whole or not there, full disks, names that cannot be, locks."""

import errno
import fcntl
import os
import stat
from unittest.mock import DEFAULT, Mock

import pytest

from mlpcore import files
from small_runs import refusal

FULL = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))


def test_only_files_are_replaced_and_read(tmp_path):
    """Not a device, for which a pipe stands here, a folder, or a link to a file."""
    pipe, link, none = (tmp_path / name for name in ("pipe", "link", "none"))
    os.mkfifo(pipe)
    link.symlink_to("file")
    for path in (pipe, tmp_path, link, none / "file", tmp_path / "\0"):
        refusal(files.check_replaceable, path)
    for path in (pipe, tmp_path):
        refusal(files.atomic_write, path, b"x")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"] and stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "file").write_bytes(b"long")
    for path in (pipe, tmp_path, none, tmp_path / "\0", link):
        refusal(files.read_bounded, path, 3)
    assert files.read_start(link, 3) == (b"lon", 4)


def test_several_may_write_a_file_at_once(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    files.atomic_write(path, b"old")
    monkeypatch.setattr(os, call, FULL)
    assert "file" in refusal(files.atomic_write, path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_folders_are_made_or_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for name in ("file", "file/folder", "/proc/folder"):
        refusal(files.check_writable, tmp_path / name)
    for name in ("x/" * 2000, "\0"):
        assert "cannot create" in refusal(files.make_folder, tmp_path / name)
    files.check_writable(tmp_path / "a" / "b")
    with monkeypatch.context() as patch:
        patch.setattr(files.tempfile, "mkdtemp", FULL)
        refusal(files.check_writable, tmp_path / "a" / "b")
    assert os.listdir(tmp_path) == ["file"]
    files.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_reader_delays_the_replacing(tmp_path, monkeypatch):
    """On Windows, where it fails while another process has the old file open."""
    busy = PermissionError("in use")
    replace = Mock(wraps=os.replace, side_effect=[busy, busy, DEFAULT, busy])
    monkeypatch.setattr(os, "replace", replace)
    files.atomic_write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    monkeypatch.setattr(files, "PATIENCE", -1)
    assert "in use" in refusal(files.atomic_write, tmp_path / "file", b"newer")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
@pytest.mark.filterwarnings("error")
def test_a_file_system_without_locks_lets_everybody_in(tmp_path, monkeypatch, code):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(code, "no locks")))
    locks = [files.Lock(tmp_path), files.Lock(tmp_path)]
    files.atomic_write(tmp_path / "file", b"new", locked=locks[1])
    for each in locks:
        each.close()
