"""IDX and .npz files: any array survives them, bombs and damaged files are refused."""

import hashlib
import io
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from idx_files import idx_bytes, small_set, zipped
from mlpcore.data import find, idx
from mlpcore.data.idx import FILES
from mlpcore.errors import InputError
from small_runs import refusal

shapes = st.one_of(
    st.tuples(st.integers(1, 300)),
    st.tuples(st.integers(1, 5), st.integers(1, 12), st.integers(1, 12)),
)
flips = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), max_size=3)


@given(shapes, st.booleans(), flips, st.none() | st.integers(0, 400))
@example((1,), False, [(2, 0)], None)
def test_any_file_is_read_or_refused(shape, is_zipped, flips, length):
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    whole = idx_bytes(array)
    content = bytearray(zipped(whole) if is_zipped else whole)
    for place, bit in flips:
        content[place % len(content)] ^= 1 << bit
    undamaged = not flips and (length is None or length >= len(content))
    try:
        read = idx.decode(io.BytesIO(content[:length]), "file")
    except InputError as error:
        assert not undamaged
        assert str(error).startswith("file ") and str(error).isprintable()
    else:
        assert read.size
        if undamaged:
            assert read.dtype == np.uint8  # a bit of the header makes int8 of it
            np.testing.assert_array_equal(read, array)
            assert idx.md5(read) == hashlib.md5(whole).hexdigest()


@pytest.mark.parametrize("announced, size", [(2**30 - 1, 1000), (100, 2**26)])
def test_neither_a_false_header_nor_a_gzip_bomb_takes_memory(announced, size):
    content = io.BytesIO(zipped(struct.pack(">II", 0x801, announced) + bytes(size)))
    tracemalloc.start()
    with pytest.raises(InputError):
        idx.decode(content, "file")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


def test_a_gzip_bomb_that_keeps_its_promise(tmp_path, monkeypatch):
    """70 MB of zeros in 68 kB, and four files that are too large together."""
    content = zipped(struct.pack(">4I", 0x803, 70, 1000, 1000) + bytes(70_000_000))
    assert len(content) < 10**5
    with pytest.raises(InputError, match=r"announces 70,000,000 bytes in 6.,\d{3} compressed"):
        idx.decode(io.BytesIO(content), "file")
    monkeypatch.setattr(idx, "MAX_BYTES", 10**6)
    for name in FILES[::2]:
        (tmp_path / name).write_bytes(idx_bytes(np.zeros((6, 300, 300), np.uint8)))
    for name in FILES[1::2]:
        (tmp_path / name).write_bytes(idx_bytes(np.zeros(6, np.uint8)))
    with pytest.raises(InputError, match=r"t10k-images.* too large: .* and 459,994 bytes"):
        find.find(tmp_path, False)


def test_a_file_without_permission_or_that_is_a_pipe(tmp_path, monkeypatch):
    def deny(*args, **kwargs):  # mode bits do not stop the superuser
        raise PermissionError(13, "Permission denied")

    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refusal(idx.read_idx, tmp_path / "pipe")
    monkeypatch.setattr("builtins.open", deny)
    assert "Permission denied" in refusal(idx.read_idx, "a\nb")


def test_npz_files_that_are_none(tmp_path):
    path, (x, y, x_test, _) = tmp_path / "letters.npz", small_set().values()

    def refused(**arrays):
        if arrays:
            np.savez(path, **arrays)
        return refusal(find.find, path, False)

    assert "No such file" in refused()
    assert "holds arr.npy: expected x_train" in refused(arr=x)
    objects = np.array([1, "a"], object)
    assert "letters.npz: y_train is no array of numbers or text: Object arrays" in refused(
        x_train=x, y_train=objects
    )
    np.savez(path, X=x, y=y, X_test=x_test)
    content = path.read_bytes()
    for damaged in (b"", content[:-30], b"text"):
        path.write_bytes(damaged)
        assert "not a readable .npz file" in refused()
    path.write_bytes(content[:300] + b"\xff" + content[301:])
    assert "letters.npz: X is no array of numbers or text: Bad CRC-32" in refused()
    header = {"descr": "|u1", "fortran_order": False, "shape": (10**9, 10**4)}
    announced, short = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(announced, header)
    np.save(short, np.zeros(100, np.uint8))
    whole = short.getvalue()
    headers = [
        whole.replace(b"'|u1'", other)
        for other in (b"'|u1'(", b"({},)", b"'\\e' ", b"[" * 900, b"'|u1'\0", b"1.2j ")
    ]
    headers.append(whole.replace(b"'fortran_order'", b"1_000_000_000_0"))
    for content in (announced.getvalue(), whole[:-1], b"", *headers):
        with zipfile.ZipFile(path, "w") as archive:
            for key in ("x_train", "y_train"):
                archive.writestr(f"{key}.npy", content)
        assert "x_train is no array of numbers or text" in refused()
    bomb = np.zeros((70, 1000, 1000), np.uint8)
    np.savez_compressed(path, X=bomb, y=bomb[:, 0, 0])
    assert "X announces 70,000,128 bytes in" in refused()
