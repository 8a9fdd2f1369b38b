# cython: language_level=3, boundscheck=False, wraparound=False
"""The C backend: one class for all instruction sets."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from cpython.exc cimport PyErr_CheckSignals
from cpython.pystate cimport PyThreadState, PyThreadState_Get

import reprlib

import numpy as np

from mlpcore.backends.arguments import (
    check_array,
    check_decay,
    check_range,
    check_shape,
    check_weights,
    layer_rates,
)
from mlpcore.backends.base import Backend, TrainingResult
from mlpcore.backends.deforming import EpochFields
from mlpcore.checks import check_whole
from mlpcore.cpu import available_cores
from mlpcore.errors import InputError
from mlpcore.network.activation import OF_TARGETS, check_target

from mlpcore.backends.cpu_simd cimport *
from mlpcore.network.network cimport Network

cdef extern from "Python.h" nogil:
    void PyEval_RestoreThread(PyThreadState *state)
    PyThreadState *PyEval_SaveThread()

__all__ = [
    "DEFAULT_BLOCK",
    "INSTRUCTION_SETS",
    "MAX_BLOCK",
    "MAX_THREADS",
    "PACKED_FROM",
    "SCHEDULES",
    "SimdBackend",
    "unavailable_reason",
]

#: From the plainest to the widest.
INSTRUCTION_SETS = ("scalar", "sse2", "neon", "avx2", "avx512")

#: When updates are applied. "packed" is "deferred" with packed weights for large networks, and
#: "sparse" is "packed" that touches only the weights of active inputs in rectifier networks.
SCHEDULES = ("sparse", "packed", "deferred")

#: Samples between two updates of the deferred schedule.
DEFAULT_BLOCK = 32
MAX_BLOCK = 1024

#: The packed schedule packs networks with this many weights above the first layer, or more: 4 MB
#: of float32, what the second-level caches of two cores hold.
PACKED_FROM = 1 << 20

#: More weights than any machine has room for are a typing error.
MAX_WEIGHTS = 1 << 48

#: More threads than any machine has cores are a typing error.
MAX_THREADS = 1024


def unavailable_reason(name):
    """Why an instruction set cannot be used here, or None when it can."""
    cdef const char *reason = NULL
    if not isinstance(name, str) or name not in INSTRUCTION_SETS:
        return f"expected {', '.join(INSTRUCTION_SETS)}"
    name_bytes = name.encode()
    if mlp_find_kernels(name_bytes, &reason) != NULL:
        return None
    return reason.decode()


cdef class _Poll:
    """Asks the caller's progress function and Python's signal handlers whether to stop.

    The first exception is kept. It is raised once the threads have stopped.
    """

    cdef object callback
    cdef object exception
    cdef const mlp_training *training  # NULL: the callback takes no result

    cdef bint stop(self):
        stop = False
        try:
            PyErr_CheckSignals()  # before Python code of the callback meets them
        except BaseException as error:
            self.exception = self.exception or error
        try:
            if self.training != NULL and self.callback is not None:
                stop = bool(self.callback(_result(self.training)))
            elif self.callback is not None:
                self.callback()
        except BaseException as error:
            self.exception = self.exception or error
        return stop or self.exception is not None


#: Who is asked, and the state of the thread that asks: the caller's.
ctypedef struct asked:
    void *poll
    PyThreadState *state


cdef int _ask(void *argument) noexcept nogil:
    # `with gil` alone would look for the interpreter, which may have ended beside a daemon thread.
    PyEval_RestoreThread((<asked *>argument).state)
    cdef int stop = _ask_python((<asked *>argument).poll)
    PyEval_SaveThread()
    return stop


cdef int _ask_python(void *poll) noexcept with gil:
    return (<_Poll>poll).stop()


cdef _result(const mlp_training *training):
    return TrainingResult(training.done, training.errors, training.loss)


def _at_most_cores(threads):
    """As many threads or fewer: at every barrier, more than the cores would wait for a core."""
    return 1 if threads == 1 else min(threads, available_cores())


cdef class _Settings:
    """The settings that a backend was made with. C relies on them, so nobody can change them."""

    cdef readonly str name, schedule
    cdef readonly int threads, block
    cdef readonly Py_ssize_t packed_from
    cdef const mlp_kernels *kernels
    cdef mlp_team_size team_size  # how many threads were best; zero at first

    def __cinit__(self, name, threads=None, schedule="sparse", block=DEFAULT_BLOCK,
                  packed_from=PACKED_FROM):
        reason = unavailable_reason(name)
        if reason is not None:
            raise InputError(f"backend {reprlib.repr(name)} cannot run: {reason}")
        threads = available_cores() if threads is None else threads
        check_whole("threads", threads, 1, MAX_THREADS)
        if not isinstance(schedule, str) or schedule not in SCHEDULES:
            *others, last = SCHEDULES
            raise InputError(f"schedule {reprlib.repr(schedule)}: expected {', '.join(others)} or "
                             f"{last} with the backend {name}")
        check_whole("block", block, 1, MAX_BLOCK)
        check_whole("packed_from", packed_from, 0, MAX_WEIGHTS)
        self.name, self.schedule = name, schedule
        self.threads = _at_most_cores(threads)
        self.block, self.packed_from = block, packed_from
        name_bytes = name.encode()
        cdef const char *unused = NULL
        self.kernels = mlp_find_kernels(name_bytes, &unused)


cdef int _check(int status) except -1:
    if status != 0:
        raise MemoryError("no memory for the work buffers of the C backend")
    return 0


class SimdBackend(_Settings, Backend):
    """On-line back-propagation and deformation in C.

    Parameters
    ----------
    name : str
        ``"scalar"``, ``"sse2"``, ``"neon"``, ``"avx2"`` or ``"avx512"``.
    threads : int or None
        The most threads to use, by default as many as cores are available to this process. More
        are never used. Training takes fewer while other processes want the cores. Results have
        the same bits whatever their number.
    schedule : str
        ``"deferred"`` applies the updates of a block of samples together, and corrects every
        sample so that it sees the weights as changed by all samples before it. ``"packed"`` is
        deferred. With AVX2 or AVX-512 and a large network, it reads copies of the weights in 21
        bits (``docs/deferred-updates.md``).
        ``"sparse"``, the default, is packed, but a network of rectifiers reads and writes the
        weights of active inputs only (``docs/sparse-steps.md``). Schedules differ in rounding
        and speed only.
    block : int
        Samples between two updates of the deferred schedule.
    packed_from : int
        The packed schedule packs networks with this many weights above the first layer.

    Raises
    ------
    InputError
        When this CPU or build lacks the instruction set, or a value is out of range: threads
        and block are 1 to 1,024, `packed_from` is 0 or more.
    """

    def __init__(self, name, threads=None, schedule="sparse", block=DEFAULT_BLOCK,
                 packed_from=PACKED_FROM):
        pass  # `_Settings` has taken them

    @property
    def description(self):
        plural = "" if self.threads == 1 else "s"
        sparse = ", sparse steps of rectifiers" if self.schedule == "sparse" else ""
        packed = ", packed weights of large networks" if self.packs else ""
        return (f"{self.name}: C, float32, {self.threads} thread{plural}, "
                f"deferred updates{sparse}{packed}")

    @property
    def packs(self):
        """Whether training reads packed copies of the weights, if there are enough of them."""
        cdef _Settings own = self
        return own.schedule in ("sparse", "packed") and own.kernels.pack_weights != NULL

    def _train(self, Network network not None, samples, progress):
        cdef const float[:, ::1] x = samples.images
        cdef const uint8_t[::1] t
        cdef const float[:, ::1] wanted
        cdef const int32_t[::1] o = samples.order
        cdef const float[::1] eta = samples.rates.astype(np.float32)
        cdef const float[::1] factor = samples.weights
        cdef _Settings own = self
        cdef mlp_team_size team_size = own.team_size
        cdef mlp_training training
        cdef _Poll poll = _Poll()
        poll.callback, poll.training = progress, &training
        training.network = &network.c
        training.images = &x[0, 0]
        training.labels, training.targets = NULL, NULL
        if network.loss in OF_TARGETS:
            wanted = samples.labels
            training.targets = &wanted[0, 0]
        else:
            t = samples.labels
            training.labels = &t[0]
        training.order = &o[0]
        training.sample_weights = &factor[0]
        training.n_samples = len(samples.order)
        training.learning_rates = &eta[0]
        training.target = samples.target
        training.weight_decay = samples.weight_decay
        training.block = own.block
        training.packed_from = own.packed_from if self.packs else -1
        training.team_size = &team_size
        training.sparse = self.schedule == "sparse"
        some = samples.images[:64]  # these tell whether to look for the pixels that are not zero
        training.sparse_images = training.sparse and 2 * np.count_nonzero(some) < some.size
        cdef asked caller = asked(<void *>poll, PyThreadState_Get())
        mlp_start_poll(&training.poll, _ask, &caller)
        cdef int status
        with nogil:
            status = mlp_train(own.kernels, &training, own.threads)
        own.team_size = team_size
        _check(status)
        poll.stop()
        if poll.exception is not None:
            raise poll.exception
        return _result(&training)

    def stepper(self, Network network not None):
        return CStepper(self, network)

    def _predict(self, Network network not None, images, poll=None):
        outputs = np.empty((len(images), network.layer_sizes[network.n_layers]), np.float32)
        if len(images) == 0:
            return outputs
        cdef const float[:, ::1] x = images
        cdef float[:, ::1] y = outputs
        cdef mlp_prediction prediction
        cdef _Poll asking = _Poll()
        asking.callback, asking.training = poll, NULL
        prediction.network = &network.c
        prediction.images = &x[0, 0]
        prediction.outputs = &y[0, 0]
        prediction.n = len(images)
        cdef asked caller = asked(<void *>asking, PyThreadState_Get())
        mlp_start_poll(&prediction.poll, _ask, &caller)
        cdef int status
        cdef _Settings own = self
        with nogil:
            status = mlp_predict(own.kernels, &prediction, own.threads)
        if asking.exception is not None:
            raise asking.exception
        _check(status)
        return outputs

    def _to_inputs(self, images, pixels, out):
        cdef const uint8_t[:, :, ::1] codes = images
        cdef const float[::1] values = pixels.values_of_bytes
        cdef float[:, :, ::1] inputs = out
        cdef mlp_pixels converted
        cdef _Settings own = self
        cdef int status
        converted.n, converted.in_height, converted.in_width = images.shape
        converted.height, converted.width = out.shape[1:]
        converted.pixels, converted.values = &codes[0, 0, 0], &values[0]
        converted.unit, converted.out = pixels.input_range == "unit", &inputs[0, 0, 0]
        with nogil:
            status = mlp_to_inputs(&converted, own.threads)
        _check(status)

    def _deform(self, job):
        indices = np.arange(job.first, job.first + len(job.images))
        around = np.full(1, job.background, np.float32)
        planes = job.images[:, None], job.affine, around, job.out[:, None]
        fields, given = job.displacement, None
        if not isinstance(fields, EpochFields):
            fields, given = NO_FIELDS, fields
        shape = job.out.shape[1:]
        _deform(self, shape, fields, indices, planes, given, None, job.values)

    def _deform_selected(self, images, affine, fields, indices, backgrounds, out):
        planes = images, affine, backgrounds, out
        _deform(self, images.shape[2:], fields, indices, planes, None, None, None)

    def _fields(self, height, width, fields, indices):
        result = np.empty((len(indices), 2, height, width), np.float32)
        _deform(self, (height, width), fields, indices, (None,) * 4, None, result, None)
        return result


#: Fields that are not used, because displacements are given.
NO_FIELDS = EpochFields(np.ones((1, 1), np.float32), 0.0, (0, 0), 0)


cdef int _deform(
    _Settings settings, shape, fields, indices, planes, given, result, values
) except -1:
    """Deform images of these numbers in a set, or put their displacements into `result`.

    `planes` are images (n, channels, h, w), matrices, backgrounds, and the array for the result.
    Images are float32, or bytes that stand for `values`.
    """
    images, affine, backgrounds, out = planes
    order = np.argsort(indices, kind="stable")
    cdef const int32_t[::1] places = order.astype(np.int32)
    cdef const uint32_t[::1] ascending = indices[order].astype(np.uint32)
    cdef const float[:, ::1] taps = fields.taps
    cdef const float[::1] table = values
    cdef const float[:, :, ::1] matrices = affine
    cdef const float[::1] around = backgrounds
    cdef const float[:, :, :, ::1] displacement = given
    cdef float[:, :, :, :] target = out
    cdef float[:, :, :, ::1] drawn = result
    cdef mlp_deformation deformation
    cdef int axis, status
    cdef size_t source
    deformation.height, deformation.width = shape
    deformation.taps = &taps[0, 0]
    deformation.cell, deformation.n_taps = taps.shape[0], taps.shape[1]
    deformation.alpha, deformation.epoch = fields.alpha, fields.epoch
    deformation.key = fields.key
    deformation.n = len(order)
    deformation.indices, deformation.places = &ascending[0], &places[0]
    deformation.given = NULL if given is None else &displacement[0, 0, 0, 0]
    deformation.fields = NULL if result is None else &drawn[0, 0, 0, 0]
    deformation.in_height, deformation.in_width = shape
    if result is None:
        source = images.ctypes.data
        deformation.images, deformation.out = <const void *>source, &target[0, 0, 0, 0]
        deformation.values = NULL if values is None else &table[0]
        _, deformation.channels, deformation.in_height, deformation.in_width = images.shape
        deformation.affine, deformation.backgrounds = &matrices[0, 0, 0], &around[0]
        for axis in range(4):
            deformation.in_step[axis] = images.strides[axis] // images.itemsize
            deformation.out_step[axis] = target.strides[axis] // <Py_ssize_t>sizeof(float)
    with nogil:
        status = mlp_deform(settings.kernels, &deformation, settings.threads)
    return _check(status)


#: Samples that a stepper learns, or predicts, before signals and other threads get their turn.
cdef enum:
    STEPS = 64


cdef class _Samples:
    """The rows of an array, or of a matrix in compressed sparse rows, whose indices ascend.

    Indices are checked here, whatever the matrix says of itself, in copies that no other thread
    can change: a stepper writes to memory where they point.
    """

    cdef Py_ssize_t n
    cdef bint sparse
    cdef const float[:, ::1] rows
    cdef int32_t[::1] indices, ends
    cdef const float[::1] values

    def __cinit__(self, images, int n_in):
        self.sparse = hasattr(images, "indptr")
        if not self.sparse:
            self.rows = check_array("images", images, (None, n_in))
            self.n = len(self.rows)
            return
        check_shape("images", images, (None, n_in), np.float32)
        self.values = check_array("values of images", images.data, (None,))
        self.ends = np.array(images.indptr, np.int32)
        self.indices = np.array(images.indices, np.int32)
        self.n = images.shape[0]
        if images.format != "csr" or not self.ascend(n_in):
            raise InputError("images: expected compressed sparse rows, whose indices ascend from "
                             f"0 or more to {n_in - 1} or less")

    cdef bint ascend(self, int n_in) noexcept:
        """Whether all rows are within the values, and their indices ascend within the inputs."""
        cdef Py_ssize_t n_values = min(self.values.shape[0], self.indices.shape[0]), row, k
        cdef const int32_t *indices = &self.indices[0]
        cdef int32_t last
        if self.ends.shape[0] != self.n + 1 or self.ends[0] != 0:
            return False
        for row in range(self.n):
            if not self.ends[row] <= self.ends[row + 1] <= n_values:
                return False
            last = -1
            for k in range(self.ends[row], self.ends[row + 1]):
                if indices[k] <= last:
                    return False
                last = indices[k]
            if last >= n_in:
                return False
        return True

    cdef mlp_sample get(self, Py_ssize_t i):
        cdef mlp_sample sample
        if not self.sparse:
            sample.values, sample.indices, sample.n = &self.rows[i, 0], NULL, 0
            return sample
        sample.n = self.ends[i + 1] - self.ends[i]
        sample.indices = &self.ends[0]  # of a row without values; not NULL, as of an array
        if sample.n:
            sample.indices = &self.indices[self.ends[i]]
            sample.values = &self.values[self.ends[i]]
        return sample


cdef class CStepper:
    """A `Stepper` that keeps the weights by inputs, and its buffers, between calls.

    It has one thread, because a step of a small network is over before another one wakes.
    """

    def __cinit__(self, _Settings settings, Network network):
        self.model = self.stored = network
        self.n_in, *_, self.n_classes = network.layer_sizes
        self.c = mlp_new_stepper(settings.kernels, &network.c)
        if self.c == NULL:
            raise MemoryError("no memory for the weights of a stepper")

    def __dealloc__(self):
        mlp_free_stepper(self.c)

    cdef double learn(self, const mlp_mixture *mixture, const float *inputs,
                      const mlp_wanted *wanted, double rate, float weight) noexcept:
        self.changed = True
        return mlp_mixture_step(mixture, inputs, wanted, rate, weight)

    cdef void outputs(self, const mlp_mixture *mixture, const float *inputs,
                      float *outputs) noexcept:
        mlp_mixture_outputs(mixture, inputs, outputs)

    cdef void store(self, Network network) noexcept:
        mlp_store_steps(self.c, &network.c)

    cdef void load(self) noexcept:
        mlp_load_steps(self.c)

    def train(self, images, labels, learning_rate, double target=1.0, sample_weight=None,
              weight_decay=0.0):
        cdef _Samples samples = _Samples(images, self.n_in)
        # A copy, as `Backend.train` makes one: C would write where a wrong label points.
        cdef bint numeric = self.model.loss in OF_TARGETS
        shape, kind = (samples.n,), np.uint8
        if numeric:
            shape, kind = (samples.n, self.n_classes), np.float32
        cdef bytes copied = check_array("labels", labels, shape, kind).tobytes()
        cdef const unsigned char *t = copied
        cdef const float[::1] weights = None
        cdef mlp_sample sample
        cdef mlp_wanted wanted
        cdef Py_ssize_t i
        cdef double loss = 0.0
        cdef int errors = 0
        if sample_weight is not None:
            sample_weight = check_array("sample_weight", sample_weight, (samples.n,)).copy()
            check_weights(sample_weight)
            weights = sample_weight
        for i in range(0 if numeric else samples.n):
            if t[i] >= self.n_classes:
                check_range("labels", labels, self.n_classes)
        if type(learning_rate) not in (float, tuple):  # a list may change between two calls
            learning_rate = tuple(layer_rates(self.model, learning_rate).tolist())
        if learning_rate != self.learning_rate or weight_decay != self.weight_decay:
            check_decay(weight_decay)
            rates = layer_rates(self.model, learning_rate).astype(np.float32)
            self.rates, self.kept = rates, np.exp(-weight_decay * rates.astype(np.float64))
            self.learning_rate, self.weight_decay = learning_rate, weight_decay
        if target != 1.0:
            check_target(target)
        self.changed = True
        wanted.label, wanted.target, wanted.values = 0, target, NULL
        for i in range(samples.n):
            sample = samples.get(i)
            if numeric:
                wanted.values = <const float *>t + i * self.n_classes
            else:
                wanted.label = t[i]
            loss += mlp_step(self.c, &sample, &wanted, &self.rates[0], &self.kept[0],
                             1.0 if weights is None else weights[i], &errors)
            if i % STEPS == STEPS - 1:
                _let_others()
        return TrainingResult(samples.n, errors, loss)

    def predict(self, images):
        cdef _Samples samples = _Samples(images, self.n_in)
        outputs = np.empty((samples.n, self.n_classes), np.float32)
        cdef float[:, ::1] y = outputs
        cdef mlp_sample sample
        cdef Py_ssize_t i
        for i in range(samples.n):
            sample = samples.get(i)
            mlp_step_outputs(self.c, &sample, &y[i, 0])
            if i % STEPS == STEPS - 1:
                _let_others()
        return outputs

    @property
    def network(self):
        """The network with the weights as they are now, which no later step changes."""
        cdef Network network
        if self.changed:
            network = self.model.copy()
            self.changed = False
            self.store(network)
            self.stored = network
        return self.stored


cdef int _let_others() except -1:
    """Runs signal handlers, and lets other threads run, between two samples."""
    PyErr_CheckSignals()
    with nogil:
        pass
    return 0


def _fail_call(long n):
    """Count calls of C from now on, and let number n fail; 0 ends that. For tests.

    Returns, for the count before, the calls left until one failed and the blocks not freed.
    """
    cdef long left, held
    mlp_fail_call(n, &left, &held)
    return left, held
