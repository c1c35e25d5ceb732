/* SPDX-License-Identifier: Apache-2.0 */
/* Backward kernels of one time step. See step.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/rows/drop.h"

static __global__ void begin_back(const struct cg_layer *y, int64_t sequences)
{
    CG_FOR_EACH(e, sequences * y->out)
    {
        y->direct[e] = cg_or_zero(y->dhn, e);
        y->back[e] = 0.0f;
    }
    CG_FOR_EACH(e, sequences * y->hidden)
    y->dc[e] = cg_or_zero(y->dcn, e);
}

static __global__ void finish_back(const struct cg_layer *y, int64_t sequences)
{
    CG_FOR_EACH(e, sequences * y->out)
    if (y->dh0)
        y->dh0[e] = y->direct[e] + cg_or_one(y->mask_h, e) * y->back[e];
    CG_FOR_EACH(e, sequences * y->hidden)
    if (y->dc0)
        y->dc0[e] = y->dc[e];
}

static __device__ __forceinline__ void find_h_rows(const struct cg_layer *y, int64_t rows)
{
    CG_FOR_EACH(e, rows * y->out)
    {
        const int64_t r = e / y->out, k = e % y->out, b = y->axis.row_sequence[r];
        const int64_t before = cg_row_before(y, y->axis.row_step[r], b);
        y->h_rows[e] = cg_h_before(y, before, b, k) * cg_or_one(y->mask_h, b * y->out + k);
    }
}

static __global__ void h_rows(const struct cg_layer *y, int64_t rows)
{
    find_h_rows(y, rows);
}

static __global__ void masked_rows(const struct cg_layer *y, int64_t rows, const __grid_constant__ struct cg_drop drop)
{
    cg_drop(drop, y->axis);
    find_h_rows(y, rows);
}

extern "C" int cg_step_begin_back(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t hidden,
                                  int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(sequences * (hidden > out ? hidden : out)), CG_THREADS, 0, begin_back, layer,
                      sequences);
}

extern "C" int cg_step_finish_back(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t hidden,
                                   int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(sequences * (hidden > out ? hidden : out)), CG_THREADS, 0, finish_back, layer,
                      sequences);
}

extern "C" int cg_step_h_rows(void *stream, const struct cg_layer *layer, int64_t rows, int64_t out,
                              const struct cg_drop *drop)
{
    const struct cg_drop d = *drop;
    const int64_t most = d.rows * d.n > rows * out ? d.rows * d.n : rows * out;
    return d.rows > 0 ? GPU_LAUNCH(stream, cg_blocks(most), CG_THREADS, 0, masked_rows, layer, rows, d)
                      : GPU_LAUNCH(stream, cg_blocks(most), CG_THREADS, 0, h_rows, layer, rows);
}

static __global__ void split_back(const struct cg_layer *y, int64_t t, int64_t m)
{
    CG_FOR_EACH(e, m * y->out)
    {
        const int64_t b = e / y->out, k = e % y->out, row = cg_row(y, t, b);
        y->dh_new[row * y->out + k] = cg_dh_new(y, t, row, b, k, y->back[b * y->out + k]);
    }
}

extern "C" int cg_step_split_back(void *stream, const struct cg_layer *layer, int64_t t, int64_t m, int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(m * out), CG_THREADS, 0, split_back, layer, t, m);
}

/* ---- a block a sequence --------------------------------------------------------------------------------------- */

static __device__ void run_lstm(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before,
                                float *room)
{
    const int64_t n = y->hidden;
    float mean = 0, scale = 1, sum = 0, product = 0;
    float *dq = y->pre_u + row * y->gh, *dz_o = dq + 3 * n; /* at element k, read and written by the same thread */
    if (y->normed) {
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            sum += cg_clip(y->c_raw[row * n + k], y->cell_clip);
        mean = cg_block_sum(sum, room) / (float)n;
        sum = 0;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
            const float c = cg_clip(y->c_raw[row * n + k], y->cell_clip) - mean;
            sum += c * c;
        }
        scale = 1.0f / sqrtf(cg_block_sum(sum, room) / (float)n + y->epsilon);
        sum = 0;
    }
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
        const float d = y->projection > 0 ? y->dout[b * n + k] : cg_dh_new(y, t, row, b, k, y->back[b * y->out + k]);
        const float normal = (cg_clip(y->c_raw[row * n + k], y->cell_clip) - mean) * scale;
        const float q = y->normed ? normal * y->norm[8 * n + k] + y->norm[9 * n + k] : normal;
        const float z_o = y->z[row * y->gh + 3 * n + k], o = cg_gate(y, z_o), a = cg_activate(y->output, q);
        if (y->projection > 0)
            y->out_rows[row * n + k] = o * a;
        dz_o[k] = d * a * cg_gate_slope(y, z_o);
        float g = d * o * cg_slope(y->output, q);
        if (y->normed) {
            y->gain_c[row * n + k] = g * normal;
            y->bias_c[row * n + k] = g;
            g *= y->norm[8 * n + k];
            sum += g;
            product += g * normal;
        }
        dq[k] = g;
    }
    if (y->normed) {
        sum = cg_block_sum(sum, room) / (float)n;
        product = cg_block_sum(product, room) / (float)n;
    }
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
        float dz[4], dc = dq[k];
        if (y->normed) {
            const float normal = (cg_clip(y->c_raw[row * n + k], y->cell_clip) - mean) * scale;
            dc = scale * (dc - sum - normal * product);
        }
        cg_lstm_backward(y, t, b, row, before, k, dc, dz_o[k], dz);
        for (int g = 0; g < 4; g++)
            cg_set_pre(y, row, g * n + k, dz[g], dz[g]);
    }
}

static __device__ void run_gru(const struct cg_layer *y, int phase, int64_t t, int64_t b, int64_t row, int64_t before)
{
    const int64_t n = y->hidden;
    const float *z = y->z + row * y->gh;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
        const float r = cg_gate(y, z[k]);
        const float h = cg_h_before(y, before, b, k) * cg_or_one(y->mask_h, b * n + k);
        if (phase == CG_PHASE_OUTPUT) { /* late, when dreset is known */
            const float d = y->dreset[b * n + k], dz_r = d * h * cg_gate_slope(y, z[k]);
            cg_set_pre(y, row, k, dz_r, dz_r);
            y->back[b * n + k] = d * r;
            continue;
        }
        const float dh_new = cg_dh_new(y, t, row, b, k, y->back[b * y->out + k]);
        float dz_z, dz_n;
        cg_gru_backward(y, row, b, before, k, dh_new, &dz_z, &dz_n);
        cg_set_pre(y, row, n + k, dz_z, dz_z);
        if (y->late) {
            cg_set_pre(y, row, 2 * n + k, dz_n, dz_n);
            y->reset_rows[row * n + k] = r * h;
            continue;
        }
        const float dz_r = dz_n * y->n[row * n + k] * cg_gate_slope(y, z[k]);
        cg_set_pre(y, row, k, dz_r, dz_r);
        cg_set_pre(y, row, 2 * n + k, dz_n, dz_n * r);
    }
}

/* From the gradient of N(x) * gain to that of x; `rows` receives the summands of the gain's gradient. */
static __device__ void normalise_back(const struct cg_layer *y, const float *x, const float *gain, const float *pre,
                                      float *dx, float *rows, float *room)
{
    const float count = cg_count_used(y);
    float sum = 0, product = 0;
    for (int64_t j = threadIdx.x; j < y->gh; j += blockDim.x)
        sum += cg_is_unused(y, j) ? 0.0f : x[j];
    const float mean = cg_block_sum(sum, room) / count;
    sum = 0;
    for (int64_t j = threadIdx.x; j < y->gh; j += blockDim.x)
        sum += cg_is_unused(y, j) ? 0.0f : (x[j] - mean) * (x[j] - mean);
    const float scale = 1.0f / sqrtf(cg_block_sum(sum, room) / count + y->epsilon);
    sum = 0;
    for (int64_t j = threadIdx.x; j < y->gh; j += blockDim.x) {
        const bool unused = cg_is_unused(y, j);
        const float normal = (x[j] - mean) * scale, d = unused ? 0.0f : pre[j] * gain[j];
        rows[j] = unused ? 0.0f : pre[j] * normal;
        sum += d;
        product += unused ? 0.0f : d * normal;
    }
    sum = cg_block_sum(sum, room) / count;
    product = cg_block_sum(product, room) / count;
    for (int64_t j = threadIdx.x; j < y->gh; j += blockDim.x) {
        const float normal = (x[j] - mean) * scale;
        dx[j] = cg_is_unused(y, j) ? 0.0f : scale * (pre[j] * gain[j] - sum - normal * product);
    }
}

static __global__ void cell_back(const struct cg_layer *y, int phase, int64_t t)
{
    GPU_SHARED(float, room);
    const int64_t b = blockIdx.x, row = cg_row(y, t, b), before = cg_row_before(y, t, b), at = row * y->gh;
    if (y->cell == SEQLSTM_CELL_LSTM)
        run_lstm(y, t, b, row, before, room);
    else if (y->cell == SEQLSTM_CELL_GRU)
        run_gru(y, phase, t, b, row, before);
    else
        for (int64_t k = threadIdx.x; k < y->hidden; k += blockDim.x) {
            const float d = cg_dh_new(y, t, row, b, k, y->back[b * y->out + k]) * cg_candidate_slope(y, y->z[at + k]);
            cg_set_pre(y, row, k, d, d);
        }
    if (!y->normed)
        return;
    __syncthreads(); /* now pre_u and pre_v are complete */
    normalise_back(y, y->u + at, y->norm, y->pre_u + at, y->du + at, y->gain_u + at, room);
    normalise_back(y, y->v + at, y->norm + y->gh, y->pre_v + at, y->dv + at, y->gain_v + at, room);
}

extern "C" int cg_step_cell_back(void *stream, const struct cg_layer *layer, enum cg_step_phase phase, int64_t t,
                                 int64_t m)
{
    return GPU_LAUNCH(stream, (unsigned)m, CG_ROW_THREADS, CG_ROW_THREADS / CG_WARP * sizeof(float), cell_back, layer,
                      (int)phase, t);
}
