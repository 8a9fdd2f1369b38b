"""Pictures of digits: read with distrust, brought to MNIST's format."""

import contextlib
import io
import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import pictures
from mlpcore import InputError, backends, dataset
from mlpcore.data import idx
from mlpcore.data import pictures as image_files
from mlpcore.data import scaling as images
from mlpcore.data.digit import normalise_digit, read_digit
from mlpcore.data.pictures import MAX_FILE_BYTES, MAX_PIXELS, read_grey
from mlpcore.errors import shown
from mlpcore.network import Network

#: The embedded digits' test set, as light ink on dark ground.
DIGITS = pictures.as_bytes((dataset.load(name="digits").test_images + 1) * 127.5)


def box(pixels, threshold=90):
    """First row, last row, first column and last column of what is brighter."""
    rows, columns = np.nonzero(pixels > threshold)
    return rows.min(), rows.max(), columns.min(), columns.max()


def centre_of_mass(pixels):
    y, x = np.mgrid[:28, :28]
    return np.sum(y * pixels) / pixels.sum(), np.sum(x * pixels) / pixels.sum()


def difference(a, b):
    """Sum of the absolute differences of two digits, in shares of the ink.

    Another one is at 1 or so, the same one pixel off at 0.3 or more.
    """
    a, b = a.astype(float), b.astype(float)
    return np.abs(a - b).sum() / max(a.sum(), b.sum())


def difference_nearby(a, b):
    """The least `difference` of digits a pixel off, which a centre of mass between two may be."""
    shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    return min(difference(np.roll(a, shift, (0, 1)), b) for shift in shifts)


#: Ink that uneven light and JPEG may add to a digit or take from it. The embedded digits have
#: wide grey edges, which a shadow's edge cuts by up to 0.23.
LEFT_OVER = 0.25

# The format


@pytest.mark.parametrize("name", list(pictures.photographs(DIGITS[0], np.random.default_rng(0))))
def test_every_picture_is_in_the_box_and_centred(name):
    rng = np.random.default_rng(1)
    for digit in DIGITS[:8]:
        pixels = normalise_digit(pictures.photographs(digit, rng)[name])
        assert (pixels.shape, pixels.dtype, pixels.max()) == ((28, 28), np.uint8, 255)
        top, bottom, left, right = box(pixels, 25)
        longer = max(bottom - top, right - left) + 1
        assert 17 <= longer <= 20  # an edge of noise or of a blur may be fainter than the rest
        # To the nearest pixel; rounding to bytes moves it by less than a hundredth.
        assert np.abs(np.subtract(centre_of_mass(pixels), 14)).max() <= 0.51


def test_the_aspect_ratio_is_kept():
    ring = np.zeros((200, 200))
    ring[20:180, 60:140] = 255  # 160 high, 80 wide
    ring[40:160, 80:120] = 0
    top, bottom, left, right = box(normalise_digit(ring))
    assert (bottom - top + 1, right - left + 1) == (20, 10)


def test_edges_are_grey():
    y, x = np.mgrid[:300, :300]
    ring = np.abs(np.hypot(y - 150, x - 150) - 90) < 12
    levels = np.unique(normalise_digit(255.0 * ring))
    assert len(levels) > 20


def flag(side):
    """A pole with a square of some side at its top."""
    image = np.zeros((100, 100))
    image[10:90, 20:26] = 255
    image[10 : 10 + side, 26 : 26 + side] = 255
    return normalise_digit(image)


def test_a_centre_of_mass_off_the_middle_of_the_box():
    pixels = flag(14)
    assert np.abs(np.subtract(centre_of_mass(pixels), 14)).max() <= 0.51
    top, bottom, _, _ = box(pixels)
    assert (top, bottom) == (7, 26)  # not 4, 23


def test_the_digit_stays_inside_the_image():
    pixels = flag(34)
    top, bottom, _, _ = box(pixels)
    assert (top, bottom) == (8, 27)
    assert centre_of_mass(pixels)[0] < 13.5  # one more pixel would be right


def test_normalising_again_changes_little():
    for digit in DIGITS[:20]:
        once = normalise_digit(pictures.enlarged(digit))
        assert difference_nearby(normalise_digit(once), once) < 0.1  # of contrast


@pytest.mark.parametrize("name", ["inverted", "gradient", "shadow", "off-centre", "jpeg"])
def test_what_is_no_ink_leaves_no_trace(name):
    for digit in DIGITS[:10]:
        found = pictures.photographs(digit, np.random.default_rng(2))
        expected = normalise_digit(found["enlarged"])
        assert difference_nearby(normalise_digit(found[name]), expected) < LEFT_OVER


def test_dirt_is_left_out():
    clean = pictures.written(pictures.enlarged(DIGITS[3]))
    dirty = clean.copy()
    dirty[2:5, 2:5] = dirty[-4:-2, 5:9] = pictures.INK
    assert difference(normalise_digit(dirty), normalise_digit(clean)) < 0.01


def test_dirt_inside_a_digit_is_left_out():
    y, x = np.mgrid[:200, :200]
    ring = 255.0 * (np.abs(np.hypot(y - 100, x - 100) - 70) < 10)
    speck = ring.copy()
    speck[97:104, 97:104] = 255
    assert np.array_equal(normalise_digit(speck), normalise_digit(ring))


def test_a_slope_of_light_up_to_the_border_is_no_ink():
    for digit in DIGITS[:5]:
        faint = pictures.written(pictures.enlarged(digit), 210, 160)
        expected = normalise_digit(faint)
        sloping = normalise_digit(pictures.lit(faint, 0.6))
        assert difference_nearby(sloping, expected) < LEFT_OVER


BLANK = {
    "white": np.full((40, 30), 255.0),
    "black": np.zeros((40, 30)),
    "gradient": pictures.lit(np.full((80, 90), 200.0)),
    "vignette": pictures.vignetted(np.full((80, 90), 200.0)),
    "noise": pictures.noisy(np.full((80, 90), 200.0), np.random.default_rng(0)),
    "faint": pictures.written(pictures.enlarged(DIGITS[0]), 200, 185),
}


@pytest.mark.parametrize("name", list(BLANK))
def test_a_picture_without_a_digit(name):
    with pytest.raises(InputError, match=r"^no digit found, expected one that stands out"):
        normalise_digit(BLANK[name])


@pytest.mark.parametrize("shape", [(7, 100), (100, 7), (1, 1)])
def test_a_picture_too_small(shape):
    with pytest.raises(InputError, match=f"^{shape[1]} x {shape[0]} pixels, expected a digit"):
        normalise_digit(np.zeros(shape))


@given(st.integers(0, 2**32), st.integers(8, 60), st.integers(8, 60))
@settings(max_examples=50)
def test_any_numbers_are_a_digit_or_none(seed, height, width):
    rng = np.random.default_rng(seed)
    image = rng.choice([0.0, 255.0, rng.uniform(0, 255)], (height, width))
    with warnings.catch_warnings(), contextlib.suppress(InputError):
        warnings.simplefilter("error")
        assert normalise_digit(image).max() == 255


# The real MNIST


@pytest.fixture(scope="module")
def mnist():
    """1,000 test digits with their labels, and a network that saw 20,000 training ones twice."""
    folder = os.environ.get("MLPCORE_DATA")
    if not folder:
        pytest.skip("MLPCORE_DATA does not name the real MNIST")
    data = dataset.load(folder)
    if data.name != "MNIST":
        pytest.skip("MLPCORE_DATA does not hold the real MNIST")
    backend, network = backends.get("scalar", 1), Network((841, 64, 10), seed=1)
    order = np.arange(20_000, dtype=np.int32)
    flat = data.train_images[:20_000].reshape(-1, 841)
    for _ in range(2):
        backend.train(network, flat, data.train_labels[:20_000], order, 0.005)
    test = dataset.FILES[2]
    name = next(name for name in os.listdir(folder) if name.startswith(test))
    return idx.read_idx(os.path.join(folder, name))[:1000], data.test_labels[:1000], network


def test_mnists_own_digits_stay_what_they_are(mnist, tmp_path):
    digits, labels, network = mnist
    path = tmp_path / "digit.png"
    found = []
    for digit in digits:
        path.write_bytes(pictures.encoded(digit))
        found.append(read_digit(path))
    found = np.array(found)
    # The published files are centred on pixel (14, 14) in boxes of 20 pixels. Where they are
    # found there, nothing is scaled; where the centre is about half way between two pixels,
    # the faint edges that are cut off decide.
    pairs = list(zip(found, digits))
    assert np.mean([difference_nearby(a, b) > 0.1 for a, b in pairs]) < 0.02
    assert np.mean([difference(a, b) > 0.1 for a, b in pairs]) < 0.08
    backend = backends.get("scalar", 1)

    def errors(pixels):
        inputs = images.resize(images.normalise(pixels), 29, 29).reshape(-1, 841)
        return backend.count_errors(network, inputs, labels)

    # Few guesses change, in both directions: 368 errors instead of 365 of all 10,000
    # for a network of 300-100. Of 1,000, one in a hundred is beyond chance.
    assert abs(errors(found) - errors(digits)) <= 10
    assert errors(found) < 150


# Files


def same_picture(path, content):
    """The digit in a file of such content, compared with that of the plain grey picture."""
    path.write_bytes(content)
    plain = normalise_digit(pictures.written(pictures.enlarged(DIGITS[5])))
    return difference(read_digit(path), plain)


GREY = pictures.as_bytes(pictures.written(pictures.enlarged(DIGITS[5])))
INK = pictures.as_bytes(pictures.enlarged(DIGITS[5]))


def with_alpha(ink_level):
    """Ink of one brightness on nothing."""
    return Image.merge("LA", [Image.new("L", INK.shape[::-1], ink_level), Image.fromarray(INK)])


def cut_out():
    """A round sheet of paper on nothing, wide enough for the digit."""
    y, x = np.mgrid[: GREY.shape[0], : GREY.shape[1]]
    middle = (GREY.shape[0] - 1) / 2
    sheet = 255 * (np.hypot(y - middle, x - middle) <= 1.1 * middle)
    grey = np.where(sheet, GREY, 0)
    return Image.merge("LA", [Image.fromarray(pictures.as_bytes(part)) for part in (grey, sheet)])


MODES = {
    "grey": (Image.fromarray(GREY), "PNG"),
    "colour": (Image.fromarray(GREY).convert("RGB"), "PNG"),
    "palette": (Image.fromarray(GREY).convert("P"), "GIF"),
    "opaque": (Image.fromarray(GREY).convert("RGBA"), "PNG"),
    "cut out": (cut_out().convert("RGBA"), "PNG"),
    "cut out, grey": (cut_out(), "PNG"),
    "dark on nothing": (with_alpha(0), "PNG"),
    "light on nothing": (with_alpha(255).convert("RGBA"), "PNG"),
    "16 bits": (Image.fromarray(GREY.astype(np.uint16) * 257), "PNG"),
    "16 bits, TIFF": (Image.fromarray(GREY.astype(np.uint16) * 257), "TIFF"),
    "32 bits": (Image.fromarray(GREY.astype(np.int32) * 2**23), "TIFF"),
    "real numbers": (Image.fromarray(GREY.astype(np.float32) / 255), "TIFF"),
    "four inks": (Image.fromarray(GREY).convert("CMYK"), "JPEG"),
    "JPEG": (Image.fromarray(GREY).convert("RGB"), "JPEG"),
    "BMP": (Image.fromarray(GREY), "BMP"),
    "PPM": (Image.fromarray(GREY), "PPM"),
    "WebP": (Image.fromarray(GREY).convert("RGB"), "WEBP"),
}


@pytest.mark.parametrize("name", list(MODES))
def test_every_kind_of_picture(name, tmp_path):
    image, kind = MODES[name]
    # Lossy files, and inks without paper whose contrast is another, differ a little.
    assert same_picture(tmp_path / "picture", pictures.encoded(image, kind)) < 0.1


def test_black_and_white(tmp_path):
    image = Image.fromarray(GREY).point(lambda value: 255 * (value > 130)).convert("1")
    assert same_picture(tmp_path / "picture", pictures.encoded(image)) < 0.3


def test_a_large_picture_is_reduced(tmp_path):
    large = Image.fromarray(GREY).convert("RGB").resize((3000, 3000), Image.Resampling.BICUBIC)
    assert same_picture(tmp_path / "picture.jpg", pictures.encoded(large, "JPEG")) < 0.1
    assert max(read_grey(tmp_path / "picture.jpg").shape) < 2 * image_files.REDUCED_SIDE
    assert same_picture(tmp_path / "picture.png", pictures.encoded(large)) < 0.1
    assert max(read_grey(tmp_path / "picture.png").shape) < 2 * image_files.REDUCED_SIDE


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_camera_held_otherwise(orientation, tmp_path):
    """The file holds the upright picture turned back, and says how."""
    turned_back = [
        lambda a: a, np.fliplr, lambda a: a[::-1, ::-1], np.flipud,
        np.transpose, lambda a: np.rot90(a), lambda a: a[::-1, ::-1].T, lambda a: np.rot90(a, -1),
    ]  # fmt: skip
    upright = GREY[:, :90]
    stored = np.ascontiguousarray(turned_back[orientation - 1](upright))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "photo.png"
    path.write_bytes(pictures.encoded(Image.fromarray(stored), "PNG", exif=exif))
    assert np.array_equal(read_grey(path), upright)


def test_the_second_picture_of_a_camera_is_left_alone(tmp_path):
    main, depth = Image.fromarray(GREY), Image.new("L", (20, 20))
    content = pictures.encoded(main, "MPO", save_all=True, append_images=[depth], quality=95)
    assert same_picture(tmp_path / "photo.jpg", content) < 0.1


# What is refused


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_digit(path)
    message = str(caught.value)
    assert "\n" not in message
    assert shown(path) in message
    assert "expected" in message
    return message


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "WEBP", "PNG"])
def test_several_pictures(kind, tmp_path):
    first, second = Image.fromarray(GREY), Image.fromarray(255 - GREY)
    path = tmp_path / "pages"
    path.write_bytes(pictures.encoded(first, kind, save_all=True, append_images=[second]))
    assert "holds several pictures" in refusal(path)


def test_other_things_than_pictures(tmp_path):
    assert "No such file" in refusal(tmp_path / "missing.png")
    assert "is a folder" in refusal(tmp_path)
    (tmp_path / "empty.png").touch()
    assert "is empty" in refusal(tmp_path / "empty.png")
    (tmp_path / "text.png").write_text("a digit")
    assert "not a picture of a known kind" in refusal(tmp_path / "text.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert "not a regular file" in refusal(tmp_path / "pipe.png")
    (tmp_path / "line\nfeed.png").touch()
    refusal(tmp_path / "line\nfeed.png")
    assert "zero byte" in refusal(tmp_path / "a\0b.png")


def test_decoders_that_start_programs_are_not_asked(tmp_path):
    (tmp_path / "page.eps").write_bytes(pictures.encoded(Image.fromarray(GREY), "EPS"))
    assert "not a picture of a known kind" in refusal(tmp_path / "page.eps")


def test_too_little_memory_is_not_the_pictures_fault(tmp_path, monkeypatch):
    def exhausted(content):
        raise MemoryError

    (tmp_path / "digit.png").write_bytes(pictures.encoded(Image.fromarray(GREY)))
    monkeypatch.setattr(image_files, "_decode", exhausted)
    with pytest.raises(MemoryError):
        read_grey(tmp_path / "digit.png")


def test_a_file_without_a_digit(tmp_path):
    (tmp_path / "blank.png").write_bytes(pictures.encoded(BLANK["noise"]))
    assert "blank.png: no digit found" in refusal(tmp_path / "blank.png")


def test_values_that_are_not_finite(tmp_path):
    values = GREY.astype(np.float32)
    values[3, 3] = np.nan
    (tmp_path / "real.tiff").write_bytes(pictures.encoded(Image.fromarray(values), "TIFF"))
    assert "not finite" in refusal(tmp_path / "real.tiff")


def test_a_file_too_long(tmp_path):
    path = tmp_path / "long.png"
    path.touch()
    os.truncate(path, MAX_FILE_BYTES + 1)  # takes no room on the disk
    assert f"{MAX_FILE_BYTES + 1:,} bytes" in refusal(path)


def png(width, height, data=b""):
    """A PNG file of so many pixels according to its header."""

    def chunk(name, content):
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(data)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def patched(image_kind, old, new):
    """A small file whose size, packed as `old`, is replaced."""
    content = pictures.encoded(Image.new("L", (321, 123)), image_kind)
    assert old in content
    return content.replace(old, new, 1)


BOMBS = {
    "PNG": png(60_000, 60_000),
    "PNG, beyond Pillow's limits": png(2**31 - 1, 2**31 - 1),
    "PNG, just beyond ours": png(MAX_PIXELS // 1024 + 1, 1024),
    "BMP": patched("BMP", struct.pack("<ii", 321, 123), struct.pack("<ii", 50_000, 50_000)),
    "GIF": patched("GIF", struct.pack("<HH", 321, 123), struct.pack("<HH", 65_535, 65_535)),
    "JPEG": patched("JPEG", struct.pack(">HH", 123, 321), struct.pack(">HH", 65_500, 65_500)),
    "PPM": patched("PPM", b"321 123", b"90000 90000"),
}


@pytest.mark.parametrize("name", list(BOMBS))
def test_a_header_that_announces_too_many_pixels(name, tmp_path):
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name])
    assert "is too large: " in refusal(path)


LIMITED = """
import resource, sys
from pathlib import Path
from mlpcore import InputError
from mlpcore.data.digit import read_digit
from mlpcore.cpu import total_memory
with open("/proc/self/statm") as file:
    begun = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (begun + int(sys.argv[1]),) * 2)
for name in sys.argv[2:]:
    try:
        read_digit(Path(name))
        print("read")
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_memory_is_bounded(tmp_path):
    """1.5 GiB are enough for the largest picture, and a tenth of that for all that is refused."""
    (tmp_path / "largest.png").write_bytes(
        pictures.encoded(Image.new("RGBA", (8192, 8192)), compress_level=1)
    )
    for number, content in enumerate(BOMBS.values()):
        (tmp_path / f"{number}.bomb").write_bytes(content)
    webp = bytearray(pictures.encoded(Image.new("RGB", (321, 123)), "WEBP", lossless=True))
    start = webp.index(b"VP8L") + 9
    webp[start : start + 4] = struct.pack("<I", (16_383 - 1) | (16_383 - 1) << 14)
    (tmp_path / "webp.bomb").write_bytes(webp)

    def lines(limit, *names):
        command = [sys.executable, "-c", LIMITED, str(limit), *names]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    bombs = sorted(path.name for path in tmp_path.glob("*.bomb"))
    refused = lines(150 * 2**20, *bombs)
    assert len(refused) == len(BOMBS) + 1
    assert all("expected" in line for line in refused)
    assert "no digit found" in lines(1536 * 2**20, "largest.png")[0]


SMALL = Image.fromarray(pictures.as_bytes(pictures.written(pictures.enlarged(DIGITS[5], 40))))
ORIGINALS = [
    pictures.encoded(SMALL, kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM")
] + [
    pictures.encoded(SMALL.convert("RGBA"), "PNG"),
    pictures.encoded(SMALL, "TIFF", compression="tiff_lzw"),
    pictures.encoded(SMALL.convert("RGB"), "WEBP"),
]


@st.composite
def damaged_files(draw):
    """Files that are cut off, have bits flipped or bytes put in, mostly near their beginning."""
    content = bytearray(draw(st.sampled_from(ORIGINALS)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, min(len(content), draw(st.sampled_from([64, 10**6]))) - 1))
        content[place] ^= draw(st.integers(1, 255))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(content)))
        content[place:place] = draw(st.binary(max_size=8))
    return bytes(content[: draw(st.one_of(st.none(), st.integers(1, len(content))))])


@pytest.fixture(scope="module")
def damaged_path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "picture"


@given(damaged_files())
@settings(max_examples=400)
def test_damaged_files_are_digits_or_one_line(damaged_path, content):
    damaged_path.write_bytes(content)
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            pixels = read_digit(damaged_path)
            assert (pixels.shape, pixels.dtype) == ((28, 28), np.uint8)
        except InputError as error:
            assert str(error).isprintable()
            assert str(damaged_path) in str(error)
    assert errors.getvalue() == ""
