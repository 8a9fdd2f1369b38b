"""The IDX format: any array survives it, any other file is refused on one line."""

import hashlib
import io
import os
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idx_files import idx_bytes, zipped
from mlpcore.data import idx
from mlpcore.data.folder import FILES, read_folder
from mlpcore.errors import InputError

shapes = st.one_of(
    st.tuples(st.integers(1, 300)),
    st.tuples(st.integers(1, 5), st.integers(1, 12), st.integers(1, 12)),
)
flips = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), max_size=3)


@given(shapes, st.booleans(), flips, st.none() | st.integers(0, 400))
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
        assert read.dtype == np.uint8 and read.size
        if undamaged:
            np.testing.assert_array_equal(read, array)
            assert idx.md5(read) == hashlib.md5(whole).hexdigest()


BAD = {
    "magic number cut off": b"\0\0\x08",
    "other magic number": struct.pack(">I", 0x802) + bytes(100),
    "header cut off": struct.pack(">II", 0x803, 1),
    "no labels": struct.pack(">II", 0x801, 0),
    "no rows": struct.pack(">IIII", 0x803, 5, 0, 5),
    "long side": struct.pack(">IIII", 0x803, 1, 1025, 2) + bytes(2050),
    "too many": struct.pack(">II", 0x801, 2**32 - 1),
    "one byte short": struct.pack(">II", 0x801, 9) + bytes(8),
    "one byte long": struct.pack(">II", 0x801, 9) + bytes(10),
}


@pytest.mark.parametrize("is_zipped", [False, True])
@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_bad_content(tmp_path, content, is_zipped):
    path = tmp_path / "file"
    path.write_bytes(zipped(content) if is_zipped else content)
    with pytest.raises(InputError, match=f"^{path} .*expected"):
        idx.read_idx(path)


@pytest.mark.parametrize("announced, size", [(2**30 - 1, 1000), (100, 2**26)])
def test_neither_a_false_header_nor_a_gzip_bomb_takes_memory(announced, size):
    content = io.BytesIO(zipped(struct.pack(">II", 0x801, announced) + bytes(size)))
    tracemalloc.start()
    with pytest.raises(InputError):
        idx.decode(content, "file")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


def test_a_gzip_bomb_that_keeps_its_promise(tmp_path):
    """70 MB of zeros in 68 kB, and four files that are too large together."""
    content = zipped(struct.pack(">4I", 0x803, 70, 1000, 1000) + bytes(70_000_000))
    assert len(content) < 10**5
    with pytest.raises(InputError, match=r"announces 70,000,000 bytes in 6.,\d{3} compressed"):
        idx.decode(io.BytesIO(content), "file")
    for name in FILES[::2]:
        with open(tmp_path / name, "wb") as file:
            file.write(struct.pack(">4I", 0x803, 600, 1000, 1000))
            file.truncate(16 + 600_000_000)  # a hole takes no place on the disk
    for name in FILES[1::2]:
        (tmp_path / name).write_bytes(struct.pack(">II", 0x801, 600) + bytes(600))
    with pytest.raises(InputError, match=r"t10k-images.* too large: .* and 473,741,224 bytes"):
        read_folder(tmp_path)


@pytest.mark.parametrize("path", ["absent", ".", "pipe", 1.5, "a\0b", "a\nb", "forbidden"])
def test_unreadable(tmp_path, monkeypatch, path):
    def deny(*args, **kwargs):  # mode bits do not stop the superuser
        raise PermissionError(13, "Permission denied")

    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "forbidden").touch()
    monkeypatch.setattr("builtins.open", deny)
    with pytest.raises(InputError) as caught:
        idx.read_idx(path)
    assert str(caught.value).isprintable()
