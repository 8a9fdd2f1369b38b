// The deltas of the outputs, what every delta is used for, and a sample's loss.
#pragma once

#include "activation.cuh"
#include "resident_exchange.cuh"

struct block_deltas : block_exchange {
    // Uses a delta of boundary k: for the update, the bias, and the next sample's first state.
    template <int k>
    __device__ __forceinline__ void take_delta(int element, float delta, bool last)
    {
        float &bias = shared()[biases_at<k> + element];
        bias = fmaf(-rate<k - 1>(), delta, bias);
        if constexpr (k == 1)
            if (!last) {
                const float product = shared()[PRODUCT_AT];
                const float sum = fmaf(-rate<0>() * delta, product, deltas<1>()[element]);
                states<1>()[element] = activate(HIDDEN, sum + bias);
            }
        deltas<k>()[element] = delta;
    }

    __device__ __forceinline__ void tanh_deltas(int label, bool last)
    {
        const float target = shared()[TARGET_AT];
        collect<LAYERS, false>([&](int row, float sum) {
            const float y = scaled_tanh(sum + shared()[biases_at<LAYERS> + row]);
            shared()[OUTPUTS_AT + row] = y;
            take_delta<LAYERS>(row, (y - (row == label ? target : -target)) * slope(y), last);
        });
    }

    // The sums wait where the deltas will be. The powers exp(a - max a) take the outputs' place.
    __device__ __forceinline__ void softmax_deltas(int label, bool last)
    {
        float *sums = deltas<LAYERS>(), *powers = shared() + OUTPUTS_AT;
        collect<LAYERS, false>(
            [&](int row, float sum) { sums[row] = sum + shared()[biases_at<LAYERS> + row]; });
        __syncthreads();  // all sums are there
        float greatest = -INFINITY;
#pragma unroll 16
        for (int i = 0; i < OUTPUTS; i++) greatest = fmaxf(greatest, sums[i]);
        for_elements<OUTPUTS>([&](int row, int) {
            powers[row] = expf(sums[row] - greatest);
            if (row == label) shared()[TARGET_AT] = greatest - sums[row];
        });
        __syncthreads();  // all powers are there
        float total = 0.0f;
#pragma unroll 16
        for (int i = 0; i < OUTPUTS; i++) total += powers[i];
        const float scale = reciprocal(total);
        for_elements<OUTPUTS>([&](int row, int) {
            take_delta<LAYERS>(row, powers[row] * scale - (row == label ? 1.0f : 0.0f), last);
        });
    }
};

// Adds a sample's loss and error, the outputs ascending. One thread of one block does this. Of a
// softmax, the outputs are its powers, and `target` is how far the class is below the greatest sum.
__device__ inline void observe(const float *outputs, int label, double target, double &loss,
                               int &errors)
{
    double sum = 0.0;
    float best = -INFINITY;
    int guess = 0;
#pragma unroll 2  // all at once would take registers, and there is time
    for (int i = 0; i < OUTPUTS; i++) {
        const float y = outputs[i];
        const double error = (double)y - (i == label ? target : -target);
        sum = OUTPUT == SOFTMAX ? sum + y : fma(error, error, sum);
        if (y > best) {
            best = y;
            guess = i;
        }
    }
    loss += OUTPUT == SOFTMAX ? log1pf((float)(sum - 1.0)) + target : 0.5 * sum;
    errors += guess != label;
}
