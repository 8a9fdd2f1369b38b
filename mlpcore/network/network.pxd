"""The structs of a network, which the C kernels use too."""

cdef extern from "network.h" nogil:
    ctypedef enum mlp_activation:
        MLP_TANH
        MLP_SOFTMAX
        MLP_LINEAR
        MLP_SIGMOID

    ctypedef struct mlp_layer:
        int n_in
        int n_out
        int stride
        float *weights
        mlp_activation activation

    ctypedef struct mlp_network:
        int n_layers
        mlp_layer *layers

    int mlp_padded(int n)


cdef class Network:
    cdef mlp_network c
    cdef object _buffer
    cdef readonly tuple layer_sizes
    cdef readonly str activation
    cdef mlp_activation hidden  # its number
    cdef readonly str loss
    cdef readonly object weights
    cdef readonly object biases
