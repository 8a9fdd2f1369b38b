// What neurons compute from their sums a: the scaled tanh of the paper, y(a) = A tanh(B a) (LeCun
// et al. 1998), the rectifier max(0, a) (Glorot et al. 2011), or a softmax.
#pragma once

// mlpcore/backends/cuda/sources.py reads these numbers.
constexpr int TANH = 0, RELU = 1, SOFTMAX = 2;

constexpr float ACTIVATION_A = 1.7159f;
constexpr float ACTIVATION_B = 0.6666f;

// 1 / q for 1 <= q, up to the last bit or two, in a third of the time of a division. A GPU differs
// from a CPU only in this, in expf and log1pf, in the order of sums, and in the last bits of words
// that blocks exchange (exchange.cuh).
__device__ inline float reciprocal(float q)
{
#ifdef __CUDACC__
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(q));
    return result;
#else
    return 1.0f / q;
#endif
}

// tanh z = z P(z^2) / Q(z^2) on [-9, 9], a minimax fit of the relative error (2e-8; 4e-7 after
// rounding); beyond 9 tanh is 1 in single precision. The C kernels use the same polynomials.
__device__ inline float scaled_tanh(float a)
{
    float z = fmaxf(-9.0f, fminf(9.0f, ACTIVATION_B * a));
    float t = z * z;
    float p = fmaf(1.3354665817644218e-08f, t, 2.0609089915524237e-05f);
    p = fmaf(p, t, 3.495588665828109e-03f);
    p = fmaf(p, t, 1.3381026685237885e-01f);
    p = fmaf(p, t, 1.0f);
    float q = fmaf(7.776561119499092e-07f, t, 3.285635611973703e-04f);
    q = fmaf(q, t, 2.5876984000205994e-02f);
    q = fmaf(q, t, 4.671434164047241e-01f);
    q = fmaf(q, t, 1.0f);
    return ACTIVATION_A * fmaxf(-1.0f, fminf(1.0f, z * p * reciprocal(q)));
}

// y'(a) of the scaled tanh from the state y = y(a).
__device__ inline float slope(float y)
{
    return ACTIVATION_B / ACTIVATION_A * ((ACTIVATION_A - y) * (ACTIVATION_A + y));
}

// y(a). A softmax needs the sums of all neurons (softmax.cuh), so its sums stay as they are. A NaN
// stays a NaN, and an activation that is missing here gives one.
__device__ inline float activate(int activation, float a)
{
    if (activation == TANH) return scaled_tanh(a);
    if (activation == RELU) return a < 0.0f ? 0.0f : a;
    return activation == SOFTMAX ? a : nanf("");
}

// The delta of a hidden neuron with state y, from the sum of the deltas above it: sum y'(a).
__device__ inline float hidden_delta(int activation, float sum, float y)
{
    if (activation == TANH) return sum * slope(y);
    if (activation == RELU) return y > 0.0f ? sum : 0.0f;
    return nanf("");
}
