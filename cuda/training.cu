// The parts of an on-line training step that are not layers: its sample and its output deltas.
//
// The device keeps and advances the number of the step, so that one captured graph of several
// steps can be replayed through a whole epoch.
#include "activation.cuh"
#include "layout.cuh"
#include "softmax.cuh"
#include "training_state.cuh"

// Copies the inputs of this step's sample to a fixed place, where the layers read them.
//
//   images  (n, n_in)
//   order   (m) the image of each step
//   inputs  (n_in)
//   grid    ceil(n_in / 256)
//   block   256 threads, one input each
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    gather_kernel(const float *__restrict__ images, const int *__restrict__ order,
                  const training_state *__restrict__ state, int n_in, float *__restrict__ inputs)
{
    const int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i >= n_in) return;
    inputs[i] = images[(size_t)order[state->step] * n_in + i];
}

// Adds a sample's loss and error, and goes on to the next step. Each thread of a warp brings its
// part of the loss and the first of its greatest outputs. The guess is the first of them all.
//
//   order  the loss: one half of the warp is added to the other, again and again
//
// Every thread reads the step before the first shuffle, and thread 0 advances it after the last.
__device__ inline void count_sample(double loss, float best, int guess, int label,
                                    training_state *state)
{
#pragma unroll
    for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
        loss += __shfl_xor_sync(0xffffffffu, loss, half);
        const float other = __shfl_xor_sync(0xffffffffu, best, half);
        const int other_guess = __shfl_xor_sync(0xffffffffu, guess, half);
        if (other > best || (other == best && other_guess < guess)) {
            best = other;
            guess = other_guess;
        }
    }
    if (threadIdx.x == 0) {
        state->loss += loss;
        state->errors += guess != label;
        state->step += 1;
    }
}

// Computes the deltas of the outputs. Of a scaled tanh they are (y - t) y', where t is target for
// the class and -target for the others, and the loss is 1/2 |y - t|^2. Of a softmax they are p - t,
// where t is 1 for the class and 0 for the others, and the loss, -log p of the class, is log(sum_j
// exp(a_j - max a)) + max a - a of the class.
//
//   outputs, deltas  (n_out); the outputs of a softmax are the sums a
//   labels           (n) the class of each image
//   grid             one block
//   block            one warp; thread i takes outputs i, i + 32, ...
//   order            the loss, in double precision: each thread's terms ascending, then as above
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    output_deltas_kernel(const float *__restrict__ outputs, int n_out, int activation,
                         const unsigned char *__restrict__ labels, const int *__restrict__ order,
                         training_state *state, float *deltas)
{
    const int lane = threadIdx.x;
    const int label = labels[order[state->step]];
    const float target = state->target;
    double loss = 0.0;
    softmax_scale softmax = {};
    float scale = 0.0f, best = -INFINITY;
    int guess = n_out;
    if (activation == SOFTMAX) {
        softmax = exponentiate(outputs, n_out, deltas);
        scale = reciprocal((float)softmax.sum);
        if (lane == 0) loss = log1pf((float)(softmax.sum - 1.0));
    }
    for (int i = lane; i < n_out; i += SUM_THREADS) {
        const float y = outputs[i];
        if (activation == SOFTMAX) {
            deltas[i] = deltas[i] * scale - (i == label ? 1.0f : 0.0f);
            if (i == label) loss += softmax.greatest - y;
        } else {
            const float error = y - (i == label ? target : -target);
            deltas[i] = error * slope(y);
            loss = fma(0.5 * error, (double)error, loss);
        }
        if (y > best) {
            best = y;
            guess = i;
        }
    }
    count_sample(loss, best, guess, label, state);
}
