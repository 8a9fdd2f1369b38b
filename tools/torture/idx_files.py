"""Data in damaged IDX and .npz files: wrong headers, wrong lengths, gzip that never ends."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zlib
from pathlib import Path

import numpy as np

from mlpcore.data.folder import FILES
from mlpcore.typing import AnyArray
from torture import Result, forked
from torture.judge import fault, repeat
from torture.values import TEXTS, damaged

SIZES = (0, 1, 2, 28, 1024, 1025, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1)

COMMANDS = (
    "train --data data --arch 3 --epochs 1 --threads 1 --out run",
    "preview --data data --rows 2 --columns 2 --threads 1",
)


def idx(array: AnyArray, sizes: tuple[int, ...] = ()) -> bytes:
    """An IDX file; `sizes` replace those of the array in the header."""
    magic = {1: 0x801, 3: 0x803}[array.ndim]
    sizes = sizes or array.shape
    return struct.pack(f">{1 + len(sizes)}I", magic, *sizes) + array.tobytes()


def arrays(rng: random.Random) -> list[AnyArray]:
    """Small images and labels for training and test."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    result: list[AnyArray] = []
    for n in (30, 12):
        result.append(numbers.integers(0, 256, (n, 6, 5), dtype=np.uint8))
        result.append((np.arange(n) % 3).astype(np.uint8))
    return result


def bomb(rng: random.Random) -> bytes:
    """A short gzip file that keeps the promise of a large header: zeros, up to 1 GiB."""
    n = 2 ** rng.randrange(10, 21)
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [compressor.compress(struct.pack(">4I", 0x803, n, 32, 32))]
    # The first part is enough: what is announced is refused, or read.
    parts += [compressor.compress(bytes(2**20)) for _ in range(min(n // 2**10, 64))]
    return b"".join([*parts, compressor.flush()])


def hostile_idx(rng: random.Random, data: Path) -> str:
    """Four files, of which one is hostile."""
    contents = [idx(each) for each in arrays(rng)]
    place, kind = rng.randrange(4), rng.choice(("bytes", "sizes", "gzip", "bomb", "labels", "long"))
    array = arrays(rng)[place]
    if kind == "bytes":
        contents[place] = damaged(rng, contents[place])
    elif kind == "sizes":
        sizes = [rng.choice((*SIZES, each)) for each in array.shape]
        contents[place] = idx(array, tuple(sizes))
    elif kind == "gzip":
        contents[place] = damaged(rng, gzip.compress(contents[place]))
    elif kind == "bomb":
        contents[place] = bomb(rng)
    elif kind == "labels":
        contents[1] = idx(np.full(30, rng.choice((0, 7, 255)), np.uint8))
    else:
        contents[place] += bytes(rng.choice((1, 2**20)))
    data.mkdir()
    for name, content in zip(FILES, contents):
        end = ".gz" if content[:2] == b"\x1f\x8b" else ""
        (data / f"{name}{end}").write_bytes(content)
    return kind


def hostile_npz(rng: random.Random, data: Path) -> str:
    """An archive of arrays with a hostile type, shape, name of a class, or byte."""
    x, y, x_test, y_test = arrays(rng)
    kind = rng.choice(("names", "values", "shapes", "bytes", "bytes"))
    fields: dict[str, AnyArray] = {"X": x, "y": y, "X_test": x_test, "y_test": y_test}
    if kind == "names":
        names = np.array([each[:3000] for each in rng.sample(TEXTS, 3)])
        fields |= {"y": names[y], "y_test": names[y_test]}
    elif kind == "values":
        values = x.astype(rng.choice((np.float32, np.float64)))
        values.flat[0] = rng.choice((np.nan, np.inf, 3e38, -1e-300))
        fields["X"] = values
    elif kind == "shapes":
        fields[rng.choice(list(fields))] = np.zeros(rng.choice(((), (0,), (1, 1, 1, 1), (30, 2))))
    content = io.BytesIO()
    np.savez_compressed(content, **fields)  # type: ignore[arg-type]
    written = content.getvalue()
    data.write_bytes(damaged(rng, written) if kind == "bytes" else written)
    return f"npz {kind}"


def attempt(rng: random.Random, folder: Path) -> str:
    """A command on hostile data."""
    npz = rng.random() < 0.3
    name = "data.npz" if npz else "data"
    kind = (hostile_npz if npz else hostile_idx)(rng, folder / name)
    argv = [name if word == "data" else word for word in rng.choice(COMMANDS).split()]
    problem = fault(forked.call(*argv, folder=folder))
    return f"{kind}, {' '.join(argv)}: {problem}" if problem else ""


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    return repeat(attempt, seconds, seed)
