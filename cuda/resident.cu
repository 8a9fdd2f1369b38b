// On-line training with weights that never leave the chip: one launch trains thousands of
// samples one after the other, exactly as if each were trained alone.
//
// Batch size 1 leaves a device little to compute, so that per-layer kernels spend their time on
// launches and on moving all weights through memory for every sample. Here each of P x Q blocks,
// one in each multiprocessor, reads its share of the weights once, keeps it in registers and
// shared memory, and writes it back at the end. Only sums of a few floats travel.
//
// Partition. Boundary 0 are the inputs, boundary k the outputs of layer k - 1. Odd boundaries are
// cut into P slices, even ones into Q; block (p, q) owns slice p of every odd boundary and
// slice q of every even one, and of each layer's matrix the weights between its two slices:
//
//     W of layer 0      columns: slice q of the inputs      rows: slice p of boundary 1
//     W of layer 1      columns: slice p of boundary 1      rows: slice q of boundary 2    ...
//
// So what a block needs as input of layer k is what it helps to sum as output of layer k - 1.
// Forward, block (p, q) has the part of slice p's sums that its columns yield; the other parts
// are with the Q blocks of the same p. These exchange theirs, each adds up all of them in the
// same order and has slice p of the states, which is all that its part of the next layer wants.
// Backward it is the same: deltas of boundary k are sums over the blocks that share its slice.
// Every exchange is thus an all-reduce of one slice within a row or a column of the grid, and
// all members get the same bits. The last layer is not cut into rows: every block computes all
// outputs and their deltas, and the deltas of the boundary below without an exchange. With L
// layers that makes 2 L - 2 exchanges a sample. (Cutting the columns of the last layer as well
// costs one exchange of n_out numbers. Without it every block would read all parts of all of
// boundary L - 1, in net1 on an H200 4,000 words instead of 256: longer than an exchange.)
//
// Exchange. Each block writes its parts as words of a value and a bit of its epoch (exchange.cuh),
// which is the number of the sample; who needs them polls the words themselves. There is no
// barrier and no fence. Two buffers alternate with the epoch, and that is enough: a block writes
// a buffer again at epoch e + 2, after it has seen the parts of epoch e + 1 of all members, and
// a member writes these only after it has read all parts of epoch e. Threads that read and
// threads that write the parts of one element are the same thread in every block, so this holds
// for each word by itself.
//
// Threads. A block's threads form a grid of thread_rows x thread_columns over its weights of a
// layer; see layer_plan in resident_plan.h, which mlpcore/backends/cuda/plan.py writes for
// one architecture and one kind of device, and resident_layout.cuh, which says what follows from
// it. A weight belongs to one thread, in forward, backward and update, so that those in shared
// memory need no barrier either. All indices of registers are constants: every loop over a tile
// is unrolled. Sums over threads pass through `scratch`.
//
// Order of sums: a thread's columns (rows, backward) ascending, then threads, then blocks, both by
// `sum_of`. The same plan gives the same bits, whatever the timing.
//
// Version 0, for comparison and to start from, has a barrier of all blocks around a counter
// instead of epochs. 1 has epochs. 2 updates weights while it waits for words, 3 computes the
// first layer's sums of the next sample x' while it waits for the outputs of this sample x:
//
//     W' x' = (W - eta delta x^T) x' = W x' - eta delta (x . x')
//
// so that, when delta of boundary 1 arrives, its thread completes and sends the next sample's
// first sums at once; the weights follow behind. That rounds otherwise than W' x' does, and the
// first sample of a launch has nobody who looked ahead for it. So that results do not depend on
// where launches begin, no sample with a number that 64 divides is looked ahead for; launches
// begin there.
//
// Whoever waits too long, or sees that another has given up, goes on without waiting; the block
// ends before the next sample, and the host is told which exchange it was.
#include "activation.cuh"
#include "exchange.cuh"
#include "layout.cuh"
#include "resident_layout.cuh"
#include "resident_plan.h"
#include "training_state.cuh"

constexpr bool FLAGGED = VERSION >= 1, OVERLAPPED = VERSION >= 2, AHEAD = VERSION >= 3;
constexpr int SAMPLES_PER_BLOCK = 64;  // see version 3
constexpr int POLLS_PER_CHECK = 256;   // looks at words between two at the clock
constexpr int WORDS_AT_A_TIME = 16;    // that a thread waits for together
constexpr int CHAINS = 4;              // of additions side by side, for one sum

// One network and its samples; the kernel takes several. Mirrored by Resident.assign in
// cuda_resident.py.
struct resident_job {
    const float *images;          // (n, SIZES[0])
    const unsigned char *labels;  // (n)
    const int *order;             // the image of each step
    const float *rates;           // (LAYERS) eta of each layer
    training_state *state;        // its target is read, its counts are written at the end
    exchange_word *words;         // (PLANNED_WORDS), zero when training starts at epoch 2
    float *weights[LAYERS];       // as in layout.cuh
};

// Mirrored by CONTROL in cuda_resident.py; zero but for the limit when a launch starts.
struct resident_control {
    unsigned long long limit;  // nanoseconds that a wait may take
    unsigned count;            // arrivals at barriers of version 0
    int given_up;              // 0, or 1 + exchange in which a block has waited too long
    int block, step;           // which block, and the step of the launch
    int not_finite;            // a weight is infinite or NaN at the end
};

// ---- a block at work -------------------------------------------------------------------

// Elements 0 ... n - 1 of a vector over the threads: calls body(element, its number here).
template <int n, class F>
__device__ __forceinline__ void for_own(F body)
{
#pragma unroll
    for (int i = 0; i < ceil_div(n, THREADS); i++) {
        const int element = i * THREADS + threadIdx.x;
        if ((i + 1) * THREADS <= n || element < n) body(element, i);
    }
}

// The sum of term(0) ... term(n - 1): every fourth into the same of four chains, and then these,
// since each addition of a chain waits for the one before.
template <int n, class F>
__device__ __forceinline__ float sum_of(F term)
{
    constexpr int HERE = n < CHAINS ? n : CHAINS;
    float sums[HERE];
#pragma unroll
    for (int i = 0; i < n; i++) sums[i % HERE] = i < HERE ? term(i) : sums[i % HERE] + term(i);
#pragma unroll
    for (int i = 1; i < HERE; i *= 2)
#pragma unroll
        for (int j = 0; j + i < HERE; j += 2 * i) sums[j] += sums[j + i];
    return sums[0];
}

// All of a block's shared memory. A pointer kept in a structure would lose what kind of memory it
// is, and each access would have to find out.
__device__ __forceinline__ float *shared()
{
#ifdef __CUDACC__
    extern __shared__ float memory[];
    return memory;
#else
    return emulated_dynamic_shared();
#endif
}

// Where the words of a sample begin, and the bit that tells them from others.
struct words_of_sample {
    exchange_word *words, bit;
};

struct trainer {
    float weight_registers[REGISTERS > 0 ? REGISTERS : 1];
    float pixels[ceil_div(slice(0), THREADS)];  // of the next sample, on their way
    words_of_sample now, next;                  // of this sample, and of the one after it
    int sends[2], takes[2];  // of even and odd boundaries: where this block's row of words is in
                             // an exchange, and where the first row of its group is
    resident_control *control;
    int coordinates[2];  // of this block: slice of even and of odd boundaries
    int step, parity;    // which half of the inputs is this sample's
    unsigned barriers;
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

    // Calls body(slot, matrix element, whether there is one) for each weight of this thread.
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

    // Biases, and the last layer, are the same in several blocks: one of them writes.
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

    // Inputs of this sample, or of the one before or after it.
    __device__ __forceinline__ float *inputs(int which) const
    {
        return shared() + which * tile<0>::PADDED_COLUMNS;
    }

    // The threads' parts of W x, into scratch.
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

    // The threads' parts of W^T delta, into scratch.
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

    // Sums over the threads' parts of elements 0 ... n - 1, each by one thread, since a shuffle
    // takes longer than some additions: calls body(element, sum). Element `n - 1` is in row `last`.
    template <int n, int parts, int last = n - 1, class F>
    __device__ __forceinline__ void for_sums(F body)
    {
        for_own<n>([&](int element, int) {
            const float *part = scratch() + (element < n - 1 ? element : last) * (parts | 1);
            body(element, sum_of<parts>([&](int i) { return part[i]; }));
        });
    }

    // ---- sums over blocks ----

    __device__ __forceinline__ void find_words(exchange_word *words, unsigned first_epoch)
    {
        now = {opaque(words + first_epoch % 2 * HALF), opaque(epoch_bit(first_epoch))};
        next = {opaque(words + (first_epoch + 1) % 2 * HALF), opaque(epoch_bit(first_epoch + 1))};
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

    // On to the next sample: epochs e and e + 2 share a buffer.
    __device__ __forceinline__ void turn_over()
    {
        const words_of_sample before = now;
        now = next;
        next = {before.words, before.bit ^ 1};
    }

    template <int k, bool BACKWARD>
    __device__ __forceinline__ void publish(const words_of_sample &of, int element, float value)
    {
        store_word(of.words + words_at<k, BACKWARD> + (sends[k % 2] + element), value, of.bit);
    }

    // Sums over all members of the elements of this block's slice: calls body(element, sum).
    template <int k, bool BACKWARD, class F>
    __device__ __forceinline__ void collect(F body)
    {
        for_own<slice(k)>([&](int element, int) { body(element, receive<k, BACKWARD>(element)); });
    }

    // Sum of all members' parts of an element.
    template <int k, bool BACKWARD>
    __device__ __forceinline__ float receive(int element)
    {
        constexpr int MEMBERS = parts_of<k + 1>;
        constexpr int MOST = MEMBERS < WORDS_AT_A_TIME ? MEMBERS : WORDS_AT_A_TIME;
        const exchange_word *first = now.words + words_at<k, BACKWARD> + (takes[k % 2] + element);
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
                exchange_word others = 0;  // the last first, for which all have been asked for
#pragma unroll
                for (int i = (MOST - 1) / 2; i >= 0; i--)
                    others = either(others, either_other(found[2 * i],
                                                         found[min(2 * i + 1, MOST - 1)], now.bit));
                if (!FLAGGED || !(others & 1) || stopped) break;
                poll_again();
                if (++polls % POLLS_PER_CHECK == 0) check_time(since, 2 * k + BACKWARD);
            }
            const float part =
                sum_of<MOST>([&](int i) { return i < n ? word_value(found[i]) : 0.0f; });
            sum = begin == 0 ? part : sum + part;
        }
        return sum;
    }

    // In a long wait: whether to give it up.
    __device__ __forceinline__ void check_time(unsigned long long &since, int exchange)
    {
        const unsigned long long now = nanoseconds();
        if (since == 0) since = now;
        if (now - since > control->limit && atomicCAS(&control->given_up, 0, 1 + exchange) == 0) {
            control->block = blockIdx.x;
            control->step = step;
        }
        stopped = stopped || load_flag(&control->given_up) != 0;
    }

    // Version 0, between `publish` and `collect`: all blocks of all networks have come.
    __device__ __forceinline__ void barrier(int exchange)
    {
        if constexpr (!FLAGGED) {
            barriers += gridDim.x;
            __syncthreads();
            if (threadIdx.x == 0) {
                release_count(&control->count);
                int polls = 0;
                unsigned long long since = 0;
                while (acquire_count(&control->count) < barriers && !stopped) {
                    poll_again();
                    if (++polls % POLLS_PER_CHECK == 0) check_time(since, exchange);
                }
            }
            __syncthreads();
        }
    }

    // ---- samples ----

    // Inputs travel a sample ahead: `send_for_inputs` starts the loads of this block's slice, and
    // `keep_inputs` writes to shared memory what has arrived.
    __device__ __forceinline__ void keep_inputs(float *x)
    {
        for_own<slice(0)>([&](int i, int n) { x[i] = pixels[n]; });
    }

    __device__ __forceinline__ void send_for_inputs(const resident_job &job, int image)
    {
        const float *x = job.images + (size_t)image * size_of<0> + first<0>();
        for_own<slice(0)>([&](int i, int n) { pixels[n] = i < length<0>() ? x[i] : 0.0f; });
    }

    // First-layer sums of the next sample by the weights of this one, and the product of both
    // samples' inputs as one row more. The sums wait where this sample's deltas will be.
    __device__ __forceinline__ void look_ahead()
    {
        using t = tile<0>;
        const float *x = inputs(parity), *next = inputs(1 - parity);
        __syncthreads();  // scratch has been read
        forward<0>(next);
        if (threadIdx.x % t::TR == 0) {
            const int tc = threadIdx.x / t::TR;
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < t::TILE_COLUMNS; j++)
                sum = fmaf(x[tc + j * t::TC], next[tc + j * t::TC], sum);
            scratch()[t::AHEAD_ROW * t::FORWARD_PITCH + tc] = sum;
        }
        __syncthreads();
        for_sums<slice(1) + 1, t::TC, t::AHEAD_ROW>([&](int row, float sum) {
            (row < slice(1) ? deltas<1>()[row] : shared()[PRODUCT_AT]) = sum;
        });
    }

    // A delta of boundary k: for the update, for the bias, and for the next sample's first sums.
    template <int k>
    __device__ __forceinline__ void take_delta(int element, float delta, bool last)
    {
        if constexpr (k == 1 && AHEAD)
            if (!last) {
                const float sum = deltas<1>()[element], product = shared()[PRODUCT_AT];
                publish<1, false>(next, element, fmaf(-rate<0>() * delta, product, sum));
            }
        deltas<k>()[element] = delta;
        float &bias = shared()[biases_at<k> + element];
        bias = fmaf(-rate<k - 1>(), delta, bias);
    }

    // This block's parts of a layer's sums, to the members of its group.
    template <int l>
    __device__ __forceinline__ void forward_and_publish()
    {
        if constexpr (l == 0)
            forward<0>(inputs(parity));
        else
            forward<l>(states<l>());
        __syncthreads();
        for_sums<slice(l + 1), tile<l>::TC>(
            [&](int row, float sum) { publish<l + 1, false>(now, row, sum); });
    }

    // States of layers l, l + 1, ... up to the last hidden one; parts of layer l are published.
    template <int l>
    __device__ __forceinline__ void forward_from()
    {
        if constexpr (l < TOP) {
            if constexpr (l > 0) forward_and_publish<l>();
            barrier(2 * (l + 1));
            collect<l + 1, false>([&](int row, float sum) {
                states<l + 1>()[row] = activation(sum + shared()[biases_at<l + 1> + row]);
            });
            __syncthreads();
            if constexpr (l == 0) keep_inputs(inputs(1 - parity));
            forward_from<l + 1>();
        }
    }

    // The last layer, forward: outputs and their deltas, in every block.
    __device__ __forceinline__ void outputs(int label, bool last)
    {
        forward_and_publish<TOP>();
        barrier(2 * LAYERS);
        if (AHEAD && !last) look_ahead();
        const float target = shared()[TARGET_AT];
        collect<LAYERS, false>([&](int row, float sum) {
            const float y = activation(sum + shared()[biases_at<LAYERS> + row]);
            shared()[OUTPUTS_AT + row] = y;
            take_delta<LAYERS>(row, (y - (row == label ? target : -target)) * slope(y), last);
        });
        __syncthreads();
    }

    // Deltas of boundary l and below, and the updates of layer l and below but the first.
    template <int l>
    __device__ __forceinline__ void backward_from(bool last)
    {
        if constexpr (l > 0) {
            const auto take = [&](int column, float sum) {
                take_delta<l>(column, sum * slope(states<l>()[column]), last);
            };
            backward<l>();
            __syncthreads();
            if constexpr (l < TOP) {
                for_sums<slice(l), tile<l>::TR>(
                    [&](int column, float sum) { publish<l, true>(now, column, sum); });
                barrier(2 * l + 1);
                if (OVERLAPPED) update_from<l>();
                collect<l, true>(take);
            } else {
                for_sums<slice(l), tile<l>::TR>(take);
            }
            if (OVERLAPPED && TOP == 1) update<TOP>(states<TOP>());
            __syncthreads();
            if (!OVERLAPPED) update<l>(states<l>());
            backward_from<l - 1>(last);
        }
    }

    // What can be updated while the deltas of boundary l are on their way: layer l, and before
    // it the last one, which has no exchange of its own to wait for.
    template <int l>
    __device__ __forceinline__ void update_from()
    {
        if constexpr (l + 1 == TOP) update<TOP>(states<TOP>());
        update<l>(states<l>());
    }
};

// Loss and error of a sample, by one thread of one block: the outputs ascending.
__device__ inline void observe(const float *outputs, int label, double target, double &loss,
                               int &errors)
{
    double sum = 0.0;
    float best = -INFINITY;
    int guess = 0;
#pragma unroll 16
    for (int i = 0; i < OUTPUTS; i++) {
        const float y = outputs[i];
        const double error = (double)y - (i == label ? target : -target);
        sum = fma(error, error, sum);
        if (y > best) {
            best = y;
            guess = i;
        }
    }
    loss += 0.5 * sum;
    errors += guess != label;
}

// Trains so many samples of each network.
//
//   jobs         one for each network, of the same layer sizes
//   begin        index into `order` of the first; the states' step is not looked at
//   steps        samples, 1 or more
//   first_epoch  epoch of the first modulo 4; one more than that of the last before
//   grid         networks x BLOCKS, all of which must be resident at once
//   block        THREADS
//   shared       PLANNED_SHARED_FLOATS, dynamic
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    resident_train_kernel(const resident_job *__restrict__ jobs, int begin, int steps,
                          unsigned first_epoch, resident_control *control)
{
    const resident_job &job = jobs[blockIdx.x / BLOCKS];
    const int block = blockIdx.x % BLOCKS;
    const bool observer = block == 0 && threadIdx.x == THREADS - 1;
    for (int i = threadIdx.x; i < KEPT_AT; i += THREADS) shared()[i] = 0.0f;
    __syncthreads();
    for_own<LAYERS>([&](int l, int) { shared()[RATES_AT + l] = job.rates[l]; });
    if (threadIdx.x == 0) shared()[TARGET_AT] = job.state->target;

    trainer all;
    all.control = control;
    all.coordinates[0] = block % parts_of<0>;
    all.coordinates[1] = block / parts_of<0>;
    all.find_words(job.words, first_epoch);
    all.barriers = 0;
    all.stopped = false;
    all.load<0>(job);

    // Indices run two samples ahead and pixels one, so that nobody waits for memory.
    const int *order = job.order + begin;
    int image = order[0], after = order[min(1, steps - 1)];
    int next_label = job.labels[image];
    all.send_for_inputs(job, image);
    all.keep_inputs(all.inputs(0));
    image = after;
    all.send_for_inputs(job, image);
    after = order[min(2, steps - 1)];
    __syncthreads();

    double loss = 0.0;
    int errors = 0, step = 0, label = 0;
    for (; step < steps && !all.stopped; step++) {
        const bool fresh = (begin + step) % SAMPLES_PER_BLOCK == 0 || step == 0;
        const bool last = (begin + step + 1) % SAMPLES_PER_BLOCK == 0 || step == steps - 1;
        const int last_label = label;
        label = next_label;
        all.step = step;
        all.parity = step % 2;
        if (!AHEAD || fresh)
            all.forward_and_publish<0>();
        else
            all.update<0>(all.inputs(1 - all.parity));
        // Of the sample before, now that there is nothing to do but to wait.
        if (observer && step > 0)
            observe(shared() + OUTPUTS_AT, last_label, shared()[TARGET_AT], loss, errors);
        all.forward_from<0>();
        next_label = job.labels[image];
        image = after;
        all.send_for_inputs(job, image);
        after = order[min(step + 3, steps - 1)];
        all.outputs(label, last);
        all.backward_from<TOP>(last);
        all.stopped = __syncthreads_or(all.stopped);  // all of a block give up if one does
        if (!AHEAD || last) all.update<0>(all.inputs(all.parity));
        all.turn_over();
    }
    if (all.stopped) return;
    all.store<0>(job);
    if (observer) {
        observe(shared() + OUTPUTS_AT, label, shared()[TARGET_AT], loss, errors);
        job.state->loss += loss;
        job.state->errors += errors;
        job.state->step += steps;
    }
}
