// On-line training with weights that never leave the chip. One launch trains thousands of samples,
// one after the other, with the same meaning as if each were trained alone.
//
// With batch size 1 a device has little to compute. Kernels for each layer spend their time on
// launches and on reading all weights from memory for every sample. Here there are P x Q blocks,
// one in each multiprocessor. Each reads its share of the weights once, keeps it in registers and
// shared memory, and writes it back at the end. Only sums of a few floats travel.
//
// Partition. Boundary 0 is the inputs, boundary k is the outputs of layer k - 1. Odd boundaries are
// cut into P slices, even ones into Q. Block (p, q) owns slice p of every odd boundary and slice q
// of every even one. Of each layer's matrix it owns the weights where its two slices meet:
//
//     W of layer 0      columns: slice q of the inputs      rows: slice p of boundary 1
//     W of layer 1      columns: slice p of boundary 1      rows: slice q of boundary 2    ...
//
// So the slice that a block needs as the input of layer k is the slice that it helps to sum as the
// output of layer k - 1. Forward, block (p, q) has the part of slice p's sums that comes from its
// columns; the Q blocks with the same p have the other parts. They exchange their parts, and each
// adds up all of them in the same order. Then each has slice p of the states, which is all that
// its part of the next layer needs. Backward it is the same: the deltas of boundary k are sums over
// the blocks that share its slice. Every exchange is thus an all-reduce of one slice within a row
// or a column of the grid, and all its members get the same bits.
//
// The last layer is not cut into rows: every block computes all outputs, their deltas, and the
// deltas of the boundary below, which then needs no exchange. A softmax needs none either. L layers
// have 2 L - 2 exchanges a sample. Cutting the columns of the last layer costs one of them.
// Otherwise every block would read all parts of all of boundary L - 1, which takes longer: 4,000
// words instead of 256 for net1 on an H200.
//
// Exchange. Each block writes its parts as words of a value and a bit of the sample's ticket
// (exchange.cuh). A block that needs them polls the words themselves. There is no barrier and no
// fence. Two buffers alternate, which is enough: a block writes a buffer again for ticket t + 2
// after it has seen the parts of ticket t + 1 from all members, and a member writes these after it
// has read all parts of ticket t. In every block the same thread writes and reads the parts of an
// element, so this holds for each word on its own. It also holds for the words of boundary 1,
// whose parts of ticket t + 1 are sent and read during ticket t.
//
// Threads. A block's threads form a grid of thread_rows x thread_columns over its weights of a
// layer; see layer_plan in resident_plan.h. mlpcore/backends/cuda/plan.py writes that file for one
// architecture and one kind of device, and resident_layout.cuh derives the rest. A weight belongs
// to one thread in forward, backward and update, so weights in shared memory need no barrier. All
// indices of registers are constants: every loop over a tile is unrolled. Sums over threads pass
// through `scratch`.
//
// Order of sums: a thread's columns (backward: its rows) ascending, then threads, then blocks; the
// last two by `sum_of`. The same plan gives the same bits, whatever the timing.
//
// Waiting is used for work. Weights are updated while a block waits for words. While it waits for
// the outputs of a sample x, it computes the first layer's sums of the next sample x':
//
//     W' x' = (W - eta delta x^T) x' = W x' - eta delta (x . x')
//
// It sends its parts of W x' at once, with the next sample's ticket, and takes those of the others
// while it waits for the deltas of boundary 1. When such a delta arrives, its thread has all it
// needs for a state of the next sample: x . x' was computed before the launch. So the first
// boundary's sums need no exchange that anybody waits for, except in samples that are not prepared.
// L layers then wait for 2 L - 3 exchanges a sample.
//
// This rounds differently from W' x', and the first sample of a launch has no such sums. So that
// results do not depend on where launches begin, nothing is computed ahead for samples whose number
// is a multiple of 64, and launches begin at these.
//
// A block that waits too long, or sees that another has given up, goes on without waiting. It ends
// before the next sample, and the host is told which exchange it was.
#include "activation.cuh"
#include "exchange.cuh"
#include "layout.cuh"
#include "resident_layout.cuh"
#include "resident_plan.h"
#include "training_state.cuh"

constexpr int SAMPLES_PER_BLOCK = 64;  // launches begin at multiples of this
constexpr int POLLS_PER_CHECK = 256;   // polls between two looks at the clock
constexpr int WORDS_AT_A_TIME = 16;    // words that a thread waits for together
constexpr int CHAINS = 4;              // additions side by side, for one sum

// CONTROL in mlpcore/backends/cuda/resident.py mirrors it. All but the limit is zero when a launch
// starts.
struct resident_control {
    unsigned long long limit;  // nanoseconds that a wait may take
    int given_up;              // 0, or 1 + the exchange in which a block has waited too long
    int block, step;           // that block, and the step of the launch
    int not_finite;            // whether a weight is infinite or NaN at the end
};

// A network and its samples. job_type in mlpcore/backends/cuda/resident.py mirrors it.
struct resident_job {
    const float *images;          // (n, SIZES[0])
    const unsigned char *labels;  // (n)
    const int *order;             // the image of each step
    const float *rates;           // (LAYERS) eta of each layer
    training_state *state;        // its target is read, its counts are written at the end
    exchange_word *words;         // (PLANNED_WORDS), zero when training starts, at ticket 2
    const float *products;        // (steps) x . x' of each step's inputs and the next one's
    resident_control *control;
    int begin;               // index into `order` of the first sample
    int steps;               // 1 or more
    unsigned first_ticket;   // of the first sample, modulo 4: one more than the last one's
    float *weights[LAYERS];  // as in layout.cuh
};

// ---- a block at work -------------------------------------------------------------------

// Deals elements 0 ... n - 1 of a vector out to the threads: calls body(element, i) for the i-th
// element of this thread.
template <int n, class F>
__device__ __forceinline__ void for_own(F body)
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

// Where the words of a sample begin, and the bit that marks them.
struct words_of_sample {
    exchange_word *words, bit;
};

// What a thread keeps, and what it does.
struct block_worker {
    float weight_registers[REGISTERS > 0 ? REGISTERS : 1];
    float pixels[ceil_div(slice(0), THREADS)];  // of the next sample, still being loaded
    words_of_sample now, next;                  // of this sample and of the next
    // In an exchange of an even or odd boundary: where this block's row of words is, and where the
    // first row of its group is.
    int sends[2], takes[2];
    resident_control *control;
    int coordinates[2];  // this block's slice of even and of odd boundaries
    int step, parity;    // parity: which half of the inputs belongs to this sample
    bool stopped;

    // ---- weights ----

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
        for_own<tile<l>::ROWS>([&](int row, int) {
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
            for_own<tile<l>::ROWS>([&](int row, int) {
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
        for_own<n>([&](int element, int) {
            const float *part = scratch() + element * (parts | 1);
            body(element, sum_of<parts>([&](int i) { return part[i]; }));
        });
    }

    // ---- sums over blocks ----

    __device__ __forceinline__ void find_words(exchange_word *words, unsigned ticket)
    {
        now = {opaque(words + ticket % 2 * HALF), opaque(ticket_bit(ticket))};
        next = {opaque(words + (ticket + 1) % 2 * HALF), opaque(ticket_bit(ticket + 1))};
        find_rows<0>();
        find_rows<1>();
    }

    template <int parity>
    __device__ __forceinline__ void find_rows()
    {
        const int first = coordinates[parity] * parts_of<1 - parity>;
        takes[parity] = opaque(first * ROW);
        sends[parity] = opaque((first + coordinates[1 - parity]) * ROW);
    }

    // Goes on to the next sample; tickets t and t + 2 share a buffer.
    __device__ __forceinline__ void turn_over()
    {
        const words_of_sample before = now;
        now = next;
        next = {before.words, before.bit ^ 1};
    }

    // Sends this block's part of an element to the members of its group.
    template <int k, bool BACKWARD>
    __device__ __forceinline__ void publish(const words_of_sample &to, int element, float value)
    {
        store_word(to.words + words_at<k, BACKWARD> + (sends[k % 2] + element), value, to.bit);
    }

    // Sends the sums of the threads' parts of a boundary's slice; see `for_sums`.
    template <int k, bool BACKWARD, int parts>
    __device__ __forceinline__ void publish_sums(const words_of_sample &to)
    {
        for_sums<slice(k), parts>(
            [&](int element, float sum) { publish<k, BACKWARD>(to, element, sum); });
    }

    // Sums all members' parts of this block's slice: calls body(element, sum) for each element.
    template <int k, bool BACKWARD, class F>
    __device__ __forceinline__ void collect(F body)
    {
        for_own<slice(k)>(
            [&](int element, int) { body(element, receive<k, BACKWARD>(now, step, element)); });
    }

    // The sum of all members' parts of an element, once they are there.
    template <int k, bool BACKWARD>
    __device__ __forceinline__ float receive(const words_of_sample &from, int of_step, int element)
    {
        constexpr int MEMBERS = parts_of<k + 1>;
        constexpr int MOST = MEMBERS < WORDS_AT_A_TIME ? MEMBERS : WORDS_AT_A_TIME;
        const exchange_word *first = from.words + words_at<k, BACKWARD> + (takes[k % 2] + element);
        float sum = 0.0f;
#pragma unroll
        for (int begin = 0; begin < MEMBERS; begin += MOST) {
            const int n = MEMBERS - begin < MOST ? MEMBERS - begin : MOST;
            exchange_word found[MOST];
            int polls = 0;
            unsigned long long since = 0;
            while (true) {
#pragma unroll
                for (int i = 0; i < MOST; i++)
                    found[i] = i < n ? load_word(first + (begin + i) * ROW) : found[i - 1];
                // The last words are looked at first: then all have been asked for.
                exchange_word others = 0;
#pragma unroll
                for (int i = (MOST - 1) / 2; i >= 0; i--)
                    others = either(
                        others,
                        either_other(found[2 * i], found[min(2 * i + 1, MOST - 1)], from.bit));
                if (!(others & 1) || stopped) break;
                poll_again();
                if (++polls % POLLS_PER_CHECK == 0)
                    check_time(since, exchange<k, BACKWARD>, of_step);
            }
            const float part =
                sum_of<MOST>([&](int i) { return i < n ? word_value(found[i]) : 0.0f; });
            sum = begin == 0 ? part : sum + part;
        }
        return sum;
    }

    // In a long wait, decides whether to give up.
    __device__ __forceinline__ void check_time(unsigned long long &since, int exchange, int of_step)
    {
        const unsigned long long now = nanoseconds();
        if (since == 0) since = now;
        if (now - since > control->limit && atomicCAS(&control->given_up, 0, 1 + exchange) == 0) {
            control->block = blockIdx.x;
            control->step = of_step;
        }
        stopped = stopped || load_flag(&control->given_up) != 0;
    }

    // ---- samples ----

    // Starts to load this block's slice of the next sample's inputs.
    __device__ __forceinline__ void request_inputs(const resident_job &job, int image)
    {
        const float *x = job.images + (size_t)image * size_of<0> + first<0>();
        for_own<slice(0)>([&](int i, int n) { pixels[n] = i < length<0>() ? x[i] : 0.0f; });
    }

    // Writes the requested inputs to shared memory.
    __device__ __forceinline__ void keep_inputs(float *x)
    {
        for_own<slice(0)>([&](int i, int n) { x[i] = pixels[n]; });
    }

    // Computes this block's parts of the next sample's first sums, with the present weights, and
    // sends them.
    __device__ __forceinline__ void look_ahead()
    {
        __syncthreads();  // scratch has been read
        forward<0>(inputs(1 - parity));
        __syncthreads();
        publish_sums<1, false, tile<0>::TC>(next);
    }

    // Takes the next sample's first sums, which wait where this sample's deltas will be.
    __device__ __forceinline__ void take_sums_ahead()
    {
        for_own<slice(1)>([&](int element, int) {
            deltas<1>()[element] = receive<1, false>(next, step + 1, element);
        });
    }

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

    // Computes this block's parts of a layer's sums and sends them to its group.
    template <int l>
    __device__ __forceinline__ void forward_and_publish()
    {
        if constexpr (l == 0)
            forward<0>(inputs(parity));
        else
            forward<l>(states<l>());
        __syncthreads();
        publish_sums<l + 1, false, tile<l>::TC>(now);
    }

    // Computes the states of hidden layer l + 1.
    template <int l>
    __device__ __forceinline__ void take_states()
    {
        collect<l + 1, false>([&](int row, float sum) {
            states<l + 1>()[row] = activate(HIDDEN, sum + shared()[biases_at<l + 1> + row]);
        });
        __syncthreads();
    }

    // Computes the states of hidden layers l + 1, l + 2, ...; those of layer 1 are there. While the
    // first exchange of the sample is under way, it calls `catch_up`, and then keeps the next
    // inputs, because nobody needs those of the sample before any more.
    template <int l, class F>
    __device__ __forceinline__ void forward_from(F catch_up)
    {
        if constexpr (l < TOP) {
            forward_and_publish<l>();
            if constexpr (l == 1) catch_up();
            take_states<l>();
            if constexpr (l == 1) keep_inputs(inputs(1 - parity));
            forward_from<l + 1>(catch_up);
        } else {
            forward_and_publish<TOP>();
            if constexpr (TOP == 1) {
                catch_up();
                __syncthreads();
                keep_inputs(inputs(1 - parity));
            }
        }
    }

    // Computes the outputs and their deltas, in every block; the outputs' parts have been sent.
    __device__ __forceinline__ void outputs(int label, bool last)
    {
        if (!last) look_ahead();
        if constexpr (OUTPUT == SOFTMAX)
            softmax_deltas(label, last);
        else
            tanh_deltas(label, last);
        __syncthreads();
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
        for_own<OUTPUTS>([&](int row, int) {
            powers[row] = expf(sums[row] - greatest);
            if (row == label) shared()[TARGET_AT] = greatest - sums[row];
        });
        __syncthreads();  // all powers are there
        float total = 0.0f;
#pragma unroll 16
        for (int i = 0; i < OUTPUTS; i++) total += powers[i];
        const float scale = reciprocal(total);
        for_own<OUTPUTS>([&](int row, int) {
            take_delta<LAYERS>(row, powers[row] * scale - (row == label ? 1.0f : 0.0f), last);
        });
    }

    // Computes the deltas of boundary l and below, and updates layer l and below except the first.
    template <int l>
    __device__ __forceinline__ void backward_from(bool last)
    {
        if constexpr (l > 0) {
            const auto take = [&](int column, float sum) {
                take_delta<l>(column, hidden_delta(HIDDEN, sum, states<l>()[column]), last);
            };
            backward<l>();
            if constexpr (TOP == 1) update<TOP>(states<TOP>());
            __syncthreads();
            if constexpr (l < TOP) {
                publish_sums<l, true, tile<l>::TR>(now);
                update_from<l>();
            }
            if constexpr (l == 1) {
                if (!last) take_sums_ahead();
                if constexpr (TOP > 1) __syncthreads();  // the states have been read
            }
            if constexpr (l < TOP)
                collect<l, true>(take);
            else
                for_sums<slice(l), tile<l>::TR>(take);
            if constexpr (l > 1) __syncthreads();
            backward_from<l - 1>(last);
        }
    }

    // Updates what it can while the deltas of boundary l are on their way: layer l, and before it
    // the last layer, which has no exchange of its own to wait for.
    template <int l>
    __device__ __forceinline__ void update_from()
    {
        if constexpr (l + 1 == TOP) update<TOP>(states<TOP>());
        update<l>(states<l>());
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

// Trains samples. The state's step is not read.
//
//   grid    BLOCKS, which must all run side by side
//   block   THREADS
//   shared  PLANNED_SHARED_FLOATS, dynamic
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    resident_train_kernel(const resident_job *__restrict__ job_at)
{
    const resident_job &job = *job_at;
    const int begin = job.begin, steps = job.steps;
    const int block = blockIdx.x;
    const bool observer = block == 0 && threadIdx.x == THREADS - 1;
    for (int i = threadIdx.x; i < KEPT_AT; i += THREADS) shared()[i] = 0.0f;
    __syncthreads();
    for_own<LAYERS>([&](int l, int) { shared()[RATES_AT + l] = job.rates[l]; });
    if (threadIdx.x == 0) shared()[TARGET_AT] = job.state->target;

    block_worker worker;
    worker.control = job.control;
    worker.coordinates[0] = block % parts_of<0>;
    worker.coordinates[1] = block / parts_of<0>;
    worker.find_words(job.words, job.first_ticket);
    worker.stopped = false;
    worker.load<0>(job);

    // Indices are loaded two samples ahead and pixels one, so that nobody waits for memory.
    const int *order = job.order + begin;
    int image = order[0], after = order[min(1, steps - 1)];
    int next_label = job.labels[image];
    worker.request_inputs(job, image);
    worker.keep_inputs(worker.inputs(0));
    image = after;
    worker.request_inputs(job, image);
    after = order[min(2, steps - 1)];
    __syncthreads();

    double loss = 0.0;
    int errors = 0, step = 0, label = 0;
    for (; step < steps && !worker.stopped; step++) {
        const bool fresh = (begin + step) % SAMPLES_PER_BLOCK == 0 || step == 0;
        const bool last = (begin + step + 1) % SAMPLES_PER_BLOCK == 0 || step == steps - 1;
        const int last_label = label;
        label = next_label;
        worker.step = step;
        worker.parity = step % 2;
        if (fresh) {
            worker.forward_and_publish<0>();
            worker.take_states<0>();
        }
        worker.forward_from<1>([&] {
            if (threadIdx.x == 0) shared()[PRODUCT_AT] = job.products[step];
            // For the sample before.
            if (!fresh) worker.update<0>(worker.inputs(1 - worker.parity));
            if (observer && step > 0)
                observe(shared() + OUTPUTS_AT, last_label, shared()[TARGET_AT], loss, errors);
        });
        next_label = job.labels[image];
        image = after;
        worker.request_inputs(job, image);
        after = order[min(step + 3, steps - 1)];
        worker.outputs(label, last);
        worker.backward_from<TOP>(last);
        worker.stopped = __syncthreads_or(worker.stopped);  // all give up if one does
        if (last) worker.update<0>(worker.inputs(worker.parity));
        worker.turn_over();
    }
    if (worker.stopped) return;
    worker.store<0>(job);
    if (observer) {
        observe(shared() + OUTPUTS_AT, label, shared()[TARGET_AT], loss, errors);
        job.state->loss += loss;
        job.state->errors += errors;
        job.state->step += steps;
    }
}
