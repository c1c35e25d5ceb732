/* SPDX-License-Identifier: Apache-2.0 */
/* See bind.h. */
#include "cpu-blas/recurrent/bind.h"

#include <string.h>

#include "cpu-blas/recurrent/layout.h"
#include "cpu-blas/recurrent/recurrent.h"

bool blas_shares_units(const struct blas_recurrent *op, int64_t sequences, int32_t members)
{
    if (members < 2 || op->norm || op->projection || op->gru_before || op->merge_apart ||
        op->desc.zoneout_cell > 0.0f || op->desc.zoneout_hidden > 0.0f || op->panels < 2 * members)
        return false;
    if (op->weights_large)
        return sequences <= 256;
    return op->units >= 128 && sequences < 4 * (int64_t)members;
}

/* Returns true if a sequence ends before members that sleep would have woken. */
static bool is_brief(const struct blas_recurrent *op, int64_t sequences, int64_t steps)
{
    enum { BRIEF_STEPS = 8 };
    return !op->training && sequences == 1 && steps < BRIEF_STEPS;
}

static void blocks_fill(struct blas_recurrent_binding *binding, const int32_t *sizes)
{
    const int64_t steps = binding->steps;
    int64_t *q = binding->q_storage, base = 0, gate_base = 0;
    for (int32_t i = 0; i < binding->block_count; i++) {
        struct blas_block *block = &binding->blocks[i];
        block->q_of = q;
        block->q_base = base;
        q[0] = 0;
        for (int64_t t = 0; t < steps; t++) {
            int64_t rows = sizes[t] - block->first;
            rows = rows < 0 ? 0 : blas_min(rows, block->rows);
            q[t + 1] = q[t] + rows;
        }
        block->q_rows = q[steps];
        block->gate_base = gate_base;
        block->gate_rows = blas_gate_rows(binding->op, block->q_rows);
        base += block->q_rows;
        gate_base += block->gate_rows;
        q += steps + 1;
    }
}

/* Cuts [first, first + rows) into blocks of at most block_rows_max, as even as possible. Only counts them if blocks
 * is NULL. */
static int32_t cut_rows(const struct blas_recurrent *op, int64_t first, int64_t rows, struct blas_block *blocks)
{
    int32_t count = (int32_t)((rows + op->block_rows_max - 1) / op->block_rows_max);
    for (int32_t i = 0; blocks && i < count; i++) {
        int64_t left = count - i, n = (rows + left - 1) / left;
        blocks[i].first = first;
        blocks[i].rows = n;
        first += n;
        rows -= n;
    }
    return count;
}

/* Finds the first sequence of each member: about equal shares of the rows of all steps, at least one sequence each. */
static void member_bounds(const struct blas_recurrent_binding *binding, const int32_t *sizes, int64_t *bounds)
{
    const int64_t sequences = binding->sequences, members = binding->members;
    int64_t t = binding->steps, done = 0, b = 0;
    bounds[0] = 0;
    for (int64_t m = 1; m < members; m++) {
        int64_t least = bounds[m - 1] + 1, most = sequences - (members - m);
        while (b < most && (b < least || done * members < binding->rows * m)) {
            while (t > 0 && sizes[t - 1] <= b) /* sequence b has t steps in the range */
                t--;
            done += t;
            b++;
        }
        bounds[m] = b;
    }
    bounds[members] = sequences;
}

static void plan_chunks(struct blas_recurrent_binding *binding)
{
    const struct blas_recurrent *op = binding->op;
    int64_t widest = 0;
    for (int32_t i = 0; i < binding->block_count; i++)
        if (binding->blocks[i].rows > widest)
            widest = binding->blocks[i].rows;
    binding->fused = !op->weights_large && widest > NARROW_ROWS && widest > blas_sweep_rows(op) &&
                     (!op->tile_kernels || op->tiled_steps);
    /* Products on vectors prefetch the lines of gates, so that writing past the caches gains nothing. */
    binding->puts = op->training && op->lstm && op->tiled_steps && binding->fused &&
                    blas_gates_leave(op, binding->rows / binding->members);
    int64_t wanted = blas_forward_rows(op);
    binding->chunk_rows = binding->fused ? widest : wanted > widest ? wanted : widest;
}

/* How a batch is cut: a binding without its blocks. */
struct cut {
    struct blas_recurrent_binding made;
    int64_t bounds[CPU_MEMBERS_MOST + 1]; /* first sequence of each share */
    int32_t shares;
    int64_t t0, t1; /* of the steps that are cut */
    uint64_t block_bytes, bytes;
};

static seqlstm_status cut_batch(const struct blas_recurrent *op, const struct seqlstm_queue *queue,
                                const struct seqlstm_bind *bind, struct cut *cut, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = bind->axis;
    const struct seqlstm_desc *head = &op->desc.head;
    struct blas_recurrent_binding *made = &cut->made;
    memset(cut, 0, sizeof *cut);
    /* Stepwise: all segments are cut like the whole axis, since their rows share one reserve. */
    cut->t0 = op->stepwise ? 0 : bind->t0;
    cut->t1 = op->stepwise ? axis->steps : bind->t1;
    const int32_t *sizes = axis->batch_sizes + cut->t0;
    const int64_t rows = axis->row_offsets[cut->t1] - axis->row_offsets[cut->t0];
    if (op->stepwise && (rows > head->max_rows || sizes[0] > head->max_sequences || cut->t1 > head->max_steps))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "%lld rows of %d sequences and %lld steps are more than the bounds %lld, %lld and %lld",
                     (long long)rows, sizes[0], (long long)cut->t1, (long long)head->max_rows,
                     (long long)head->max_sequences, (long long)head->max_steps);
    *made = (struct blas_recurrent_binding){
        .op = op, .axis = axis, .t0 = cut->t0, .steps = cut->t1 - cut->t0, .rows = rows, .sequences = sizes[0]};
    made->members = (int32_t)blas_min(blas_min(queue->members, op->members_max), CPU_MEMBERS_MOST);
    made->units = blas_shares_units(op, made->sequences, made->members) && made->members == queue->members &&
                  !is_brief(op, made->sequences, made->steps);
    cut->shares = 1;
    cut->bounds[1] = made->sequences;
    if (!made->units) {
        made->members = (int32_t)blas_min(made->members, blas_min(made->sequences, blas_members_worth(op, rows)));
        cut->shares = made->members;
        member_bounds(made, sizes, cut->bounds);
    }
    for (int32_t m = 0; m < cut->shares; m++) {
        made->member_first[m] = made->block_count;
        made->block_count += cut_rows(op, cut->bounds[m], cut->bounds[m + 1] - cut->bounds[m], NULL);
        made->member_first[m + 1] = made->block_count;
    }
    cut->block_bytes = (uint64_t)made->block_count * sizeof(struct blas_block);
    cut->bytes = cut->block_bytes + (uint64_t)made->block_count * (uint64_t)(made->steps + 1) * sizeof(int64_t);
    return SEQLSTM_OK;
}

/* The binding of `cut`, whose blocks lie behind it. */
static void finish_cut(struct cut *cut, const struct seqlstm_bind *bind, uint64_t room,
                       struct blas_recurrent_binding *out)
{
    struct blas_recurrent_binding *made = &cut->made;
    char *memory = (char *)(out + 1);
    made->room = room;
    made->blocks = (struct blas_block *)(void *)memory;
    made->q_storage = (int64_t *)(void *)(memory + cut->block_bytes);
    memset(made->blocks, 0, cut->block_bytes);
    for (int32_t m = 0; m < cut->shares; m++)
        cut_rows(made->op, cut->bounds[m], cut->bounds[m + 1] - cut->bounds[m], made->blocks + made->member_first[m]);
    blocks_fill(made, bind->axis->batch_sizes + cut->t0);
    plan_chunks(made);
    made->t0 = bind->t0;
    made->steps = bind->t1 - bind->t0;
    for (int32_t i = 0; i < made->block_count; i++)
        made->blocks[i].q_of += bind->t0 - cut->t0;
    *out = *made;
}

seqlstm_status blas_recurrent_bind(const struct blas_recurrent *op, struct seqlstm_queue *queue,
                                   const struct seqlstm_bind *bind, struct blas_recurrent_binding **out_binding,
                                   struct seqlstm_error *err)
{
    struct cut cut;
    SEQLSTM_TRY(cut_batch(op, queue, bind, &cut, err));
    struct blas_recurrent_binding *binding = op->host->allocate(op->host->context, sizeof *binding + cut.bytes);
    if (!binding)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of %lld steps", (long long)cut.made.steps);
    finish_cut(&cut, bind, cut.bytes, binding);
    *out_binding = binding;
    return SEQLSTM_OK;
}

seqlstm_status blas_recurrent_rebind(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    struct cut cut;
    SEQLSTM_TRY(cut_batch(binding->op, queue, bind, &cut, err));
    if (cut.bytes > binding->room)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the binding has no room for %lld steps in %d blocks",
                     (long long)cut.made.steps, cut.made.block_count);
    finish_cut(&cut, bind, binding->room, binding);
    return SEQLSTM_OK;
}

void blas_recurrent_unbind(struct blas_recurrent_binding *binding)
{
    if (binding)
        binding->op->host->release(binding->op->host->context, binding);
}
