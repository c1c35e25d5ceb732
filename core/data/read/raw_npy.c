/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of .npy arrays: x, y and the lengths.
 *
 *   x  [N, T, F] sequences of F values; [N, T] for a recurrent model: F = 1; [N, F] vectors without
 *      steps; [N] vectors of one
 *   y  per step [N, T] or [N, T, O]; per sequence [N] or [N, O]. Classes are whole numbers from 0.
 *
 * float32 input to which nothing is applied stays in the file: the batcher reads it through the mapping. */
#include "data/read/raw.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/read/npy.h"

static const char *shape_text(const struct sl_npy *npy, char out[96])
{
    int used = snprintf(out, 96, "[");
    for (int i = 0; i < npy->dimensions; i++)
        used += snprintf(out + used, 96 - (size_t)used, "%s%lld", i ? ", " : "", (long long)npy->shape[i]);
    snprintf(out + used, 96 - (size_t)used, "]");
    return out;
}

/* Series of N records of T steps, shortened by `lengths`. */
static seqlstm_status make_series(struct sl_raw *raw, int64_t records, int64_t steps, const struct sl_npy *lengths,
                                  struct seqlstm_error *err)
{
    size_t n = (size_t)records + 1;
    raw->start = calloc(n, sizeof *raw->start);
    raw->length = calloc(n, sizeof *raw->length);
    if (!raw->start || !raw->length)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < records; i++) {
        int64_t length = lengths ? sl_npy_get_integer(lengths, i) : steps;
        if (length < 0 || length > steps)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: element %lld is %lld, expected a length from 0 to %lld",
                         lengths->name, (long long)i, (long long)length, (long long)steps);
        raw->start[i] = i * steps;
        raw->length[i] = length;
    }
    raw->series = records;
    raw->rows = records * steps;
    return SEQLSTM_OK;
}

static seqlstm_status fail_element(const struct sl_npy *npy, int64_t element, const char *expected,
                                   struct seqlstm_error *err)
{
    int64_t rest = element;
    char place[96] = "";
    int64_t index[SL_NPY_DIMENSIONS];
    int used = 0;
    for (int i = npy->dimensions - 1; i >= 0; i--) {
        index[i] = rest % npy->shape[i];
        rest /= npy->shape[i];
    }
    for (int i = 0; i < npy->dimensions; i++)
        used += snprintf(place + used, sizeof place - (size_t)used, "%s%lld", i ? ", " : "", (long long)index[i]);
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: element [%s] is %g, expected %s", npy->name, place,
                 sl_text_unsign_nan(sl_npy_get(npy, element)), expected);
}

static seqlstm_status read_classes(const struct sl_npy *npy, int32_t **out, int64_t *out_known,
                                   struct seqlstm_error *err)
{
    int64_t largest = 0;
    int32_t *ids = calloc((size_t)npy->elems + 1, sizeof *ids);
    seqlstm_status status = SEQLSTM_OK;
    if (!ids)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < npy->elems; i++) {
        double value = sl_npy_get(npy, i);
        if (!(value >= -1 && value < SL_DATA_MOST_CLASSES && value == floor(value))) {
            status = fail_element(npy, i, "a class from 0 (below a million), or -1 for none", err);
            break;
        }
        ids[i] = (int32_t)value;
        largest = ids[i] > largest ? ids[i] : largest;
    }
    if (status != SEQLSTM_OK) {
        free(ids);
        return status;
    }
    *out = ids;
    *out_known = largest + 1;
    return SEQLSTM_OK;
}

/* The elements of the real steps of series s of an array with `width` numbers per step; after the end of a sequence an
 * array may hold anything. Per-sequence arrays have one step. */
static void find_range(const struct sl_raw *raw, bool per_step, int64_t width, int64_t s, int64_t *out_begin,
                       int64_t *out_end)
{
    *out_begin = (per_step ? raw->start[s] : s) * width;
    *out_end = *out_begin + (per_step ? raw->length[s] : 1) * width;
}

/* Every real value a finite float32, or a NaN where `missing:` fills it. */
static seqlstm_status check_values(struct sl_raw *raw, const struct sl_npy *npy, bool is_target, bool per_step,
                                   int64_t width, struct seqlstm_error *err)
{
    enum sl_missing_type missing = raw->source->missing.type;
    bool ignore = is_target && raw->source->missing.targets == SL_MISSING_TARGETS_IGNORE;
    bool fill = missing == SL_MISSING_ZERO || missing == SL_MISSING_MEAN;
    for (int64_t s = 0; s < raw->series && !sl_npy_is_integer(npy); s++) {
        int64_t begin, end;
        find_range(raw, per_step, width, s, &begin, &end);
        for (int64_t i = begin; i < end; i++) {
            double value = sl_npy_get(npy, i);
            if (isnan(value) && (fill || ignore))
                SEQLSTM_TRY(sl_raw_note_missing(raw, per_step ? i / width : raw->start[s], raw->rows,
                                                is_target && !ignore, err));
            else if (!(fabs(value) <= (double)FLT_MAX))
                return fail_element(npy, i,
                                    is_target
                                        ? "a finite number (`missing: {targets: ignore}` leaves NaN out of the loss)"
                                        : "a finite number (`missing:` zero or mean fills NaN)",
                                    err);
        }
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_doubles(const struct sl_raw *raw, const struct sl_npy *npy, bool is_target, bool per_step,
                                   int64_t width, double **out, struct seqlstm_error *err)
{
    const struct sl_missing *missing = &raw->source->missing;
    bool zero = missing->type == SL_MISSING_ZERO && !(is_target && missing->targets == SL_MISSING_TARGETS_IGNORE);
    double *values = calloc((size_t)npy->elems + 1, sizeof *values);
    if (!values)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t begin, end;
        find_range(raw, per_step, width, s, &begin, &end);
        for (int64_t i = begin; i < end; i++) {
            values[i] = sl_npy_get(npy, i);
            if (isnan(values[i]) && zero)
                values[i] = 0;
        }
    }
    *out = values;
    return SEQLSTM_OK;
}

static seqlstm_status read_x(const struct sl_read *read, struct sl_raw *raw, struct sl_npy *x,
                             const struct sl_npy *lengths, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    bool recurrent = sl_model_wants_steps(read->model);
    char shape[96];
    raw->has_steps = x->dimensions == 3 || (x->dimensions == 2 && recurrent);
    if (x->dimensions < 1 || x->dimensions > 3 || (recurrent && x->dimensions == 1))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the shape is %s, expected %s", x->name, shape_text(x, shape),
                     recurrent ? "[N, T, F] or [N, T]" : "[N, T, F] or [N, F]");
    raw->input_features = x->dimensions == 3 ? x->shape[2] : raw->has_steps ? 1 : x->shape[1];
    if (x->elems == 0 && !read->input)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the shape is %s, the array is empty", x->name,
                     shape_text(x, shape));
    if (lengths && (!sl_npy_is_integer(lengths) || lengths->elems != x->shape[0] || !raw->has_steps))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: expected %lld integers, one length per sequence", lengths->name,
                     (long long)x->shape[0]);
    SEQLSTM_TRY(make_series(raw, x->shape[0], raw->has_steps ? x->shape[1] : 1, lengths, err));
    raw->input_kind = SL_FIELD_VALUES;
    SEQLSTM_TRY(check_values(raw, x, false, true, raw->input_features, err));
    if (source->scale.type != SL_SCALE_NONE || raw->counts.missing_values > 0)
        return read_doubles(raw, x, false, true, raw->input_features, &raw->values, err);
    if (x->type == SL_NPY_FLOAT32 && x->map.size_bytes > 0 && (uintptr_t)x->data % sizeof(float) == 0) {
        raw->mapped = x->data;
        raw->map = x->map;
        memset(&x->map, 0, sizeof x->map);
        return SEQLSTM_OK;
    }
    raw->values32 = malloc(((size_t)x->elems + 1) * sizeof *raw->values32);
    if (!raw->values32)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < x->elems; i++)
        raw->values32[i] = (float)sl_npy_get(x, i);
    return SEQLSTM_OK;
}

static seqlstm_status read_y(const struct sl_read *read, struct sl_raw *raw, const struct sl_npy *x,
                             const struct sl_npy *y, struct seqlstm_error *err)
{
    const struct sl_train_config *train = &read->model->train;
    bool step = raw->has_steps && sl_model_wants_step_targets(read->model);
    bool classes = train->loss.kind == SL_LOSS_CROSS_ENTROPY;
    char shape[96];
    int own = step ? 2 : 1; /* dimensions that must agree with x */
    bool fits = y->dimensions >= own && y->dimensions <= own + 1 && y->shape[0] == x->shape[0] &&
                (!step || y->shape[1] == x->shape[1]);
    int64_t features = y->dimensions == own + 1 ? y->shape[own] : 1;
    if (!fits || features < 1 || (classes && features != 1))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the shape is %s, expected %s with N = %lld%s", y->name,
                     shape_text(y, shape),
                     step ? (classes ? "[N, T]" : "[N, T] or [N, T, O]") : (classes ? "[N]" : "[N] or [N, O]"),
                     (long long)x->shape[0], step ? " and the T of x" : "");
    raw->target_per_row = step;
    raw->target_features = features;
    if (classes) {
        raw->target_kind = SL_FIELD_IDS;
        return read_classes(y, &raw->target_ids, &raw->known_classes, err);
    }
    raw->target_kind = SL_FIELD_VALUES;
    SEQLSTM_TRY(check_values(raw, y, true, step, features, err));
    return read_doubles(raw, y, true, step, features, &raw->target_values, err);
}

/* The array x: of the source, of a file, of standard input or of memory. *out_data is free()d. */
static seqlstm_status open_x(const struct sl_read *read, struct sl_raw *raw, struct sl_npy *x, char **out_data,
                             struct seqlstm_error *err)
{
    const struct sl_input_request *input = read->input;
    const char *path = input ? input->path : read->source->x;
    bool standard = path && strcmp(path, "-") == 0;
    raw->name = strdup(standard ? "standard input" : path ? path : input->name ? input->name : "input");
    if (!raw->name)
        return SL_DATA_NO_MEMORY(err);
    if (!path)
        return sl_npy_parse(raw->name, input->data, input->data_bytes, x, err);
    if (!standard)
        return sl_npy_open(path, x, err);
    size_t bytes;
    SEQLSTM_TRY(sl_file_read("/dev/stdin", SIZE_MAX / 4, out_data, &bytes, err));
    return sl_npy_parse(raw->name, *out_data, bytes, x, err);
}

seqlstm_status sl_raw_read_npy(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    struct sl_npy x = {0}, y = {0}, lengths = {0};
    char *data = NULL;
    const char *lengths_path = read->input ? read->input->lengths : source->lengths;
    bool has_y = source->y && !read->input;
    seqlstm_status status = SEQLSTM_OK;
    if (source->missing.type == SL_MISSING_DROP || source->missing.type == SL_MISSING_FORWARD_FILL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: npy knows `missing:` error, zero and mean only",
                     source->x ? source->x : "input");
    status = open_x(read, raw, &x, &data, err);
    if (status == SEQLSTM_OK && lengths_path)
        status = sl_npy_open(lengths_path, &lengths, err);
    if (status == SEQLSTM_OK && has_y)
        status = sl_npy_open(source->y, &y, err);
    if (status == SEQLSTM_OK)
        status = read_x(read, raw, &x, lengths_path ? &lengths : NULL, err);
    if (status == SEQLSTM_OK && has_y)
        status = read_y(read, raw, &x, &y, err);
    if (status == SEQLSTM_OK && !has_y && !read->input)
        status = seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "%s: nothing to learn: say `y`",
                                   raw->name);
    sl_npy_close(&x);
    sl_npy_close(&y);
    sl_npy_close(&lengths);
    free(data);
    return status;
}
