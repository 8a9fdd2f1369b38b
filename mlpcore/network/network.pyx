# cython: language_level=3
"""A fully connected network: one aligned buffer of padded rows, and NumPy views of the layers."""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free


import numpy as np

from mlpcore import philox
from mlpcore.checks import check_choice, check_whole
from mlpcore.cpu import check_memory
from mlpcore.errors import InputError, brief
from mlpcore.network.activation import ACTIVATIONS, ALL_LOSSES, INITS
from mlpcore.network.architecture import MAX_WIDTH, count_parameters

__all__ = ["Network"]

#: Initial weights and biases are uniform in plus or minus this (paper, "Architectures").
cdef double INITIAL_RANGE = 0.05

#: Bytes of a cache line. Each buffer starts at a multiple of it, and so does each row.
cdef enum:
    ALIGNMENT = 64


def _check_layer_sizes(layer_sizes):
    """Return the sizes as a tuple of ints; raise an InputError that names a wrong one."""
    try:
        sizes = tuple(layer_sizes)
    except TypeError:
        sizes = (layer_sizes,)
    shown = brief(sizes)
    if len(sizes) < 2:
        raise InputError(f"layer sizes {shown}: expected inputs, any hidden layers, and outputs")
    for size in sizes:
        check_whole(f"layer sizes {shown}: size", size, 1, MAX_WIDTH)
    sizes = tuple(int(size) for size in sizes)
    check_memory(4 * count_parameters(sizes), f"layer sizes {shown}: the weights")
    return sizes


class _Views(tuple):
    """Views, one per layer. Assigning to an item writes into the view."""

    def __setitem__(self, layer, values):
        self[layer][...] = values


cdef class Network:
    """Weights and biases of a multilayer perceptron.

    Parameters
    ----------
    layer_sizes : sequence of int
        The number of inputs, of neurons in each hidden layer, and of outputs:
        ``(841, 1000, 500, 10)``.
    seed : int or None
        Seed of the initial weights and biases. Without a seed they are zero.
    activation : str
        The hidden neurons' y(a): ``"tanh"`` is the paper's 1.7159 tanh(0.6666 a), ``"relu"``
        is max(0, a).
    loss : str
        ``"squared"`` has scaled tanh outputs, as in the paper. ``"cross-entropy"`` has
        softmax outputs: the probabilities of the classes. ``"huber"`` has linear
        outputs, for regression, and ``"binary-cross-entropy"`` sigmoids, the
        probabilities of labels that may occur together.
    init : str
        How initial values are drawn, see `initialise`.

    Attributes
    ----------
    weights : tuple of ndarray
        One (n_out, n_in) float32 view per layer. Writing into a view changes the network, and
        so does assigning to an item: ``network.weights[0] = values``.
    biases : tuple of ndarray
        One (n_out,) float32 view per layer.

    Raises
    ------
    InputError
        When a size is not positive, the weights do not fit into memory, or a name is unknown.

    Examples
    --------
    >>> network = Network((841, 1000, 500, 10), seed=1)
    >>> network.n_parameters
    1347510
    >>> [weights.shape for weights in network.weights]
    [(1000, 841), (500, 1000), (10, 500)]
    >>> network.biases[-1][:] = 0
    """

    def __cinit__(self, layer_sizes, seed=None, activation="tanh", loss="squared", init="uniform"):
        self.layer_sizes = _check_layer_sizes(layer_sizes)
        check_choice("activation", activation, ACTIVATIONS)
        check_choice("loss", loss, ALL_LOSSES)
        check_choice("init", init, INITS)
        self.activation, self.loss = activation, loss
        cdef int number = ACTIVATIONS.index(activation)
        self.hidden = <mlp_activation>number
        if number >= MLP_SOFTMAX:
            raise NotImplementedError(f"cpu_simd/network.h lacks the activation {activation!r}")
        cdef int n_layers = len(self.layer_sizes) - 1
        self.c.layers = <mlp_layer *>calloc(n_layers, sizeof(mlp_layer))
        if self.c.layers == NULL:
            raise MemoryError()
        self.c.n_layers = n_layers
        self._allocate()

    def __init__(self, layer_sizes, seed=None, activation="tanh", loss="squared", init="uniform"):
        if seed is not None:
            self.initialise(seed, init)

    def __dealloc__(self):
        free(self.c.layers)

    def _allocate(self):
        """Make one buffer for all layers; point the structs and the views into it."""
        strides = [mlp_padded(n_in + 1) for n_in in self.layer_sizes[:-1]]
        ends = np.cumsum([n * s for n, s in zip(self.layer_sizes[1:], strides)])
        raw = np.zeros(4 * int(ends[-1]) + ALIGNMENT, dtype=np.uint8)
        offset = -raw.ctypes.data % ALIGNMENT
        self._buffer = raw[offset:offset + 4 * int(ends[-1])].view(np.float32)
        weights, biases = [], []
        cdef mlp_layer *layer
        cdef int i
        for i, (n_in, n_out, stride) in enumerate(
            zip(self.layer_sizes, self.layer_sizes[1:], strides)
        ):
            rows = self._buffer[ends[i] - n_out * stride:ends[i]].reshape(n_out, stride)
            weights.append(rows[:, :n_in])
            biases.append(rows[:, n_in])
            layer = &self.c.layers[i]
            layer.n_in, layer.n_out, layer.stride = n_in, n_out, stride
            layer.weights = <float *><uintptr_t>rows.ctypes.data
            layer.activation = self.hidden
        self.weights, self.biases = _Views(weights), _Views(biases)
        layer = &self.c.layers[self.c.n_layers - 1]
        outputs = MLP_TANH, MLP_SOFTMAX, MLP_LINEAR, MLP_SIGMOID
        layer.activation = dict(zip(ALL_LOSSES, outputs))[self.loss]

    def initialise(self, seed, init="uniform"):
        """Draw all weights and biases again.

        Parameters
        ----------
        seed : int
            0 to 2**64 - 1.
        init : str
            ``"uniform"``: weights and biases uniform in [-0.05, 0.05] (paper, "Architectures").
            ``"he"``: weights uniform with the variance 2 / n_in, which keeps the size of
            rectified states from layer to layer (He et al. 2015), and biases 0.
            ``"glorot"``: the same with the variance 2 / (n_in + n_out) (Glorot and Bengio 2010),
            with which wide layers of few inputs start almost linear.
        """
        check_choice("init", init, INITS)
        for i, (weights, biases) in enumerate(zip(self.weights, self.biases)):
            drawn = philox.initial_values(weights.size + biases.size, seed, i)
            fan = self.layer_sizes[i] + (self.layer_sizes[i + 1] if init == "glorot" else 0)
            drawn *= np.float32(INITIAL_RANGE if init == "uniform" else (6 / fan) ** 0.5)
            weights[...] = drawn[:weights.size].reshape(weights.shape)
            biases[...] = drawn[weights.size:] if init == "uniform" else 0

    @property
    def n_layers(self):
        """Number of layers with weights: the hidden layers and the output layer."""
        return self.c.n_layers

    @property
    def n_parameters(self):
        """Number of weights and biases."""
        return count_parameters(self.layer_sizes)

    def is_finite(self):
        """Return whether every weight and bias is finite."""
        return bool(np.isfinite(self._buffer).all())

    def assign(self, Network other):
        """Copy the weights and biases of a network of the same layer sizes."""
        if other.layer_sizes != self.layer_sizes:
            raise InputError(f"a network of {other.layer_sizes}, expected {self.layer_sizes}")
        self._buffer[...] = other._buffer

    def copy(self):
        """Return a separate network with the same weights and biases."""
        result = Network(self.layer_sizes, activation=self.activation, loss=self.loss)
        result.assign(self)
        return result

    def __reduce__(self):
        buffer = np.asarray(self._buffer)
        return _rebuild, (self.layer_sizes, buffer, self.activation, self.loss)

    def __repr__(self):
        names = "" if self.activation == "tanh" else f", activation={self.activation!r}"
        names += "" if self.loss == "squared" else f", loss={self.loss!r}"
        return f"Network({self.layer_sizes}{names})"


def _rebuild(layer_sizes, buffer, activation, loss):
    network = Network(layer_sizes, activation=activation, loss=loss)
    (<Network>network)._buffer[...] = buffer
    return network
