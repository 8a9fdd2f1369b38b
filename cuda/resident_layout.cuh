// What follows from a plan, at compile time: the tiles of resident.cu's threads, and where a block
// keeps what. mlpcore/backends/cuda/plan.py counts the same; the assertions compare.
#pragma once

#include "resident_plan.h"

constexpr int LAYERS = sizeof(SIZES) / sizeof(SIZES[0]) - 1, TOP = LAYERS - 1;
constexpr int BLOCKS = PARTS[0] * PARTS[1];
constexpr int OUTPUTS = SIZES[LAYERS];  // classes

__host__ __device__ constexpr int greater(int a, int b) { return a > b ? a : b; }
__host__ __device__ constexpr int ceil_div(int n, int size) { return (n + size - 1) / size; }

// Elements of a boundary, and slices of those that are even or odd as it is: device code may use
// elements of constant arrays as constants only.
template <int k>
constexpr int size_of = SIZES[k];
template <int k>
constexpr int parts_of = PARTS[k % 2];

// Longest slice of a boundary.
__host__ __device__ constexpr int slice(int boundary)
{
    return boundary == LAYERS ? SIZES[LAYERS] : ceil_div(SIZES[boundary], PARTS[boundary % 2]);
}

template <int l>
struct tile {
    static constexpr int ROWS = slice(l + 1), COLUMNS = slice(l);
    static constexpr int TR = LAYER_PLANS[l].thread_rows, TC = LAYER_PLANS[l].thread_columns;
    static constexpr int TILE_ROWS = ceil_div(ROWS, TR), TILE_COLUMNS = ceil_div(COLUMNS, TC);
    static constexpr int PADDED_ROWS = TILE_ROWS * TR, PADDED_COLUMNS = TILE_COLUMNS * TC;
    static constexpr int SLOTS = TILE_ROWS * TILE_COLUMNS;
    static constexpr int REGISTERS = LAYER_PLANS[l].registers;
    // Without registers there is no need to unroll, and code to be fetched for every sample.
    static constexpr int UNROLLED = REGISTERS > 0 ? 1024 : 2;
    // Odd distances in scratch: threads beside each other use different banks both ways.
    static constexpr int FORWARD_PITCH = TC | 1, BACKWARD_PITCH = TR | 1;
    static constexpr int FORWARD = PADDED_ROWS * FORWARD_PITCH;
    static constexpr int AHEAD_ROW = PADDED_ROWS;  // of scratch, for the product of inputs
    static constexpr int SCRATCH_FLOATS =
        greater(l == 0 ? FORWARD + FORWARD_PITCH : FORWARD, PADDED_COLUMNS *BACKWARD_PITCH);
};

// Registers with weights, and slots in shared memory, of the layers before a layer.
template <int l>
constexpr int registers_before = registers_before<l - 1> + tile<l - 1>::REGISTERS;
template <>
constexpr int registers_before<0> = 0;

template <int l>
constexpr int kept_before = kept_before<l - 1> + tile<l - 1>::SLOTS - tile<l - 1>::REGISTERS;
template <>
constexpr int kept_before<0> = 0;

// Scratch that the layers before a layer need.
template <int l>
constexpr int scratch_before = greater(scratch_before<l - 1>, tile<l - 1>::SCRATCH_FLOATS);
template <>
constexpr int scratch_before<0> = 0;

constexpr int REGISTERS = registers_before<LAYERS>, KEPT = kept_before<LAYERS>;

// Shared memory: vectors by boundary, then scratch, then the weights that are not in registers.
// Inputs twice, this sample's and the next; states, deltas and biases. Vectors are padded to
// what the threads of a layer touch, with zeros that stay zero and contribute nothing.
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
constexpr int TARGET_AT = RATES_AT + LAYERS;
constexpr int PRODUCT_AT = TARGET_AT + 1;  // of the inputs of this sample and the next
constexpr int SCRATCH_AT = PRODUCT_AT + 1;
constexpr int KEPT_AT = SCRATCH_AT + scratch_before<LAYERS>;
static_assert(KEPT_AT + KEPT * THREADS == PLANNED_SHARED_FLOATS, "the host plans otherwise");

// Words of the exchanges, all of one length: two buffers, in each a part for each exchange, in it
// a row for each block, grouped by slice. Rows are whole lines of the cache.
__host__ __device__ constexpr int longest_slice()
{
    int longest = 0;
    for (int k = 1; k <= LAYERS; k++) longest = greater(longest, slice(k));
    return longest;
}

constexpr int LINE = 32, ROW = ceil_div(longest_slice(), LINE) * LINE;
constexpr int EXCHANGES = LAYERS + (LAYERS - 2), HALF = EXCHANGES * BLOCKS * ROW;
template <int k, bool BACKWARD>
constexpr int words_at = ((BACKWARD ? LAYERS : 0) + k - 1) * BLOCKS * ROW;
static_assert(2 * HALF == PLANNED_WORDS, "the host plans otherwise");
