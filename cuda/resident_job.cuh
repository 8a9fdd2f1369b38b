// What a launch of resident.cu is given, and what it tells the host.
#pragma once

#include "exchange.cuh"
#include "resident_layout.cuh"
#include "training_state.cuh"

// All but the limit is zero when a launch starts.
struct resident_control {
    unsigned long long limit;  // nanoseconds that a wait may take
    int given_up;              // 0, or 1 + the exchange in which a block has waited too long
    int block, step;           // that block, and the step of the launch
    int not_finite;            // whether a weight is infinite or NaN at the end
};

// A network and its samples.
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
