"""Data sets: the IDX format, pixel values and sizes, the search for MNIST, bad input."""

import dataclasses
import gzip
import hashlib
import io
import os
import struct
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore import dataset
from mlpcore.data import idx, mnist
from mlpcore.data.dataset import FILES, load, normalise, read_idx, resize
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError

TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES
REAL_MNIST = os.environ.get("MLPCORE_DATA") and os.path.abspath(os.environ["MLPCORE_DATA"])
fetch = mnist.fetch  # tests that use no network replace it
quick = settings(max_examples=100, deadline=None)


def idx_bytes(array, magic=None):
    """Write the format independently of `mlpcore.data.idx`."""
    magic = magic or {1: 0x801, 3: 0x803}[array.ndim]
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def zipped_bytes(content):
    """Compress without the time of day, so that every run sees the same bytes."""
    return gzip.compress(content, mtime=0)


def small_set(height=4, width=5, n_classes=3):
    """Return the four arrays of a data set of 12 training and 6 test images."""
    rng = np.random.default_rng(0)
    return {
        TRAIN_IMAGES: rng.integers(0, 256, (12, height, width), dtype=np.uint8),
        TRAIN_LABELS: np.arange(12, dtype=np.uint8) % n_classes,
        TEST_IMAGES: rng.integers(0, 256, (6, height, width), dtype=np.uint8),
        TEST_LABELS: np.arange(6, dtype=np.uint8) % n_classes,
    }


def write_set(folder, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for file, array in arrays.items():
        (folder / file).write_bytes(idx_bytes(array))
    return folder


def message(call, *args, **kwargs):
    """Return the one line with which a call must refuse its input."""
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def deny(*args, **kwargs):
    """Stand for a system call: mode bits do not stop the superuser."""
    raise PermissionError(13, "Permission denied")


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """Hide this machine's data sets and network; return the empty cache folder."""

    def unreachable(url, limit):
        raise InputError("unreachable")

    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("MLPCORE_DATA", raising=False)
    monkeypatch.setattr(mnist, "cache_folder", lambda: tmp_path / "cache" / "mnist")
    monkeypatch.setattr(mnist, "fetch", unreachable)
    return tmp_path / "cache" / "mnist"


@pytest.fixture
def published(monkeypatch):
    """Let a small data set stand for the published MNIST."""
    arrays = small_set()
    sums = {file: hashlib.md5(idx_bytes(arrays[file])).hexdigest() for file in mnist.MD5}
    monkeypatch.setattr(mnist, "MD5", sums)
    return arrays


def serve(monkeypatch, *mirrors):
    """Replace the mirrors by dictionaries from file names to contents; return the requests."""
    hosts = [f"https://mirror{i}/mnist/" for i in range(len(mirrors))]
    requests = []

    def serve_file(url, limit):
        requests.append((url, limit))
        host, file = url.rsplit("/", 1)
        content = mirrors[hosts.index(host + "/")].get(file)
        if content is None:
            raise InputError("HTTP 404")
        return content

    monkeypatch.setattr(mnist, "MIRRORS", hosts)
    monkeypatch.setattr(mnist, "fetch", serve_file)
    return requests


def packed(arrays):
    return {f"{file}.gz": zipped_bytes(idx_bytes(array)) for file, array in arrays.items()}


# The IDX format


shapes = st.one_of(
    st.tuples(st.integers(1, 300)),
    st.tuples(st.integers(1, 5), st.integers(1, 12), st.integers(1, 12)),
)


@quick
@given(shapes, st.booleans(), st.integers(0, 2**32 - 1))
def test_idx_round_trip(shape, zipped, seed):
    array = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    content = idx_bytes(array)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "no-telling-name")
        path.write_bytes(zipped_bytes(content) if zipped else content)
        read = read_idx(path)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)
    assert idx.md5(read) == hashlib.md5(content).hexdigest()


@quick
@given(st.booleans(), st.data())
def test_damaged_idx_is_refused_or_read(zipped, data):
    array = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
    content = bytearray(zipped_bytes(idx_bytes(array)) if zipped else idx_bytes(array))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    del content[data.draw(st.integers(0, len(content))) :]
    try:
        read = idx.decode(io.BytesIO(content), "file")
    except InputError as error:
        assert str(error).startswith("file ") and "\n" not in str(error)
    else:
        assert read.dtype == np.uint8 and read.size


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", "expected 0x00000801 or 0x00000803"),
        (b"\0\0\x08", "0x000008"),
        (struct.pack(">I", 0x802) + bytes(100), "starts with 0x00000802"),
        (struct.pack(">II", 0x803, 1), "ends inside its header: expected 16 bytes, found 8"),
        (struct.pack(">II", 0x801, 0), "empty: its header says 0"),
        (struct.pack(">IIII", 0x803, 5, 0, 5), "empty: its header says 5 x 0 x 5"),
        (struct.pack(">IIII", 0x803, 1, 1025, 2), "too large: its header says 1 x 1025 x 2"),
        (struct.pack(">II", 0x801, 2**32 - 1), "too large: its header says 4294967295"),
        (struct.pack(">II", 0x801, 9) + bytes(8), "expected 17 bytes for the 9 of its header"),
        (struct.pack(">II", 0x801, 9) + bytes(10), "expected 17 bytes for the 9 of its header"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_idx_bad_content(tmp_path, content, expected, zipped):
    path = tmp_path / "file"
    path.write_bytes(zipped_bytes(content) if zipped else content)
    refusal = message(read_idx, path)
    assert expected in refusal and str(path) in refusal


def test_idx_length_found(tmp_path):
    path = tmp_path / "file"
    start = struct.pack(">II", 0x801, 9)
    for content, found in [
        (start + bytes(8), "found 16"),
        (start + bytes(10), "found 18"),
        (zipped_bytes(start + bytes(8)), "found 16"),
        (zipped_bytes(start + bytes(10)), "found more"),
    ]:
        path.write_bytes(content)
        assert message(read_idx, path).endswith(found)


def test_idx_memory_is_bounded_by_the_header(tmp_path, monkeypatch):
    """Neither a lying header nor a gzip bomb makes the reader take much memory."""
    taken = []
    read_bounded = idx._read_bounded

    def record(stream, n_bytes):
        data = read_bounded(stream, n_bytes)
        taken.append(len(data))
        return data

    monkeypatch.setattr(idx, "_read_bounded", record)
    path = tmp_path / "file"
    path.write_bytes(zipped_bytes(struct.pack(">II", 0x801, 2**30 - 1) + bytes(1000)))
    assert "found at most" in message(read_idx, path)
    path.write_bytes(zipped_bytes(struct.pack(">II", 0x801, 100) + bytes(2**24)))
    assert message(read_idx, path).endswith("found more")
    assert max(taken) == 101


@pytest.mark.parametrize("keep", [5, 30, -1, -4, -9])
def test_idx_truncated_gzip(tmp_path, keep):
    path = tmp_path / "file"
    path.write_bytes(zipped_bytes(idx_bytes(np.arange(200, dtype=np.uint8)))[:keep])
    assert "truncated or corrupt gzip" in message(read_idx, path)


def test_idx_corrupt_gzip(tmp_path):
    path = tmp_path / "file"
    content = bytearray(zipped_bytes(idx_bytes(np.arange(200, dtype=np.uint8))))
    content[-6] ^= 1  # in the checksum
    path.write_bytes(content)
    assert "truncated or corrupt gzip" in message(read_idx, path)


def test_idx_unreadable(tmp_path, monkeypatch):
    assert "cannot read" in message(read_idx, tmp_path / "absent")
    assert "not a regular file" in message(read_idx, tmp_path)
    assert "not the path" in message(read_idx, 1.5)
    assert "not the path" in message(read_idx, "a\0b")
    assert r"'a\nb'" in message(read_idx, "a\nb")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert "not a regular file" in message(read_idx, tmp_path / "pipe")

    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr("builtins.open", deny)
    assert message(read_idx, tmp_path / "file").endswith("file: Permission denied")


# Pixel values and sizes


def test_normalise():
    pixels = np.arange(256, dtype=np.uint8)
    values = normalise(pixels)
    assert values.dtype == np.float32 and values[0] == -1 and values[255] == 1
    np.testing.assert_allclose(values, pixels / 127.5 - 1, rtol=0, atol=6e-8)
    np.testing.assert_array_equal(pixels, np.arange(256))
    for bad in ([256], [-1], [np.nan], ["a"], [1j], [[1], [1, 2]]):
        assert "expected" in message(normalise, bad)


def resize_pixel_by_pixel(images, height, width):
    """Interpolate each pixel in float64 by the definition."""
    n, h, w = images.shape
    result = np.empty((n, height, width))
    for i in range(height):
        for j in range(width):
            y, x = i * (h - 1) / (height - 1), j * (w - 1) / (width - 1)
            top, left = min(int(y), max(h - 2, 0)), min(int(x), max(w - 2, 0))
            bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
            fy, fx = y - top, x - left
            upper = images[:, top, left] * (1 - fx) + images[:, top, right] * fx
            lower = images[:, bottom, left] * (1 - fx) + images[:, bottom, right] * fx
            result[:, i, j] = upper * (1 - fy) + lower * fy
    return result


@quick
@given(
    st.tuples(st.integers(0, 4), st.integers(1, 12), st.integers(1, 12)),
    st.integers(2, 14),
    st.integers(2, 14),
    st.integers(0, 2**32 - 1),
)
def test_resize_matches_definition(shape, height, width, seed):
    images = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    resized = resize(images, height, width)
    assert resized.dtype == np.float32 and resized.flags.c_contiguous
    assert resized.shape == (shape[0], height, width)
    oracle = resize_pixel_by_pixel(images.astype(np.float64), height, width)
    np.testing.assert_allclose(resized, oracle, rtol=0, atol=1e-6)
    if len(images):
        assert images.min() <= resized.min() and resized.max() <= images.max()
        corners = np.ix_(range(len(images)), [0, -1], [0, -1])
        np.testing.assert_array_equal(resized[corners], images[corners])
    if (height, width) == shape[1:]:
        np.testing.assert_array_equal(resized, images)


def test_resize_in_batches(monkeypatch):
    images = np.random.default_rng(1).uniform(-1, 1, (7, 4, 6)).astype(np.float32)
    at_once = resize(images, 5, 7)
    monkeypatch.setattr("mlpcore.data.scaling._BATCH_PIXELS", 3 * 5 * 7)
    np.testing.assert_array_equal(resize(images, 5, 7), at_once)


def test_resize_keeps_flat_areas_and_copies():
    assert np.all(resize(np.full((1, 28, 28), -1, np.float32), 29, 31) == -1)
    assert np.all(resize(np.full((1, 7, 9), 0.1, np.float32), 21, 10) == np.float32(0.1))
    images = np.zeros((2, 3, 3), np.float32)
    assert not np.shares_memory(resize(images, 3, 3), images)


def test_resize_bad_input():
    images = np.zeros((1, 3, 3), np.float32)
    for side in (1, 0, -5, 1026, 10**12, 2.5, "3", None):
        assert "expected 2 to 1025 pixels" in message(resize, images, side, 3)
        assert "expected 2 to 1025 pixels" in message(resize, images, 3, side)
    assert "expected (n, height, width)" in message(resize, images[0], 3, 3)
    assert "expected (n, height, width)" in message(resize, np.zeros((1, 0, 3)), 3, 3)
    assert "expected real numbers" in message(resize, images * 1j, 3, 3)


# A folder of files


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("stem", ["-idx", ".idx"])
def test_load_folder(tmp_path, stem, suffix):
    arrays = small_set()
    folder = tmp_path / "letters"
    folder.mkdir()
    for file, array in arrays.items():
        content = idx_bytes(array)
        path = folder / (file.replace("-idx", stem) + suffix)
        path.write_bytes(zipped_bytes(content) if suffix else content)
    loaded = load(folder)
    assert (loaded.name, loaded.source, loaded.notice) == ("letters", str(folder), "")
    assert (loaded.n_classes, loaded.similar_labels) == (3, ())
    assert (loaded.image_shape, loaded.n_inputs) == ((5, 5), 25)
    for images, file in [(loaded.train_images, TRAIN_IMAGES), (loaded.test_images, TEST_IMAGES)]:
        assert images.dtype == np.float32 and images.flags.c_contiguous
        np.testing.assert_array_equal(images, resize(normalise(arrays[file]), 5, 5))
    for labels, file in [(loaded.train_labels, TRAIN_LABELS), (loaded.test_labels, TEST_LABELS)]:
        assert labels.dtype == np.uint8
        np.testing.assert_array_equal(labels, arrays[file])


@pytest.mark.parametrize("sides, odd", [((2, 2), (3, 3)), ((3, 8), (3, 9)), ((28, 28), (29, 29))])
def test_load_makes_sides_odd(tmp_path, sides, odd):
    assert load(write_set(tmp_path / "a", small_set(*sides))).image_shape == odd


def test_load_converts_in_batches(tmp_path, monkeypatch):
    folder = write_set(tmp_path / "a", small_set())
    at_once = load(folder).train_images
    monkeypatch.setattr("mlpcore.data.scaling._BATCH_PIXELS", 130)
    np.testing.assert_array_equal(load(folder).train_images, at_once)


def test_load_prefers_a_file_to_a_folder_of_its_name(tmp_path):
    folder = write_set(tmp_path / "a", small_set())
    (folder / TEST_LABELS).rename(folder / TEST_LABELS.replace("-idx", ".idx"))
    (folder / TEST_LABELS).mkdir()
    assert len(load(folder).test_labels) == 6


def replace(**changes):
    """Return a change of a data set's arrays, named by the start of their files' names."""
    names = {"train_images": 0, "train_labels": 1, "test_images": 2, "test_labels": 3}
    return {FILES[names[name]]: array for name, array in changes.items()}


@pytest.mark.parametrize(
    "changes, file, expected",
    [
        (replace(train_labels=np.zeros(11, np.uint8)), TRAIN_LABELS, "11 labels, expected 12"),
        (replace(test_labels=np.zeros(7, np.uint8)), TEST_LABELS, "7 labels, expected 6"),
        (replace(test_images=np.zeros((6, 5, 4), np.uint8)), TEST_IMAGES, "5x4, expected 4x5"),
        (replace(train_labels=np.ones(12, np.uint8)), TRAIN_LABELS, "only the label 1"),
        (replace(test_labels=np.full(6, 3, np.uint8)), TEST_LABELS, "label 3, which is out of"),
        (replace(train_images=np.zeros(12, np.uint8)), TRAIN_IMAGES, "labels, expected images"),
        (replace(test_labels=np.zeros((6, 2, 2), np.uint8)), TEST_LABELS, "images, expected lab"),
    ],
)
def test_load_folder_whose_files_do_not_fit(tmp_path, changes, file, expected):
    folder = write_set(tmp_path / "a", {**small_set(), **changes})
    refusal = message(load, folder)
    assert str(folder / file) in refusal and expected in refusal


def test_load_thin_images(tmp_path):
    folder = write_set(tmp_path / "a", small_set(height=1))
    assert "a side of 1 pixel, expected at least 2" in message(load, folder)


def test_load_incomplete_folder(tmp_path):
    folder = write_set(tmp_path / "a", small_set())
    (folder / TRAIN_LABELS).unlink()
    (folder / TEST_IMAGES).unlink()
    assert f"{folder} lacks {TRAIN_LABELS}, {TEST_IMAGES} " in message(load, folder)


@pytest.mark.parametrize("path", ["", 3, "a\0b"])
def test_load_not_a_path(path):
    assert "expected a folder" in message(load, path)


def test_load_unreadable_folder(tmp_path, monkeypatch):
    assert "absent: No such file" in message(load, tmp_path / "absent")
    (tmp_path / "file").write_text("")
    assert "file: Not a directory" in message(load, tmp_path / "file")

    monkeypatch.setattr(os, "listdir", deny)
    assert f"{tmp_path}: Permission denied" in message(load, tmp_path)
    monkeypatch.setattr(os, "getcwd", deny)
    assert message(load, "relative") == "cannot read relative: Permission denied"


def test_load_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    folder = write_set(tmp_path / "a", small_set())
    assert load("~/a").source == str(folder)


@quick
@given(st.sampled_from(FILES), st.booleans(), st.data())
def test_load_damaged_folder(file, zipped, data):
    content = bytearray(idx_bytes(small_set()[file]))
    content = bytearray(zipped_bytes(content)) if zipped else content
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as name:
        folder = write_set(Path(name), small_set())
        (folder / file).write_bytes(content)
        try:
            assert len(load(folder).train_images) == 12
        except InputError as error:
            assert str(folder) in str(error) and "\n" not in str(error)


# The search for MNIST


def test_search_order(tmp_path, isolated, published, monkeypatch):
    write_set(isolated, published)
    assert load().source == str(isolated)
    local = write_set(Path.cwd() / "data" / "mnist", published)
    assert load().source == str(local)
    variable = write_set(tmp_path / "variable", published)
    monkeypatch.setenv("MLPCORE_DATA", str(variable))
    assert load().source == str(variable)
    argument = write_set(tmp_path / "argument", published)
    assert load(argument).source == str(argument)
    assert load(name="digits").name == "scikit-learn digits"
    monkeypatch.setenv("MLPCORE_DATA", "")
    assert load().source == str(local)


def test_mnist_is_recognised(tmp_path, published):
    loaded = load(write_set(tmp_path / "a", published), name="mnist")
    assert (loaded.name, loaded.similar_labels, loaded.n_classes) == ("MNIST", (1, 7), 10)
    assert loaded.notice == ""


def test_mnist_changed(tmp_path, published):
    published[TEST_IMAGES] = published[TEST_IMAGES] ^ 1
    folder = write_set(tmp_path / "a", published)
    loaded = load(folder)
    assert (loaded.name, loaded.similar_labels) == ("a", ())
    assert f"not the published MNIST: {TEST_IMAGES} differ" in loaded.notice
    assert f"{folder / TEST_IMAGES} is not MNIST's" in message(load, folder, name="mnist")


@pytest.mark.parametrize("name", ["MNIST", "scikit-learn digits"])
def test_other_data_do_not_pass_for_known_data(tmp_path, name):
    """Even by the name of their folder; the run's own settings find them again."""
    loaded = load(write_set(tmp_path / name, small_set()))
    assert loaded.name == f"{name}, another than the published"
    again = DataSummary.of(loaded).load()
    np.testing.assert_array_equal(again.train_images, loaded.train_images)


def test_a_path_that_cannot_be_printed(tmp_path):
    loaded = load(write_set(tmp_path / "a\xa0b", small_set()))
    assert loaded.name == r"'a\xa0b'"
    again = DataSummary.of(loaded).load()
    np.testing.assert_array_equal(again.train_images, loaded.train_images)


def test_folder_called_mnist_that_is_not(tmp_path):
    loaded = load(write_set(tmp_path / "mnist", small_set()))
    assert (loaded.name, loaded.similar_labels) == ("mnist", ())
    assert "is not the published MNIST" in loaded.notice


def test_variable_without_files(tmp_path, monkeypatch):
    monkeypatch.setenv("MLPCORE_DATA", str(tmp_path))
    assert message(load).startswith(f"MLPCORE_DATA: {tmp_path} lacks {TRAIN_IMAGES}")


def test_incomplete_local_folder(published):
    local = write_set(Path("data", "mnist"), published)
    (local / TEST_LABELS).unlink()
    assert f"lacks {TEST_LABELS}" in message(load)


def test_bad_names(tmp_path):
    for name in ("MNIST", "", 1, ["mnist"], np.array(["mnist", "digits"])):
        assert "expected None, 'mnist' or 'digits'" in message(load, name=name)
    assert "together with data set 'digits'" in message(load, tmp_path, name="digits")


def test_damaged_cache(isolated, published):
    write_set(isolated, published)
    path = isolated / TRAIN_IMAGES
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    refusal = message(load)
    assert f"{path} is not MNIST's" in refusal and refusal.endswith("; delete it and try again")
    path.write_bytes(content[:-1])
    refusal = message(load)
    assert f"{path} is damaged" in refusal and refusal.endswith("; delete it and try again")


def test_download(isolated, published, monkeypatch):
    requests = serve(monkeypatch, packed(published))
    assert load().name == "MNIST"
    assert [url.rsplit("/", 1)[1][:-3] for url, _ in requests] == list(mnist.MD5)
    assert [limit for _, limit in requests] == [mnist.FIRST_FILE_LIMIT] + 3 * [mnist.FILE_LIMIT]
    assert sorted(os.listdir(isolated)) == sorted(packed(published))
    serve(monkeypatch)
    assert load(download=False).source == str(isolated)


def test_download_what_is_missing(isolated, published, monkeypatch):
    write_set(isolated, published)
    (isolated / TEST_LABELS).unlink()
    requests = serve(monkeypatch, packed(published))
    assert load().name == "MNIST"
    assert [url for url, _ in requests] == [f"https://mirror0/mnist/{TEST_LABELS}.gz"]


def test_download_from_second_mirror(isolated, published, monkeypatch):
    files = packed(published)
    serve(monkeypatch, {}, files)
    assert load().name == "MNIST"
    for path in isolated.iterdir():
        path.unlink()
    partial = {file: files[file] for file in files if "labels" in file}
    requests = serve(monkeypatch, partial, files)
    assert load().name == "MNIST"
    assert len(requests) == 5  # what the first mirror gave is not fetched again


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"<html>Please log in</html>", "not an IDX file"),
        (zipped_bytes(idx_bytes(np.zeros(6, np.uint8))), "has MD5"),
        (zipped_bytes(idx_bytes(np.arange(6, dtype=np.uint8) % 3))[:-3], "truncated"),
    ],
    ids=["html", "other content", "truncated"],
)
def test_download_of_wrong_content(isolated, published, monkeypatch, content, expected):
    serve(monkeypatch, {**packed(published), f"{TEST_LABELS}.gz": content})
    loaded = load()
    assert loaded.name == "scikit-learn digits" and expected in loaded.notice
    assert os.listdir(isolated) == []


def test_download_is_atomic(isolated, published, monkeypatch):
    def fail(source, target):
        raise OSError(28, "No space left on device")

    serve(monkeypatch, packed(published))
    monkeypatch.setattr(os, "replace", fail)
    assert f"cannot write {isolated}/t10k-labels-idx1-ubyte.gz: No space" in load().notice
    assert os.listdir(isolated) == []


def test_no_mirror_works(isolated):
    loaded = load()
    assert loaded.name == "scikit-learn digits"
    assert "\n" not in loaded.notice
    for part in ("MNIST was not found", str(isolated), "s3.amazonaws.com: unreachable", "1,797"):
        assert part in loaded.notice
    refusal = message(load, name="mnist")
    assert "MNIST was not found" in refusal and "storage.googleapis.com: unreach" in refusal


def test_downloading_is_off(monkeypatch):
    requests = serve(monkeypatch, {})
    assert "(downloading is off)" in load(download=False).notice
    assert "(downloading is off)" in message(load, name="mnist", download=False)
    assert not requests


def test_unusable_cache(isolated):
    isolated.parent.mkdir()
    isolated.write_text("a file where the folder should be")
    assert f"cannot write to {isolated}: File exists" in load().notice


def test_unreadable_cache(isolated, monkeypatch):
    isolated.mkdir(parents=True)
    monkeypatch.setattr(os, "listdir", deny)
    assert f"cannot read the folder {isolated}: Permission denied" in load().notice


class Downloader:
    """Stands for pooch's client."""

    content, error, wait = b"abc", None, threading.Event()

    def __init__(self, timeout):
        assert timeout == (mnist.CONNECT_TIMEOUT, mnist.READ_TIMEOUT)

    def __call__(self, url, output, pooch):
        if self.error:
            raise self.error
        if url == "slow":
            self.wait.wait(20)
        output.write(self.content)


def test_fetch(monkeypatch):
    monkeypatch.setattr("pooch.HTTPDownloader", Downloader)
    assert fetch("quick", 20) == b"abc"
    assert message(fetch, "slow", 0.01) == "no answer within 0.01 s"
    Downloader.wait.set()
    monkeypatch.setattr(Downloader, "error", ConnectionError("a long\nstory"))
    assert message(fetch, "quick", 20) == "ConnectionError"
    refused = OSError()
    refused.response = type("Response", (), {"status_code": 403})()
    monkeypatch.setattr(Downloader, "error", refused)
    assert message(fetch, "quick", 20) == "HTTP 403"


# Known data


def test_embedded_digits():
    first, second = load(name="digits"), load(name="digits")
    assert first.name == "scikit-learn digits" and "embedded" in first.source
    assert (first.n_classes, first.similar_labels, first.notice) == (10, (1, 7), "")
    assert first.train_images.shape == (1442, 29, 29) and first.test_images.shape == (355, 29, 29)
    for images in (first.train_images, first.test_images):
        assert images.dtype == np.float32 and images.flags.c_contiguous
        assert (images.min(), images.max()) == (-1, 1)
        margin = np.ones((29, 29), bool)
        margin[4:25, 4:25] = False
        assert np.all(images[:, margin] == dataset.BACKGROUND)
    shares = np.bincount(first.test_labels) / np.bincount(first.train_labels)
    assert np.all((shares > 0.23) & (shares < 0.26))
    np.testing.assert_array_equal(first.train_images, second.train_images)
    np.testing.assert_array_equal(first.test_labels, second.test_labels)


# Held-out images


def test_hold_out():
    whole = load(name="digits")
    part = whole.hold_out(400)
    assert (len(part.train_images), len(part.test_images), part.held_out) == (1042, 400, 400)
    assert (part.name, part.similar_labels) == (whole.name, whole.similar_labels)
    for name in ("images", "labels"):
        both = [getattr(part, f"{kind}_{name}") for kind in ("train", "test")]
        np.testing.assert_array_equal(np.concatenate(both), getattr(whole, f"train_{name}"))


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (0, "expected 1 to 1,441"),
        (-1, "expected 1 to 1,441"),
        (1442, "expected 1 to 1,441"),
        (1441, "with the label 1: expected fewer"),
    ],
)
def test_hold_out_too_many(n, expected):
    found = message(load(name="digits").hold_out, n)
    assert found.startswith(f"{n:,} training images to hold out") and expected in found


def test_hold_out_says_why_there_are_so_few():
    assert "1,441 (MNIST was not found" in message(load().hold_out, 10_000)


def test_hold_out_twice_or_a_class():
    whole = load(name="digits")
    assert "none, as some are already" in message(whole.hold_out(10).hold_out, 10)
    labels = np.zeros_like(whole.train_labels)
    one_class = dataclasses.replace(whole, train_labels=labels)
    assert "leave none with a second class" in message(one_class.hold_out, 10)


@pytest.mark.skipif(not REAL_MNIST, reason="MLPCORE_DATA is not set")
def test_real_mnist():
    loaded = load(REAL_MNIST, name="mnist")
    assert (loaded.name, loaded.n_classes, loaded.similar_labels) == ("MNIST", 10, (1, 7))
    assert loaded.train_images.shape == (60000, 29, 29)
    assert loaded.test_images.shape == (10000, 29, 29)
    assert (loaded.train_images.min(), loaded.train_images.max()) == (-1, 1)
    assert loaded.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert loaded.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    # The mean of the training pixels, 33.3184 of 255, hardly changes with the size.
    assert abs(loaded.train_images.mean(dtype=float) - (33.3184 / 127.5 - 1)) < 0.03
