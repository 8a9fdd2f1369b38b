# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The network of a stream: names get inputs, labels get outputs, numbers are scaled."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Keys, PyDict_Next, PyDict_Values
from cpython.ref cimport PyObject
from libc.float cimport FLT_MIN
from libc.math cimport NAN, fabs, sqrt
from libc.string cimport memcpy, memset

cimport cython

import threading

import numpy as np

from mlpcore import backends
from mlpcore.backends.affine import N_LABELS
from mlpcore.checks import NUMBERS, check_array_like, check_whole
from mlpcore.errors import InputError, brief
from mlpcore.network.activation import HUBER
from mlpcore.network.architecture import MAX_WIDTH
from mlpcore.network.standardisation import Standardisation
from mlpcore.philox import initial_values

from mlpcore.backends.cpu_simd cimport mlp_mixture, mlp_mixture_share, mlp_progress, mlp_wanted
from mlpcore.backends.simd cimport CStepper
from mlpcore.network.network cimport Network, mlp_layer, mlp_network

__all__ = ["StreamNetwork"]

#: The square of the greatest norm of a sample; its numbers are then finite as float32.
cdef double MAX_SQUARE = 1e76

#: A scaled number is cut to this. Otherwise a single one far outside makes a step that ruins the
#: network.
cdef double GREATEST = 5.0

#: A number so many deviations from the mean may be wrong.
cdef double FAR = 8.0

#: A feature that is often missing is not centred unless its mean squared is so many variances.
cdef double FAR_FROM_ZERO = 100.0


cdef struct statistics:  # of a feature
    double before  # the samples learnt before the first one that had it
    double count
    double mean
    double squares  # the sum of squared deviations
    double factor  # 1 / standard deviation
    double limit  # of a scaled number that counts as it is


cdef inline statistics learnt(statistics old, double value, double total) noexcept:
    """Welford's running mean and squared deviations, with a value of sample number `total`.

    One far outside is cut, so that it changes little. The limit is `FAR`, and doubles with each of
    several in a row: a new level is soon followed.
    """
    cdef statistics new
    cdef double deviation = value - old.mean, far = fabs(deviation) * old.factor
    new.limit = FAR if far <= FAR else old.limit if far <= old.limit else 2.0 * old.limit
    if far > old.limit:
        deviation *= old.limit / far
    new.before = old.before if old.count else total - 1.0
    new.count = old.count + 1.0
    new.mean = old.mean + deviation / new.count
    new.squares = old.squares + deviation * (old.mean + deviation - new.mean)
    new.factor = inverse_root(new.squares / new.count)
    return new


cdef inline double inverse_root(double square) noexcept:
    return 1 / sqrt(square) if square > 1 / MAX_SQUARE else 0.0


cdef inline bint tells_by_presence(const statistics *known, double total) noexcept:
    """Whether a missing feature is 0, as a word that a text lacks, and not its mean.

    It is if some sample lacked it since its first one, and either its value never varies, or most
    samples lacked it and its values are not all far from 0.
    """
    cdef double samples = total - known.before
    if known.count >= samples:
        return False
    if known.factor == 0:
        return True
    return (2.0 * known.count < samples
            and known.mean * known.mean * known.count < FAR_FROM_ZERO * known.squares)


cdef inline (double, double) scale_of(const statistics *known, double total) noexcept:
    """The centre and the factor of an input, which is (value - centre) factor."""
    if tells_by_presence(known, total):
        return 0.0, inverse_root(known.squares / known.count + known.mean * known.mean)
    return known.mean, known.factor


cdef inline double scaled(const statistics *known, double value, double total) noexcept:
    cdef (double, double) scale = scale_of(known, total)
    cdef double result = (value - scale[0]) * scale[1]
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
    cdef double *values  # (features.n,) in `memory`; NaN of an array's missing ones
    cdef double target  # of a regressor, or its answer


cdef class Model:
    """What C knows of a stream: the statistics of features, and the models that learn them.

    There can be more inputs than features, for names to come.
    """

    cdef CStepper stepper, average
    cdef mlp_mixture c
    cdef float[::1] row  # the inputs of a sample, and a 1, with room for a vector beyond
    cdef double[:, ::1] table  # (inputs + 1, 6): the `statistics` of each, and of the target
    cdef float[:, ::1] linear, linear_rates, counts  # as in `mlp_mixture`, as the following
    cdef float[::1] further
    cdef double[::1] progress  # an `mlp_progress`
    cdef double[::1] samples  # (n_out,): how many of each class were learnt
    cdef list arrays  # these seven
    cdef Py_ssize_t n_in
    cdef float[::1] rates, squared, sums  # buffers

    def __init__(self, network, average=None):
        n_in, *hidden, n_out = network.layer_sizes
        self.n_in = n_in
        average = network.copy() if average is None else average
        # Steppers for one core: more would wait for each other longer than they compute.
        cpu = backends.get("cpu", threads=1)
        self.stepper, self.average = cpu.stepper(network), cpu.stepper(average)
        self.arrays = [
            np.zeros((n_in + 1, 6)),
            np.zeros((n_in + 1, n_out), np.float32),
            np.ones((n_in + 1, n_out), np.float32),
            np.zeros((n_in + 1, 1), np.float32),
            np.zeros(sum(hidden) + len(hidden) + 1, np.float32),
            np.array(3 * [1.0 / 3.0] + 5 * [0.0]),
            np.zeros(n_out),
        ]
        self.table, self.linear, self.linear_rates, self.counts, *rest = self.arrays
        self.further, self.progress, self.samples = rest
        self.row = np.zeros(n_in + 16, np.float32)
        self.row[n_in] = 1.0
        self.rates = np.empty(network.n_layers, np.float32)
        self.squared = np.empty(n_in + 1, np.float32)
        self.sums = np.empty(3 * n_out, np.float32)
        self.c.network, self.c.stepper = &self.stepper.model.c, self.stepper.c
        self.c.average = self.average.c
        self.c.counts, self.c.further = &self.counts[0, 0], &self.further[0]
        self.c.linear, self.c.linear_rates = &self.linear[0, 0], &self.linear_rates[0, 0]
        self.c.progress = <mlp_progress *>&self.progress[0]
        self.c.rates, self.c.squared, self.c.sums = &self.rates[0], &self.squared[0], &self.sums[0]

    cdef void take(self, Model other) noexcept:
        """Take over all that another model knows, which may have fewer inputs and outputs.

        Nothing here runs Python code.
        """
        take_steps(other.stepper, self.stepper)
        take_steps(other.average, self.average)
        copy_rows(other.table, self.table)
        copy_rows(other.linear, self.linear)
        copy_rows(other.linear_rates, self.linear_rates)
        copy_rows(other.counts, self.counts)
        memcpy(&self.further[0], &other.further[0], sizeof(float) * self.further.shape[0])
        memcpy(&self.progress[0], &other.progress[0], sizeof(double) * self.progress.shape[0])
        memcpy(&self.samples[0], &other.samples[0], sizeof(double) * other.samples.shape[0])

    cdef statistics *known(self, Py_ssize_t column) noexcept:
        return <statistics *>&self.table[column, 0]

    def copy(self):
        cdef Model result = Model(self.stepper.model.copy())
        result.take(self)
        return result

    # The following are for copies, whose networks have the weights of their steppers.

    def __reduce__(self):
        return Model, (self.stepper.model, self.average.model), self.arrays

    def __setstate__(self, arrays):
        for target, source in zip(self.arrays, arrays):
            target[...] = source

    @cython.wraparound(True)
    def network(self, n_in):
        """The network that answers, with the first inputs.

        The logits of the linear softmax, and their negatives, are two further neurons a class in
        each hidden layer.
        """
        cdef int is_own
        share = np.float32(mlp_mixture_share(&self.progress[0], &is_own))
        own = self.stepper.model if is_own else self.average.model
        linear = np.asarray(self.linear)
        n_out = linear.shape[1]
        rows, biases = linear[:n_in].T, linear[-1]
        sizes = [n_in, *(size + 2 * n_out for size in own.layer_sizes[1:-1]), n_out]
        result = Network(sizes, None, own.activation, own.loss)
        if own.n_layers == 1:
            result.weights[0] = share * own.weights[0][:, :n_in] + (1 - share) * rows
            result.biases[0] = share * own.biases[0] + (1 - share) * biases
            return result
        rest = (1 - share) * np.eye(n_out)
        result.weights[0] = np.vstack([own.weights[0][:, :n_in], rows, -rows])
        result.biases[0] = np.hstack([own.biases[0], biases, -biases])
        for i in range(1, own.n_layers - 1):
            n, n_before = own.layer_sizes[i + 1], own.layer_sizes[i]
            result.weights[i][:n, :n_before] = own.weights[i]
            result.weights[i][n:, n_before:] = np.eye(2 * n_out)
            result.biases[i][:n] = own.biases[i]
        result.weights[-1] = np.hstack([share * own.weights[-1], rest, -rest])
        result.biases[-1] = share * own.biases[-1]
        return result

    cdef double balance(self, Py_ssize_t code) noexcept:
        """The weight n / (k m) of a sample: of n in k classes so far, its own has m."""
        cdef Py_ssize_t k, present = 0
        for k in range(self.samples.shape[0]):
            present += self.samples[k] > 0.0
        return (self.c.progress.steps + 1.0) / (present * self.samples[code])

    cdef (double, double) targets(self) noexcept:
        """The mean and the deviation of a regressor's targets."""
        cdef statistics *target = self.known(self.n_in)
        return target.mean, 1.0 / target.factor if target.factor else 0.0

    def standardisation(self, n_in):
        """The formula by which the first inputs are made."""
        cdef Py_ssize_t k
        scales = [scale_of(self.known(k), self.c.progress.steps) for k in range(n_in)]
        means, factors = zip(*scales) if scales else ((), ())
        return Standardisation(means, factors, GREATEST)


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
    seed : int
        Of the initial weights.
    labels : iterable of hashable or None
        Those that are known in advance; None if the answers are numbers.

    Attributes
    ----------
    columns : dict
        The input of each feature, in their order.
    labels : list
        The labels in the order of the outputs.
    """

    cdef readonly dict columns
    cdef readonly list labels
    cdef dict codes
    cdef tuple hidden
    cdef object seed
    cdef bint named, numeric
    cdef Features last  # those of the last sample
    cdef Model model
    cdef object lock  # of whoever adds names and labels
    cdef bint locked

    def __init__(self, hidden, seed, labels=()):
        self.hidden, self.seed, self.numeric = hidden, seed, labels is None
        self.columns, self.codes, self.named = {}, {}, False
        for label in labels or ():
            self._check_label(label, self.codes)
            self.codes.setdefault(label, len(self.codes))
        self.labels = list(self.codes)
        self.lock, self.locked = threading.RLock(), False
        self._find([], False)

    # ---- one sample ------------------------------------------------------------------

    def learn(self, x, y, double rate, double weight, max_features, bint balanced):
        """Learn a sample, and return its loss, which is not finite if the network is ruined.

        A rate of 0 is that of `mlp_mixture_step`. `balanced` gives all classes the same weight.

        Raises
        ------
        InputError
            When the sample cannot be used, or has too many new names or labels.
        """
        cdef Sample sample = self._read(x)
        cdef double loss
        self._check_answer(sample, y, self.codes)
        while not self._step(sample, 0 if self.numeric else self.codes.get(y, N_LABELS), rate,
                             weight, balanced, &loss):
            self._exclusively(self._add, sample.features, y, max_features)
            sample.features = self._find(sample.features.names, sample.features.named)
        return loss

    def check(self, samples, max_features):
        """Raise the InputError of `learn` for any of some pairs (x, y) that are learnt in turn."""
        cdef Sample sample
        names, labels = set(), set(self.codes)
        for x, y in samples:
            sample = self._read(x)
            self._check_answer(sample, y, labels)
            names.update(sample.features.new)
            if not self.numeric:
                labels.add(y)
        self._check_room(len(names), max_features)

    def predict(self, x):
        """The outputs for a sample, (n_classes,) float32, or the number that is the answer.

        None before the first sample has been learnt. Names without an input are left out.
        """
        if self.model is None:
            return None
        cdef Sample sample = self._read(x)
        while True:
            outputs = np.empty(self.model.stepper.n_classes, np.float32)
            if self._predict(sample, outputs):
                return sample.target if self.numeric else outputs
            sample.features = self._find(sample.features.names, sample.features.named)

    # Nothing in the following three functions runs Python code, so they are atomic.

    cdef bint _step(self, Sample sample, Py_ssize_t code, double rate, double weight,
                    bint balanced, double *loss) noexcept:
        """Learn a sample if all its names and its label are known."""
        cdef Features features = sample.features
        cdef Model model = self.model
        cdef mlp_wanted wanted
        cdef statistics *known
        cdef float target = 0.0
        if model is None or code >= model.stepper.n_classes:
            return False
        if len(features.new) or features.end > model.n_in:
            return False
        if weight < FLT_MIN:  # as 0, which moves no scale either
            loss[0] = 0.0
            return True
        self._write(sample, True)
        if self.numeric:
            known = model.known(model.n_in)
            known[0] = learnt(known[0], sample.target, model.c.progress.steps + 1.0)
            target = <float>scaled(known, sample.target, model.c.progress.steps + 1.0)
        model.samples[code] += 1.0
        if balanced:
            weight *= model.balance(code)
        wanted.label, wanted.values = <int>code, &target
        loss[0] = model.stepper.learn(&model.c, &model.row[0], &wanted, rate, <float>weight)
        return True

    cdef bint _predict(self, Sample sample, float[::1] outputs) noexcept:
        """Predict a sample if nothing has grown since it was read."""
        cdef Model model = self.model
        if sample.features.n_known != len(self.columns):
            return False
        if outputs.shape[0] != model.stepper.n_classes:
            return False
        self._write(sample, False)
        model.stepper.outputs(&model.c, &model.row[0], &outputs[0])
        if self.numeric:
            sample.target = model.targets()[0] + model.targets()[1] * outputs[0]
        return True

    cdef void _write(self, Sample sample, bint learn) noexcept:
        """Write the inputs of a sample; those of one to learn by statistics that count it."""
        cdef Features features = sample.features
        cdef Model model = self.model
        cdef statistics *known
        cdef Py_ssize_t k, column, capacity = model.n_in
        cdef const double *values = sample.values
        cdef const Py_ssize_t *columns = features.columns
        cdef float *row = &model.row[0]
        cdef double total = model.c.progress.steps + (1.0 if learn else 0.0)
        if features.n != len(self.columns) or len(features.new):
            memset(row, 0, sizeof(float) * capacity)
        for k in range(features.n):
            column = columns[k]
            if not 0 <= column < capacity:
                continue
            if values[k] != values[k]:
                row[column] = 0.0
                continue
            known = model.known(column)
            if learn:
                known[0] = learnt(known[0], values[k], total)
            row[column] = <float>scaled(known, values[k], total)

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
            raise InputError(f"x {brief(x)}: expected numbers") from None
        for k in range(len(names)):
            if sample.values[k] == sample.values[k]:
                square += sample.values[k] * sample.values[k]
        if not square < MAX_SQUARE:
            raise InputError(f"x {brief(x)}: expected finite numbers, less than 1e38")
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
        cdef list names, numbers
        cdef Py_ssize_t k, n = 0
        cdef double total = 0.0
        allocate(sample, len(mapping))
        if last.named and read_known(sample, mapping, last.names):
            return last.names
        names, numbers = PyDict_Keys(mapping), PyDict_Values(mapping)
        if len(names) != len(numbers) or len(names) != len(mapping):
            raise TypeError("a mapping that changes")
        for k in range(len(names)):
            sample.values[k] = number_of(numbers[k])
            total += sample.values[k]
        if total != total:  # some are NaN: their names are missing
            for k in range(len(names)):
                if sample.values[k] == sample.values[k]:
                    sample.values[n], names[n] = sample.values[k], names[k]
                    n += 1
            del names[n:]
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
            raise InputError(f"x {brief(x)}: expected {kind}, as the samples before")

    def _check_length(self, n):
        if self.columns and n != len(self.columns):
            raise InputError(f"x of {n} numbers: expected {len(self.columns)}, as before")

    cdef _check_answer(self, Sample sample, y, known):
        if not self.numeric:
            self._check_label(y, known)
            return
        try:
            sample.target = number_of(y)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"y {brief(y)}: expected a number") from None
        if not sample.target * sample.target < MAX_SQUARE:
            raise InputError(f"y {y}: expected a finite number, less than 1e38")

    def _check_label(self, y, known):
        try:
            if y in known:
                return
        except TypeError:
            raise InputError(f"y {brief(y)}: expected a hashable label") from None
        if is_missing(y):
            raise InputError(f"y {y}: expected a label")
        if len(known) == N_LABELS:
            raise InputError(f"y {brief(y)}: expected at most {N_LABELS} different labels")

    def _check_room(self, n_new, max_features):
        check_whole("max_features", max_features, 1, MAX_WIDTH)  # River mutates attributes
        if len(self.columns) + n_new > max_features:
            raise InputError(
                f"x has {n_new} new features beside the {len(self.columns)} known: "
                f"expected {max_features} in all at most, see max_features"
            )

    # ---- growth and copies -----------------------------------------------------------

    def _exclusively(self, work, *arguments):
        """Call a function while no other thread adds names or labels."""
        with self.lock:
            if self.locked:  # by this thread
                raise RuntimeError("a name or a label uses the learner that is just learning it")
            self.locked = True
            try:
                return work(*arguments)
            finally:
                self.locked = False

    def _add(self, Features features, y, max_features):
        """Add the names and the label of a sample."""
        cdef bint named = features.named
        features = self._find(features.names, named)  # again, for others may have added some
        cdef Py_ssize_t n = len(self.columns) + len(features.new)
        cdef Py_ssize_t capacity = 0 if self.model is None else self.model.n_in
        self._check_kind(features.names, named)
        if not named:
            self._check_length(features.n)
        if not self.numeric:
            self._check_label(y, self.codes)
        self._check_room(len(features.new), max_features)
        # As if sorted in the dictionary, so that the order there does not matter.
        new = features.new
        if named:
            new = sorted(new, key=lambda name: (str(name), repr(name)))
        if n > capacity:
            capacity = 2 * n if named else n
        n_out = 1 if self.numeric else len(self.codes) + (y not in self.codes)
        sizes = (max(capacity, 1), *self.hidden, n_out)
        cdef Model model = None
        if self.model is None or self.model.stepper.model.layer_sizes != sizes:
            loss = HUBER if self.numeric else "cross-entropy"
            network = Network(sizes, self.seed, "relu", loss, "glorot")
            # As for a layer of so many inputs as this sample has, whatever the room for others.
            # With biases of 0, all neurons would bend where the inputs are 0.
            fans = max(features.n, 1) + sizes[1]
            network.weights[0] *= ((sizes[0] + sizes[1]) / fans) ** 0.5
            network.biases[0] = (6 / fans) ** 0.5 * initial_values(sizes[1], self.seed, len(sizes))
            model = Model(network)
        # Nothing is refused from here on.
        self.named = named
        for name in new:
            self.columns[name] = len(self.columns)
        if not self.numeric:
            self.codes.setdefault(y, len(self.codes))
            self.labels = list(self.codes)
        if model is None:
            return
        if self.model is not None:
            model.take(self.model)
        self.model = model  # before any other Python code runs

    def __reduce__(self):
        labels, *state = self._exclusively(self._state)
        return StreamNetwork, (self.hidden, self.seed, None if self.numeric else labels), state

    def _state(self):
        model = None if self.model is None else self.model.copy()
        return self.labels, self.named, dict(self.columns), model

    def __setstate__(self, state):
        self.named, self.columns, self.model = state
        self._find([], self.named)

    @property
    def found(self):
        """What is known: the network that answers now, and how its inputs are made.

        The mean and the deviation of a regressor's targets, names as texts, and labels follow.
        None before the first sample.
        """
        cdef Model model
        labels, _, columns, model = self._exclusively(self._state)
        if model is None:
            return None
        n, names = len(columns), tuple(map(str, columns))
        return model.network(max(n, 1)), model.standardisation(n), model.targets(), names, labels


cdef bint is_missing(value) except -1:
    """Whether a value is None, NaN or pandas.NA, whose comparison is neither true nor false."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


cdef double number_of(value) except? -1.0:
    """A real number, which is NaN if it is missing.

    Python would also take the real part of NumPy's complex ones.
    """
    if not isinstance(value, (float, int)):
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        if kind not in NUMBERS or np.ma.is_masked(value):
            raise TypeError("no real number")
        if is_missing(value):
            return NAN
    return value


cdef bint read_known(Sample sample, dict mapping, list names) except -1:
    """Read the numbers of a mapping with these names in their order, if that runs no Python code.

    So nothing changes meanwhile, and no list is made.
    """
    cdef Py_ssize_t place = 0, k = 0
    cdef PyObject *key
    cdef PyObject *value
    cdef double total = 0.0
    if len(mapping) != len(names):
        return False
    while PyDict_Next(mapping, &place, &key, &value):
        if key != <PyObject *>names[k]:
            name, known = <object>key, names[k]
            if type(name) is not type(known) or type(name) not in (str, int) or name != known:
                return False
        if not isinstance(<object>value, float) and type(<object>value) is not int:
            return False
        sample.values[k] = <object>value
        total += sample.values[k]
        k += 1
    return total == total


cdef allocate(Sample sample, Py_ssize_t n):
    sample.memory = PyBytes_FromStringAndSize(NULL, n * sizeof(double))
    sample.values = <double *>PyBytes_AS_STRING(sample.memory)


ctypedef fused real:
    float
    double


cdef void take_steps(CStepper old, CStepper new) noexcept:
    """Go on with a larger network."""
    old.store(old.model)
    copy_weights(&old.model.c, &new.model.c)
    new.load()


cdef void copy_rows(real[:, ::1] old, real[:, ::1] new) noexcept:
    """Copy rows of inputs, and a last one, to those of more inputs and outputs."""
    cdef Py_ssize_t last = old.shape[0] - 1, j
    for j in range(last + 1):
        memcpy(&new[j if j < last else new.shape[0] - 1, 0], &old[j, 0],
               sizeof(real) * old.shape[1])


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
