"""Samples of a stream as rows of inputs: names get columns, numbers are standardised."""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from mlpcore.errors import InputError
from mlpcore.store.onnx_estimator import Standardisation
from mlpcore.typing import Float64Array

#: The square of the greatest norm of a sample; its numbers are then finite as float32.
MAX_SQUARE = 1e76

#: A standardised number is cut to so many standard deviations. Otherwise a single one far outside
#: makes a step that ruins the network.
GREATEST, LEAST = np.array(5.0), np.array(-5.0)

ONE = np.array(1.0)


class FeatureRow:
    """Writes one sample after the other into a row, which has a column for each feature.

    Features have names if samples are mappings, and else places.

    Parameters
    ----------
    standardise
        Whether numbers are written as deviations from the mean, in standard deviations, of those
        learnt. A feature that a sample lacks is then as if it had the mean.

    Attributes
    ----------
    columns : dict
        The column of each feature.
    names, new : list
        Features of the sample read last, and those of them that have no column.
    inputs : (1, capacity) float32
        The sample written last. `add` replaces this array.
    """

    def __init__(self, standardise: bool):
        self._standardise = standardise
        self._named = False
        self.columns: dict[Hashable, int] = {}
        self._allocate(np.zeros((4, 0)), 1)

    def _allocate(self, statistics: Float64Array, capacity: int) -> None:
        """Make room for so many features, and a place at the end for those without a column."""
        self._statistics = np.zeros((4, capacity + 1))
        self._statistics[:, : statistics.shape[1]] = statistics
        self._count, self._mean, self._squares, self._factor = self._statistics
        self._row = np.zeros(capacity + 1, np.float32)
        self.inputs = self._row[:capacity].reshape(1, capacity)
        self._ordered = np.zeros(capacity)
        self._find([])

    def __getstate__(self) -> tuple[Any, ...]:
        known = self._statistics[:, : len(self.columns)].copy()
        return self._standardise, self._named, self.columns, known, self.inputs.shape[1]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._standardise, self._named, self.columns, *statistics = state
        self._allocate(*statistics)

    @property
    def standardisation(self) -> Standardisation | None:
        """The formula by which numbers are written; None if they stay as they are."""
        if not self._standardise:
            return None
        n = len(self.columns)
        means, factors = (each[:n].tolist() for each in (self._mean, self._factor))
        return Standardisation(tuple(means), tuple(factors), float(GREATEST))

    def read(self, x: Any) -> None:
        """Look at a sample, without changing anything but `new`. `write` is next.

        Raises
        ------
        InputError
            When it is not a mapping to numbers, or (n,) numbers, as those before it.
        """
        named = isinstance(x, (dict, Mapping))
        if named is not self._named:
            if self.columns:
                kind = "a dictionary" if self._named else "an array or a list"
                raise InputError(f"x {reprlib.repr(x)}: expected {kind}, as the samples before")
            self._named = named
        values = _numbers(x)
        if named:
            names = list(x)
            if names != self.names:
                self._find(names)
        elif len(values) != len(self.names):
            if self.columns and len(values) != len(self.columns):
                n = len(self.columns)
                raise InputError(f"x of {len(values)} numbers: expected {n}, as before")
            self._find(list(range(len(values))))
        self._values = values

    def _find(self, names: list[Hashable]) -> None:
        """Find the columns of a sample's features."""
        nowhere, n = self.inputs.shape[1], len(names)
        self.names = names
        self._places = np.array([self.columns.get(name, nowhere) for name in names], np.intp)
        self.new = [name for name in names if name not in self.columns]
        self._complete = n == len(self.columns) and not self.new
        self._in_order = self._complete and bool((self._places == np.arange(n)).all())

    def add(self) -> None:
        """Give a column to each new feature of the sample read last."""
        names, new = self.names, self.new
        # As if sorted in the dictionary, so that the order there does not matter.
        for name in sorted(new, key=str) if self._named else new:
            self.columns[name] = len(self.columns)
        n, capacity = len(self.columns), self.inputs.shape[1]
        if n > capacity:
            self._allocate(self._statistics[:, :capacity], 2 * n if self._named else n)
        self._find(names)

    def write(self, learn: bool = False) -> None:
        """Write the sample read last into `inputs`, and learn its mean and deviation if wanted."""
        values = self._values
        at: Any = self._places
        if self._complete:
            if not self._in_order:
                self._ordered[at] = values
                values = self._ordered[: len(values)]
            at = slice(len(values))
        else:
            self._row.fill(0)
        if self._standardise:
            if learn:
                self._learn(values, at)
            values = (values - self._mean[at]) * self._factor[at]
            np.minimum(np.maximum(values, LEAST, out=values), GREATEST, out=values)
        self._row[at] = values

    def _learn(self, values: Float64Array, at: Any) -> None:
        """Welford's running mean and squared deviations, of the features at these places."""
        count, mean, squares = self._count[at] + ONE, self._mean[at], self._squares[at]
        deviation = values - mean
        mean = mean + deviation / count
        squares = squares + deviation * (values - mean)
        varied = squares > 1 / MAX_SQUARE  # the factor of others is 0
        variance = np.divide(squares, count)
        factor = np.divide(varied, np.sqrt(variance), out=np.zeros(len(count)), where=varied)
        self._count[at], self._mean[at], self._squares[at], self._factor[at] = (
            count,
            mean,
            squares,
            factor,
        )


def _numbers(x: Any) -> Float64Array:
    """The numbers of a sample, (n,)."""
    try:
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            values = x.astype(np.float64)
        else:  # in which NumPy would also take text
            numbers = tuple(x.values() if isinstance(x, Mapping) else x)
            values = np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers))
    except (TypeError, struct.error):
        raise InputError(f"x {reprlib.repr(x)}: expected numbers") from None
    if values.ndim != 1:
        raise InputError(f"x of shape {values.shape}: expected (n,) numbers of one sample")
    if not np.vdot(values, values) < MAX_SQUARE:
        raise InputError(f"x {reprlib.repr(x)}: expected finite numbers, less than 1e38")
    return values
