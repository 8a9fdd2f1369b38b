# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Samples of a stream as rows of inputs: names get columns, numbers are standardised."""

from libc.math cimport sqrt
from libc.string cimport memset

import reprlib
from collections.abc import Mapping

import numpy as np

from mlpcore.errors import InputError
from mlpcore.store.onnx_estimator import Standardisation

__all__ = ["FeatureRow"]

#: The square of the greatest norm of a sample; its numbers are then finite as float32.
cdef double MAX_SQUARE = 1e76

#: A standardised number is cut to so many standard deviations. Otherwise a single one far outside
#: makes a step that ruins the network.
cdef double GREATEST = 5.0


cdef class FeatureRow:
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

    cdef readonly dict columns
    cdef readonly list names, new
    cdef readonly object inputs
    cdef bint standardise, named
    cdef bint complete  # whether the sample read last has each feature that has a column
    cdef double[::1] values  # of that sample
    cdef Py_ssize_t[::1] places  # of its features in `row`
    cdef float[::1] row  # `inputs`, and a place at the end for features without a column
    cdef object statistics  # (4, capacity + 1): the following rows
    cdef double[::1] count, mean, squares, factor

    def __init__(self, standardise):
        self.standardise, self.named = standardise, False
        self.columns = {}
        self._allocate(np.zeros((4, 0)), 1)

    def _allocate(self, statistics, capacity):
        """Make room for so many features, and a place at the end for those without a column."""
        self.statistics, row = np.zeros((4, capacity + 1)), np.zeros(capacity + 1, np.float32)
        self.statistics[:, :statistics.shape[1]] = statistics
        self.count, self.mean, self.squares, self.factor = self.statistics
        self.row = row
        self.inputs = row[:capacity].reshape(1, capacity)
        self._find([])

    def __reduce__(self):
        known = self.statistics[:, :len(self.columns)].copy()
        state = self.named, self.columns, known, self.inputs.shape[1]
        return FeatureRow, (self.standardise,), state

    def __setstate__(self, state):
        self.named, self.columns, *statistics = state
        self._allocate(*statistics)

    @property
    def standardisation(self):
        """The formula by which numbers are written; None if they stay as they are."""
        if not self.standardise:
            return None
        _, mean, _, factor = self.statistics[:, :len(self.columns)].tolist()
        return Standardisation(tuple(mean), tuple(factor), GREATEST)

    def read(self, x):
        """Look at a sample, without changing anything but `new`. `write` is next.

        Raises
        ------
        InputError
            When it is not a mapping to numbers, or (n,) numbers, as those before it.
        """
        named = isinstance(x, (dict, Mapping))
        if named is not self.named:
            if self.columns:
                kind = "a dictionary" if self.named else "an array or a list"
                raise InputError(f"x {reprlib.repr(x)}: expected {kind}, as the samples before")
            self.named = named
        cdef double square = 0.0
        cdef Py_ssize_t k
        try:
            if named:
                names = self._read_mapping(x if type(x) is dict else dict(x))
            else:
                names = self._read_numbers(x)
        except (TypeError, OverflowError):
            raise InputError(f"x {reprlib.repr(x)}: expected numbers") from None
        for k in range(self.values.shape[0]):
            square += self.values[k] * self.values[k]
        if not square < MAX_SQUARE:
            raise InputError(f"x {reprlib.repr(x)}: expected finite numbers, less than 1e38")
        if names is not self.names:
            self._find(names)

    cdef list _read_mapping(self, dict x):
        """Read the numbers; return the names, as the list of the last sample if it has the same."""
        cdef Py_ssize_t k = 0
        cdef bint same = len(x) == len(self.names)
        cdef double[::1] values = np.empty(len(x))
        for name, value in x.items():
            values[k] = value
            same = same and (name is self.names[k] or name == self.names[k])
            k += 1
        self.values = values
        return self.names if same else list(x)

    cdef list _read_numbers(self, x):
        """As `_read_mapping`, where the names are the places."""
        cdef Py_ssize_t k, n, known = len(self.columns)
        cdef double[::1] values
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            if x.ndim != 1:
                raise InputError(f"x of shape {x.shape}: expected (n,) numbers of one sample")
            values = x.astype(np.float64)
            n = len(x)
        else:  # in which NumPy would also take text
            numbers = tuple(x)
            n = len(numbers)
            values = np.empty(n)
            for k in range(n):
                values[k] = numbers[k]
        if known and n != known:
            raise InputError(f"x of {n} numbers: expected {known}, as before")
        self.values = values
        return self.names if n == len(self.names) else list(range(n))

    cdef void _find(self, list names):
        """Find the columns of a sample's features."""
        nowhere = self.inputs.shape[1]
        self.names = names
        self.places = np.array([self.columns.get(name, nowhere) for name in names], np.intp)
        self.new = [name for name in names if name not in self.columns]
        self.complete = len(names) == len(self.columns) and not self.new

    def add(self):
        """Give a column to each new feature of the sample read last."""
        names, new = self.names, self.new
        # As if sorted in the dictionary, so that the order there does not matter.
        for name in sorted(new, key=str) if self.named else new:
            self.columns[name] = len(self.columns)
        n, capacity = len(self.columns), self.inputs.shape[1]
        if n > capacity:
            self._allocate(self.statistics[:, :capacity], 2 * n if self.named else n)
        self._find(names)

    def write(self, bint learn=False):
        """Write the sample read last into `inputs`, and learn its mean and deviation if wanted."""
        cdef double[::1] values = self.values
        cdef Py_ssize_t k, column
        cdef double value
        if not self.complete:
            memset(&self.row[0], 0, sizeof(float) * self.row.shape[0])
        for k in range(values.shape[0]):
            column = self.places[k]
            value = values[k]
            if self.standardise:
                if learn:
                    self._learn(value, column)
                value = (value - self.mean[column]) * self.factor[column]
                value = min(max(value, -GREATEST), GREATEST)
            self.row[column] = value

    cdef inline void _learn(self, double value, Py_ssize_t column) noexcept:
        """Welford's running mean and squared deviations of a feature."""
        cdef double deviation = value - self.mean[column]
        self.count[column] += 1.0
        self.mean[column] += deviation / self.count[column]
        self.squares[column] += deviation * (value - self.mean[column])
        self.factor[column] = 0.0
        if self.squares[column] > 1 / MAX_SQUARE:
            self.factor[column] = 1 / sqrt(self.squares[column] / self.count[column])
