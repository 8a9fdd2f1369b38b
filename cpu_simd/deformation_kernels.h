/* The deformation kernels, written once over the vector operations of an instruction set.
 *
 * Included after layer_kernels.h. An instruction set also defines
 *   vi_mulhilo       32 x 32 -> high and low words
 *   vf_gather_pairs  p[index] and p[index + 1] for each lane
 */
#include "deformation.h"

/* Philox4x32-10 (Salmon et al., SC'11), one counter per lane. */
INLINE void philox(vi c[4], uint32_t k0, uint32_t k1)
{
    UNROLL for (int round = 0; round < 10; round++)
    {
        vi high0, high1;
        vi low0 = vi_mulhilo(c[0], 0xD2511F53u, &high0);
        vi low1 = vi_mulhilo(c[2], 0xCD9E8D57u, &high1);
        c[0] = high1 ^ c[1] ^ k0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ k1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

static void KERNEL(noise)(const uint32_t key[2], const uint32_t counter[4], uint32_t row_group,
                          int n, float *rows, int stride)
{
    static const uint32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int x = 0; x < n; x += VW) {
        vi c[4] = {vi_load(lanes) + ((row_group << 16 | (uint32_t)x) + counter[0]),
                   vi_set1(counter[1]), vi_set1(counter[2]), vi_set1(counter[3])};
        philox(c, key[0], key[1]);
        UNROLL for (int k = 0; k < 4; k++)
            vf_store(rows + (ptrdiff_t)k * stride + x, 0x1p-31f * vf_from_vi(c[k]));
    }
}

/* out[x] = sum over i of taps[i] in[i * step + x], for `count` vectors at once: a single sum would
 * wait for its own last addition. */
INLINE void convolve_vectors(int count, const float *in, ptrdiff_t step, const float *taps,
                             int n_taps, float *out)
{
    vf sum[8], tap = vf_set1(taps[0]);
    UNROLL for (int v = 0; v < count; v++) sum[v] = tap * vf_load(in + v * VW);
    for (int i = 1; i < n_taps; i++) {
        tap = vf_set1(taps[i]);
        UNROLL for (int v = 0; v < count; v++) sum[v] =
            vf_fma(tap, vf_load(in + i * step + v * VW), sum[v]);
    }
    UNROLL for (int v = 0; v < count; v++) vf_store(out + v * VW, sum[v]);
}

static void KERNEL(convolve)(const float *in, ptrdiff_t step, const float *taps, int n_taps, int n,
                             float *out)
{
    const int end = mlp_padded(n);
    int x = 0;
    for (; x + 8 * VW <= end; x += 8 * VW) convolve_vectors(8, in + x, step, taps, n_taps, out + x);
    for (; x + 2 * VW <= end; x += 2 * VW) convolve_vectors(2, in + x, step, taps, n_taps, out + x);
    for (; x < end; x += VW) convolve_vectors(1, in + x, step, taps, n_taps, out + x);
}

static void KERNEL(lookup_row)(const float *padded, int in_height, int in_width, int height,
                               int width, const float affine[4], const float *dx, const float *dy,
                               int y, float *out)
{
    static const float lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const float centre_x = 0.5f * (float)(width - 1), centre_y = 0.5f * (float)(height - 1);
    const float in_centre_x = 0.5f * (float)(in_width - 1);
    const float in_centre_y = 0.5f * (float)(in_height - 1);
    const float by_x = mlp_ratio(in_width, width), by_y = mlp_ratio(in_height, height);
    const int pitch = mlp_image_pitch(in_width);
    vf row = vf_set1((float)y - centre_y);
    for (int x = 0; x < width; x += VW) {
        vf column = ((float)x - centre_x) + vf_load(lanes);
        vf sx = vf_fma(vf_set1(by_x), vf_load(dx + x), vf_set1(in_centre_x));
        vf sy = vf_fma(vf_set1(by_y), vf_load(dy + x), vf_set1(in_centre_y));
        sx = vf_fma(vf_set1(by_x * affine[1]), row, sx);
        sy = vf_fma(vf_set1(by_y * affine[3]), row, sy);
        sx = vf_fma(vf_set1(by_x * affine[0]), column, sx);
        sy = vf_fma(vf_set1(by_y * affine[2]), column, sy);
        /* The image has one pixel of background on each side, and all beyond is background. The
         * shift by 1 makes coordinates positive, so that truncation is a floor. */
        sx = vf_min(vf_max(sx + 1.0f, vf_set1(0.0f)), vf_set1((float)(in_width + 1)));
        sy = vf_min(vf_max(sy + 1.0f, vf_set1(0.0f)), vf_set1((float)(in_height + 1)));
        vi ix = vi_from_vf(sx), iy = vi_from_vf(sy);
        vf fx = sx - vf_from_vi(ix), fy = sy - vf_from_vi(iy);
        vi at = vi_from_vf(vf_fma(vf_from_vi(iy), vf_set1((float)pitch), vf_from_vi(ix)));
        vf p00, p01, p10, p11;
        vf_gather_pairs(padded, at, &p00, &p01);
        vf_gather_pairs(padded + pitch, at, &p10, &p11);
        vf top = vf_fma(fx, p01 - p00, p00), bottom = vf_fma(fx, p11 - p10, p10);
        vf_store(out + x, vf_fma(fy, bottom - top, top));
    }
}
