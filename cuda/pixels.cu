// Samples as they came: rows of an array, and bytes as the inputs of a network.
#include "layout.cuh"

// Copies rows of an array.
//
//   source  rows of `row_bytes` bytes each
//   rows    (n) which of them
//   out     (n, row_bytes)
//   grid    (n, ceil(row_bytes / 256))
//   block   256 threads, one byte each
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    take_kernel(const unsigned char *__restrict__ source, const int *__restrict__ rows,
                int row_bytes, unsigned char *__restrict__ out)
{
    const int k = blockIdx.y * ELEMENT_THREADS + threadIdx.x;
    if (k < row_bytes)
        out[(size_t)blockIdx.x * row_bytes + k] = source[(size_t)rows[blockIdx.x] * row_bytes + k];
}

// Stretches pictures: the operations of PixelSpec in mlpcore/data/pixels.py in the same order. The
// compiler fuses none of them, so the bits are the same.
//
//   pictures  (n, in_height, in_width) bytes; all sides are 2 or more
//   values    (256) in [-1, 1]: what bytes stand for
//   unit      whether inputs are in [0, 1]
//   out       (n, height, width)
//   grid      (n, ceil(height * width / 256))
//   block     256 threads, one input each
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    to_inputs_kernel(const unsigned char *__restrict__ pictures, const float *__restrict__ values,
                     int in_height, int in_width, int height, int width, int unit,
                     float *__restrict__ out)
{
    const int size = height * width, p = blockIdx.y * ELEMENT_THREADS + threadIdx.x;
    if (p >= size) return;
    const int down = p / width * (in_height - 1), across = p % width * (in_width - 1);
    const int up = down / (height - 1), left = across / (width - 1);
    const float fy = (float)((double)(down % (height - 1)) / (height - 1));
    const float fx = (float)((double)(across % (width - 1)) / (width - 1));
    const unsigned char *above = pictures + ((size_t)blockIdx.x * in_height + up) * in_width + left;
    const unsigned char *below = up + 1 < in_height ? above + in_width : above;
    const int right = left + 1 < in_width;
    float ends[2];
    for (int k = 0; k < 2; k++) {
        const float start = values[above[k * right]], end = values[below[k * right]];
        ends[k] = (end - start) * fy + start;
    }
    const float value = (ends[1] - ends[0]) * fx + ends[0];
    out[(size_t)blockIdx.x * size + p] = unit ? (value + 1.0f) / 2.0f : value;
}
