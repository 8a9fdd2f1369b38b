"""Checks of single values. Each raises an InputError that names the value and what was expected."""

from __future__ import annotations

import numbers
import reprlib
from typing import Any

import numpy as np

from mlpcore.errors import InputError


def check_real(name: str, value: object) -> None:
    """Check that `value` is a real number."""
    if type(value) is float:  # others take ten times as long to check
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} {reprlib.repr(value)}: expected a number")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Check that `value` is one of the names in `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} {reprlib.repr(value)}: expected {' or '.join(choices)}")


def check_whole(name: str, value: Any, low: int, high: int) -> None:
    """Check that `value` is a whole number from `low` to `high`."""
    whole = type(value) is int  # others take ten times as long to check
    whole = whole or (isinstance(value, numbers.Integral) and not isinstance(value, bool))
    if not whole or not low <= value <= high:
        found = reprlib.repr(value)
        raise InputError(f"{name} {found}: expected a whole number from {low} to {high:,}")


def check_rate(name: str, value: Any) -> None:
    """Check that `value` is a learning rate."""
    check_real(name, value)
    limits = np.finfo(np.float32)  # the backends compute in float32, where 1e-50 is 0
    if not float(limits.smallest_subnormal) <= value <= float(limits.max):
        raise InputError(f"{name} {value}: expected a positive and finite number")
