/* SPDX-License-Identifier: Apache-2.0 */
/* DENSE_LOSS by columns: softmax cross-entropy over many classes, without a matrix [R, C] in the canonical layout.
 *
 * The classes are cut into chunks of 512. Each part owns a range of chunks: their products, their share of the softmax,
 * and their rows of dW and db. All of that stays in the part's own cache. Only dX is summed over the parts.
 *
 *   forward   for each chunk: E = X W_chunk' + b, then E = exp(E - largest of the row in the chunk) in place;
 *             keep the largest value and the sum of each row of the chunk
 *             after all chunks: log(sum exp) of each row, and the loss
 *   backward  for each chunk: E = scale * (E exp(largest - log_sum) - target),
 *             dW_chunk += E' X, db, dX_part += E W_chunk
 *             after all chunks: dX = sum over the parts, in their order
 *
 * Variant "stored" keeps E of all chunks in the reserve. Variant "recomputed" keeps one block of rows for each part and
 * repeats the product in backward: a third more arithmetic, R C floats less memory.
 *
 *   chunk      [rows of the block][LD], LD = 528: a row stride that does not alias in any cache
 *   reserve    log_sum [R] float64 | chunk_rows [chunks][R] (largest, sum) | stored: E [chunks][R][LD]
 *   workspace  losses [R] float64 | for each chunk and row: sum of exp, of x | x of the target [R]
 *              | dX of parts 1.. [R][I] | recomputed, inference: E of one block for each part */
#include "cpu-blas/ops/dense_loss_columns.h"

#include <math.h>
#include <string.h>

#include "cpu-blas/multiply.h"
#include "cpu-blas/ops/dense_loss_slots.h"

enum { CHUNK = 512, LD = 528, BLOCK = 512, PARTS_MAX = 16, CLASSES_MIN = 1024 };
/* The most bytes of E that are worth storing: in float32; and in bfloat16, where computing E again takes less time
 * than writing it to memory and reading it back, as soon as it no longer fits the caches. */
#define STORED_MAX_BYTES          (UINT64_C(1) << 29)
#define STORED_MAX_BYTES_BFLOAT16 (UINT64_C(24) << 20)

/* Results for one row within a chunk. */
struct chunk_row {
    float largest, exp_sum, sum, reserved;
};

bool blas_columns_fit(const struct seqlstm_dense_loss_desc *d)
{
    return d->kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY && d->output >= CLASSES_MIN;
}

static int64_t chunk_count(int64_t classes)
{
    return (classes + CHUNK - 1) / CHUNK;
}

static uint64_t stored_bytes(const struct seqlstm_dense_loss_desc *d)
{
    return (uint64_t)chunk_count(d->output) * (uint64_t)d->head.max_rows * LD * sizeof(float);
}

static bool prefers_stored(const struct seqlstm_dense_loss_desc *d)
{
    return stored_bytes(d) <=
           (d->head.dtype_compute == SEQLSTM_DTYPE_BFLOAT16 ? STORED_MAX_BYTES_BFLOAT16 : STORED_MAX_BYTES);
}

void blas_columns_supports(const struct seqlstm_dense_loss_desc *d, bool with_tiles, struct seqlstm_answer *answer)
{
    const char *const tiles = blas_multiply_tiles(&d->head, with_tiles);
    const char *const stored_first[] = {"stored", "recomputed", tiles, NULL};
    const char *const recomputed_first[] = {"recomputed", "stored", tiles, NULL};
    const char *const inference[] = {"columns", tiles, NULL};
    if (d->head.mode == SEQLSTM_MODE_INFERENCE)
        answer_yes(answer, inference);
    else
        answer_yes(answer, prefers_stored(d) ? stored_first : recomputed_first);
}

static bool is_stored(const struct seqlstm_op *op)
{
    const bool preferred = op->variant == 0 || op->on_tiles;
    return op->training && preferred == prefers_stored(&op->desc.dense_loss);
}

/* ---- layout of reserve and workspace ----------------------------------------------------------- */

struct layout {
    /* Reserve; in inference the first two are in the workspace. */
    double *log_sums;
    struct chunk_row *chunk_rows; /* [chunk][row] */
    float *stored;                /* [chunk][row][LD], or NULL */
    /* workspace */
    double *losses;
    float *target_sums; /* x of the target, before exp */
    float *partial_dx;  /* [part - 1][R][I] */
    float *blocks;      /* [part][BLOCK][LD], or NULL */
};

struct cursor {
    char *base;
    uint64_t bytes;
};

static void *take(struct cursor *c, uint64_t bytes)
{
    void *p = c->base != NULL ? c->base + c->bytes : NULL;
    c->bytes += align_bytes(bytes);
    return p;
}

static int32_t parts_max(const struct seqlstm_op *op)
{
    return op->instance->members_max < PARTS_MAX ? op->instance->members_max : PARTS_MAX;
}

/* With NULL buffers, only measures the sizes. */
static void lay_out(const struct seqlstm_op *op, void *reserve, void *workspace, struct layout *out,
                    struct seqlstm_sizes *sizes)
{
    const struct seqlstm_dense_loss_desc *d = &op->desc.dense_loss;
    const uint64_t rows = (uint64_t)d->head.max_rows, chunks = (uint64_t)chunk_count(d->output);
    const uint64_t parts = (uint64_t)parts_max(op);
    struct cursor kept = {reserve, 0}, scratch = {workspace, 0};
    struct cursor *first = op->training ? &kept : &scratch;
    out->log_sums = take(first, rows * sizeof(double));
    out->chunk_rows = take(first, chunks * rows * sizeof(struct chunk_row));
    out->stored = is_stored(op) ? take(&kept, chunks * rows * LD * sizeof(float)) : NULL;
    out->losses = take(&scratch, rows * sizeof(double));
    out->target_sums = take(&scratch, rows * sizeof(float));
    out->partial_dx = NULL;
    if (op->training)
        out->partial_dx = take(&scratch, (parts - 1) * rows * (uint64_t)d->input * sizeof(float));
    out->blocks = is_stored(op) ? NULL : take(&scratch, parts * BLOCK * LD * sizeof(float));
    if (sizes != NULL) {
        sizes->reserve_bytes = kept.bytes;
        sizes->workspace_bytes = scratch.bytes;
    }
}

void blas_columns_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    struct layout layout;
    lay_out(op, NULL, NULL, &layout, out);
}

struct columns {
    struct blas_dense_loss l;
    struct layout layout;
    int64_t chunks;
};

static struct columns open_columns(const struct blas_call *call)
{
    struct columns c = {.l = blas_dense_loss_open(call)};
    c.chunks = chunk_count(c.l.classes);
    lay_out(call->op, call->reserve, call->workspace, &c.layout, NULL);
    return c;
}

static struct blas_division divide_chunks(const struct blas_call *call, int64_t chunks)
{
    const int32_t most = parts_max(call->op);
    return blas_divide(chunks, 1, 1, call->members < most ? call->members : most);
}

/* Where E of the rows of a chunk, from r0 on, is. */
static float *block_of(const struct columns *c, int32_t part, int64_t chunk, int64_t r0)
{
    if (c->layout.stored != NULL)
        return c->layout.stored + (chunk * c->l.rows + r0) * LD;
    return c->layout.blocks + (int64_t)part * BLOCK * LD;
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* E = X W_chunk' of rows [r0, r0 + count). */
static void multiply(const struct blas_call *call, const struct columns *c, int32_t part, int64_t chunk, int64_t width,
                     int64_t r0, int64_t count, float *e)
{
    blas_multiply(call, part, false, true, count, width, c->l.inputs, c->l.x + r0 * c->l.inputs, c->l.inputs,
                  c->l.w + chunk * CHUNK * c->l.inputs, c->l.inputs, 0.0f, e, LD);
}

static void forward_chunks(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    const struct columns *c = context;
    const int32_t *targets = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const int64_t c0 = chunk * CHUNK, width = c->l.classes - c0 < CHUNK ? c->l.classes - c0 : CHUNK;
        const float *bias = c->l.bias != NULL ? c->l.bias + c0 : NULL;
        struct chunk_row *chunk_rows = c->layout.chunk_rows + chunk * c->l.rows;
        for (int64_t r0 = 0; r0 < c->l.rows; r0 += BLOCK) {
            const int64_t count = c->l.rows - r0 < BLOCK ? c->l.rows - r0 : BLOCK;
            float *e = block_of(c, part, chunk, r0);
            multiply(call, c, part, chunk, width, r0, count, e);
            for (int64_t r = r0; r < r0 + count; r++) {
                float *row = e + (r - r0) * LD;
                const int64_t at = targets[r] - c0;
                if (at >= 0 && at < width)
                    c->layout.target_sums[r] = row[at] + (bias != NULL ? bias[at] : 0.0f);
                struct blas_row_stats stats;
                call->math->exp_row(width, bias, row, &stats);
                chunk_rows[r] = (struct chunk_row){stats.largest, stats.exp_sum, stats.sum, 0.0f};
            }
        }
    }
}

static void combine_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct columns *c = context;
    const int32_t *targets = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
    for (int64_t r = begin; r < end; r++) {
        const struct chunk_row *chunk_rows = c->layout.chunk_rows + r;
        float largest = chunk_rows[0].largest;
        for (int64_t chunk = 1; chunk < c->chunks; chunk++)
            largest = chunk_rows[chunk * c->l.rows].largest > largest ? chunk_rows[chunk * c->l.rows].largest : largest;
        double exp_sum = 0.0, sum = 0.0;
        for (int64_t chunk = 0; chunk < c->chunks; chunk++) {
            const struct chunk_row *p = chunk_rows + chunk * c->l.rows;
            exp_sum += (double)p->exp_sum * exp((double)p->largest - (double)largest);
            sum += (double)p->sum;
        }
        const double log_sum = (double)largest + log(exp_sum);
        c->layout.log_sums[r] = log_sum;
        c->layout.losses[r] =
            targets[r] < 0 ? 0.0 : blas_cross_entropy(&c->l.rule, log_sum, (double)c->layout.target_sums[r], sum);
    }
}

void blas_columns_forward(const struct blas_call *call)
{
    struct columns c = open_columns(call);
    if (c.l.rows == 0)
        return;
    struct blas_division division = divide_chunks(call, c.chunks);
    blas_share(call, &division, forward_chunks, &c);
    division = blas_divide(c.l.rows, 1, blas_grain_rows(16 * c.chunks), call->members);
    blas_share(call, &division, combine_rows, &c);
    blas_loss_sums(&c.l.rule, call->slots, c.l.rows, c.layout.losses);
}

/* ---- backward --------------------------------------------------------------------------------- */

/* Replaces E of rows [r0, r0 + count), as forward left it, by the gradient of the sums. */
static void turn_into_grads(const struct blas_call *call, const struct columns *c, int64_t chunk, int64_t width,
                            int64_t r0, int64_t count, float *e)
{
    const int32_t *targets = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
    const struct chunk_row *chunk_rows = c->layout.chunk_rows + chunk * c->l.rows;
    const double s = (double)c->l.rule.label_smoothing;
    for (int64_t r = r0; r < r0 + count; r++) {
        float *row = e + (r - r0) * LD;
        const double scale = c->l.scale * blas_row_weight(&c->l.rule, call->slots, r);
        if (scale == 0.0) {
            memset(row, 0, (size_t)width * sizeof *row);
            continue;
        }
        const double factor = scale * exp((double)chunk_rows[r].largest - c->layout.log_sums[r]);
        call->math->scale_shift(width, (float)factor, (float)(scale * s / (double)c->l.classes), row);
        const int64_t at = targets[r] - chunk * CHUNK;
        if (at >= 0 && at < width)
            row[at] -= (float)(scale * (1.0 - s));
    }
}

static void backward_chunks(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    const struct columns *c = context;
    const int64_t inputs = c->l.inputs;
    float *dx = NULL;
    if (c->l.dx != NULL)
        dx = part == 0 ? c->l.dx : c->layout.partial_dx + (int64_t)(part - 1) * c->l.rows * inputs;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const int64_t c0 = chunk * CHUNK, width = c->l.classes - c0 < CHUNK ? c->l.classes - c0 : CHUNK;
        if (c->l.db != NULL && c->l.keep == 0.0f)
            memset(c->l.db + c0, 0, (size_t)width * sizeof *c->l.db);
        for (int64_t r0 = 0; r0 < c->l.rows; r0 += BLOCK) {
            const int64_t count = c->l.rows - r0 < BLOCK ? c->l.rows - r0 : BLOCK;
            float *e = block_of(c, part, chunk, r0);
            if (c->layout.stored == NULL) {
                multiply(call, c, part, chunk, width, r0, count, e);
                struct blas_row_stats stats;
                for (int64_t r = 0; r < count; r++)
                    call->math->exp_row(width, c->l.bias != NULL ? c->l.bias + c0 : NULL, e + r * LD, &stats);
            }
            turn_into_grads(call, c, chunk, width, r0, count, e);
            if (c->l.db != NULL)
                call->math->column_sums(count, width, LD, e, c->l.db + c0);
            if (c->l.dw != NULL)
                blas_multiply(call, part, true, false, width, inputs, count, e, LD, c->l.x + r0 * inputs, inputs,
                              r0 == 0 ? c->l.keep : 1.0f, c->l.dw + c0 * inputs, inputs);
            if (dx != NULL)
                blas_multiply(call, part, false, false, count, inputs, width, e, LD, c->l.w + c0 * inputs, inputs,
                              chunk == begin ? 0.0f : 1.0f, dx + r0 * inputs, inputs);
        }
    }
}

struct adding {
    const struct columns *columns;
    int32_t parts;
};

static void add_partial_dx(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct adding *a = context;
    const struct columns *c = a->columns;
    const int64_t elems = c->l.rows * c->l.inputs;
    for (int32_t other = 1; other < a->parts; other++)
        call->math->add(end - begin, c->layout.partial_dx + (other - 1) * elems + begin, c->l.dx + begin);
}

void blas_columns_backward(const struct blas_call *call)
{
    struct columns c = open_columns(call);
    struct blas_division division = divide_chunks(call, c.chunks);
    blas_share(call, &division, backward_chunks, &c);
    if (c.l.dx == NULL || division.parts == 1)
        return;
    struct adding adding = {&c, division.parts};
    division = blas_divide(c.l.rows * c.l.inputs, 64, 16384, call->members);
    blas_share(call, &division, add_partial_dx, &adding);
}
