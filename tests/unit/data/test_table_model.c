/* SPDX-License-Identifier: Apache-2.0 */
/* Random tables with random options against a plain model of what docs/data.md says: rows, groups, gaps in time,
 * missing values, splits, scaling, windows and targets.
 */
#include <math.h>

#include "oom.h"
#include "data_fixture.h"

#include <seqlstm/philox.h>

enum { ROWS_MOST = 40, COLUMNS = 3, CASES = 400 };
enum kind { WINDOWS, GROUPS_LAST, GROUPS_STEPS, VECTORS, KINDS };
enum fill { FILL_NONE, FILL_ZERO, FILL_MEAN, FILL_FORWARD, FILL_DROP, FILLS };

static const char *const fill_names[FILLS] = {"error", "zero", "mean", "forward_fill", "drop"};

/* A table as it is written to the file, and what is asked for. */
struct table_case {
    uint64_t seed, draws;
    enum kind kind;
    enum fill fill;
    bool grouped, timed, fit_all, scaled_targets;
    int scale; /* 0: none, 1: standard, 2: minmax */
    int rows, first, last;
    int length, horizon, stride;
    double share; /* of the validation split */
    int inputs[COLUMNS], input_count, targets[COLUMNS], target_count;
    int group[ROWS_MOST], time[ROWS_MOST];
    double values[ROWS_MOST][COLUMNS]; /* NAN: empty */
};

/* Rows in the order of the series, and where series begin. */
struct plain {
    int rows, group[ROWS_MOST], time[ROWS_MOST];
    bool begins[ROWS_MOST];
    double values[ROWS_MOST][COLUMNS];
    int train_rows; /* of these; the rest is the validation split */
    double offset[COLUMNS], factor[COLUMNS];
};

static int draw(struct table_case *c, int n)
{
    return (int)(seqlstm_uniform(c->seed, c->draws++, 0, 0) * (float)n);
}

static int choose_columns(struct table_case *c, int columns[COLUMNS])
{
    int first = draw(c, COLUMNS), count = 1 + draw(c, 2);
    for (int k = 0; k < count; k++)
        columns[k] = (first + k) % COLUMNS;
    return count;
}

static void draw_options(struct table_case *c)
{
    c->kind = (enum kind)draw(c, KINDS);
    c->fill = (enum fill)draw(c, c->kind == WINDOWS ? FILLS : FILL_DROP);
    c->grouped = c->kind == GROUPS_LAST || c->kind == GROUPS_STEPS || (c->kind == WINDOWS && draw(c, 2));
    c->timed = c->kind == WINDOWS && draw(c, 2);
    c->scale = draw(c, 3);
    c->scaled_targets = draw(c, 2);
    c->rows = 20 + draw(c, ROWS_MOST - 20);
    c->first = draw(c, 2) ? 1 : 2 + draw(c, 3);
    c->last = draw(c, 2) ? c->rows : c->rows - draw(c, 3);
    c->length = 1 + draw(c, 3);
    c->horizon = 1 + draw(c, 2);
    c->stride = 1 + draw(c, 3);
    c->share = draw(c, 2) && !(c->kind == WINDOWS && (c->grouped || c->timed || c->fill == FILL_DROP)) ? 0.25 : 0;
    c->fit_all = draw(c, 2);
    c->input_count = choose_columns(c, c->inputs);
    c->target_count = choose_columns(c, c->targets);
}

/* The first rows hold every group, and have all their values. v0 is around 0, the others are above it. */
static void draw_values(struct table_case *c)
{
    int clock[3] = {0};
    for (int r = 0; r < c->rows; r++) {
        int g = c->grouped ? (r < 12 ? r % 3 : draw(c, 3)) : 0;
        c->group[r] = g;
        clock[g] += c->timed && draw(c, 6) == 0 ? 1 + 3 * draw(c, 2) : 2; /* a gap, or a step that is too short */
        c->time[r] = clock[g];
        for (int k = 0; k < COLUMNS; k++)
            c->values[r][k] = r >= 12 && c->fill != FILL_NONE && draw(c, 6) == 0
                                  ? (double)NAN
                                  : (draw(c, 2001) - 1000) / 100.0 + 15 * k;
    }
}

static void write_table(const struct table_case *c)
{
    struct sl_buf text = {0};
    sl_buf_append_text(&text, "g,t,v0,v1,v2\n");
    for (int r = 0; r < c->rows; r++) {
        sl_buf_printf(&text, "g%d,%d", 9 - c->group[r], c->time[r]);
        for (int k = 0; k < COLUMNS; k++)
            isnan(c->values[r][k]) ? sl_buf_append_text(&text, ",") : sl_buf_printf(&text, ",%.2f", c->values[r][k]);
        sl_buf_append_char(&text, '\n');
    }
    data_write("train.csv", sl_buf_text(&text));
    sl_buf_deinit(&text);
}

static void append_columns(struct sl_buf *yaml, const char *key, const int *columns, int count)
{
    sl_buf_printf(yaml, ", %s: [", key);
    for (int k = 0; k < count; k++)
        sl_buf_printf(yaml, "%sv%d", k ? ", " : "", columns[k]);
    sl_buf_append_text(yaml, "]");
}

static void make_yaml(const struct table_case *c, struct sl_buf *yaml)
{
    static const char *const scales[] = {"none", "standard", "minmax"};
    sl_buf_printf(yaml, "type: csv, train: {file: train.csv, rows: [%d, %d]}, batch_size: 7", c->first, c->last);
    append_columns(yaml, "inputs", c->inputs, c->input_count);
    append_columns(yaml, "targets", c->targets, c->target_count);
    if (c->grouped)
        sl_buf_append_text(yaml, ", group: g");
    if (c->timed)
        sl_buf_append_text(yaml, ", time: {column: t, step: 2, gaps: break}");
    if (c->kind == WINDOWS)
        sl_buf_printf(yaml, ", window: {length: %d, horizon: %d, stride: %d}", c->length, c->horizon, c->stride);
    if (c->fill != FILL_NONE)
        sl_buf_printf(yaml, ", missing: %s", fill_names[c->fill]);
    if (c->scale)
        sl_buf_printf(yaml, ", scale: {type: %s, fit: %s, targets: %s}", scales[c->scale], c->fit_all ? "all" : "train",
                      c->scaled_targets ? "true" : "false");
    if (c->share > 0)
        sl_buf_printf(yaml, ", valid: {split: %g}", c->share);
}

/* ---- the model -------------------------------------------------------------------------------------- */

static bool is_used(const struct table_case *c, int column)
{
    for (int k = 0; k < c->input_count; k++)
        if (c->inputs[k] == column)
            return true;
    for (int k = 0; k < c->target_count; k++)
        if (c->targets[k] == column)
            return true;
    return false;
}

static bool has_hole(const struct table_case *c, const double *row)
{
    for (int k = 0; k < COLUMNS; k++)
        if (is_used(c, k) && isnan(row[k]))
            return true;
    return false;
}

/* `rows: [first, last]`: moments where the time column holds numbers, else numbers of rows. */
static bool is_chosen(const struct table_case *c, int row, int first, int last)
{
    int place = c->timed ? c->time[row] : row + 1;
    return first <= place && place <= last;
}

/* Appends the chosen rows of one group, in their order. */
static void append_group(const struct table_case *c, struct plain *p, int group, int first, int last)
{
    bool begins = true;
    int before = 0;
    for (int r = 0; r < c->rows; r++) {
        if (c->group[r] != group || !is_chosen(c, r, first, last))
            continue;
        if (c->fill == FILL_DROP && has_hole(c, c->values[r])) {
            begins = true;
            continue;
        }
        p->begins[p->rows] = begins || (c->timed && c->time[r] != before + 2) || c->kind == VECTORS;
        before = c->time[r];
        begins = false;
        p->group[p->rows] = group;
        memcpy(p->values[p->rows++], c->values[r], sizeof c->values[r]);
    }
}

static void gather(const struct table_case *c, struct plain *p, int first, int last)
{
    bool seen[3] = {false};
    for (int r = 0; r < c->rows; r++)
        if (!seen[c->group[r]] && is_chosen(c, r, first, last)) {
            seen[c->group[r]] = true;
            append_group(c, p, c->group[r], first, last);
        }
}

/* Whole groups, or rows of the only series. */
static int count_train_rows(const struct table_case *c, const struct plain *p)
{
    int groups = 0, keep;
    if (!c->grouped || c->share == 0)
        return (int)floor((1 - c->share) * p->rows);
    for (int r = 0; r < p->rows; r++)
        groups += p->begins[r];
    keep = (int)floor((1 - c->share) * groups);
    for (int r = 0; r < p->rows; r++)
        if (p->begins[r] && keep-- == 0)
            return r;
    return p->rows;
}

/* A mean of what is known in the training split. */
static double find_mean(const struct plain *p, int k, int rows)
{
    double sum = 0, n = 0;
    for (int r = 0; r < rows; r++)
        if (!isnan(p->values[r][k])) {
            sum += p->values[r][k];
            n++;
        }
    return sum / n;
}

static void fit_scale(const struct table_case *c, struct plain *p, int k)
{
    int rows = c->fit_all ? p->rows : p->train_rows;
    double mean = find_mean(p, k, rows), low = INFINITY, high = -INFINITY, squares = 0, n = 0;
    for (int r = 0; r < rows; r++) {
        double v = p->values[r][k];
        if (isnan(v))
            continue;
        low = fmin(low, v);
        high = fmax(high, v);
        squares += (v - mean) * (v - mean);
        n++;
    }
    p->offset[k] = c->scale == 1 ? mean : c->scale == 2 ? low : 0;
    p->factor[k] = c->scale == 1 ? sqrt(squares / n) : c->scale == 2 ? high - low : 1;
}

static void fill_holes(const struct table_case *c, struct plain *p, int k, double mean)
{
    for (int r = 0; r < p->rows; r++)
        if (isnan(p->values[r][k]))
            p->values[r][k] = c->fill == FILL_ZERO ? 0 : c->fill == FILL_MEAN ? mean : p->values[r - 1][k];
}

static void make_plain(const struct table_case *c, int first, int last, struct plain *p)
{
    memset(p, 0, sizeof *p);
    gather(c, p, first, last);
    p->train_rows = count_train_rows(c, p);
    for (int k = 0; k < COLUMNS; k++) {
        double mean = find_mean(p, k, p->train_rows);
        if (c->fill != FILL_MEAN)
            fill_holes(c, p, k, mean);
        fit_scale(c, p, k);
        if (c->fill == FILL_MEAN)
            fill_holes(c, p, k, mean);
    }
}

/* ---- the comparison --------------------------------------------------------------------------------- */

struct record {
    int first, length;  /* rows of the input */
    int target, behind; /* rows of the target */
};

/* The records of the rows first .. last - 1. `ahead`: rows that must follow a window. */
static int cut_records(const struct table_case *c, const struct plain *p, int first, int last, int ahead,
                       struct record *out)
{
    int count = 0;
    for (int begin = first; begin < last;) {
        int end = begin + 1;
        while (end < last && !p->begins[end])
            end++;
        if (c->kind != WINDOWS)
            out[count++] = (struct record){begin, end - begin, c->kind == GROUPS_LAST ? end - 1 : begin,
                                           c->kind == GROUPS_STEPS ? end - begin : 1};
        for (int at = begin; c->kind == WINDOWS && at + c->length + ahead <= end; at += c->stride)
            out[count++] = (struct record){at, c->length, at + c->length, ahead};
        begin = end;
    }
    return count;
}

static void expect_near(const struct table_case *c, const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
        fail_msg("case %d: %s: %.9g, expected %.9g", (int)c->seed, what, got, want);
}

static double scaled(const struct plain *p, int row, int column, bool scale)
{
    return scale ? (p->values[row][column] - p->offset[column]) / p->factor[column] : p->values[row][column];
}

static void check_sequence(const struct table_case *c, const struct plain *p, const struct sl_batch *batch, int k,
                           const struct record *record)
{
    const bool steps = batch->has_steps;
    assert_int_equal(steps ? batch->axis.lengths[k] : 1, record->length);
    for (int t = 0; t < record->length; t++)
        for (int f = 0; f < c->input_count; f++) {
            int64_t row = steps ? sl_batch_row(batch, k, t) : k;
            expect_near(c, "input", (double)batch->input.values[row * c->input_count + f],
                        scaled(p, record->first + t, c->inputs[f], true));
        }
    for (int t = 0; batch->target.kind != SL_FIELD_NONE && t < record->behind; t++)
        for (int f = 0; f < c->target_count; f++) {
            int64_t at = batch->target.on_steps ? sl_batch_row(batch, k, t) * c->target_count + f
                                                : k * batch->target.features + t * c->target_count + f;
            expect_near(c, "target", (double)batch->target.values[at],
                        scaled(p, record->target + t, c->targets[f], c->scaled_targets));
        }
}

static void check_dataset(const struct table_case *c, const struct plain *p, const struct sl_dataset *dataset,
                          const struct record *records, int count)
{
    if (sl_dataset_get_records(dataset) != count)
        fail_msg("case %d: %d records, expected %d", (int)c->seed, (int)sl_dataset_get_records(dataset), count);
    struct sl_batcher *batcher = data_batcher(dataset, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch;
    int seen = 0;
    while ((batch = data_next(batcher)) != NULL) {
        for (int k = 0; k < (int)batch->sequences; k++) {
            assert_in_range(batch->sample[k], 0, count - 1);
            check_sequence(c, p, batch, k, &records[batch->sample[k]]);
            seen++;
        }
        sl_batch_destroy(batch);
    }
    assert_int_equal(seen, count);
    sl_batcher_close(batcher);
}

/* All rows of the file as an input of `predict`, scaled and filled as the training split says. */
static void check_input(const struct table_case *c, const struct plain *trained, const struct data_open *o)
{
    char path[160];
    struct plain p;
    struct record records[ROWS_MOST];
    struct sl_dataset *input = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (c->fill == FILL_DROP || c->fill == FILL_MEAN || c->timed)
        return;
    make_plain(c, 1, c->rows, &p);
    memcpy(p.offset, trained->offset, sizeof p.offset);
    memcpy(p.factor, trained->factor, sizeof p.factor);
    snprintf(path, sizeof path, "%s/train.csv", data_folder);
    struct sl_input_request request = {.path = path};
    if (sl_dataset_open_input(o->model, o->state, &request, &input, &err) != SEQLSTM_OK)
        fail_msg("case %d: input: %s", (int)c->seed, err.message);
    check_dataset(c, &p, input, records, cut_records(c, &p, 0, p.rows, 0, records));
    sl_dataset_close(input);
}

static void check_case(struct table_case *c)
{
    static const char *const models[KINDS] = {MODEL_REGRESS, MODEL_REGRESS, MODEL_REGRESS_STEPS, MODEL_DENSE};
    struct plain p;
    struct record records[ROWS_MOST];
    struct sl_buf yaml = {0};
    draw_options(c);
    draw_values(c);
    write_table(c);
    make_yaml(c, &yaml);
    make_plain(c, c->first, c->last, &p);
    int count = cut_records(c, &p, 0, p.train_rows, c->horizon, records);
    if (count == 0) { /* an error that other tests look at */
        sl_buf_deinit(&yaml);
        return;
    }
    struct data_open o = data_open_train(sl_buf_text(&yaml), models[c->kind], "loss: mse");
    check_dataset(c, &p, o.train, records, count);
    count = cut_records(c, &p, p.train_rows, p.rows, c->horizon, records);
    if (c->share > 0 && count > 0) {
        struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
        check_dataset(c, &p, valid, records, count);
        sl_dataset_close(valid);
    }
    check_input(c, &p, &o);
    data_close(&o);
    sl_buf_deinit(&yaml);
}

static void test_random_tables(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct table_case c = {.seed = seed};
        check_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_tables, data_setup, data_teardown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
