// Stores values as words, and loads them again; `words` then get the tickets' bits.
#include "../../cuda/exchange.cuh"

extern "C" __global__ void store_kernel(const float *values, unsigned *words, int bit)
{
    store_word(words + threadIdx.x, values[threadIdx.x], bit);
}

extern "C" __global__ void load_kernel(float *out, unsigned *words)
{
    const exchange_word word = load_word(words + threadIdx.x);
    out[threadIdx.x] = word_value(word);
    words[threadIdx.x] = word & 1;
}
