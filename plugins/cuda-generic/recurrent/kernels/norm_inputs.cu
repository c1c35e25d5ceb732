/* SPDX-License-Identifier: Apache-2.0 */
/* LAYER_NORM of the inputs of all rows at once: a warp per row. See norm_inputs.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/kernels/norm_inputs.h"

static const int WARPS = 8;

/* Mean and 1 / deviation of a row of u. */
struct moments {
    float mean, scale;
};

static __device__ struct moments find_moments(const struct cg_layer &y, const float *u, int lane)
{
    float sum = 0, squares = 0;
    for (int64_t j = lane; j < y.gh; j += CG_WARP)
        sum += cg_is_unused(&y, j) ? 0.0f : u[j];
    const float mean = cg_warp_sum(sum) / cg_count_used(&y);
    for (int64_t j = lane; j < y.gh; j += CG_WARP)
        squares += cg_is_unused(&y, j) ? 0.0f : (u[j] - mean) * (u[j] - mean);
    return {mean, 1.0f / sqrtf(cg_warp_sum(squares) / cg_count_used(&y) + y.epsilon)};
}

/* The record z receives the normalised inputs; the steps replace them by pre-activations. */
static __global__ void __launch_bounds__(32 * WARPS) inputs(const struct cg_layer *layers, int64_t rows)
{
    const struct cg_layer &y = layers[blockIdx.y];
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / CG_WARP;
    const int lane = (int)(threadIdx.x % CG_WARP);
    if (row >= rows)
        return; /* so does the whole warp */
    const float *u = y.u + row * y.gh;
    const struct moments m = find_moments(y, u, lane);
    for (int64_t j = lane; j < y.gh; j += CG_WARP)
        y.z[row * y.gh + j] = cg_is_unused(&y, j) ? 0.0f : (u[j] - m.mean) * m.scale * y.norm[j];
}

/* From the gradients of the normalised inputs to those of the products. */
static __global__ void __launch_bounds__(32 * WARPS) inputs_back(const struct cg_layer *layers, int64_t rows)
{
    const struct cg_layer &y = layers[blockIdx.y];
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / CG_WARP;
    const int lane = (int)(threadIdx.x % CG_WARP);
    if (row >= rows)
        return;
    const float *u = y.u + row * y.gh, *pre = y.pre_u + row * y.gh;
    const struct moments m = find_moments(y, u, lane);
    float sum = 0, product = 0;
    for (int64_t j = lane; j < y.gh; j += CG_WARP) {
        const float normal = (u[j] - m.mean) * m.scale, d = cg_is_unused(&y, j) ? 0.0f : pre[j] * y.norm[j];
        y.gain_u[row * y.gh + j] = cg_is_unused(&y, j) ? 0.0f : pre[j] * normal;
        sum += d;
        product += d * normal;
    }
    sum = cg_warp_sum(sum) / cg_count_used(&y);
    product = cg_warp_sum(product) / cg_count_used(&y);
    for (int64_t j = lane; j < y.gh; j += CG_WARP) {
        const float normal = (u[j] - m.mean) * m.scale;
        y.du[row * y.gh + j] = cg_is_unused(&y, j) ? 0.0f : m.scale * (pre[j] * y.norm[j] - sum - normal * product);
    }
}

extern "C" int cg_norm_inputs(void *stream, const struct cg_layer *layer, int64_t directions, int64_t rows)
{
    const dim3 blocks((unsigned)((rows + WARPS - 1) / WARPS), (unsigned)directions);
    return GPU_LAUNCH(stream, blocks, 32 * WARPS, 0, inputs, layer, rows);
}

extern "C" int cg_norm_inputs_back(void *stream, const struct cg_layer *layer, int64_t directions, int64_t rows)
{
    const dim3 blocks((unsigned)((rows + WARPS - 1) / WARPS), (unsigned)directions);
    return GPU_LAUNCH(stream, blocks, 32 * WARPS, 0, inputs_back, layer, rows);
}
