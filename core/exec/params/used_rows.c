/* SPDX-License-Identifier: Apache-2.0 */
/* See used_rows.h. */
#include "exec/params/used_rows.h"

#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 16,
    ROWS_BETWEEN = 4 /* a range goes on over so many rows that are not used: a call for each would take longer */
};

static bool is_kept(const struct sl_graph *graph, const struct sl_param_view *view, int32_t p)
{
    return view->trainable && view->regularizer.l1 == 0 && view->regularizer.l2 == 0 &&
           sl_graph_is_only_looked_up(graph, p);
}

static int compare_offsets(const void *a, const void *b)
{
    const int64_t one = ((const struct sl_used_rows *)a)->offset, other = ((const struct sl_used_rows *)b)->offset;
    return (one > other) - (one < other);
}

seqlstm_status sl_used_rows_create(struct sl_params *params, const struct sl_graph *graph, struct seqlstm_error *err)
{
    params->used = calloc((size_t)params->view_count + 1, sizeof *params->used);
    if (!params->used)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parameters");
    for (int32_t p = 0; p < params->view_count; p++) {
        const struct sl_param_view *view = &params->views[p];
        if (!is_kept(graph, view, p))
            continue;
        struct sl_used_rows *used = &params->used[params->used_count++];
        *used = (struct sl_used_rows){.offset = view->offset_elems, .rows = view->rows, .columns = view->columns};
        used->flags = calloc((size_t)view->rows + 1, 1);
        if (!used->flags)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parameters");
    }
    qsort(params->used, (size_t)params->used_count, sizeof *params->used, compare_offsets);
    return SEQLSTM_OK;
}

void sl_used_rows_destroy(struct sl_params *params)
{
    for (int32_t k = 0; k < params->used_count; k++)
        free(params->used[k].flags);
    free(params->used);
}

static struct sl_used_rows *find(const struct sl_params *params, int64_t offset)
{
    for (int32_t k = 0; k < params->used_count && !params->mirrors; k++)
        if (params->used[k].offset == offset)
            return &params->used[k];
    return NULL;
}

/* The next row from `row` on whose flag is set; `rows`, if there is none. */
static int64_t find_row(const struct sl_used_rows *used, int64_t row)
{
    const uint8_t *found = row < used->rows ? memchr(used->flags + row, 1, (size_t)(used->rows - row)) : NULL;
    return found ? found - used->flags : used->rows;
}

bool sl_used_rows_clear(struct sl_params *params, int64_t offset)
{
    struct sl_used_rows *used = find(params, offset);
    if (!used)
        return false;
    for (int64_t row = find_row(used, 0); used->known && row < used->rows; row = find_row(used, row + 1))
        memset(params->grads + used->offset + row * used->columns, 0, (size_t)used->columns * sizeof *params->grads);
    memset(used->flags, 0, (size_t)used->rows);
    const bool cleared = used->known;
    used->known = true;
    return cleared;
}

void sl_used_rows_mark(struct sl_params *params, int64_t offset, const int32_t *ids, int64_t count)
{
    const struct sl_used_rows *used = find(params, offset);
    for (int64_t k = 0; used && k < count; k++)
        if (ids[k] >= 0)
            used->flags[ids[k]] = 1;
}

void sl_used_rows_add(struct sl_params *params, int64_t offset, const uint8_t *flags)
{
    struct sl_used_rows *used = find(params, offset);
    if (used && !flags)
        used->known = false;
    for (int64_t row = 0; used && flags && row < used->rows; row++)
        used->flags[row] |= flags[row] != 0;
}

void sl_used_rows_forget(struct sl_params *params)
{
    for (int32_t k = 0; k < params->used_count; k++)
        params->used[k].known = false;
}

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

/* Of the matrix, from element `at` of the gradients on; false: it has no more used rows. */
static bool find_range(const struct sl_used_rows *used, int64_t at, struct sl_grad_range *out)
{
    const int64_t stop = used->offset + (used->rows * used->columns + ALIGN - 1) / ALIGN * ALIGN;
    int64_t last = find_row(used, at > used->offset ? (at - used->offset) / used->columns : 0);
    if (last == used->rows)
        return false;
    out->begin = (used->offset + last * used->columns) / ALIGN * ALIGN;
    for (int64_t next = find_row(used, last + 1); next < used->rows && next - last <= 1 + ROWS_BETWEEN;
         next = find_row(used, last + 1))
        last = next;
    out->end = (used->offset + (last + 1) * used->columns + ALIGN - 1) / ALIGN * ALIGN;
    out->begin = out->begin > at ? out->begin : at;
    out->end = out->end < stop ? out->end : stop;
    return out->begin < out->end;
}

bool sl_used_rows_next(const struct sl_params *params, int64_t at, struct sl_grad_range *out)
{
    int64_t end = params->trainable_elems;
    for (int32_t k = 0; k < params->used_count && !params->mirrors; k++) {
        const struct sl_used_rows *used = &params->used[k];
        const int64_t stop = used->offset + (used->rows * used->columns + ALIGN - 1) / ALIGN * ALIGN;
        if (!used->known || at >= stop)
            continue;
        if (at < used->offset) {
            end = used->offset;
            break;
        }
        if (find_range(used, at, out))
            return true;
        at = stop;
    }
    *out = (struct sl_grad_range){at, end};
    return at < end;
}
