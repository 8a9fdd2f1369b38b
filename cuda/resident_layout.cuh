// What follows from a plan at compile time: the tiles of resident.cu's threads, and the layout of a
// block's shared memory. mlpcore/backends/cuda/plan.py computes the sizes too; the assertions
// compare.
#pragma once

#include "resident_plan.h"

constexpr int LAYERS = sizeof(SIZES) / sizeof(SIZES[0]) - 1, TOP = LAYERS - 1;
constexpr int BLOCKS = EVEN_PARTS * ODD_PARTS;
constexpr int OUTPUTS = SIZES[LAYERS];  // classes

__host__ __device__ constexpr int greater(int a, int b) { return a > b ? a : b; }
__host__ __device__ constexpr int ceil_div(int n, int size) { return (n + size - 1) / size; }

// Elements of boundary k. Device code may use elements of a constant array only as constants.
template <int k>
constexpr int size_of = SIZES[k];

// Exchanges of a sample, numbered: forward from boundary 1 on, then backward likewise.
constexpr int EXCHANGES = LAYERS + (LAYERS - 2);
template <int k, bool BACKWARD>
constexpr int exchange = (BACKWARD ? LAYERS : 0) + k - 1;

// Slices of boundary k; the last boundary is cut as others of its parity would be.
__host__ __device__ constexpr int parts(int k) { return k % 2 ? ODD_PARTS : EVEN_PARTS; }
template <int k>
constexpr int parts_of = parts(k);

// The longest slice of a boundary.
__host__ __device__ constexpr int slice(int boundary)
{
    return boundary == LAYERS ? SIZES[LAYERS] : ceil_div(SIZES[boundary], parts(boundary));
}

// A thread's part of layer l.
template <int l>
struct tile {
    static constexpr int ROWS = slice(l + 1), COLUMNS = slice(l);
    static constexpr int TR = LAYER_PLANS[l].thread_rows, TC = LAYER_PLANS[l].thread_columns;
    static constexpr int TILE_ROWS = ceil_div(ROWS, TR), TILE_COLUMNS = ceil_div(COLUMNS, TC);
    static constexpr int PADDED_ROWS = TILE_ROWS * TR, PADDED_COLUMNS = TILE_COLUMNS * TC;
    static constexpr int SLOTS = TILE_ROWS * TILE_COLUMNS;
    static constexpr int REGISTERS = LAYER_PLANS[l].registers;
    // Registers need unrolled loops. Without them, short code is better: it is fetched for every
    // sample.
    static constexpr int UNROLLED = REGISTERS > 0 ? 1024 : 2;
    // Distances in scratch are odd, so that neighbouring threads use different banks both ways.
    static constexpr int FORWARD_PITCH = TC | 1, BACKWARD_PITCH = TR | 1;
    static constexpr int SCRATCH_FLOATS =
        greater(PADDED_ROWS * FORWARD_PITCH, PADDED_COLUMNS *BACKWARD_PITCH);
};

// Registers with weights, and slots in shared memory, of the layers before layer l.
template <int l>
constexpr int registers_before = registers_before<l - 1> + tile<l - 1>::REGISTERS;
template <>
constexpr int registers_before<0> = 0;

template <int l>
constexpr int kept_before = kept_before<l - 1> + tile<l - 1>::SLOTS - tile<l - 1>::REGISTERS;
template <>
constexpr int kept_before<0> = 0;

// Floats of scratch that the layers before layer l need.
template <int l>
constexpr int scratch_before = greater(scratch_before<l - 1>, tile<l - 1>::SCRATCH_FLOATS);
template <>
constexpr int scratch_before<0> = 0;

constexpr int REGISTERS = registers_before<LAYERS>, KEPT = kept_before<LAYERS>;

// Shared memory holds vectors by boundary, then scratch, then the weights that are not in
// registers. The vectors are the inputs of this sample and of the next, states, deltas and biases.
// They are padded to what the threads of a layer touch. The padding stays zero and adds nothing.
template <int k>
constexpr int states_at = states_at<k - 1> + tile<k - 1>::PADDED_COLUMNS;
template <>
constexpr int states_at<1> = 2 * tile<0>::PADDED_COLUMNS;

template <int k>
constexpr int deltas_at = deltas_at<k - 1> + tile<k - 2>::PADDED_ROWS;
template <>
constexpr int deltas_at<1> = states_at<LAYERS>;

template <int k>
constexpr int biases_at = biases_at<k - 1> + tile<k - 2>::ROWS;
template <>
constexpr int biases_at<1> = deltas_at<LAYERS + 1>;

constexpr int OUTPUTS_AT = biases_at<LAYERS + 1>;
constexpr int RATES_AT = OUTPUTS_AT + OUTPUTS;  // the learning rate of each layer
constexpr int TARGET_AT = RATES_AT + LAYERS;    // what `observe` calls the target
constexpr int PRODUCT_AT = TARGET_AT + 1;       // product of two samples' inputs
constexpr int SCRATCH_AT = PRODUCT_AT + 1;
constexpr int KEPT_AT = SCRATCH_AT + scratch_before<LAYERS>;
static_assert(KEPT_AT + KEPT * THREADS == PLANNED_SHARED_FLOATS, "the host plans otherwise");

// The words of the exchanges: two buffers, each with a part for each exchange, each with a row for
// each block, grouped by slice. All rows have the same length: whole lines of the cache.
__host__ __device__ constexpr int longest_slice()
{
    int longest = 0;
    for (int k = 1; k <= LAYERS; k++) longest = greater(longest, slice(k));
    return longest;
}

constexpr int LINE = 32, ROW = ceil_div(longest_slice(), LINE) * LINE;
constexpr int HALF = EXCHANGES * BLOCKS * ROW;
template <int k, bool BACKWARD>
constexpr int words_at = exchange<k, BACKWARD> * BLOCKS * ROW;
static_assert(2 * HALF == PLANNED_WORDS, "the host plans otherwise");
