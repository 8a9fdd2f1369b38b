"""On-line training with FANN's C library, when it is on the machine."""

from __future__ import annotations

import ctypes
import ctypes.util
from itertools import pairwise
from typing import Any

import numpy as np

from mlpcore.network import INITIAL_RANGE
from mlpcore.typing import Float32Array, Int32Array
from speed.peers.base import PaperTrainer, targets
from speed.problem import Parameters, Problem, Variant

#: FANN built for float.
LIBRARY = "floatfann"

#: Constants of fann_data.h.
TRAIN_INCREMENTAL, ERRORFUNC_LINEAR, SIGMOID_SYMMETRIC = 0, 0, 5

FLOATS = ctypes.POINTER(ctypes.c_float)

#: struct fann_connection: the neurons' numbers and the weight.
CONNECTION = np.dtype([("source", np.uint32), ("target", np.uint32), ("weight", np.float32)])


def missing() -> str | None:
    """Why FANN cannot be used here."""
    name = ctypes.util.find_library(LIBRARY)
    if name is None:
        return f"the C library lib{LIBRARY} is not installed"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        return f"{name} cannot be loaded: {' '.join(str(error).split())}"
    if not hasattr(library, "fann_get_connection_array"):
        return f"{name} is older than FANN 2.1"
    return None


def _pointer(array: Float32Array) -> Any:
    return array.ctypes.data_as(FLOATS)


class FannTrainer(PaperTrainer):
    """fann_train, one sample at a time, in one thread: it has no other for on-line training.

    Its activation is a tanh without the factor 1.7159, the derivative is taken at |y| of at
    most 0.98, and it halves the error, which a doubled learning rate makes up for. Weights
    can be read at once but only be set one by one, in a time that grows with the square of
    their number, so it draws its own.
    """

    own_start = True

    variant = Variant(amplitude=1.0, slope=0.6666, clip=0.98)

    def set_up(self, problem: Problem) -> None:
        self.threads = 1
        self.images, self.labels = problem.flat_images, problem.labels
        self.targets = targets(problem)
        self.sizes = problem.layer_sizes
        self.library = library = ctypes.CDLL(ctypes.util.find_library(LIBRARY))
        library.fann_create_standard_array.restype = ctypes.c_void_p
        library.fann_train.argtypes = (ctypes.c_void_p, FLOATS, FLOATS)
        sizes = (ctypes.c_uint * len(self.sizes))(*self.sizes)
        net = library.fann_create_standard_array(len(self.sizes), sizes)
        if not net:
            raise MemoryError("FANN cannot create the network")
        self.net = ctypes.c_void_p(net)
        slope, rate = ctypes.c_float(self.variant.slope), ctypes.c_float(2 * self.rate)
        for part in ("hidden", "output"):
            call = getattr(library, f"fann_set_activation_function_{part}")
            call(self.net, SIGMOID_SYMMETRIC)
            getattr(library, f"fann_set_activation_steepness_{part}")(self.net, slope)
        library.fann_set_training_algorithm(self.net, TRAIN_INCREMENTAL)
        library.fann_set_train_error_function(self.net, ERRORFUNC_LINEAR)
        library.fann_set_learning_rate(self.net, rate)
        library.fann_set_learning_momentum(self.net, ctypes.c_float(0.0))
        library.fann_randomize_weights(
            self.net, ctypes.c_float(-INITIAL_RANGE), ctypes.c_float(INITIAL_RANGE)
        )
        if library.fann_get_total_connections(self.net) != problem.network.n_parameters:
            raise RuntimeError("FANN's network has another number of weights")

    def train(self, order: Int32Array) -> None:
        train, net = self.library.fann_train, self.net
        for i in order:
            train(net, _pointer(self.images[i]), _pointer(self.targets[self.labels[i]]))

    def parameters(self) -> Parameters:
        n = self.library.fann_get_total_connections(self.net)
        connections = np.empty(n, CONNECTION)
        self.library.fann_get_connection_array(self.net, ctypes.c_void_p(connections.ctypes.data))
        result, begin = [], 0
        for n_in, n_out in pairwise(self.sizes):
            end = begin + n_out * (n_in + 1)
            # By neuron; its bias is the last of its connections.
            rows = connections["weight"][begin:end].reshape(n_out, n_in + 1)
            result.append((rows[:, :-1].copy(), rows[:, -1].copy()))
            begin = end
        return result

    def __del__(self) -> None:
        if getattr(self, "net", None):
            self.library.fann_destroy(self.net)
