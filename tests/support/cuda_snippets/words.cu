// Stores a value as a word and loads it again; `words` get the tickets' bits.
#include "../../cuda/exchange.cuh"

extern "C" __global__ void round_trip_kernel(const float *values, float *out, unsigned *words,
                                             int bit)
{
    const int i = threadIdx.x;
    store_word(words + i, values[i], bit);
    const exchange_word word = load_word(words + i);
    out[i] = word_value(word);
    words[i] = word & 1;
}
