"""Layer sizes: the five networks of the paper, and others by their widths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mlpcore.checks import check_whole
from mlpcore.errors import InputError, brief

PRESETS: dict[str, tuple[int, ...]] = {
    "net1": (1000, 500),
    "net2": (1500, 1000, 500),
    "net3": (2000, 1500, 1000, 500),
    "net4": (2500, 2000, 1500, 1000, 500),
    "net5": (1000,) * 9,
}
"""Widths of the hidden layers in the paper's Table 1, by the paper's ID of the network."""

MAX_WIDTH, MAX_LAYERS = 1_000_000, 100
"""A wider layer, or more hidden layers, are a typing error."""


def parse_hidden_layers(text: str) -> tuple[int, ...]:
    """Return the widths of the hidden layers that a text such as ``"1000,500"`` describes.

    Raises
    ------
    InputError
        When the text is neither a key of `PRESETS` nor a list of widths with commas.

    Examples
    --------
    >>> parse_hidden_layers("net1"), parse_hidden_layers("300,100")
    ((1000, 500), (300, 100))
    """
    name = text.strip().lower()
    if name in PRESETS:
        return PRESETS[name]
    expected = f"expected {', '.join(PRESETS)} or widths such as 1000,500"
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > MAX_LAYERS:
        raise InputError(f"{len(parts):,} hidden layers: expected at most {MAX_LAYERS}")
    for part in parts:
        digits = part.isascii() and part.isdigit() and len(part) < 10  # int() refuses thousands
        if not (digits and 1 <= int(part) <= MAX_WIDTH):
            raise InputError(
                f"architecture {brief(text)}: {brief(part)} is not a width from 1 "
                f"to {MAX_WIDTH:,}; {expected}"
            )
    return tuple(map(int, parts))


def hidden_layers_of(hidden_layer_sizes: Any) -> tuple[int, ...]:
    """Return the widths of hidden layers: of a number, a sequence, or text as above."""
    if isinstance(hidden_layer_sizes, str):
        return parse_hidden_layers(hidden_layer_sizes)
    several = isinstance(hidden_layer_sizes, (Sequence, np.ndarray))
    sizes = tuple(hidden_layer_sizes) if several else (hidden_layer_sizes,)
    for size in sizes:
        check_whole("hidden_layer_sizes", size, 1, MAX_WIDTH)
    return sizes


def format_hidden_layers(hidden: Sequence[int]) -> str:
    """Return the inverse of `parse_hidden_layers`: a key of `PRESETS` where one fits."""
    for name, widths in PRESETS.items():
        if widths == tuple(hidden):
            return name
    return ",".join(map(str, hidden))


def format_layer_sizes(layer_sizes: Sequence[int]) -> str:
    """Return layer sizes as text: ``"841-1000-500-10"``."""
    return "-".join(map(str, layer_sizes))


def count_parameters(layer_sizes: Sequence[int]) -> int:
    """Return the number of weights and biases of a fully connected network.

    Parameters
    ----------
    layer_sizes
        The number of inputs, of neurons in each hidden layer, and of outputs.

    Examples
    --------
    >>> count_parameters((29 * 29, *PRESETS["net1"], 10))
    1347510
    """
    return sum(n_out * (n_in + 1) for n_in, n_out in pairwise(layer_sizes))
