"""The stepper of the C backend, for estimators that call it without Python code in between."""

from mlpcore.backends.cpu_simd cimport mlp_mixture, mlp_stepper, mlp_wanted
from mlpcore.network.network cimport Network

cdef class CStepper:
    cdef mlp_stepper *c
    cdef Network model  # whose layers C knows
    cdef Network stored  # with the weights as they were when they were stored last
    cdef int n_in, n_classes
    cdef bint changed  # since then
    cdef object learning_rate, weight_decay  # the last ones
    cdef const float[::1] rates  # of each layer
    cdef const double[::1] kept  # likewise, the share of its weights

    cdef double learn(self, const mlp_mixture *mixture, const float *inputs,
                      const mlp_wanted *wanted, double rate, float weight) noexcept
    cdef void outputs(self, const mlp_mixture *mixture, const float *inputs,
                      float *outputs) noexcept
    cdef void store(self, Network network) noexcept
    cdef void load(self) noexcept
