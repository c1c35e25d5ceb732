/* SPDX-License-Identifier: Apache-2.0 */
/* All steps in one launch. See one_block.h. */
#include "cuda-generic/recurrent/kernels/one_block.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/device/device.h"

static const int MOST = CG_ONE_BLOCK_MOST, GATES_MOST = 4, BACK_THREADS = 256, SLICES = BACK_THREADS / MOST;

/* Step number s of `steps`, in the order in which they run. */
static __device__ int64_t find_step(const struct cg_layer *y, int64_t s, int64_t steps)
{
    return y->reverse ? steps - 1 - s : s;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(GATES_MOST *MOST) forward(const struct cg_layer *layer)
{
    GPU_SHARED(float, shared);
    float *h = shared, *z = shared + MOST; /* h [MOST] masked, z [GATES_MOST MOST] sums of the gates */
    const struct cg_layer y = layer[blockIdx.y];
    const int64_t n = y.hidden, b = blockIdx.x, steps = y.axis.lengths[b];
    const int j = (int)threadIdx.x;
    const bool apart = cg_is_apart(&y, j / n);
    float w[MOST];
    for (int e = 0; e < MOST; e++)
        w[e] = j < y.gh && e < n && !cg_is_unused(&y, j) ? y.w_h[j * n + e] : 0.0f;
    if (j < MOST)
        h[j] = j < n ? cg_or_zero(y.h0, b * n + j) * cg_or_one(y.mask_h, b * n + j) : 0.0f;
    __syncthreads();
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = find_step(&y, s, steps), row = cg_row(&y, t, b);
        const int64_t before = s == 0 ? -1 : cg_row(&y, find_step(&y, s - 1, steps), b);
        float v = 0;
        for (int e = 0; e < MOST; e++)
            v += w[e] * h[e];
        if (j < y.gh)
            z[j] = apart ? v : v + y.u[row * y.gh + j];
        __syncthreads();
        if (j < n) {
            float sums[4] = {0, 0, 0, 0};
            for (int g = 0; g < GATES_MOST; g++)
                sums[g] = g < y.gates ? z[g * n + j] : 0.0f;
            h[j] = cg_keep(&y, t, b, row, before, j, cg_cell_output(&y, t, b, row, before, j, sums));
        }
        __syncthreads();
    }
}

extern "C" int cg_one_block_forward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences,
                                    int64_t gh)
{
    const dim3 blocks((unsigned)sequences, (unsigned)directions);
    const unsigned threads = (unsigned)((gh > MOST ? gh : MOST) + 31) / 32 * 32;
    return GPU_LAUNCH(stream, blocks, threads, (1 + GATES_MOST) * MOST * sizeof(float), forward, layer);
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(BACK_THREADS) backward(const struct cg_layer *layer)
{
    GPU_SHARED(float, shared);
    float *dv = shared, *partial = shared + GATES_MOST * MOST; /* dv [GATES_MOST MOST], partial [SLICES MOST] */
    const struct cg_layer y = layer[blockIdx.y];
    const int64_t n = y.hidden, b = blockIdx.x, steps = y.axis.lengths[b];
    const int k = (int)threadIdx.x % MOST, slice = (int)threadIdx.x / MOST, rows = (int)(y.gh + SLICES - 1) / SLICES;
    float w[MOST]; /* rows <= GATES_MOST MOST / SLICES = MOST */
    for (int e = 0; e < MOST; e++) {
        const int64_t j = slice * rows + e;
        w[e] = e < rows && j < y.gh && k < n && !cg_is_unused(&y, j) ? y.w_h[j * n + k] : 0.0f;
    }
    for (int e = (int)threadIdx.x; e < GATES_MOST * MOST; e += BACK_THREADS)
        dv[e] = 0.0f;
    __syncthreads();
    for (int64_t s = steps - 1; s >= 0; s--) {
        const int64_t t = find_step(&y, s, steps), row = cg_row(&y, t, b);
        const int64_t before = s == 0 ? -1 : cg_row(&y, find_step(&y, s - 1, steps), b);
        if (slice == 0 && k < n) {
            float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
            cg_cell_backward(&y, t, b, row, before, k, cg_dh_new(&y, t, row, b, k, y.back[b * n + k]), u, v);
            for (int g = 0; g < GATES_MOST; g++) {
                if (g >= y.gates)
                    break;
                cg_set_pre(&y, row, g * n + k, u[g], v[g]);
                dv[g * n + k] = v[g];
            }
        }
        __syncthreads();
        float sum = 0;
        for (int e = 0; e < MOST; e++)
            sum += w[e] * dv[slice * rows + e < GATES_MOST * MOST ? slice * rows + e : 0];
        partial[slice * MOST + k] = sum;
        __syncthreads();
        if (slice == 0 && k < n) {
            float back = 0;
            for (int p = 0; p < SLICES; p++)
                back += partial[p * MOST + k];
            y.back[b * n + k] = back; /* the same thread reads it in the next step */
        }
    }
}

extern "C" int cg_one_block_backward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences)
{
    const dim3 blocks((unsigned)sequences, (unsigned)directions);
    return GPU_LAUNCH(stream, blocks, BACK_THREADS, (GATES_MOST + SLICES) * MOST * sizeof(float), backward, layer);
}
