// On-line training with weights that never leave the chip. One launch trains thousands of samples,
// one after the other, with the same meaning as if each were trained alone. docs/resident.md says
// why, and shows the partition.
//
// There are P x Q blocks, one in each multiprocessor. Each reads its share of the weights once,
// keeps it in registers and shared memory, and writes it back at the end.
//
// Partition. Boundary 0 is the inputs, boundary k is the outputs of layer k - 1. Odd boundaries are
// cut into P slices, even ones into Q. Block (p, q) owns slice p of every odd boundary and slice q
// of every even one. Of each layer's matrix it owns the weights where its two slices meet. So the
// slice that it needs as the input of layer k is the slice that it helps to sum as the output of
// layer k - 1. Forward, the Q blocks with the same p have parts of slice p's sums. They exchange
// their parts, and each adds up all of them in the same order. Backward it is the same with the
// deltas. Every exchange is an all-reduce of one slice within a row or a column of the grid.
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
// indices of registers are constants: every loop over a tile is unrolled.
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
// needs for a state of the next sample: x . x' was computed before the launch. This rounds
// differently from W' x', and the first sample of a launch has no such sums. So that results do not
// depend on where launches begin, nothing is computed ahead for samples whose number is a multiple
// of 64, and launches begin at these.
//
// A block that waits too long, or sees that another has given up, goes on without waiting. It ends
// before the next sample, and the host is told which exchange it was.
#include "activation.cuh"
#include "resident_deltas.cuh"
#include "resident_job.cuh"

constexpr int SAMPLES_PER_BLOCK = 64;  // launches begin at multiples of this

struct block_worker : block_deltas {
    float pixels[ceil_div(slice(0), THREADS)];  // of the next sample, still being loaded
    int parity;                                 // which half of the inputs belongs to this sample

    // Starts to load this block's slice of the next sample's inputs.
    __device__ __forceinline__ void request_inputs(const resident_job &job, int image)
    {
        const float *x = job.images + (size_t)image * size_of<0> + first<0>();
        for_elements<slice(0)>([&](int i, int n) { pixels[n] = i < length<0>() ? x[i] : 0.0f; });
    }

    // Writes the requested inputs to shared memory.
    __device__ __forceinline__ void keep_inputs(float *x)
    {
        for_elements<slice(0)>([&](int i, int n) { x[i] = pixels[n]; });
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
        for_elements<slice(1)>([&](int element, int) {
            deltas<1>()[element] = receive<1, false>(next, step + 1, element);
        });
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
        __syncthreads();  // all states are there
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
                // While the deltas are on their way. The last layer has no exchange of its own.
                if constexpr (l + 1 == TOP) update<TOP>(states<TOP>());
                update<l>(states<l>());
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
};

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
    for_elements<LAYERS>([&](int l, int) { shared()[RATES_AT + l] = job.rates[l]; });
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
