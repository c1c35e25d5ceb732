/* SPDX-License-Identifier: Apache-2.0 */
/* Forward kernels of one time step. See step.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/rows/drop.h"

/* ---- beginning and end -------------------------------------------------------------------------------------- */

static __global__ void begin(const struct cg_layer *y, int64_t elems)
{
    CG_FOR_EACH(e, elems)
    {
        const float h = cg_or_zero(y->h0, e) * cg_or_one(y->mask_h, e);
        y->hm[0][e] = h;
        y->hm[1][e] = h;
    }
}

/* The last row that was computed for each sequence. */
static __device__ int64_t last_row(const struct cg_layer *y, int64_t b)
{
    return cg_row(y, y->reverse ? 0 : y->axis.lengths[b] - 1, b);
}

static __device__ __forceinline__ void write_states(const struct cg_layer *y, int64_t sequences)
{
    CG_FOR_EACH(e, sequences * y->out)
    if (y->hn)
        y->hn[e] = y->h[last_row(y, e / y->out) * y->out + e % y->out];
    CG_FOR_EACH(e, sequences * y->hidden)
    if (y->cn)
        y->cn[e] = y->c[last_row(y, e / y->hidden) * y->hidden + e % y->hidden];
}

static __global__ void finish(const struct cg_layer *y, int64_t sequences)
{
    write_states(y, sequences);
}

static __global__ void finish_masked(const struct cg_layer *y, int64_t sequences,
                                     const __grid_constant__ struct cg_drop drop)
{
    write_states(y, sequences);
    cg_drop(drop, y->axis);
}

extern "C" int cg_step_begin(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(sequences * out), CG_THREADS, 0, begin, layer, sequences * out);
}

extern "C" int cg_step_finish(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t hidden,
                              int64_t out, const struct cg_drop *drop)
{
    const struct cg_drop d = *drop;
    const int64_t states = sequences * (hidden > out ? hidden : out), masked = d.rows * d.n;
    return masked > 0 ? GPU_LAUNCH(stream, cg_blocks(masked > states ? masked : states), CG_THREADS, 0, finish_masked,
                                   layer, sequences, d)
                      : GPU_LAUNCH(stream, cg_blocks(states), CG_THREADS, 0, finish, layer, sequences);
}

/* ---- a block a sequence ------------------------------------------------------------------------------------- */

/* Mean and 1 / deviation of one row of products, over the gates in use. */
struct moments {
    float mean, scale;
};

static __device__ struct moments normalise(const struct cg_layer *y, const float *x, float *room)
{
    const float count = cg_count_used(y);
    float sum = 0, squares = 0;
    for (int64_t j = threadIdx.x; j < y->gh; j += blockDim.x)
        sum += cg_is_unused(y, j) ? 0.0f : x[j];
    const float mean = cg_block_sum(sum, room) / count;
    for (int64_t j = threadIdx.x; j < y->gh; j += blockDim.x)
        squares += cg_is_unused(y, j) ? 0.0f : (x[j] - mean) * (x[j] - mean);
    struct moments m = {mean, 1.0f / sqrtf(cg_block_sum(squares, room) / count + y->epsilon)};
    return m;
}

/* The two sums of gate row j whose total is z. */
struct sums {
    const float *u, *v, *gain_u, *gain_v;
    struct moments of_u, of_v;
};

static __device__ float get_u(const struct sums &s, int64_t j)
{
    return s.gain_u ? (s.u[j] - s.of_u.mean) * s.of_u.scale * s.gain_u[j] : s.u[j];
}

static __device__ float get_v(const struct sums &s, int64_t j)
{
    return s.gain_v ? (s.v[j] - s.of_v.mean) * s.of_v.scale * s.gain_v[j] : s.v[j];
}

static __device__ void run_lstm(const struct cg_layer *y, const struct sums &s, int64_t t, int64_t b, int64_t row,
                                int64_t before, int parity, float *room)
{
    const int64_t n = y->hidden;
    float sum = 0, squares = 0, mean = 0, scale = 1;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
        float z[4];
        for (int g = 0; g < 4; g++)
            z[g] = cg_is_unused(y, g * n + k) ? 0.0f : get_u(s, g * n + k) + get_v(s, g * n + k);
        float z_o;
        sum += cg_lstm_inner(y, t, b, row, before, k, z, &z_o);
    }
    if (y->normed) {
        mean = cg_block_sum(sum, room) / (float)n;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
            const float c = cg_clip(y->c_raw[row * n + k], y->cell_clip) - mean;
            squares += c * c;
        }
        scale = 1.0f / sqrtf(cg_block_sum(squares, room) / (float)n + y->epsilon);
    }
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
        float q = cg_clip(y->c_raw[row * n + k], y->cell_clip);
        if (y->normed)
            q = (q - mean) * scale * y->norm[8 * n + k] + y->norm[9 * n + k];
        const float out = cg_lstm_output(y, y->z[row * y->gh + 3 * n + k], q);
        if (y->projection > 0)
            y->raw[b * n + k] = out;
        else
            cg_publish(y, t, b, row, before, k, out, parity);
    }
}

static __device__ void run_gru(const struct cg_layer *y, const struct sums &s, int phase, int64_t t, int64_t b,
                               int64_t row, int64_t before, int parity)
{
    const int64_t n = y->hidden;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
        float r;
        if (phase == CG_PHASE_OUTPUT)
            r = cg_gate(y, y->z[row * y->gh + k]);
        else
            r = cg_gru_reset(y, row, k, get_u(s, k) + get_v(s, k), get_u(s, n + k) + get_v(s, n + k));
        if (phase == CG_PHASE_RESET) {
            y->reset[b * n + k] = r * y->hm[parity][b * n + k];
            continue;
        }
        const float h =
            cg_gru_output(y, row, k, r, get_u(s, 2 * n + k), get_v(s, 2 * n + k), cg_h_before(y, before, b, k));
        cg_publish(y, t, b, row, before, k, h, parity);
    }
}

static __global__ void cell(const struct cg_layer *y, int phase, int64_t t, int parity)
{
    GPU_SHARED(float, room);
    const int64_t b = blockIdx.x, row = cg_row(y, t, b), before = cg_row_before(y, t, b);
    struct sums s = {
        y->u + row * y->gh, y->normed ? y->v + row * y->gh : y->product + b * y->gh, nullptr, nullptr, {0, 1}, {0, 1}};
    if (y->normed) {
        s.gain_u = y->norm;
        s.gain_v = y->norm + y->gh;
        s.of_u = normalise(y, s.u, room);
        s.of_v = normalise(y, s.v, room);
    }
    if (y->cell == SEQLSTM_CELL_LSTM)
        run_lstm(y, s, t, b, row, before, parity, room);
    else if (y->cell == SEQLSTM_CELL_GRU)
        run_gru(y, s, phase, t, b, row, before, parity);
    else
        for (int64_t k = threadIdx.x; k < y->hidden; k += blockDim.x)
            cg_publish(y, t, b, row, before, k, cg_rnn_output(y, row, k, get_u(s, k) + get_v(s, k)), parity);
}

extern "C" int cg_step_cell(void *stream, const struct cg_layer *layer, enum cg_step_phase phase, int64_t t,
                            int32_t parity, int64_t m)
{
    return GPU_LAUNCH(stream, (unsigned)m, CG_ROW_THREADS, CG_ROW_THREADS / CG_WARP * sizeof(float), cell, layer,
                      (int)phase, t, parity);
}

static __global__ void publish(const struct cg_layer *y, int64_t t, int parity, int64_t m)
{
    CG_FOR_EACH(e, m * y->out)
    {
        const int64_t b = e / y->out, k = e % y->out;
        cg_publish(y, t, b, cg_row(y, t, b), cg_row_before(y, t, b), k, y->projected[e], parity);
    }
}

extern "C" int cg_step_publish(void *stream, const struct cg_layer *layer, int64_t t, int32_t parity, int64_t m,
                               int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(m * out), CG_THREADS, 0, publish, layer, t, parity, m);
}

/* ---- product and cell in one ---------------------------------------------------------------------------------- */

enum { FUSED_ROWS = 4, FUSED_WARPS = 4 };

/* A warp computes hidden unit k of FUSED_ROWS sequences: its lanes share the sums over h, then lane r computes the cell
 * of sequence b0 + r. */
static __global__ void __launch_bounds__(FUSED_WARPS *CG_WARP) fused(const struct cg_layer *layer, int64_t turn)
{
    const struct cg_layer *y = layer + blockIdx.z;
    const int64_t t = cg_step_at(y, turn), m = y->axis.batch_sizes[t];
    const int parity = (int)(turn % 2);
    const int lane = (int)(threadIdx.x % CG_WARP);
    const int64_t n = y->hidden, k = (int64_t)blockIdx.x * FUSED_WARPS + threadIdx.x / CG_WARP;
    const int64_t b0 = (int64_t)blockIdx.y * FUSED_ROWS;
    const int gates = (int)y->gates;
    if (k >= n || b0 >= m)
        return; /* so does the whole warp */
    float sum[4][FUSED_ROWS];
    for (int g = 0; g < 4; g++)
        for (int r = 0; r < FUSED_ROWS; r++)
            sum[g][r] = 0.0f;
    for (int64_t e = lane; e < y->out; e += CG_WARP) {
        float h[FUSED_ROWS];
        for (int r = 0; r < FUSED_ROWS; r++)
            h[r] = b0 + r < m ? y->hm[parity][(b0 + r) * y->out + e] : 0.0f;
        for (int g = 0; g < 4; g++) {
            if (g >= gates)
                break;
            const float w = y->w_h[(g * n + k) * y->out + e];
            for (int r = 0; r < FUSED_ROWS; r++)
                sum[g][r] += w * h[r];
        }
    }
    float mine[4] = {0, 0, 0, 0};
    for (int g = 0; g < 4; g++) {
        if (g >= gates)
            break;
        for (int r = 0; r < FUSED_ROWS; r++) {
            const float total = cg_warp_sum(sum[g][r]);
            mine[g] = lane == r ? total : mine[g];
        }
    }
    const int64_t b = b0 + lane;
    if (lane >= FUSED_ROWS || b >= m)
        return;
    const int64_t row = cg_row(y, t, b), before = cg_row_before(y, t, b);
    cg_publish(y, t, b, row, before, k, cg_cell_forward(y, t, b, row, before, k, mine), parity);
}

extern "C" int cg_step_fused(void *stream, const struct cg_layer *layer, int64_t directions, int64_t turn, int64_t most,
                             int64_t hidden)
{
    const dim3 grid((unsigned)((hidden + FUSED_WARPS - 1) / FUSED_WARPS),
                    (unsigned)((most + FUSED_ROWS - 1) / FUSED_ROWS), (unsigned)directions);
    return GPU_LAUNCH(stream, grid, FUSED_WARPS * CG_WARP, 0, fused, layer, turn);
}
