// A block's weights: where they lie, and their products with inputs and deltas.
#pragma once

#include "exchange.cuh"
#include "layout.cuh"
#include "resident_job.cuh"

constexpr int CHAINS = 4;  // additions side by side, for one sum

// Deals elements 0 ... n - 1 of a vector out to the threads: calls body(element, i) for the i-th
// element of this thread.
template <int n, class F>
__device__ __forceinline__ void for_elements(F body)
{
#pragma unroll
    for (int i = 0; i < ceil_div(n, THREADS); i++) {
        const int element = i * THREADS + threadIdx.x;
        if ((i + 1) * THREADS <= n || element < n) body(element, i);
    }
}

// The sum of term(0) ... term(n - 1). Term i goes into chain i % 4, and the chains are then added
// up: within a chain, each addition waits for the one before.
template <int n, class F>
__device__ __forceinline__ float sum_of(F term)
{
    constexpr int USED = n < CHAINS ? n : CHAINS;
    float sums[USED];
#pragma unroll
    for (int i = 0; i < n; i++) sums[i % USED] = i < USED ? term(i) : sums[i % USED] + term(i);
#pragma unroll
    for (int i = 1; i < USED; i *= 2)
#pragma unroll
        for (int j = 0; j + i < USED; j += 2 * i) sums[j] += sums[j + i];
    return sums[0];
}

// All of a block's shared memory. The compiler would not know that a pointer kept in a structure
// points to shared memory, and every access would have to find out.
__device__ __forceinline__ float *shared()
{
#ifdef __CUDACC__
    extern __shared__ float memory[];
    return memory;
#else
    return emulated_dynamic_shared();
#endif
}

struct block_weights {
    float weight_registers[REGISTERS > 0 ? REGISTERS : 1];
    int coordinates[2];  // this block's slice of even and of odd boundaries
    resident_control *control;

    template <int l>
    __device__ __forceinline__ float get(int slot) const
    {
        if (slot < tile<l>::REGISTERS) return weight_registers[registers_before<l> + slot];
        return shared()[kept_index<l>(slot)];
    }

    template <int l>
    __device__ __forceinline__ void set(int slot, float value)
    {
        if (slot < tile<l>::REGISTERS)
            weight_registers[registers_before<l> + slot] = value;
        else
            shared()[kept_index<l>(slot)] = value;
    }

    template <int l>
    static __device__ __forceinline__ int kept_index(int slot)
    {
        return KEPT_AT + (kept_before<l> + slot - tile<l>::REGISTERS) * THREADS + threadIdx.x;
    }

    // This block's slice of boundary k: its first element and its length.
    template <int k>
    __device__ __forceinline__ int first() const
    {
        return k == LAYERS ? 0 : (int)((long long)size_of<k> * coordinates[k % 2] / parts_of<k>);
    }

    template <int k>
    __device__ __forceinline__ int length() const
    {
        if (k == LAYERS) return size_of<LAYERS>;
        return (int)((long long)size_of<k> * (coordinates[k % 2] + 1) / parts_of<k>)-first<k>();
    }

    // Calls body(slot, index into the matrix, whether there is such a weight) for each slot.
    template <int l, class F>
    __device__ __forceinline__ void for_weights(F body)
    {
        using t = tile<l>;
        const int thread = opaque(threadIdx.x), tr = thread % t::TR, tc = thread / t::TR;
        const int stride = ceil_div(size_of<l + 1>, PITCH) * PITCH;
        const int rows = length<l + 1>(), columns = length<l>();
#pragma unroll
        for (int j = 0; j < t::TILE_COLUMNS; j++)
#pragma unroll
            for (int i = 0; i < t::TILE_ROWS; i++) {
                const int row = tr + i * t::TR, column = tc + j * t::TC;
                const size_t connection = 1 + first<l>() + column;
                body(j * t::TILE_ROWS + i, connection * stride + first<l + 1>() + row,
                     row < rows && column < columns);
            }
    }

    template <int l>
    __device__ __forceinline__ void load(const resident_job &job)
    {
        const float *matrix = job.weights[l];
        for_weights<l>(
            [&](int slot, size_t at, bool there) { set<l>(slot, there ? matrix[at] : 0.0f); });
        for_elements<tile<l>::ROWS>([&](int row, int) {
            const bool there = row < length<l + 1>();
            shared()[biases_at<l + 1> + row] = there ? matrix[first<l + 1>() + row] : 0.0f;
        });
        if constexpr (l < TOP) load<l + 1>(job);
    }

    // Several blocks have the same biases and the same part of the last layer: one of them writes.
    template <int l>
    __device__ __forceinline__ void store(const resident_job &job)
    {
        float *matrix = job.weights[l];
        bool finite = true;
        const auto write = [&](size_t at, float value) {
            matrix[at] = value;
            finite = finite && fabsf(value) < INFINITY;
        };
        if (l < TOP || coordinates[(TOP + 1) % 2] == 0)
            for_weights<l>([&](int slot, size_t at, bool there) {
                if (there) write(at, get<l>(slot));
            });
        const bool writes_biases =
            coordinates[l % 2] == 0 && (l < TOP || coordinates[1 - l % 2] == 0);
        if (writes_biases)
            for_elements<tile<l>::ROWS>([&](int row, int) {
                if (row < length<l + 1>())
                    write(first<l + 1>() + row, shared()[biases_at<l + 1> + row]);
            });
        if (!finite) control->not_finite = 1;
        if constexpr (l < TOP) store<l + 1>(job);
    }

    // ---- sums over the threads of the block ----

    __device__ __forceinline__ float *scratch() const { return shared() + SCRATCH_AT; }

    template <int k>
    __device__ __forceinline__ float *states() const
    {
        return shared() + states_at<k>;
    }

    template <int k>
    __device__ __forceinline__ float *deltas() const
    {
        return shared() + deltas_at<k>;
    }

    // One of the two halves of the inputs.
    __device__ __forceinline__ float *inputs(int half) const
    {
        return shared() + half * tile<0>::PADDED_COLUMNS;
    }

    // Puts the threads' parts of W x into scratch.
    template <int l>
    __device__ __forceinline__ void forward(const float *x)
    {
        using t = tile<l>;
        const int tr = threadIdx.x % t::TR, tc = threadIdx.x / t::TR;
        float sum[t::TILE_ROWS] = {};
#pragma unroll t::UNROLLED
        for (int j = 0; j < t::TILE_COLUMNS; j++) {
            const float value = x[tc + j * t::TC];
#pragma unroll
            for (int i = 0; i < t::TILE_ROWS; i++)
                sum[i] = fmaf(get<l>(j * t::TILE_ROWS + i), value, sum[i]);
        }
#pragma unroll
        for (int i = 0; i < t::TILE_ROWS; i++)
            scratch()[(tr + i * t::TR) * t::FORWARD_PITCH + tc] = sum[i];
    }

    // Puts the threads' parts of W^T delta into scratch.
    template <int l>
    __device__ __forceinline__ void backward()
    {
        using t = tile<l>;
        const int tr = threadIdx.x % t::TR, tc = threadIdx.x / t::TR;
        float sum[t::TILE_COLUMNS] = {};
#pragma unroll t::UNROLLED
        for (int i = 0; i < t::TILE_ROWS; i++) {
            const float delta = deltas<l + 1>()[tr + i * t::TR];
#pragma unroll
            for (int j = 0; j < t::TILE_COLUMNS; j++)
                sum[j] = fmaf(get<l>(j * t::TILE_ROWS + i), delta, sum[j]);
        }
#pragma unroll
        for (int j = 0; j < t::TILE_COLUMNS; j++)
            scratch()[(tc + j * t::TC) * t::BACKWARD_PITCH + tr] = sum[j];
    }

    template <int l>
    __device__ __forceinline__ float rate() const
    {
        return shared()[RATES_AT + l];
    }

    // W -= eta delta x^T.
    template <int l>
    __device__ __forceinline__ void update(const float *x)
    {
        using t = tile<l>;
        const float step = -rate<l>();
        const int tr = threadIdx.x % t::TR, tc = threadIdx.x / t::TR;
        float change[t::TILE_ROWS];
#pragma unroll
        for (int i = 0; i < t::TILE_ROWS; i++) change[i] = step * deltas<l + 1>()[tr + i * t::TR];
#pragma unroll t::UNROLLED
        for (int j = 0; j < t::TILE_COLUMNS; j++) {
            const float value = x[tc + j * t::TC];
#pragma unroll
            for (int i = 0; i < t::TILE_ROWS; i++) {
                const int slot = j * t::TILE_ROWS + i;
                set<l>(slot, fmaf(change[i], value, get<l>(slot)));
            }
        }
    }

    // Sums the threads' parts of elements 0 ... n - 1 and calls body(element, sum). One thread sums
    // an element, because a shuffle takes longer than some additions.
    template <int n, int parts, class F>
    __device__ __forceinline__ void for_sums(F body)
    {
        for_elements<n>([&](int element, int) {
            const float *part = scratch() + element * (parts | 1);
            body(element, sum_of<parts>([&](int i) { return part[i]; }));
        });
    }
};
