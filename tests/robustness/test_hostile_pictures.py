"""Predictions of damaged pictures of all kinds, and of some that are slow to decode."""

import functools
import io
import struct
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

import forked
from hostile import damaged

#: Kinds of files, modes of their pixels, and options.
KINDS = [
    *(("PNG", mode, {}) for mode in ("L", "RGBA", "P", "1", "I;16")),
    *(("BMP", "RGB", {}), ("PPM", "L", {}), ("GIF", "P", {}), ("WEBP", "RGB", {})),
    *(("JPEG", "L", {}), ("JPEG", "RGB", {"progressive": True}), ("JPEG", "CMYK", {})),
    *(("TIFF", "F", {}), ("TIFF", "RGB", {"compression": "tiff_lzw"})),
    *(("TIFF", "1", {"compression": "group4"}), ("TIFF", "RGB", {"compression": "jpeg"})),
]


@functools.cache
def sound(i):
    """A picture of a digit in a kind of file."""
    kind, mode, options = KINDS[i]
    picture = Image.new("L", (60, 80), 230)
    ImageDraw.Draw(picture).line([(30, 10), (28, 70)], fill=20, width=6)
    return encoded(picture.convert(mode), kind, **options)


def encoded(picture, kind, **options):
    content = io.BytesIO()
    picture.save(content, kind, **options)
    return content.getvalue()


def resigned(content):
    """A damaged PNG file whose chunks have the checksums of their new content."""
    parts, place = [content[:8]], 8
    while place + 12 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        chunk = content[place + 4 : place + 8 + length]
        parts.append(content[place : place + 8 + length] + struct.pack(">I", zlib.crc32(chunk)))
        place += 12 + length
    return b"".join(parts)


@st.composite
def pictures(draw):
    i = draw(st.integers(0, len(KINDS) - 1))
    content = draw(damaged(sound(i)))
    return resigned(content) if KINDS[i][0] == "PNG" and draw(st.booleans()) else content


def called(command, folder, content):
    (folder / "picture").write_bytes(content)
    return forked.call(command, "picture", folder=folder)


@settings(max_examples=settings.default.max_examples // 2)
@given(command=st.sampled_from(["predict", "predict", "predict", "read"]), picture=pictures())
def test_a_command_works_or_refuses(warm_folder, command, picture):
    assert forked.fault(called(command, warm_folder, picture)) == ""


def test_a_picture_that_keeps_its_decoder_busy(warm_folder, monkeypatch):
    """A progressive JPEG repeats its last scan, which took half a minute and more.

    The clock is the processor's.
    """
    monkeypatch.setattr("mlpcore.data.image_files.MAX_SECONDS", 0.3)
    picture = encoded(Image.new("L", (3000, 3000), 255), "JPEG", progressive=True)
    scan = picture[picture.rfind(b"\xff\xda") : -2]
    outcome = called("predict", warm_folder, picture[:-2] + scan * 7000 + b"\xff\xd9")
    assert outcome.status == 2
    assert "keeps its decoder busy for more than 0.3 seconds" in outcome.err
