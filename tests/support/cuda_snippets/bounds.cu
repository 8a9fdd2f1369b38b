// Accesses out of bounds that AddressSanitizer must catch. `n` is the length of the array.

extern "C" __global__ void read_before_kernel(const float *values, int n, float *out)
{
    // The paper's update kernel multiplies states[-1] by zero.
    const int i = (int)threadIdx.x - 1;
    if (i < n) out[threadIdx.x] = (i >= 0) * values[i];
}

extern "C" __global__ void write_after_kernel(float *values, int n)
{
    if ((int)threadIdx.x <= n) values[threadIdx.x] = 1.0f;
}

extern "C" __global__ void shared_kernel(float *out, int n)
{
    __shared__ float values[32];
    values[threadIdx.x + n - 32] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];
}

extern "C" __global__ void in_bounds_kernel(float *values, int n)
{
    if ((int)threadIdx.x < n) values[threadIdx.x] = 1.0f;
}
