// Where training is, in device memory: advanced by the device, read by the host.
#pragma once

// Mirrored by STATE in mlpcore/backends/cuda/launch.py.
struct training_state {
    double loss;   // sum of 1/2 |y - t|^2 over the samples seen
    int step;      // index into `order` of the sample in work
    int errors;    // misclassified among those seen
    float target;  // t of the class, -t of the others
};
