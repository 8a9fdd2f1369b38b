"""Times and numbers with three significant digits."""

from __future__ import annotations

import math


def short_time(seconds: float) -> str:
    """A measured time with three digits: 37.2 µs."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    # 0.9995 of a unit and more are 1.00 with three digits.
    unit, size = next((each for each in units if seconds >= 0.9995 * each[1]), units[-1])
    return f"{digits(seconds / size)} {unit}"


def digits(value: float) -> str:
    """A number with three significant digits, or all before the point, without an exponent."""
    if value <= 0:
        return "0"
    rounded = float(f"{value:.3g}")
    places = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{rounded if places else value:,.{min(places, 4)}f}"
