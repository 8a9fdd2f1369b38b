// What one exchange of resident training costs on a GPU, without the training around it.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 -o build/exchange benchmarks/exchange.cu && build/exchange
//
// 128 blocks, one in each multiprocessor, in groups of M. Each block has S numbers; again and
// again all members of a group add up theirs, and go on with a M-th of the sums. Printed is the
// time of a round: the numbers out of shared memory, to the other blocks and back into it, and a
// __syncthreads. The members' numbers are neighbours, or as far apart as they can be (what that
// means for their places on the chip is the device's affair). benchmarks/resident.md has results.
// `make gpu-check` runs it as well.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

constexpr int BLOCKS = 128, THREADS = 256, ROUNDS = 5000, LINE = 32;

enum kind {
    WORDS_8,            // value and epoch in 8 bytes; a thread an element
    WORDS_8_UNALIGNED,  // blocks' words share lines of 128 bytes
    WORDS_4,            // the epoch in the last bit of the value, as resident.cu does
    WORDS_4_UNALIGNED,
    ONLY_MISSING,  // WORDS_4, and only what has not come is loaded again
    OWN_COPIES,    // WORDS_4, stored once for each reader
    QUADS,         // WORDS_4 loaded by 16 bytes: eight lanes for the members of four elements
    ATOMICS,       // one fixed-point word for an element of a group, to which all members add
    CLUSTER        // WORDS_8, stored into the shared memory of the members, a cluster
};
const char *const NAMES[] = {"8-byte words",
                             "8-byte words, unaligned",
                             "4-byte words",
                             "4-byte words, unaligned",
                             "only the missing again",
                             "a copy each",
                             "16-byte loads",
                             "atomic additions",
                             "shared memory of a cluster"};

typedef unsigned long long word8;
typedef unsigned word4;

__device__ void store(word8 *p, word8 v)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ void store(word4 *p, word4 v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ word8 load(const word8 *p)
{
    word8 v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ word4 load(const word4 *p)
{
    word4 v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// A number as an integer, and in the last 8 bits how many have been added. Nobody sets the sums to
// zero: what a round has added is the difference, also when they overflow.
__device__ word8 counted(float value) { return ((word8)__float2ll_rn(value * 0x1p36f) << 8) + 1; }
__device__ float uncounted(word8 sum, int n) { return ((long long)(sum - n) >> 8) * 0x1p-36f; }

__device__ void add(word8 *p, word8 v)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ uint4 load_quad(const word4 *p)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}

// Clusters are there from compute capability 9.0 on; `measure_all` asks.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ void store_in_cluster(unsigned address, unsigned rank, word8 v)
{
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    asm volatile("st.relaxed.cluster.shared::cluster.u64 [%0], %1;" ::"r"(there), "l"(v)
                 : "memory");
}

__device__ void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

#else

__device__ void store_in_cluster(unsigned, unsigned, word8) {}
__device__ void meet_cluster() {}

#endif

__device__ word8 tagged(float value, int round)
{
    return (word8)round << 32 | __float_as_uint(value);
}

__device__ bool is_of(word8 word, int round) { return (int)(word >> 32) == round; }
__device__ bool is_of(word4 word, int round) { return (word & 1) == (round >> 1 & 1); }
__device__ float value(word8 word) { return __uint_as_float((word4)word); }
__device__ float value(word4 word) { return __uint_as_float(word & ~1u); }

// Polls the words of an element, which lie `apart`, and adds them up.
template <int M, bool ONLY_MISSING_AGAIN, class word>
__device__ float collect(const word *first, int apart, int round)
{
    word found[M];
    bool come[M] = {}, waiting;
    do {
        waiting = false;
#pragma unroll
        for (int m = 0; m < M; m++)
            if (!ONLY_MISSING_AGAIN || !come[m]) found[m] = load(first + m * apart);
#pragma unroll
        for (int m = 0; m < M; m++) {
            come[m] = is_of(found[m], round);
            waiting |= !come[m];
        }
    } while (waiting);
    float sum = 0.0f;
#pragma unroll
    for (int m = 0; m < M; m++) sum += value(found[m]);
    return sum;
}

template <int M, int S, kind K, bool APART>
__global__ void __launch_bounds__(THREADS, 1) rounds(void *words, float *result)
{
    constexpr int GROUPS = BLOCKS / M, ALIGNED = (S + LINE - 1) / LINE * LINE;
    constexpr int ROW = K == WORDS_8_UNALIGNED || K == WORDS_4_UNALIGNED ? ALIGNED + 1 : ALIGNED;
    __shared__ __align__(16) float numbers[ALIGNED];
    __shared__ word8 inbox[K == CLUSTER ? 2 * M * S : 1];
    __shared__ word8 before[K == ATOMICS ? 2 * ALIGNED : 1];
    const int group = APART ? blockIdx.x % GROUPS : blockIdx.x / M;
    const int member = APART ? blockIdx.x / GROUPS : blockIdx.x % M, t = threadIdx.x;
    for (int i = t; i < ALIGNED; i += THREADS) numbers[i] = i + 1;
    if constexpr (K == ATOMICS)
        for (int i = t; i < 2 * ALIGNED; i += THREADS) before[i] = 0;
    if constexpr (K == CLUSTER) {
        for (int i = t; i < 2 * M * S; i += THREADS) inbox[i] = 0;
        meet_cluster();
    }
    __syncthreads();
    const long long start = clock64();
    for (int round = 2; round < ROUNDS + 2; round++) {
        const int half = round % 2, slot = half * GROUPS + group;
        if constexpr (K == WORDS_8 || K == WORDS_8_UNALIGNED) {
            word8 *row = (word8 *)words + (size_t)slot * M * ROW;
            for (int e = t; e < S; e += THREADS)
                store(row + member * ROW + e, tagged(numbers[e], round));
            for (int e = t; e < S; e += THREADS)
                numbers[e] = collect<M, false>(row + e, ROW, round) / M;
        } else if constexpr (K == ATOMICS) {
            word8 *row = (word8 *)words + (size_t)slot * ROW, *last = before + half * ALIGNED;
            for (int e = t; e < S; e += THREADS) add(row + e, counted(numbers[e]));
            for (int e = t; e < S; e += THREADS) {
                word8 found;
                do found = load(row + e) - last[e];
                while ((found & 255) != M);
                last[e] += found;
                numbers[e] = uncounted(found, M) / M;
            }
        } else if constexpr (K == CLUSTER) {
            const unsigned base = (unsigned)__cvta_generic_to_shared(inbox);
            for (int e = t; e < S; e += THREADS)
#pragma unroll
                for (int m = 0; m < M; m++)
                    store_in_cluster(base + ((half * M + member) * S + e) * 8, m,
                                     tagged(numbers[e], round));
            for (int e = t; e < S; e += THREADS) {
                float sum = 0.0f;
#pragma unroll
                for (int m = 0; m < M; m++) {
                    volatile word8 *word = inbox + (half * M + m) * S + e;
                    word8 found;
                    do found = *word;
                    while (!is_of(found, round));
                    sum += value(found);
                }
                numbers[e] = sum / M;
            }
        } else {
            word4 *row = (word4 *)words + (size_t)slot * M * ROW * (K == OWN_COPIES ? M : 1);
            const word4 flag = round >> 1 & 1;
            for (int i = t; i < ALIGNED * (K == OWN_COPIES ? M : 1); i += THREADS) {
                const int e = i % ALIGNED, reader = i / ALIGNED;
                const word4 word = (__float_as_uint(numbers[e]) & ~1u) | flag;
                if (e < S || K == QUADS) store(row + (reader * M + member) * ROW + e, word);
            }
            if constexpr (K == OWN_COPIES) {
                row += member * M * ROW;
                __syncthreads();  // numbers have been read
            }
            if constexpr (K == QUADS) {
                constexpr int ITEMS = ALIGNED / 4 * 8;
                for (int i = t; i < ITEMS; i += THREADS) {
                    float sums[4] = {};
                    for (int m = i % 8; m < M; m += 8) {
                        uint4 q;
                        do q = load_quad(row + m * ROW + i / 8 * 4);
                        while (!is_of(q.x, round) || !is_of(q.y, round) || !is_of(q.z, round) ||
                               !is_of(q.w, round));
                        sums[0] += value(q.x), sums[1] += value(q.y);
                        sums[2] += value(q.z), sums[3] += value(q.w);
                    }
                    for (int j = 0; j < 4; j++)
                        for (int distance = 1; distance < 8; distance *= 2)
                            sums[j] += __shfl_xor_sync(~0u, sums[j], distance);
                    if (i % 8 < 4)
                        numbers[i / 8 * 4 + i % 8] = (i % 4 == 0   ? sums[0]
                                                      : i % 4 == 1 ? sums[1]
                                                      : i % 4 == 2 ? sums[2]
                                                                   : sums[3]) /
                                                     M;
                }
            } else {
                for (int e = t; e < S; e += THREADS)
                    numbers[e] = collect<M, K == ONLY_MISSING>(row + e, ROW, round) / M;
            }
        }
        __syncthreads();
    }
    if (t == 0 && blockIdx.x == 0) *result = (float)(clock64() - start) / ROUNDS;
    if constexpr (K == CLUSTER) meet_cluster();  // nobody ends before its last word has come
}

void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

template <int M, int S, kind K, bool APART>
void measure()
{
    static void *words = nullptr;
    static float *result = nullptr;
    constexpr size_t BYTES = 16 << 20;
    if (words == nullptr) {
        check(cudaMalloc(&words, BYTES));
        check(cudaMalloc(&result, sizeof *result));
    }
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {M, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = BLOCKS;
    launch.blockDim = THREADS;
    launch.attrs = &attribute;
    launch.numAttrs = K == CLUSTER;
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    float cycles = 1e9f, milliseconds = 1e9f;
    for (int repeat = 0; repeat < 3; repeat++) {
        check(cudaMemset(words, 0, BYTES));
        check(cudaEventRecord(begin));
        check(cudaLaunchKernelEx(&launch, rounds<M, S, K, APART>, words, result));
        check(cudaEventRecord(end));
        check(cudaDeviceSynchronize());
        float took, counted;
        check(cudaEventElapsedTime(&took, begin, end));
        check(cudaMemcpy(&counted, result, sizeof counted, cudaMemcpyDeviceToHost));
        cycles = std::min(cycles, counted);
        milliseconds = std::min(milliseconds, took);
    }
    printf("%-28s %2d members %-10s %3d elements: %5.0f cycles, %.2f us\n", NAMES[K], M,
           APART ? "far apart," : "near,", S, cycles, 1e3 * milliseconds / ROUNDS);
    fflush(stdout);
}

template <int M, int S, bool APART>
void measure_all()
{
    measure<M, S, WORDS_8, APART>();
    measure<M, S, WORDS_8_UNALIGNED, APART>();
    measure<M, S, WORDS_4, APART>();
    measure<M, S, WORDS_4_UNALIGNED, APART>();
    measure<M, S, ONLY_MISSING, APART>();
    measure<M, S, OWN_COPIES, APART>();
    measure<M, S, QUADS, APART>();
    measure<M, S, ATOMICS, APART>();
    // Of clusters of 8 an H200 runs 15 at a time, not 16, and these do not wait for other clusters.
    int major;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if constexpr (!APART && M <= 8)
        if (major >= 9) measure<M, S, CLUSTER, APART>();
}

int main()
{
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    if (device.multiProcessorCount < BLOCKS) {  // blocks would wait for others that cannot start
        printf("%s has %d multiprocessors, %d are needed\n", device.name,
               device.multiProcessorCount, BLOCKS);
        return 0;
    }
    measure_all<8, 64, false>();
    measure_all<8, 64, true>();
    measure_all<8, 160, false>();
    measure_all<16, 64, true>();
    measure_all<16, 248, true>();
    measure<128, 10, ATOMICS, true>();
    measure<128, 500, ATOMICS, true>();
    return 0;
}
