"""The functions of cpu_simd/ that the C backend calls. The C headers document them."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from mlpcore.network.network cimport mlp_network

cdef extern from "kernels.h" nogil:
    ctypedef struct mlp_kernels:
        void *pack_weights

    const mlp_kernels *mlp_find_kernels(const char *name, const char **reason)

cdef extern from "poll.h" nogil:
    ctypedef struct mlp_poll:
        pass

    void mlp_start_poll(mlp_poll *poll, int (*ask)(void *argument) noexcept nogil, void *argument)

cdef extern from "team_size.h" nogil:
    ctypedef struct mlp_team_size:
        pass

cdef extern from "train.h" nogil:
    ctypedef struct mlp_training:
        const mlp_network *network
        const float *images
        const uint8_t *labels
        const float *targets
        const int32_t *order
        const float *sample_weights
        int n_samples
        const float *learning_rates
        float target
        double weight_decay
        int block
        Py_ssize_t packed_from
        int sparse
        int sparse_images
        mlp_team_size *team_size
        mlp_poll poll
        int done
        int errors
        double loss

    int mlp_train(const mlp_kernels *kernels, mlp_training *training, int n_threads)

cdef extern from "stepper.h" nogil:
    ctypedef struct mlp_stepper:
        pass

    ctypedef struct mlp_sample:
        const float *values
        const int32_t *indices
        int n

    mlp_stepper *mlp_new_stepper(const mlp_kernels *kernels, const mlp_network *network)
    void mlp_free_stepper(mlp_stepper *stepper)
    ctypedef struct mlp_wanted:
        int label
        float target
        const float *values

    double mlp_step(mlp_stepper *stepper, const mlp_sample *sample, const mlp_wanted *wanted,
                    const float *learning_rates, const double *kept, float weight, int *errors)
    void mlp_step_outputs(mlp_stepper *stepper, const mlp_sample *sample, float *outputs)
    void mlp_store_steps(const mlp_stepper *stepper, const mlp_network *network)
    void mlp_load_steps(mlp_stepper *stepper)

cdef extern from "mixture.h" nogil:
    ctypedef struct mlp_progress:
        double shares[3]
        double steps

    ctypedef struct mlp_mixture:
        const mlp_network *network
        mlp_stepper *stepper
        mlp_stepper *average
        float *counts
        float *further
        float *linear
        float *linear_rates
        mlp_progress *progress
        float *rates
        float *squared
        float *sums

    double mlp_mixture_share(const double *shares, int *own)
    double mlp_mixture_step(const mlp_mixture *mixture, const float *x, const mlp_wanted *wanted,
                            double rate, float weight)
    void mlp_mixture_outputs(const mlp_mixture *mixture, const float *x, float *outputs)

cdef extern from "predict.h" nogil:
    ctypedef struct mlp_prediction:
        const mlp_network *network
        const float *images
        float *outputs
        int n
        mlp_poll poll

    int mlp_predict(const mlp_kernels *kernels, mlp_prediction *prediction, int n_threads)

cdef extern from "deformation.h" nogil:
    ctypedef struct mlp_deformation:
        int height
        int width
        int in_height
        int in_width
        const float *taps
        int cell
        int n_taps
        float alpha
        uint32_t key[2]
        uint32_t epoch
        int n
        const uint32_t *indices
        const int32_t *places
        int channels
        const void *images
        const float *values
        float *out
        Py_ssize_t in_step[4]
        Py_ssize_t out_step[4]
        const float *affine
        const float *backgrounds
        const float *given
        float *fields

    int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation, int n_threads)

cdef extern from "pixels.h" nogil:
    ctypedef struct mlp_pixels:
        int n
        int in_height
        int in_width
        int height
        int width
        const uint8_t *pixels
        const float *values
        int unit
        float *out

    int mlp_to_inputs(const mlp_pixels *pixels, int n_threads)

cdef extern from "allocate.h" nogil:
    void mlp_fail_call(long n, long *left, long *held)
