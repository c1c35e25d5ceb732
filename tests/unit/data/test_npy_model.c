/* SPDX-License-Identifier: Apache-2.0 */
/* Random arrays of every shape and several types against a plain model: steps and lengths, targets of steps and of
 * sequences, classes, scaling, and missing values.
 */
#include <math.h>

#include "oom.h"
#include "data_fixture.h"
#include "npy_fixture.h"

#include <seqlstm/philox.h>

enum { CASES = 300, SEQUENCES = 6, STEPS = 4, FEATURES = 3, OUTPUTS = 2 };
enum type { FLOAT32, FLOAT64, INT16, TYPES };
enum fill { FILL_NONE, FILL_ZERO, FILL_MEAN };

struct npy_case {
    uint64_t seed, draws;
    enum type type;
    enum fill fill;
    bool steps, step_targets, classes, with_lengths, flat, flat_targets, scaled;
    int sequences, length, features, outputs; /* of the arrays; length 1 without steps */
    int lengths[SEQUENCES];
    double x[SEQUENCES][STEPS][FEATURES], y[SEQUENCES][STEPS][OUTPUTS]; /* y of sequences: step 0 */
    double offset[FEATURES], factor[FEATURES];
    double target_offset[OUTPUTS], target_factor[OUTPUTS];
};

static int draw(struct npy_case *c, int n)
{
    return (int)(seqlstm_uniform(c->seed, c->draws++, 2, 0) * (float)n);
}

static double draw_value(struct npy_case *c)
{
    if (c->fill != FILL_NONE && draw(c, 8) == 0)
        return (double)NAN;
    return c->type == INT16 ? draw(c, 2000) - 1000 : (draw(c, 4000) - 2000) / 64.0;
}

static void draw_case(struct npy_case *c, uint64_t seed)
{
    *c = (struct npy_case){.seed = seed};
    c->type = (enum type)draw(c, TYPES);
    c->fill = c->type == INT16 ? FILL_NONE : (enum fill)draw(c, 3);
    c->steps = draw(c, 3) > 0;
    c->step_targets = c->steps && draw(c, 2);
    c->classes = draw(c, 3) == 0;
    c->with_lengths = c->steps && draw(c, 2);
    c->flat = c->steps && draw(c, 3) == 0; /* [N, T] */
    c->flat_targets = draw(c, 2);
    c->scaled = draw(c, 2);
    c->sequences = 2 + draw(c, SEQUENCES - 1);
    c->length = c->steps ? 1 + draw(c, STEPS) : 1;
    c->features = c->flat ? 1 : 1 + draw(c, FEATURES);
    c->outputs = c->classes || c->flat_targets ? 1 : 1 + draw(c, OUTPUTS);
    for (int s = 0; s < c->sequences; s++) {
        c->lengths[s] = c->with_lengths ? 1 + draw(c, c->length) : c->length;
        for (int t = 0; t < c->length; t++) {
            for (int f = 0; f < c->features; f++)
                c->x[s][t][f] = s == 0 && t == 0 ? 7 + f : draw_value(c); /* one value is always known */
            for (int o = 0; o < c->outputs; o++)
                c->y[s][t][o] = c->classes ? s < 2 ? s : draw(c, 4) - 1 : s == 0 && t == 0 ? 3 + o : draw_value(c);
        }
    }
}

/* ---- files ------------------------------------------------------------------------------------------ */

static void append_number(struct sl_buf *out, enum type type, double value)
{
    const float single = (float)value;
    const int16_t whole = (int16_t)value;
    if (type == FLOAT64)
        sl_buf_append(out, &value, sizeof value);
    else if (type == FLOAT32)
        sl_buf_append(out, &single, sizeof single);
    else
        sl_buf_append(out, &whole, sizeof whole);
}

/* Header of version 1, padded to 64 bytes. */
static void begin_array(struct sl_buf *out, enum type type, const int *shape, int dimensions)
{
    static const char *const names[] = {"<f4", "<f8", "<i2"};
    char head[NPY_HEADER], sizes[48] = "(";
    for (int d = 0; d < dimensions; d++)
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%d, ", shape[d]);
    strcat(sizes, ")");
    npy_write_header(head, names[type], sizes);
    sl_buf_append(out, head, sizeof head);
}

static void write_array(const struct npy_case *c, const char *name, const double *values, int width, bool steps,
                        int stride, bool flat, enum type type)
{
    struct sl_buf out = {0};
    const int shape[] = {c->sequences, steps ? c->length : width, width};
    begin_array(&out, type, shape, steps ? flat ? 2 : 3 : flat ? 1 : 2);
    for (int s = 0; s < c->sequences; s++)
        for (int t = 0; t < (steps ? c->length : 1); t++)
            for (int k = 0; k < width; k++)
                append_number(&out, type, values[(s * STEPS + t) * stride + k]);
    data_write_bytes(name, out.data, out.length_bytes);
    sl_buf_deinit(&out);
}

static void write_files(const struct npy_case *c)
{
    struct sl_buf out = {0};
    write_array(c, "x.npy", &c->x[0][0][0], c->features, c->steps, FEATURES, c->flat, c->type);
    write_array(c, "y.npy", &c->y[0][0][0], c->outputs, c->step_targets, OUTPUTS, c->classes || c->flat_targets,
                c->classes ? INT16 : c->type);
    begin_array(&out, INT16, &c->sequences, 1);
    for (int s = 0; s < c->sequences; s++)
        append_number(&out, INT16, c->lengths[s]);
    data_write_bytes("n.npy", out.data, out.length_bytes);
    sl_buf_deinit(&out);
}

/* ---- the model -------------------------------------------------------------------------------------- */

/* Fills and scales column k of the real steps; `steps`: else step 0 alone counts. */
static void fit_column(const struct npy_case *c, double *column, int stride, bool steps, double *offset, double *factor)
{
    double sum = 0, n = 0, squares = 0;
    for (int s = 0; s < c->sequences; s++)
        for (int t = 0; t < (steps ? c->lengths[s] : 1); t++) {
            double *v = &column[(s * STEPS + t) * stride];
            if (isnan(*v) && c->fill == FILL_ZERO)
                *v = 0;
            sum += isnan(*v) ? 0 : *v;
            n += !isnan(*v);
        }
    const double mean = sum / n;
    for (int s = 0; s < c->sequences; s++)
        for (int t = 0; t < (steps ? c->lengths[s] : 1); t++) {
            double *v = &column[(s * STEPS + t) * stride];
            squares += isnan(*v) ? 0 : (*v - mean) * (*v - mean);
            *v = isnan(*v) ? mean : *v;
        }
    *offset = c->scaled ? mean : 0;
    *factor = c->scaled && squares > 0 ? sqrt(squares / n) : 1;
}

static void make_plain(struct npy_case *c)
{
    for (int f = 0; f < c->features; f++)
        fit_column(c, &c->x[0][0][f], FEATURES, true, &c->offset[f], &c->factor[f]);
    for (int o = 0; o < c->outputs && !c->classes; o++)
        fit_column(c, &c->y[0][0][o], OUTPUTS, c->step_targets, &c->target_offset[o], &c->target_factor[o]);
}

/* ---- the comparison --------------------------------------------------------------------------------- */

static void expect_near(const struct npy_case *c, const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
        fail_msg("case %d: %s: %.9g, expected %.9g", (int)c->seed, what, got, want);
}

static void check_target(const struct npy_case *c, const struct sl_batch *batch, int k, int s, int t)
{
    const int64_t row = c->step_targets ? sl_batch_row(batch, k, t) : k;
    assert_int_equal(batch->target.on_steps, c->step_targets);
    if (c->classes)
        assert_int_equal(batch->target.ids[row], (int)c->y[s][t][0]);
    for (int o = 0; o < c->outputs && !c->classes; o++)
        expect_near(c, "target", (double)batch->target.values[row * c->outputs + o],
                    (c->y[s][t][o] - c->target_offset[o]) / c->target_factor[o]);
}

static void check_batch(const struct npy_case *c, const struct sl_batch *batch)
{
    for (int k = 0; k < (int)batch->sequences; k++) {
        const int s = (int)batch->sample[k];
        assert_int_equal(batch->has_steps ? batch->axis.lengths[k] : 1, c->lengths[s]);
        for (int t = 0; t < c->lengths[s]; t++) {
            const int64_t row = batch->has_steps ? sl_batch_row(batch, k, t) : k;
            for (int f = 0; f < c->features; f++)
                expect_near(c, "input", (double)batch->input.values[row * c->features + f],
                            (c->x[s][t][f] - c->offset[f]) / c->factor[f]);
            if (c->step_targets || t == 0)
                check_target(c, batch, k, s, t);
        }
    }
}

static void check_case(struct npy_case *c)
{
    static const char *const fills[] = {"error", "zero", "mean"};
    char data[256], layers[128];
    write_files(c);
    make_plain(c);
    snprintf(data, sizeof data, "type: npy, train: {x: x.npy, y: y.npy%s}, batch_size: 4%s%s%s",
             c->with_lengths ? ", lengths: n.npy" : "", c->scaled ? ", scale: standard" : "",
             c->fill != FILL_NONE ? ", missing: " : "", c->fill != FILL_NONE ? fills[c->fill] : "");
    snprintf(layers, sizeof layers, "[%s{type: output%s}]",
             !c->steps         ? ""
             : c->step_targets ? "{type: lstm, units: 2, return_sequences: true}, "
                               : "{type: lstm, units: 2}, ",
             c->classes ? ", activation: softmax" : "");
    struct data_open o = data_open_train(data, layers, c->classes ? "loss: cross_entropy" : "loss: mse");
    assert_int_equal(sl_dataset_get_records(o.train), c->sequences);
    assert_int_equal(sl_dataset_get_facts(o.train)->input.features, c->features);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch;
    int seen = 0;
    while ((batch = data_next(batcher)) != NULL) {
        check_batch(c, batch);
        seen += (int)batch->sequences;
        sl_batch_destroy(batch);
    }
    assert_int_equal(seen, c->sequences);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_random_arrays(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct npy_case c;
        draw_case(&c, seed);
        check_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_arrays, data_setup, data_teardown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
