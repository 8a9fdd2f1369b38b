# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The network of a stream: names get inputs, labels get outputs, numbers are standardised."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Keys, PyDict_Values
from libc.math cimport sqrt
from libc.string cimport memcpy, memset

import reprlib
import threading
import warnings

import numpy as np

from mlpcore import backends
from mlpcore.backends.affine import N_LABELS
from mlpcore.checks import NUMBERS, check_array_like
from mlpcore.errors import InputError
from mlpcore.estimators.unstable_steps import UNSTABLE
from mlpcore.network.standardisation import Standardisation

from mlpcore.backends.simd cimport CStepper
from mlpcore.network.network cimport Network, mlp_layer, mlp_network

__all__ = ["StreamNetwork"]

#: The square of the greatest norm of a sample; its numbers are then finite as float32.
cdef double MAX_SQUARE = 1e76

#: A standardised number is cut to so many standard deviations. Otherwise a single one far outside
#: makes a step that ruins the network.
cdef double GREATEST = 5.0


cdef struct statistics:  # of a feature
    double count
    double mean
    double squares  # the sum of squared deviations
    double factor


cdef inline statistics learnt(statistics old, double value) noexcept:
    """Welford's running mean and squared deviations, with one more value."""
    cdef statistics new
    cdef double deviation = value - old.mean
    new.count = old.count + 1.0
    new.mean = old.mean + deviation / new.count
    new.squares = old.squares + deviation * (value - new.mean)
    new.factor = 1 / sqrt(new.squares / new.count) if new.squares > 1 / MAX_SQUARE else 0.0
    return new


cdef inline double standardised(const statistics *known, double value) noexcept:
    cdef double result = (value - known.mean) * known.factor
    return -GREATEST if result < -GREATEST else GREATEST if result > GREATEST else result


cdef class Features:
    """The features of a sample, and their columns as far as they have some. It never changes."""

    cdef list names  # or places, if it is not `named`
    cdef bint named
    cdef Py_ssize_t n
    cdef bytes memory
    cdef const Py_ssize_t *columns  # (n,) in `memory`; -1 of one that is new
    cdef list new
    cdef Py_ssize_t end  # after the last column
    cdef Py_ssize_t n_known  # how many features had columns when these were looked up


cdef class Sample:
    cdef Features features
    cdef bytes memory
    cdef double *values  # (features.n,) in `memory`


cdef class StreamNetwork:
    """A network that learns and predicts one sample at a time, whose names and labels may be new.

    Several threads may use it at once. What may run Python code, such as a number's `__float__` or
    a name's `__eq__`, comes first and changes nothing. Then C code, during which no other thread
    runs Python, reads or writes all that belongs to the sample. Names and labels are added under a
    lock.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of the hidden layers.
    standardise : bool
        Whether inputs are deviations from the mean, in standard deviations, of the numbers learnt.
        A feature that a sample lacks is then as if it had the mean.
    seed : int
        Of the initial weights.
    labels : iterable of hashable
        Those that are known in advance.

    Attributes
    ----------
    columns : dict
        The input of each feature, in their order.
    codes : dict
        The output of each label, in their order.
    labels : list
        The labels in this order.
    """

    cdef readonly dict columns, codes
    cdef readonly list labels
    cdef tuple hidden
    cdef object seed
    cdef bint standardise, named
    cdef Features last  # those of the last sample
    cdef CStepper stepper
    cdef float[::1] row  # the inputs; there can be more than columns, for names to come
    cdef double[:, ::1] table  # (inputs, 4): the `statistics` of each
    cdef object lock  # of whoever adds names and labels
    cdef bint locked

    def __init__(self, hidden, standardise, seed, labels=()):
        self.hidden, self.standardise, self.seed = hidden, standardise, seed
        self.columns, self.codes, self.named = {}, {}, False
        for label in labels:
            self._check_label(label)
            self.codes.setdefault(label, len(self.codes))
        self.labels = list(self.codes)
        self.row, self.table = np.zeros(1, np.float32), np.zeros((1, 4))
        self.lock, self.locked = threading.RLock(), False
        self._find([], False)

    # ---- one sample ------------------------------------------------------------------

    def learn(self, x, y, double rate, double weight, max_features):
        """Learn a sample, and return its loss, which is not finite if the network is ruined.

        Raises
        ------
        InputError
            When the sample cannot be used, or has too many new names or labels.
        """
        cdef Sample sample = self._read(x)
        cdef double loss
        self._check_label(y)
        if weight > 1:
            weight = self._stable(sample, rate, weight)
        while not self._step(sample, self.codes.get(y, N_LABELS), rate, weight, &loss):
            self._grow(sample, y, max_features)
        return loss

    cdef double _stable(self, Sample sample, double rate, double weight) except -1.0:
        """The weight, or the greatest one whose step is stable, of which a warning tells."""
        cdef double greatest = UNSTABLE / (rate * (1.0 + self._square(sample)))
        if weight <= greatest:
            return weight
        warnings.warn(
            f"w gives the sample the weight {weight:.4g}, which makes the step at learning_rate "
            f"{rate:.4g} unstable: the sample is learnt with the weight {greatest:.2g}",
            stacklevel=3,
        )
        return greatest

    def predict(self, x):
        """The outputs for a sample, (n_classes,) float32; None before the first has been learnt.

        Names without an input are left out.
        """
        if self.stepper is None:
            return None
        cdef Sample sample = self._read(x)
        while True:
            outputs = np.empty(self.stepper.n_classes, np.float32)
            if self._predict(sample, outputs):
                return outputs
            sample.features = self._find(sample.features.names, sample.features.named)

    # Nothing in the following four functions runs Python code, so they are atomic.

    cdef bint _step(self, Sample sample, Py_ssize_t code, double rate, float weight,
                    double *loss) noexcept:
        """Learn a sample if all its names and its label are known."""
        cdef Features features = sample.features
        if self.stepper is None or code >= self.stepper.n_classes:
            return False
        if len(features.new) or features.end > self.row.shape[0]:
            return False
        self._write(sample, learn=True)
        loss[0] = self.stepper.learn(&self.row[0], <int>code, <float>rate, weight)
        return True

    cdef double _square(self, Sample sample) noexcept:
        """The squared norm of the inputs with which a sample is learnt."""
        cdef Py_ssize_t k, column
        cdef double value, square = 0.0
        cdef statistics known
        for k in range(sample.features.n):
            column, value = sample.features.columns[k], sample.values[k]
            if self.standardise:
                if not 0 <= column < self.row.shape[0]:
                    continue  # a new name is 0
                known = learnt((<statistics *>&self.table[0, 0])[column], value)
                value = standardised(&known, value)
            square += value * value
        return square

    cdef bint _predict(self, Sample sample, float[::1] outputs) noexcept:
        """Predict a sample if nothing has grown since it was read."""
        if sample.features.n_known != len(self.columns):
            return False
        if outputs.shape[0] != self.stepper.n_classes:
            return False
        self._write(sample, learn=False)
        self.stepper.outputs(&self.row[0], &outputs[0])
        return True

    cdef void _write(self, Sample sample, bint learn) noexcept:
        """Write a sample into `row`, and learn its statistics if wanted."""
        cdef Features features = sample.features
        cdef statistics *known = <statistics *>&self.table[0, 0]
        cdef Py_ssize_t k, column, capacity = self.row.shape[0]
        cdef const double *values = sample.values
        cdef const Py_ssize_t *columns = features.columns
        cdef float *row = &self.row[0]
        cdef double value
        if features.n != len(self.columns) or len(features.new):
            memset(&self.row[0], 0, sizeof(float) * self.row.shape[0])
        for k in range(features.n):
            column = columns[k]
            if not 0 <= column < capacity:
                continue
            value = values[k]
            if self.standardise:
                if learn:
                    known[column] = learnt(known[column], value)
                value = standardised(&known[column], value)
            row[column] = <float>value

    # ---- reading ---------------------------------------------------------------------

    cdef Sample _read(self, x):
        """The features and numbers of a sample, which has named numbers or is (n,) numbers."""
        cdef Sample sample = Sample.__new__(Sample)
        cdef double square = 0.0
        cdef Py_ssize_t k
        if type(x) is not dict:
            if hasattr(x, "_asdict"):  # a named tuple, as pandas' `itertuples` makes it
                x = x._asdict()
            elif isinstance(x, np.void) and x.dtype.names:  # a row of a structured array
                x = dict(zip(x.dtype.names, x.item()))
        cdef bint named = type(x) is dict or hasattr(x, "keys")  # as `dict` asks
        cdef list names
        self._check_kind(x, named)
        try:
            names = self._read_mapping(sample, x) if named else self._read_numbers(sample, x)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"x {reprlib.repr(x)}: expected numbers") from None
        for k in range(len(names)):
            square += sample.values[k] * sample.values[k]
        if not square < MAX_SQUARE:
            raise InputError(f"x {reprlib.repr(x)}: expected finite numbers, less than 1e38")
        if not named:
            self._check_length(len(names))
        cdef Features last = self.last
        if names is not last.names or last.n_known != len(self.columns):
            last = self._find(names, named)
        sample.features = last
        return sample

    cdef list _read_mapping(self, Sample sample, x):
        """Read the numbers; return the names, as the list of the last sample if it has the same."""
        cdef Features last = self.last
        cdef dict mapping = x if type(x) is dict else dict(x)
        cdef list names = PyDict_Keys(mapping), numbers = PyDict_Values(mapping)
        cdef Py_ssize_t k
        if len(names) != len(numbers):
            raise TypeError("a mapping that changes")
        allocate(sample, len(names))
        for k in range(len(names)):
            sample.values[k] = number_of(numbers[k])
        return last.names if last.named and names == last.names else names

    cdef list _read_numbers(self, Sample sample, x):
        """As `_read_mapping`, where the names are the places."""
        cdef Features last = self.last
        cdef Py_ssize_t k, n
        cdef const double[::1] values
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            if x.ndim != 1:
                raise InputError(f"x of shape {x.shape}: expected (n,) numbers of one sample")
            check_array_like("x", x)
            values = x.astype(np.float64)
            n = values.shape[0]
            allocate(sample, n)
            if n:
                memcpy(sample.values, &values[0], n * sizeof(double))
        else:  # in which NumPy would also take text
            if isinstance(x, (bytes, bytearray)) or not hasattr(x, "__getitem__"):
                raise TypeError("text, or numbers without an order")
            numbers = tuple(x)
            n = len(numbers)
            allocate(sample, n)
            for k in range(n):
                sample.values[k] = number_of(numbers[k])
        return last.names if not last.named and n == last.n else list(range(n))

    cdef Features _find(self, list names, bint named):
        """Look the features of a sample up."""
        cdef Features features = Features.__new__(Features)
        cdef Py_ssize_t *columns
        cdef Py_ssize_t k
        features.n_known = len(self.columns)  # before names run Python code
        features.names, features.named, features.n, features.new = names, named, len(names), []
        features.memory = PyBytes_FromStringAndSize(NULL, features.n * sizeof(Py_ssize_t))
        columns = <Py_ssize_t *>PyBytes_AS_STRING(features.memory)
        for k in range(features.n):
            columns[k] = self.columns.get(names[k], -1)
            if columns[k] < 0:
                features.new.append(names[k])
            features.end = max(features.end, columns[k] + 1)
        features.columns = columns
        self.last = features
        return features

    def _check_kind(self, x, bint named):
        if self.columns and named is not self.named:
            kind = "a dictionary" if self.named else "an array or a list"
            raise InputError(f"x {reprlib.repr(x)}: expected {kind}, as the samples before")

    def _check_length(self, n):
        if self.columns and n != len(self.columns):
            raise InputError(f"x of {n} numbers: expected {len(self.columns)}, as before")

    def _check_label(self, y):
        try:
            if y in self.codes:
                return
        except TypeError:
            raise InputError(f"y {reprlib.repr(y)}: expected a hashable label") from None
        if y is None or y != y:
            raise InputError(f"y {y}: expected a label")
        if len(self.codes) == N_LABELS:
            raise InputError(
                f"y {reprlib.repr(y)}: expected at most {N_LABELS} different labels"
            )

    # ---- growth and copies -----------------------------------------------------------

    def _exclusively(self, work, *arguments):
        """Call a function while no other thread adds names or labels."""
        with self.lock:
            if self.locked:  # by this thread
                raise RuntimeError(
                    "a name or a label uses the classifier that is just learning it"
                )
            self.locked = True
            try:
                return work(*arguments)
            finally:
                self.locked = False

    cdef _grow(self, Sample sample, y, max_features):
        """Add the names and the label of a sample."""
        cdef Features features = sample.features
        self._exclusively(self._add, features.names, features.named, y, max_features)
        sample.features = self._find(features.names, features.named)

    def _add(self, list names, bint named, y, max_features):
        cdef Features features = self._find(names, named)  # again, for others may have added some
        cdef Py_ssize_t n = len(self.columns) + len(features.new), capacity = self.row.shape[0]
        self._check_kind(names, named)
        if not named:
            self._check_length(features.n)
        self._check_label(y)
        if n > max_features:
            raise InputError(
                f"x has {len(features.new)} new features beside the {len(self.columns)} known: "
                f"expected {max_features} in all at most, see max_features"
            )
        # As if sorted in the dictionary, so that the order there does not matter.
        new = features.new
        if named:
            new = sorted(new, key=lambda name: (str(name), repr(name)))
        if n > capacity:
            capacity = 2 * n if named else n
        sizes = (capacity, *self.hidden, len(self.codes) + (y not in self.codes))
        cdef CStepper stepper = None
        if self.stepper is None or self.stepper.model.layer_sizes != sizes:
            network = Network(sizes, self.seed, "relu", "cross-entropy", "glorot")
            # As for a layer of so many inputs as this sample has, whatever the room for others.
            fans = capacity + sizes[1], max(features.n, 1) + sizes[1]
            network.weights[0] *= np.float32((fans[0] / fans[1]) ** 0.5)
            stepper = stepper_of(network)
            row, table = np.zeros(capacity, np.float32), np.zeros((capacity, 4))
        # Nothing is refused from here on.
        self.named = named
        for name in new:
            self.columns[name] = len(self.columns)
        self.codes.setdefault(y, len(self.codes))
        self.labels = list(self.codes)
        if stepper is not None:
            self._move(stepper, row, table)

    cdef void _move(self, CStepper stepper, float[::1] row, double[:, ::1] table) noexcept:
        """Go on with larger arrays. Nothing here runs Python code."""
        if self.stepper is not None:
            self.stepper.store(self.stepper.model)
            copy_weights(&self.stepper.model.c, &stepper.model.c)
            stepper.load()
            memcpy(&table[0, 0], &self.table[0, 0], sizeof(statistics) * self.table.shape[0])
        self.stepper, self.row, self.table = stepper, row, table

    def __reduce__(self):
        state = self._exclusively(self._state)
        return StreamNetwork, (self.hidden, self.standardise, self.seed, self.labels), state

    def _state(self):
        network, table = None, np.zeros((self.row.shape[0], 4))
        if self.stepper is not None:
            network = Network(self.stepper.model.layer_sizes, None, "relu", "cross-entropy")
        self._copy(network, table)
        return self.named, dict(self.columns), table[:len(self.columns)], network

    cdef void _copy(self, Network network, double[:, ::1] table) noexcept:
        """Copy weights and statistics. Nothing here runs Python code."""
        if self.stepper is not None:
            self.stepper.store(network)
        memcpy(&table[0, 0], &self.table[0, 0], sizeof(statistics) * self.table.shape[0])

    def __setstate__(self, state):
        self.named, self.columns, known, network = state
        if network is not None:
            self.stepper, capacity = stepper_of(network), network.layer_sizes[0]
            self.row, table = np.zeros(capacity, np.float32), np.zeros((capacity, 4))
            table[:len(known)] = known
            self.table = table
        self._find([], self.named)

    @property
    def network(self):
        """A copy of the network as it is now; None before the first sample."""
        return self._exclusively(self._state)[3]

    @property
    def standardisation(self):
        """The formula by which inputs are made; None if numbers stay as they are."""
        if not self.standardise:
            return None
        _, mean, _, factor = self._exclusively(self._state)[2].T.tolist()
        return Standardisation(tuple(mean), tuple(factor), GREATEST)


cdef double number_of(value) except? -1.0:
    """A real number. Python would also take the real part of NumPy's complex ones."""
    if not isinstance(value, (float, int)):
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        if kind not in NUMBERS or np.ma.is_masked(value):
            raise TypeError("no real number")
    return value


cdef allocate(Sample sample, Py_ssize_t n):
    sample.memory = PyBytes_FromStringAndSize(NULL, n * sizeof(double))
    sample.values = <double *>PyBytes_AS_STRING(sample.memory)


cdef CStepper stepper_of(network):
    """A stepper for one core: more would wait for each other longer than they compute."""
    return backends.get("cpu", threads=1).stepper(network)


cdef void copy_weights(const mlp_network *old, mlp_network *new) noexcept:
    """Copy the weights and biases to a network whose layers may be larger."""
    cdef const mlp_layer *source
    cdef mlp_layer *target
    cdef float *row
    cdef const float *kept
    cdef int i, j
    for i in range(old.n_layers):
        source, target = &old.layers[i], &new.layers[i]
        for j in range(source.n_out):
            kept = source.weights + <Py_ssize_t>j * source.stride
            row = target.weights + <Py_ssize_t>j * target.stride
            memcpy(row, kept, sizeof(float) * source.n_in)
            row[target.n_in] = kept[source.n_in]
