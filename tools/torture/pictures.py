"""Damaged pictures of all kinds, PNG with checksums that fit, and some that are slow to decode."""

from __future__ import annotations

import functools
import io
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw

from torture import Result, forked
from torture.judge import fault, repeat
from torture.values import damaged

KINDS: dict[str, tuple[tuple[str, dict[str, object]], ...]] = {
    "PNG": (("L", {}), ("RGBA", {}), ("P", {}), ("1", {}), ("I;16", {})),
    "JPEG": (("L", {}), ("RGB", {"progressive": True}), ("CMYK", {})),
    "GIF": (("P", {}),),
    "BMP": (("L", {}), ("RGB", {}), ("1", {})),
    "TIFF": (
        ("L", {}),
        ("RGB", {"compression": "tiff_lzw"}),
        ("L", {"compression": "tiff_adobe_deflate"}),
        ("1", {"compression": "group4"}),
        ("F", {}),
        ("RGB", {"compression": "jpeg"}),
    ),
    "WEBP": (("RGB", {}), ("RGBA", {"lossless": True})),
    "PPM": (("L", {}), ("RGB", {}), ("1", {})),
}


@functools.cache
def sound() -> list[tuple[str, bytes]]:
    """A picture of a digit in every kind of file."""
    picture = Image.new("L", (60, 80), 230)
    ImageDraw.Draw(picture).line([(30, 10), (28, 70)], fill=20, width=6)
    result = []
    for kind, variants in KINDS.items():
        for mode, settings in variants:
            content = io.BytesIO()
            picture.convert("I;16" if mode == "I;16" else mode).save(content, kind, **settings)
            result.append((f"{kind} {mode}", content.getvalue()))
    return result


def resigned(content: bytes) -> bytes:
    """A damaged PNG file whose chunks have the checksums of their new content."""
    parts, place = [content[:8]], 8
    while place + 12 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        part = content[place + 4 : place + 8 + length]
        parts.append(content[place : place + 8 + length])
        parts.append(struct.pack(">I", zlib.crc32(part)))
        place += 12 + length
    return b"".join(parts)


def many_scans(rng: random.Random) -> bytes:
    """A progressive JPEG that repeats its last scan thousands of times."""
    content = io.BytesIO()
    Image.new("L", (3000, 3000), 255).save(content, "JPEG", progressive=True)
    picture = content.getvalue()
    scan = picture[picture.rfind(b"\xff\xda") : -2]
    return picture[:-2] + scan * rng.randrange(1000, 10_000) + b"\xff\xd9"


def padded(rng: random.Random) -> bytes:
    """A JPEG with millions of bytes 0xFF before a marker."""
    content = io.BytesIO()
    Image.new("L", (8, 8)).save(content, "JPEG")
    return b"\xff\xd8" + b"\xff" * rng.randrange(10**7, 6 * 10**7) + content.getvalue()[2:]


def many_chunks(rng: random.Random) -> bytes:
    """A PNG with millions of chunks that mean nothing."""
    content = io.BytesIO()
    Image.new("L", (28, 28), 255).save(content, "PNG")
    picture = content.getvalue()
    chunk = struct.pack(">I4sI", 0, b"abCd", zlib.crc32(b"abCd"))
    return picture[:33] + chunk * rng.randrange(10**6, 5 * 10**6) + picture[33:]


def run_lengths(rng: random.Random) -> bytes:
    """A BMP of one pixel a run."""
    side = rng.randrange(3000, 7000)
    body = (b"\x01\x05" * side + b"\x00\x00") * side
    body = body[: 60 * 2**20]
    offset = 54 + 1024
    header = struct.pack("<2sIHHI", b"BM", offset + len(body), 0, 0, offset)
    header += struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, len(body), 1, 1, 256, 256)
    return header + bytes(1024) + body


#: Files of up to 64 MB that decoders would take minutes for.
SLOW: tuple[Callable[[random.Random], bytes], ...] = (
    many_scans,
    padded,
    many_chunks,
    run_lengths,
)


def judged(name: str, content: bytes, folder: Path) -> str:
    """What is wrong with how a picture is read."""
    (folder / "picture").write_bytes(content)
    problem = fault(forked.call("predict", "picture", folder=folder))
    return f"{name}: {problem}" if problem else ""


def attempt(rng: random.Random, folder: Path) -> str:
    """A damaged picture; a slow one every hundredth time."""
    if rng.random() < 0.01:
        slow = rng.choice(SLOW)
        return judged(slow.__name__, slow(rng), folder)
    name, content = rng.choice(sound())
    content = damaged(rng, content)
    if name.startswith("PNG") and rng.random() < 0.7:
        content = resigned(content)
    return judged(name, content, folder)


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    return repeat(attempt, seconds, seed)
