// How a block sends its parts of sums to the members of its group and waits for theirs.
#pragma once

#include "exchange.cuh"
#include "resident_weights.cuh"

constexpr int POLLS_PER_CHECK = 256;  // polls between two looks at the clock
constexpr int WORDS_AT_A_TIME = 16;   // words that a thread waits for together

// Where the words of a sample begin, and the bit that marks them.
struct words_of_sample {
    exchange_word *words, bit;
};

struct block_exchange : block_weights {
    words_of_sample now, next;  // of this sample and of the next
    // In an exchange of an even or odd boundary: where this block's row of words is, and where the
    // first row of its group is.
    int sends[2], takes[2];
    int step;
    bool stopped;

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

    // Sends this block's part of a boundary's slice to its group: the sums of its threads' parts.
    template <int k, bool BACKWARD, int parts>
    __device__ __forceinline__ void publish_sums(const words_of_sample &to)
    {
        for_sums<slice(k), parts>([&](int element, float sum) {
            store_word(to.words + words_at<k, BACKWARD> + (sends[k % 2] + element), sum, to.bit);
        });
    }

    // Sums all members' parts of this block's slice: calls body(element, sum) for each element.
    template <int k, bool BACKWARD, class F>
    __device__ __forceinline__ void collect(F body)
    {
        for_elements<slice(k)>(
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
            exchange_word words[MOST];
            int polls = 0;
            unsigned long long since = 0;
            while (true) {
#pragma unroll
                for (int i = 0; i < MOST; i++)
                    words[i] = i < n ? load_word(first + (begin + i) * ROW) : words[i - 1];
                // The last words are looked at first: then all have been asked for.
                exchange_word others = 0;
#pragma unroll
                for (int i = (MOST - 1) / 2; i >= 0; i--)
                    others = either(
                        others,
                        either_other(words[2 * i], words[min(2 * i + 1, MOST - 1)], from.bit));
                if (!(others & 1) || stopped) break;
                poll_again();
                if (++polls % POLLS_PER_CHECK == 0)
                    check_time(since, exchange<k, BACKWARD>, of_step);
            }
            const float part =
                sum_of<MOST>([&](int i) { return i < n ? word_value(words[i]) : 0.0f; });
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
};
