/* SPDX-License-Identifier: Apache-2.0 */
/* See columns_npy.h. */
#include "data/table/columns_npy.h"

#include <math.h>
#include <stdlib.h>

#include "base/value/text.h"
#include "data/no_memory.h"
#include "data/read/npy.h"
#include "data/read/raw.h"

struct arrays {
    struct sl_npy x, y, lengths;
    bool has_y, has_lengths;
};

/* How an array divides into features. */
struct layout {
    int64_t steps; /* of each sequence; 1: it has none */
    int64_t width; /* features of a step */
};

static struct layout find_layout(const struct sl_npy *npy, bool has_steps)
{
    const struct layout layout = {has_steps ? npy->shape[1] : 1, 1};
    const int own = has_steps ? 2 : 1; /* dimensions before the features */
    return npy->dimensions > own ? (struct layout){layout.steps, npy->shape[own]} : layout;
}

/* `steps`: how many the column has counted before. */
static void count_value(struct sl_column *column, double value, int64_t steps)
{
    if (isnan(value)) {
        column->missing++;
        return;
    }
    const bool is_first = column->missing == steps;
    column->low = is_first ? value : fmin(column->low, value);
    column->high = is_first ? value : fmax(column->high, value);
    column->mean += value; /* the sum, so far */
}

static int64_t count_steps(const struct arrays *arrays, const struct layout *layout, int64_t sequence)
{
    const int64_t length = arrays->has_lengths ? sl_npy_get_integer(&arrays->lengths, sequence) : layout->steps;
    return length < layout->steps ? length : layout->steps;
}

static void count_values(const struct arrays *arrays, const struct sl_npy *npy, const struct layout *layout,
                         struct sl_column *columns)
{
    int64_t steps = 0;
    for (int64_t s = 0; s < npy->shape[0]; s++) {
        const int64_t length = count_steps(arrays, layout, s), first = s * layout->steps;
        for (int64_t t = first; t < first + length; t++, steps++)
            for (int64_t f = 0; f < layout->width; f++)
                count_value(&columns[f], sl_npy_get(npy, t * layout->width + f), steps);
    }
    for (int64_t f = 0; f < layout->width; f++) {
        columns[f].is_number = steps > columns[f].missing;
        columns[f].mean = columns[f].is_number ? columns[f].mean / (double)(steps - columns[f].missing) : 0;
    }
}

static void count_array(const struct arrays *arrays, const struct sl_npy *npy, bool has_steps, const char *name,
                        struct sl_columns *columns)
{
    const struct layout layout = find_layout(npy, has_steps);
    struct sl_column *own = &columns->items[columns->count];
    for (int64_t f = 0; f < layout.width; f++) {
        own[f].use = npy == &arrays->x ? "input" : "target";
        sl_text_snprintf(own[f].name, sizeof own[f].name, layout.width > 1 ? "%s[%lld]" : "%s", name, (long long)f);
    }
    count_values(arrays, npy, &layout, own);
    columns->count += (int32_t)layout.width;
}

static seqlstm_status count_all(const struct sl_model *model, const struct arrays *arrays, struct sl_columns *columns,
                                struct seqlstm_error *err)
{
    const bool x_steps = arrays->x.dimensions == 3 || (arrays->x.dimensions == 2 && sl_model_wants_steps(model));
    const bool y_steps = x_steps && sl_model_wants_step_targets(model);
    const struct layout x = find_layout(&arrays->x, x_steps), y = find_layout(&arrays->y, y_steps);
    columns->items = calloc((size_t)(x.width + y.width) + 1, sizeof *columns->items);
    if (!columns->items)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t s = 0; s < arrays->x.shape[0]; s++)
        columns->rows += count_steps(arrays, &x, s);
    count_array(arrays, &arrays->x, x_steps, "x", columns);
    if (arrays->has_y)
        count_array(arrays, &arrays->y, y_steps, "y", columns);
    return SEQLSTM_OK;
}

seqlstm_status sl_columns_read_npy(const struct sl_model *model, struct sl_columns *out_columns,
                                   struct seqlstm_error *err)
{
    const struct sl_source *source = &model->data.splits[SL_SPLIT_TRAIN];
    struct arrays arrays = {.has_y = source->y != NULL, .has_lengths = source->lengths != NULL};
    seqlstm_status status = source->x ? sl_npy_open(source->x, &arrays.x, err) : SEQLSTM_OK;
    if (!source->x)
        return SEQLSTM_OK;
    if (status == SEQLSTM_OK && arrays.has_y)
        status = sl_npy_open(source->y, &arrays.y, err);
    if (status == SEQLSTM_OK && arrays.has_lengths)
        status = sl_npy_open(source->lengths, &arrays.lengths, err);
    if (status == SEQLSTM_OK)
        status = count_all(model, &arrays, out_columns, err);
    sl_npy_close(&arrays.x);
    sl_npy_close(&arrays.y);
    sl_npy_close(&arrays.lengths);
    return status;
}
