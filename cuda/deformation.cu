// Deformed images: a random affine map plus a displacement, and a bilinear lookup.
#include "layout.cuh"
#include "philox.cuh"

constexpr int GRID_SIDE = 10;  // images of a row of a grid

// Random matrices from target to source, as mlpcore.backends.affine.affine_maps describes them.
//
//   labels  (n) of the images, number `first` and on of the set
//   angles  (256) the greatest angle in radians for each label
//   maps    (n, 2, 2)
//   grid    ceil(n / 256)
//   block   256 threads, one image each
//
// It computes in double precision. A rounded result then differs from the host's only rarely, and
// only in its last bit.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    affine_maps_kernel(const unsigned char *__restrict__ labels, int n, unsigned first,
                       const double *__restrict__ angles, double scale, unsigned key0,
                       unsigned key1, unsigned epoch, float *__restrict__ maps)
{
    const int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i >= n) return;
    const philox_words words = philox4x32({{first + i, 0, epoch, 3}}, key0, key1);
    double drawn[4];
    for (int k = 0; k < 4; k++) drawn[k] = (int)words.word[k] * 0x1p-31;
    const double angle = angles[labels[i]] * drawn[0];
    const bool shears = drawn[1] < 0.0;
    const double scale_x = 1.0 + scale * drawn[2], scale_y = 1.0 + scale * drawn[3];
    const double cosine = shears ? 1.0 : cos(angle), sine = shears ? 0.0 : sin(angle);
    const double shear = shears ? tan(angle) : 0.0;
    float *map = maps + 4 * (size_t)i;
    map[0] = (float)(cosine / scale_x);
    map[1] = (float)((sine - shear) / scale_x);
    map[2] = (float)(-sine / scale_y);
    map[3] = (float)(cosine / scale_y);
}

// Images of floats, or of bytes that stand for `values`, with what is around them.
struct image_set {
    const void *pixels;
    const float *values;  // null: pixels are floats
    int height, width;
    float background;

    // Pixel (x, y) of an image; outside it, the background.
    __device__ float at(size_t image, int x, int y) const
    {
        if (!(0 <= x && x < width && 0 <= y && y < height)) return background;
        const size_t place = (image * height + y) * width + x;
        return values ? values[((const unsigned char *)pixels)[place]]
                      : ((const float *)pixels)[place];
    }
};

// Pixels of an image for one of a deformed image, along a side.
__device__ inline float ratio(int in, int out)
{
    return in == out ? 1.0f : (float)(in - 1) / (float)(out - 1);
}

// An image at M (p - c) + c + (dx, dy), where p = (x, y) and c is the centre, all in pixels of the
// deformed image, whose corners are those of the image.
//
// Everything beyond one pixel outside the image is background, so coordinates are clamped to that.
// They are shifted by 1 and thus positive, so truncation is a floor. The C kernels do the same
// operations in the same order: same coordinates, same pixels.
__device__ inline float look_up(const image_set &images, size_t image, int height, int width,
                                const float *affine, int x, int y, float dx, float dy)
{
    const float in_x = 0.5f * (float)(images.width - 1), by_x = ratio(images.width, width);
    const float in_y = 0.5f * (float)(images.height - 1), by_y = ratio(images.height, height);
    const float centre_x = 0.5f * (float)(width - 1), centre_y = 0.5f * (float)(height - 1);
    const float column = (float)x - centre_x, row = (float)y - centre_y;
    float sx = fmaf(by_x * affine[0], column, fmaf(by_x * affine[1], row, fmaf(by_x, dx, in_x)));
    float sy = fmaf(by_y * affine[2], column, fmaf(by_y * affine[3], row, fmaf(by_y, dy, in_y)));
    sx = fminf(fmaxf(sx + 1.0f, 0.0f), (float)(images.width + 1));
    sy = fminf(fmaxf(sy + 1.0f, 0.0f), (float)(images.height + 1));
    const int left = (int)sx, up = (int)sy;
    const float fx = sx - (float)left, fy = sy - (float)up;
    const float p00 = images.at(image, left - 1, up - 1), p01 = images.at(image, left, up - 1);
    const float p10 = images.at(image, left - 1, up), p11 = images.at(image, left, up);
    const float top = fmaf(fx, p01 - p00, p00), bottom = fmaf(fx, p11 - p10, p10);
    return fmaf(fy, bottom - top, top);
}

// Deforms images by displacements in pixels, x before y: each by its own, or by the fields of
// grids. Image i of the set is tile i % 100 of grid i / 100.
//
//   images       (n, in_height, in_width), number `first` and on of the set: floats, or bytes
//   values       (256) what bytes stand for; null: images are floats
//   affine       (n, 2, 2) from target to source
//   field        (n, 2, height, width), or if `tiled` (grids, 2, 10 height, 10 width) from grid
//                first / 100 on
//   background   the value outside an image
//   out          (n, height, width)
//   grid         (n, ceil(height * width / 256)), at most 16,384 for 2048 x 2048 pixels
//   block        256 threads, one pixel each
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    deform_kernel(const void *__restrict__ images, const float *__restrict__ values, int in_height,
                  int in_width, unsigned first, int height, int width,
                  const float *__restrict__ affine, const float *__restrict__ field, int tiled,
                  float background, float *__restrict__ out)
{
    const int size = height * width, p = blockIdx.y * ELEMENT_THREADS + threadIdx.x;
    if (p >= size) return;
    constexpr unsigned per_grid = GRID_SIDE * GRID_SIDE;
    const size_t image = blockIdx.x, side = tiled ? GRID_SIDE : 1;
    const unsigned number = first + blockIdx.x, tile = tiled ? number % per_grid : 0;
    const unsigned grid = tiled ? number / per_grid - first / per_grid : blockIdx.x;
    const int x = p % width, y = p / width;
    const size_t pitch = side * width, cells = pitch * side * height;
    const float *d = field + 2 * cells * grid + (tile / GRID_SIDE * height + y) * pitch +
                     tile % GRID_SIDE * width + x;
    out[image * size + p] = look_up({images, values, in_height, in_width, background}, image,
                                    height, width, affine + 4 * image, x, y, d[0], d[cells]);
}
