"""Values that a hostile file may hold where a number, a name or a list is expected."""

from __future__ import annotations

import math
import random
from typing import Any

TEXTS = (
    "",
    "0",
    "-1",
    "nan",
    "1e999",
    "1" * 5000,
    "x" * 100_000,
    "\x1b[31m\x1b]0;title\x07",
    "one\ntwo\r\nthree",
    "\u202eback\u2028wards",
    "²",
    "1,2,3",
    "{}",
    "[" * 20_000,
    "$\\frac{1}$",
    "../../../etc",
)

VALUES: tuple[Any, ...] = (
    *TEXTS,
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**40,
    2**64,
    10**400,
    0.5,
    -0.0,
    1e308,
    math.nan,
    math.inf,
    [],
    {},
    [[]],
    ["a"] * 1000,
    [1] * 1000,
)


def damaged(rng: random.Random, content: bytes) -> bytes:
    """Some bytes with a part changed, cut off, doubled, or put elsewhere."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        begin = rng.randrange(len(content) + 1)
        end = min(len(content), begin + rng.choice((1, 1, 2, 4, 30, 1000)))
        part = content[begin:end]
        kind = rng.randrange(6)
        if kind == 0:
            content = content[:begin]
        elif kind == 1:
            content = content[:begin] + rng.randbytes(len(part)) + content[end:]
        elif kind == 2:
            content = content[:begin] + bytes([rng.choice((0, 1, 127, 128, 255))]) * len(part)
            content += content[end:]
        elif kind == 3:
            content = content[:end] + part * rng.choice((1, 50)) + content[end:]
        elif kind == 4:
            content = content[:begin] + content[end:]
        else:
            flipped = bytearray(content)
            for _ in range(rng.randrange(1, 20)):
                if flipped:
                    flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            content = bytes(flipped)
    return content


def changed(rng: random.Random, value: Any) -> Any:
    """A value of JSON with one hostile part somewhere, or with a part left out or added."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        if rng.random() < 0.1:
            return value | {rng.choice(TEXTS): rng.choice(VALUES)}
        return value | {key: changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.5:
        place = rng.randrange(len(value))
        return [*value[:place], changed(rng, value[place]), *value[place + 1 :]]
    return rng.choice(VALUES)
