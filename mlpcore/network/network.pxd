"""The structs of a network, which the C kernels use too."""

cdef extern from "network.h" nogil:
    ctypedef struct mlp_layer:
        int n_in
        int n_out
        int stride
        float *weights

    ctypedef struct mlp_network:
        int n_layers
        mlp_layer *layers

    int mlp_padded(int n)


cdef class Network:
    cdef mlp_network c
    cdef object _buffer
    cdef readonly tuple layer_sizes
    cdef readonly object weights
    cdef readonly object biases
