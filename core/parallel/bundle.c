/* SPDX-License-Identifier: Apache-2.0 */
/* See bundle.h. */
#include "parallel/bundle.h"

#include <string.h>

enum { GATHER_MOST = 4 }; /* ranks */

bool sl_adder_may_gather(const struct sl_ranks *ranks)
{
    return ranks->compress_rank > 0 && ranks->replicas.ranks <= GATHER_MOST;
}

/* ---- rows of an embedding --------------------------------------------------------------------------------------- */

typedef uint32_t words __attribute__((vector_size(8 * sizeof(uint32_t)), aligned(sizeof(float)), may_alias));

bool sl_bundle_uses_row(const float *row, int64_t columns)
{
    words any = {0};
    uint32_t rest = 0;
    int64_t k = 0;
    for (; k + 8 <= columns; k += 8)
        any |= *(const words *)(row + k);
    for (; k < columns; k++)
        rest |= *(const uint32_t __attribute__((may_alias)) *)(row + k);
    for (int w = 0; w < 8; w++)
        rest |= any[w];
    return rest != 0;
}

seqlstm_status sl_adder_find_used(const struct sl_adder *a, const struct sl_bundle *bundle, struct seqlstm_error *err)
{
    const struct sl_bundle_matrix *rows = bundle->rows;
    if (!rows)
        return SEQLSTM_OK;
    for (int64_t k = 0; !a->marks && k < rows->rows; k++)
        bundle->flags[k] = sl_bundle_uses_row(a->grads + rows->offset + k * rows->columns, rows->columns);
    memcpy(bundle->used, bundle->flags, (size_t)rows->rows);
    const struct seqlstm_exchange either = {.kind = bundle->gathered ? SEQLSTM_COLLECTIVE_ALL_GATHER
                                                                     : SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                            .dtype = SEQLSTM_DTYPE_UINT8,
                                            .reduction = bundle->gathered ? 0 : SEQLSTM_REDUCE_MAX,
                                            .elems = rows->rows,
                                            .from = bundle->used,
                                            .to = bundle->gathered ? bundle->gathered : bundle->used};
    SEQLSTM_TRY(sl_rank_group_run(&a->ranks->replicas, either, err));
    memset(bundle->flags, 0, (size_t)rows->rows);
    for (int64_t k = 0; bundle->gathered && k < rows->rows; k++) {
        bundle->used[k] = 0;
        for (int32_t r = 0; r < a->ranks->replicas.ranks; r++)
            bundle->used[k] |= bundle->gathered[r * rows->rows + k];
    }
    return SEQLSTM_OK;
}

static int64_t count_used(const uint8_t *flags, int64_t rows)
{
    int64_t used = 0;
    for (int64_t k = 0; k < rows; k++)
        used += flags[k];
    return used;
}

/* Copies the rows with flags to `packed`, or from there. */
static void move_rows(const struct sl_adder *a, const struct sl_bundle_matrix *rows, const uint8_t *flags,
                      float *packed, bool packs)
{
    const size_t bytes = (size_t)rows->columns * sizeof *packed;
    for (int64_t k = 0; k < rows->rows; k++) {
        float *row = a->grads + rows->offset + k * rows->columns;
        if (!flags[k])
            continue;
        memcpy(packs ? packed : row, packs ? row : packed, bytes);
        packed += rows->columns;
    }
}

static seqlstm_status add_all(const struct sl_adder *a, const struct sl_bundle *bundle, struct seqlstm_error *err)
{
    return sl_ranks_add(a->ranks, a->grads + bundle->begin, bundle->end - bundle->begin, a->scratch, err);
}

static seqlstm_status add_used(const struct sl_adder *a, const struct sl_bundle *bundle, struct seqlstm_error *err)
{
    const int64_t elems = count_used(bundle->used, bundle->rows->rows) * bundle->rows->columns;
    if (2 * elems > bundle->end - bundle->begin) /* the rest of the scratch is for the exchange */
        return add_all(a, bundle, err);
    move_rows(a, bundle->rows, bundle->used, a->scratch, true);
    SEQLSTM_TRY(sl_ranks_add(a->ranks, a->scratch, elems, a->scratch + elems, err));
    move_rows(a, bundle->rows, bundle->used, a->scratch, false);
    return SEQLSTM_OK;
}

/* Adds to the rows with flags what a rank has sent. */
static void add_sent(const struct sl_adder *a, const struct sl_bundle_matrix *rows, const uint8_t *flags,
                     const float *sent)
{
    for (int64_t k = 0; k < rows->rows; k++) {
        float *row = a->grads + rows->offset + k * rows->columns;
        for (int64_t j = 0; flags[k] && j < rows->columns; j++)
            row[j] += sent[j];
        sent += flags[k] ? rows->columns : 0;
    }
}

/* `all` has what each rank has sent, `stride` elements apart. */
static void add_gathered(const struct sl_adder *a, const struct sl_bundle *bundle, const float *all, int64_t stride)
{
    const struct sl_bundle_matrix *m = bundle->rows;
    for (int64_t k = 0; k < m->rows; k++)
        if (bundle->used[k])
            memset(a->grads + m->offset + k * m->columns, 0, (size_t)m->columns * sizeof *a->grads);
    for (int32_t r = 0; r < a->ranks->replicas.ranks; r++)
        add_sent(a, m, bundle->gathered + r * m->rows, all + r * stride);
}

/* Elements of the rows of the rank that has most. */
static int64_t count_sent(const struct sl_adder *a, const struct sl_bundle *bundle)
{
    int64_t most = 0;
    for (int32_t r = 0; r < a->ranks->replicas.ranks; r++) {
        const int64_t used = count_used(bundle->gathered + r * bundle->rows->rows, bundle->rows->rows);
        most = used > most ? used : most;
    }
    return most * bundle->rows->columns;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/* What is added in a turn: P and what is not compressed, and then Q. */
enum turn { TURN_P, TURN_Q };

/* What a bundle has in a turn. */
struct part {
    float *values; /* NULL: rows */
    int64_t elems;
};

static struct part find_part(const struct sl_adder *a, const struct sl_bundle *bundle, enum turn turn)
{
    struct part part = {0};
    if (bundle->factors)
        part.values = turn == TURN_P ? sl_low_rank_get_p(bundle->factors, &part.elems)
                                     : sl_low_rank_get_q(bundle->factors, &part.elems);
    else if (turn == TURN_P && bundle->rows)
        part.elems = count_sent(a, bundle);
    else if (turn == TURN_P)
        part = (struct part){a->grads + bundle->begin, bundle->end - bundle->begin};
    return part;
}

static int64_t count_turn(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count, enum turn turn)
{
    int64_t sum = 0;
    for (int32_t b = 0; b < count; b++)
        sum += find_part(a, &bundles[b], turn).elems;
    return sum;
}

static void pack(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count, enum turn turn)
{
    float *to = a->scratch;
    for (int32_t b = 0; b < count; b++) {
        const struct part part = find_part(a, &bundles[b], turn);
        if (part.values)
            memcpy(to, part.values, (size_t)part.elems * sizeof *to);
        else if (part.elems > 0) /* those of the ranks with fewer are followed by what is not read */
            move_rows(a, bundles[b].rows, bundles[b].gathered + a->ranks->replicas.rank * bundles[b].rows->rows, to,
                      true);
        to += part.elems;
    }
}

/* Each rank sends its parts to all, which add them in the order of the ranks. */
static seqlstm_status gather_turn(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count,
                                  enum turn turn, int64_t sum, struct seqlstm_error *err)
{
    const struct sl_rank_group *replicas = &a->ranks->replicas;
    const float *all = a->scratch + sum;
    const struct seqlstm_exchange gather = {.kind = SEQLSTM_COLLECTIVE_ALL_GATHER,
                                            .dtype = SEQLSTM_DTYPE_FLOAT32,
                                            .elems = sum,
                                            .from = a->scratch,
                                            .to = a->scratch + sum};
    pack(a, bundles, count, turn);
    SEQLSTM_TRY(sl_rank_group_run(replicas, gather, err));
    for (int32_t b = 0; b < count; b++) {
        const struct part part = find_part(a, &bundles[b], turn);
        if (part.values)
            memcpy(part.values, all, (size_t)part.elems * sizeof *all);
        else if (part.elems > 0)
            add_gathered(a, &bundles[b], all, sum);
        for (int32_t r = 1; r < replicas->ranks && part.values; r++)
            for (int64_t i = 0; i < part.elems; i++)
                part.values[i] += all[r * sum + i];
        all += part.elems;
    }
    return SEQLSTM_OK;
}

/* One after the other. */
static seqlstm_status add_apart(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count,
                                enum turn turn, struct seqlstm_error *err)
{
    for (int32_t b = 0; b < count; b++) {
        const struct part part = find_part(a, &bundles[b], turn);
        if (part.values)
            SEQLSTM_TRY(sl_ranks_add(a->ranks, part.values, part.elems, a->scratch, err));
        else if (part.elems > 0)
            SEQLSTM_TRY(add_used(a, &bundles[b], err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status add_turn(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count, enum turn turn,
                               struct seqlstm_error *err)
{
    const int64_t sum = count_turn(a, bundles, count, turn);
    if (sum == 0)
        return SEQLSTM_OK;
    if (a->gathers && sum <= a->elems / (a->ranks->replicas.ranks + 1))
        return gather_turn(a, bundles, count, turn, sum, err);
    return add_apart(a, bundles, count, turn, err);
}

static seqlstm_status add_group(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count,
                                struct seqlstm_error *err)
{
    for (int32_t b = 0; b < count; b++)
        if (bundles[b].factors)
            sl_low_rank_begin(bundles[b].factors, a->grads + bundles[b].begin, a->errors + bundles[b].begin);
    SEQLSTM_TRY(add_turn(a, bundles, count, TURN_P, err));
    for (int32_t b = 0; b < count; b++)
        if (bundles[b].factors)
            sl_low_rank_turn(bundles[b].factors, a->grads + bundles[b].begin);
    return add_turn(a, bundles, count, TURN_Q, err);
}

seqlstm_status sl_adder_add(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count,
                            struct seqlstm_error *err)
{
    if (count > 1 || bundles->factors || bundles->gathered)
        return add_group(a, bundles, count, err);
    return bundles->rows ? add_used(a, bundles, err) : add_all(a, bundles, err);
}

void sl_adder_finish(const struct sl_adder *a, const struct sl_bundle *bundles, int32_t count)
{
    for (int32_t b = 0; b < count; b++)
        if (bundles[b].factors)
            sl_low_rank_end(bundles[b].factors, a->grads + bundles[b].begin, a->errors + bundles[b].begin);
}
