/* SPDX-License-Identifier: Apache-2.0 */
/* The variant one_block with LAYER_NORM. See one_block.h.
 *
 * Products are computed as in one_block.cu. A separate warp computes the cells of the block, two units per lane, so
 * sums over a layer are shuffles and a step still has only two barriers. The contribution of W_x does not depend on
 * other steps: it is normalised before the loop (into the record z, whose rows get their final contents later), and its
 * gradients are computed after the backward loop. Both take one warp per step. */
#include "cuda-generic/recurrent/kernels/one_block.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/device/device.h"

static const int MOST = CG_ONE_BLOCK_MOST, GATES_MOST = 4, ROWS = GATES_MOST * MOST, UNITS = MOST / 32,
                 SLICES = ROWS / MOST, THREADS = ROWS + 32;

/* What the threads of a block exchange; registers hold the weights. */
struct cg_norm_block {
    struct cg_layer layer;
    float h[MOST];               /* masked; forward */
    float u[ROWS], v[ROWS];      /* forward: the normalised u, and v; backward: only v, the gradients of W_h's sums */
    float partial[SLICES][MOST]; /* backward */
};

/* Two sums over a warp at the same time. */
static __device__ __forceinline__ void sum_both(float *a, float *b)
{
    for (int step = (int)CG_WARP / 2; step > 0; step /= 2) {
        const float x = __shfl_xor_sync(0xFFFFFFFFu, *a, step), y = __shfl_xor_sync(0xFFFFFFFFu, *b, step);
        *a += x;
        *b += y;
    }
}

/* Mean and 1 / deviation. */
struct moments {
    float mean, scale;
};

/* Of two sets of values, VALUES per lane. Bit e of `used`: the e-th value counts. All lanes call. */
template <int VALUES>
static __device__ __forceinline__ void find_moments(const float (&a)[VALUES], const float (&b)[VALUES], unsigned used_a,
                                                    unsigned used_b, float count_a, float count_b, float epsilon,
                                                    struct moments *of_a, struct moments *of_b)
{
    float x = 0, y = 0;
    CG_UNROLL
    for (int e = 0; e < VALUES; e++) {
        x += used_a >> e & 1 ? a[e] : 0.0f;
        y += used_b >> e & 1 ? b[e] : 0.0f;
    }
    sum_both(&x, &y);
    of_a->mean = x / count_a;
    of_b->mean = y / count_b;
    x = y = 0;
    CG_UNROLL
    for (int e = 0; e < VALUES; e++) {
        x += used_a >> e & 1 ? (a[e] - of_a->mean) * (a[e] - of_a->mean) : 0.0f;
        y += used_b >> e & 1 ? (b[e] - of_b->mean) * (b[e] - of_b->mean) : 0.0f;
    }
    sum_both(&x, &y);
    of_a->scale = 1.0f / sqrtf(x / count_a + epsilon);
    of_b->scale = 1.0f / sqrtf(y / count_b + epsilon);
}

template <int VALUES>
static __device__ __forceinline__ struct moments find_moments(const float (&x)[VALUES], unsigned used, float count,
                                                              float epsilon)
{
    struct moments of_x, again;
    find_moments<VALUES>(x, x, used, used, count, count, epsilon, &of_x, &again);
    return of_x;
}

static __device__ float count_rows(const struct cg_layer &y)
{
    return (float)(cg_is_coupled(&y) ? y.gh - y.hidden : y.gh);
}

/* Step number s of `steps`, in the order in which they run. */
static __device__ int64_t find_step(const struct cg_layer &y, int64_t s, int64_t steps)
{
    return y.reverse ? steps - 1 - s : s;
}

/* Which rows (unit i, gate g: bit 4 i + g) and units (bit i) of a lane exist. */
static __device__ unsigned find_rows(const struct cg_layer &y, int lane)
{
    unsigned used = 0;
    for (int e = 0; e < 4 * UNITS; e++) {
        const int64_t k = lane + (int)CG_WARP * (e / 4), g = e % 4;
        used |= k < y.hidden && g < y.gates && !cg_is_unused(&y, g * y.hidden + k) ? 1u << e : 0u;
    }
    return used;
}

static __device__ unsigned find_units(const struct cg_layer &y, int lane)
{
    unsigned used = 0;
    for (int i = 0; i < UNITS; i++)
        used |= lane + (int)CG_WARP * i < y.hidden ? 1u << i : 0u;
    return used;
}

static __device__ void take_layer(struct cg_norm_block *block, const struct cg_layer *layers)
{
    if (threadIdx.x == 0)
        block->layer = layers[blockIdx.y];
    __syncthreads();
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* A warp computes the normalised contribution of W_x to one step. */
static __device__ void normalise_inputs(const struct cg_layer &y, unsigned rows, int lane, int64_t row)
{
    float u[4 * UNITS];
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++)
        u[e] = rows >> e & 1 ? y.u[row * y.gh + e % 4 * y.hidden + lane + (int)CG_WARP * (e / 4)] : 0.0f;
    const struct moments of_u = find_moments<4 * UNITS>(u, rows, count_rows(y), y.epsilon);
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int64_t j = e % 4 * y.hidden + lane + (int)CG_WARP * (e / 4);
        if (rows >> e & 1)
            y.z[row * y.gh + j] = (u[e] - of_u.mean) * of_u.scale * y.norm[j];
    }
}

/* One step of the units of a lane. */
static __device__ __forceinline__ void run_cells(struct cg_norm_block *block, unsigned rows, unsigned units, int lane,
                                                 int64_t t, int64_t b, int64_t row, int64_t before)
{
    const struct cg_layer &y = block->layer;
    const int n = (int)y.hidden;
    float u[4 * UNITS], v[4 * UNITS], out[UNITS];
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int j = e % 4 * n + lane + (int)CG_WARP * (e / 4);
        u[e] = rows >> e & 1 ? block->u[j] : 0.0f;
        v[e] = rows >> e & 1 ? block->v[j] : 0.0f;
    }
    const struct moments of_v = find_moments<4 * UNITS>(v, rows, count_rows(y), y.epsilon);
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int j = e % 4 * n + lane + (int)CG_WARP * (e / 4);
        v[e] = rows >> e & 1 ? (v[e] - of_v.mean) * of_v.scale * y.norm[y.gh + j] : 0.0f;
    }
    if (y.cell == SEQLSTM_CELL_LSTM) {
        float c[UNITS], z_o[UNITS];
        CG_UNROLL
        for (int i = 0; i < UNITS; i++) {
            const float sums[4] = {u[4 * i] + v[4 * i], u[4 * i + 1] + v[4 * i + 1], u[4 * i + 2] + v[4 * i + 2],
                                   u[4 * i + 3] + v[4 * i + 3]};
            c[i] = z_o[i] = 0;
            if (units >> i & 1)
                c[i] = cg_lstm_inner(&y, t, b, row, before, lane + (int)CG_WARP * i, sums, &z_o[i]);
        }
        const struct moments of_c = find_moments<UNITS>(c, units, (float)n, y.epsilon);
        CG_UNROLL
        for (int i = 0; i < UNITS; i++) {
            const int k = lane + (int)CG_WARP * i;
            out[i] = units >> i & 1
                         ? cg_lstm_output(&y, z_o[i],
                                          (c[i] - of_c.mean) * of_c.scale * y.norm[8 * n + k] + y.norm[9 * n + k])
                         : 0.0f;
        }
    } else {
        CG_UNROLL
        for (int i = 0; i < UNITS; i++) {
            const int k = lane + (int)CG_WARP * i;
            out[i] = 0;
            if (!(units >> i & 1))
                continue;
            if (y.cell == SEQLSTM_CELL_GRU) {
                const float r = cg_gru_reset(&y, row, k, u[4 * i] + v[4 * i], u[4 * i + 1] + v[4 * i + 1]);
                out[i] = cg_gru_output(&y, row, k, r, u[4 * i + 2], v[4 * i + 2], cg_h_before(&y, before, b, k));
            } else {
                out[i] = cg_rnn_output(&y, row, k, u[4 * i] + v[4 * i]);
            }
        }
    }
    CG_UNROLL
    for (int i = 0; i < UNITS; i++) {
        const int k = lane + (int)CG_WARP * i;
        if (units >> i & 1)
            block->h[k] = cg_keep(&y, t, b, row, before, k, out[i]);
    }
}

static __global__ void __launch_bounds__(THREADS, 1) forward(const struct cg_layer *layers)
{
    GPU_SHARED(struct cg_norm_block, block);
    take_layer(block, layers);
    const struct cg_layer &y = block->layer;
    const int64_t n = y.hidden, b = blockIdx.x, steps = y.axis.lengths[b];
    const int j = (int)threadIdx.x, lane = j % (int)CG_WARP;
    const bool multiplies = j < y.gh && j < ROWS;
    const unsigned rows = find_rows(y, lane), units = find_units(y, lane);
    float w[MOST];
    for (int e = 0; e < MOST; e++)
        w[e] = multiplies && e < n && !cg_is_unused(&y, j) ? y.w_h[j * n + e] : 0.0f;
    if (j < MOST)
        block->h[j] = j < n ? cg_or_zero(y.h0, b * n + j) * cg_or_one(y.mask_h, b * n + j) : 0.0f;
    for (int64_t s = j / (int)CG_WARP; s < steps; s += THREADS / (int)CG_WARP)
        normalise_inputs(y, rows, lane, cg_row(&y, s, b));
    __syncthreads();
    float coming = multiplies ? y.z[cg_row(&y, find_step(y, 0, steps), b) * y.gh + j] : 0.0f;
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = find_step(y, s, steps), row = cg_row(&y, t, b);
        if (multiplies) {
            float v = 0;
            for (int e = 0; e < MOST; e++)
                v += w[e] * block->h[e];
            block->u[j] = coming;
            block->v[j] = v;
            y.v[row * y.gh + j] = v;
            if (s + 1 < steps)
                coming = y.z[cg_row(&y, find_step(y, s + 1, steps), b) * y.gh + j];
        }
        __syncthreads();
        if (j >= ROWS)
            run_cells(block, rows, units, lane, t, b, row, s == 0 ? -1 : cg_row(&y, find_step(y, s - 1, steps), b));
        __syncthreads();
    }
}

extern "C" int cg_one_block_norm_forward(void *stream, const struct cg_layer *layer, int64_t directions,
                                         int64_t sequences)
{
    const dim3 blocks((unsigned)sequences, (unsigned)directions);
    return GPU_LAUNCH(stream, blocks, THREADS, sizeof(struct cg_norm_block), forward, layer);
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

/* What to subtract when the gradients of N(x) * gain become those of x. */
struct shares {
    float sum, product;
};

/* The units of an LSTM: from the gradients of h^ to those of the gates. */
static __device__ __forceinline__ void run_lstm_back(const struct cg_layer &y, unsigned units, int lane,
                                                     struct moments of_c, const float (&c)[UNITS],
                                                     const float (&dh_new)[UNITS], int64_t t, int64_t b, int64_t row,
                                                     int64_t before, float (&dz)[4 * UNITS])
{
    const int n = (int)y.hidden;
    float dq[UNITS], dz_o[UNITS], normal[UNITS];
    struct shares of_q = {0, 0};
    CG_UNROLL
    for (int i = 0; i < UNITS; i++) {
        const int k = lane + (int)CG_WARP * i;
        dq[i] = dz_o[i] = normal[i] = 0;
        if (!(units >> i & 1))
            continue;
        normal[i] = (c[i] - of_c.mean) * of_c.scale;
        const float q = normal[i] * y.norm[8 * n + k] + y.norm[9 * n + k], z_o = y.z[row * y.gh + 3 * n + k];
        const float d = dh_new[i] * cg_gate(&y, z_o) * cg_slope(y.output, q);
        dz_o[i] = dh_new[i] * cg_activate(y.output, q) * cg_gate_slope(&y, z_o);
        y.gain_c[row * n + k] = d * normal[i];
        y.bias_c[row * n + k] = d;
        dq[i] = d * y.norm[8 * n + k];
        of_q.sum += dq[i];
        of_q.product += dq[i] * normal[i];
    }
    sum_both(&of_q.sum, &of_q.product);
    CG_UNROLL
    for (int i = 0; i < UNITS; i++) {
        const int k = lane + (int)CG_WARP * i;
        float gates[4] = {0, 0, 0, 0};
        if (units >> i & 1)
            cg_lstm_backward(&y, t, b, row, before, k,
                             of_c.scale * (dq[i] - (of_q.sum + normal[i] * of_q.product) / (float)n), dz_o[i], gates);
        CG_UNROLL
        for (int g = 0; g < 4; g++)
            dz[4 * i + g] = gates[g];
    }
}

/* One step of the units of a lane; block->v receives the gradients of W_h's sums. */
static __device__ __forceinline__ void run_cells_back(struct cg_norm_block *block, unsigned rows, unsigned units,
                                                      int lane, int64_t t, int64_t b, int64_t row, int64_t before)
{
    struct cg_layer &y = block->layer;
    const int n = (int)y.hidden;
    const bool lstm = y.cell == SEQLSTM_CELL_LSTM;
    float v[4 * UNITS], c[4 * UNITS] = {0}, dh_new[UNITS], du[4 * UNITS], dv[4 * UNITS], of_units[UNITS];
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int k = lane + (int)CG_WARP * (e / 4);
        v[e] = rows >> e & 1 ? y.v[row * y.gh + e % 4 * n + k] : 0.0f;
        du[e] = dv[e] = 0;
    }
    CG_UNROLL
    for (int i = 0; i < UNITS; i++) {
        const int k = lane + (int)CG_WARP * i;
        const bool there = units >> i & 1;
        of_units[i] = c[i] = there && lstm ? cg_clip(y.c_raw[row * n + k], y.cell_clip) : 0.0f;
        dh_new[i] = there ? cg_dh_new(&y, t, row, b, k, y.back[b * n + k]) : 0.0f;
    }
    struct moments of_v, of_c;
    find_moments<4 * UNITS>(v, c, rows, units, count_rows(y), (float)n, y.epsilon, &of_v, &of_c);
    if (lstm) {
        run_lstm_back(y, units, lane, of_c, of_units, dh_new, t, b, row, before, dv);
        CG_UNROLL
        for (int e = 0; e < 4 * UNITS; e++)
            du[e] = dv[e];
    } else {
        CG_UNROLL
        for (int i = 0; i < UNITS; i++) {
            float of_x[4] = {0, 0, 0, 0}, of_h[4] = {0, 0, 0, 0};
            if (units >> i & 1)
                cg_cell_backward(&y, t, b, row, before, lane + (int)CG_WARP * i, dh_new[i], of_x, of_h);
            CG_UNROLL
            for (int g = 0; g < 4; g++) {
                du[4 * i + g] = of_x[g];
                dv[4 * i + g] = of_h[g];
            }
        }
    }
    struct shares of_dv = {0, 0};
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int k = lane + (int)CG_WARP * (e / 4), j = e % 4 * n + k;
        if (!(units >> e / 4 & 1) || e % 4 >= y.gates)
            continue;
        cg_set_pre(&y, row, j, du[e], dv[e]);
        v[e] = (v[e] - of_v.mean) * of_v.scale; /* from here on normalised */
        y.gain_v[row * y.gh + j] = rows >> e & 1 ? dv[e] * v[e] : 0.0f;
        dv[e] = rows >> e & 1 ? dv[e] * y.norm[y.gh + j] : 0.0f;
        of_dv.sum += dv[e];
        of_dv.product += rows >> e & 1 ? dv[e] * v[e] : 0.0f;
    }
    sum_both(&of_dv.sum, &of_dv.product);
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int k = lane + (int)CG_WARP * (e / 4), j = e % 4 * n + k;
        if (!(units >> e / 4 & 1) || e % 4 >= y.gates)
            continue;
        const float share = (of_dv.sum + v[e] * of_dv.product) / count_rows(y);
        const float d = rows >> e & 1 ? of_v.scale * (dv[e] - share) : 0.0f;
        y.dv[row * y.gh + j] = d;
        block->v[j] = d;
    }
}

/* A warp computes the gradients of the contribution of W_x to one step. */
static __device__ void run_inputs_back(const struct cg_layer &y, unsigned rows, int lane, int64_t row)
{
    const int n = (int)y.hidden;
    float u[4 * UNITS], d[4 * UNITS];
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++)
        u[e] = rows >> e & 1 ? y.u[row * y.gh + e % 4 * n + lane + (int)CG_WARP * (e / 4)] : 0.0f;
    const struct moments of_u = find_moments<4 * UNITS>(u, rows, count_rows(y), y.epsilon);
    struct shares of_du = {0, 0};
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int k = lane + (int)CG_WARP * (e / 4), j = e % 4 * n + k;
        d[e] = 0;
        if (k >= n || e % 4 >= y.gates)
            continue;
        const float pre = rows >> e & 1 ? y.pre_u[row * y.gh + j] : 0.0f;
        u[e] = (u[e] - of_u.mean) * of_u.scale;
        y.gain_u[row * y.gh + j] = rows >> e & 1 ? pre * u[e] : 0.0f;
        d[e] = pre * y.norm[j];
        of_du.sum += d[e];
        of_du.product += rows >> e & 1 ? d[e] * u[e] : 0.0f;
    }
    sum_both(&of_du.sum, &of_du.product);
    CG_UNROLL
    for (int e = 0; e < 4 * UNITS; e++) {
        const int k = lane + (int)CG_WARP * (e / 4), j = e % 4 * n + k;
        if (k < n && e % 4 < y.gates)
            y.du[row * y.gh + j] =
                rows >> e & 1 ? of_u.scale * (d[e] - (of_du.sum + u[e] * of_du.product) / count_rows(y)) : 0.0f;
    }
}

/* The product of a step: thread (slice, k) multiplies a slice of the gates with column k. */
static __device__ __forceinline__ void load_columns(const struct cg_layer &y, int slice, int k, int rows,
                                                    float (&w)[MOST])
{
    for (int e = 0; e < MOST; e++) {
        const int64_t j = slice * rows + e;
        w[e] = e < rows && j < y.gh && k < y.hidden && !cg_is_unused(&y, j) ? y.w_h[j * y.hidden + k] : 0.0f;
    }
}

static __global__ void __launch_bounds__(THREADS, 1) backward(const struct cg_layer *layers)
{
    GPU_SHARED(struct cg_norm_block, block);
    take_layer(block, layers);
    struct cg_layer &y = block->layer;
    const int64_t n = y.hidden, b = blockIdx.x, steps = y.axis.lengths[b];
    const int lane = (int)(threadIdx.x % CG_WARP);
    const unsigned used = find_rows(y, lane), units = find_units(y, lane);
    for (int j = (int)threadIdx.x; j < ROWS; j += THREADS)
        block->v[j] = 0.0f;
    __syncthreads();
    if (threadIdx.x >= ROWS) {
        for (int64_t s = steps - 1; s >= 0; s--) {
            const int64_t t = find_step(y, s, steps);
            run_cells_back(block, used, units, lane, t, b, cg_row(&y, t, b),
                           s == 0 ? -1 : cg_row(&y, find_step(y, s - 1, steps), b));
            __syncthreads();
            __syncthreads();
            for (int k = lane; k < n; k += (int)CG_WARP) {
                float back = 0;
                for (int p = 0; p < SLICES; p++)
                    back += block->partial[p][k];
                y.back[b * n + k] = back; /* the same thread reads it in the next step */
            }
        }
    } else {
        const int k = (int)threadIdx.x % MOST, slice = (int)threadIdx.x / MOST;
        const int rows = (int)(y.gh + SLICES - 1) / SLICES, first = slice * rows;
        float w[MOST]; /* rows <= ROWS / SLICES = MOST */
        load_columns(y, slice, k, rows, w);
        for (int64_t s = steps - 1; s >= 0; s--) {
            __syncthreads();
            float sum = 0;
            for (int e = 0; e < MOST; e++)
                sum += w[e] * block->v[first + e < ROWS ? first + e : 0];
            block->partial[slice][k] = sum;
            __syncthreads();
        }
    }
    __syncthreads(); /* now pre_u is complete */
    for (int64_t s = threadIdx.x / CG_WARP; s < steps; s += THREADS / (int)CG_WARP)
        run_inputs_back(y, used, lane, cg_row(&y, s, b));
}

extern "C" int cg_one_block_norm_backward(void *stream, const struct cg_layer *layer, int64_t directions,
                                          int64_t sequences)
{
    const dim3 blocks((unsigned)sequences, (unsigned)directions);
    return GPU_LAUNCH(stream, blocks, THREADS, sizeof(struct cg_norm_block), backward, layer);
}
