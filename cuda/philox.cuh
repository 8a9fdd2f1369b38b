// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, "Random123").
// The counter's layout is in mlpcore/philox.py.
#pragma once

struct philox_words {
    unsigned word[4];
};

__device__ inline philox_words philox4x32(philox_words c, unsigned key0, unsigned key1)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const unsigned high0 = __umulhi(0xD2511F53u, c.word[0]), low0 = 0xD2511F53u * c.word[0];
        const unsigned high1 = __umulhi(0xCD9E8D57u, c.word[2]), low1 = 0xCD9E8D57u * c.word[2];
        c.word[0] = high1 ^ c.word[1] ^ key0;
        c.word[1] = low1;
        c.word[2] = high0 ^ c.word[3] ^ key1;
        c.word[3] = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}
