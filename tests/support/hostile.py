"""Strategies of Hypothesis for damaged bytes, and for JSON with one value that nobody expects."""

import math

from hypothesis import strategies as st

TEXTS = (
    *("", "0", "-1", "nan", "1e999", "1" * 5000, "x" * 100_000, "\x1b[31m\x1b]0;title\x07"),
    *("one\ntwo\r\nthree", "\u202eback\u2028wards", "²", "1,2,3", "{}", "[" * 20_000),
    *("$\\frac{1}$", "../../../etc"),
)

VALUES = (
    *(None, True, -1, 0, 1, 2**31, 2**40, 2**64, 10**400, 0.5, -0.0, 1e308, math.nan, math.inf),
    *([], {}, [[]], ["a"] * 1000, [1] * 1000, *TEXTS),
)

#: Lengths of damaged parts.
LENGTHS = st.sampled_from([1, 2, 4, 30, 1000])


@st.composite
def damaged(draw, content):
    """Bytes of which a part is cut off, changed, doubled or left out, up to three times."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(content)))
        n = min(draw(LENGTHS), len(content) - begin)
        old, rest = content[begin : begin + n], content[begin + n :]
        parts = [b"", old * 2, old * 50, b"\0" * n, b"\x7f" * n, b"\xff" * n]
        new = draw(st.binary(min_size=n, max_size=n) | st.sampled_from(parts))
        content = content[:begin] + new + draw(st.sampled_from([rest, b""]))
    return content


def changed(value):
    """JSON with one other value somewhere, or with a field too few or too many."""
    anything = st.sampled_from(VALUES)
    if isinstance(value, dict) and value:
        names = st.sampled_from(sorted(value))
        within = names.flatmap(
            lambda name: changed(value[name]).map(lambda new: value | {name: new})
        )
        fewer = names.map(lambda name: {each: value[each] for each in value if each != name})
        more = st.tuples(st.sampled_from(TEXTS), anything).map(lambda field: value | dict([field]))
        return within | within | within | fewer | more | anything
    if isinstance(value, list) and value:
        places = st.integers(0, len(value) - 1)
        return anything | places.flatmap(
            lambda i: changed(value[i]).map(lambda new: [*value[:i], new, *value[i + 1 :]])
        )
    return anything
