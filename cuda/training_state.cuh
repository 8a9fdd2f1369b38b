// The progress of training, in device memory. The device advances it and the host reads it.
#pragma once

struct training_state {
    double loss;   // sum over the samples seen
    int step;      // index into `order` of the present sample
    int errors;    // misclassified samples among them
    float target;  // of scaled tanh outputs: t of the class, -t of the others
};
