"""Checks of single values. Each raises an InputError that names the value and what was expected."""

import functools
import math
import numbers
import re
import sys
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from mlpcore.errors import InputError, brief, shown

LEAST_RATE, GREATEST_RATE = (
    float(limit) for limit in (np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max)
)
"""The backends compute in float32, where 1e-50 is 0."""

#: Kinds of NumPy's types that are real numbers.
NUMBERS = "buif"

Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=LEAST_RATE, le=GREATEST_RATE)]
"""A learning rate, or a factor of one."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record of JSON in a file: decoding checks types and bounds, and refuses unknown fields."""


def convert_fields(settings: Record) -> None:
    """Convert the fields of a record to their types, whose bounds are `msgspec.Meta`.

    NumPy's numbers become Python's, lists become tuples, and dictionaries become records. An
    InputError when a value is not of its type, or out of its bounds.
    """
    for name, kind, is_record in _fields(settings.__class__):
        value = getattr(settings, name)
        if kind is Any or (is_record and isinstance(value, kind)):
            continue
        try:
            result = msgspec.convert(_plain(value), kind)
        except msgspec.ValidationError as error:
            names = get_args(kind) if get_origin(kind) is Literal else ()
            words = str(error)
            for pattern, text in WORDS.items():
                words = re.sub(pattern, text, words)
            expected = kind.__name__ if is_record else " or ".join(names) or words
            label = name.replace("_", " ")
            raise InputError(f"{label} {brief(value)}: expected {expected}") from None
        msgspec.structs.force_setattr(settings, name, result)


WORDS = {
    f" >= {LEAST_RATE}": " above 0",
    "^Number out of range": "a number that float64 holds",
    " - at .*|, got .*|^Expected |`": "",
    r"\bint\b": "a whole number",
    r"\bfloat\b": "a number",
    r"\bstr\b": "text",
    r"\barray\b": "a list",
    " >= ": " of at least ",
    " <= ": " of at most ",
    " < ": " of less than ",
    r" \| null": "",
    r"\.0\b": "",
}
"""msgspec's messages in words: ``"Expected `int` >= 1"`` is a whole number of at least 1."""


@functools.cache
def _fields(settings: type[Record]) -> list[tuple[str, Any, bool]]:
    """The name and the type of each field, and whether this is a record."""
    hints = get_type_hints(settings, include_extras=True).items()
    return [
        (name, kind, isinstance(kind, type) and issubclass(kind, Record)) for name, kind in hints
    ]


def _plain(value: Any) -> Any:
    """A value of Python's own types; NaN and infinities are no numbers."""
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def check_real(name: str, value: object) -> None:
    """Check that `value` is a real number."""
    if type(value) is float:  # others take ten times as long to check
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} {brief(value)}: expected a number")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Check that `value` is one of the names in `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} {brief(value)}: expected {' or '.join(choices)}")


def check_whole(name: str, value: Any, low: int, high: int) -> None:
    """Check that `value` is a whole number from `low` to `high`."""
    whole = type(value) is int  # others take ten times as long to check
    whole = whole or (isinstance(value, numbers.Integral) and not isinstance(value, bool))
    if not whole or not low <= value <= high:
        found = brief(value)
        raise InputError(f"{name} {found}: expected a whole number from {low} to {high:,}")


def check_rate(name: str, value: Any) -> None:
    """Check that `value` is a learning rate."""
    check_real(name, value)
    if not LEAST_RATE <= value <= GREATEST_RATE:
        raise InputError(f"{name} {brief(value)}: expected a positive and finite number")


def check_unicode(name: str, text: str) -> None:
    """Check that a text can be written, which one from bytes that are not UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} {shown(text)}: expected text in UTF-8") from None


def check_array_like(name: str, values: Any) -> None:
    """Check that NumPy can take an array, or the arrays in a list, and that no value is masked.

    The place of a masked value holds a number, which nothing else in the package would leave out.
    """
    if values is None or isinstance(values, (str, bytes, memoryview)):
        raise InputError(f"{name} is {brief(values)}: expected an array")
    parts = values if isinstance(values, (list, tuple)) else [values]
    if any(map(np.ma.is_masked, parts)):
        raise InputError(f"{name} holds masked values: expected none, as its filled() returns")
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        for part in parts:
            if isinstance(part, torch.Tensor):
                tensor_values(name, part)


def real_array(name: str, values: Any, finite: bool = True) -> Any:
    """The array of values that are real numbers or truth values, and finite unless told otherwise.

    An InputError if they are none, or if `check_array_like` refuses them.
    """
    array = values
    if type(values) is not np.ndarray:  # whose check takes longer than to move a small image
        check_array_like(name, values)
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(values, torch.Tensor):
            array = tensor_values(name, values)
    try:
        array = np.asarray(array)
    except (TypeError, ValueError):  # nested lists of different lengths, pictures
        raise InputError(f"{name} is not an array: expected real numbers in equal rows") from None
    if array.dtype.kind not in NUMBERS:
        raise InputError(f"{name} has the type {array.dtype}: expected real numbers")
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinity: expected finite numbers")
    return array


def tensor_values(name: str, tensor: Any) -> Any:
    """The values of a tensor of PyTorch as an array, which shares its memory on a CPU.

    An InputError if it has a gradient, which would be lost, or is none that NumPy can take.
    """
    try:
        if not tensor.requires_grad:
            return tensor.cpu().numpy()
    except (TypeError, RuntimeError):
        pass
    kind = "that requires grad" if tensor.requires_grad else f"of {tensor.dtype}, {tensor.layout}"
    raise InputError(
        f"{name} is a tensor {kind}: expected one that NumPy can take, such as "
        "x.detach().to_dense().float()"
    )
