/* SPDX-License-Identifier: Apache-2.0 */
/* What a case of the conformance kit tests and how strictly: its descriptor, axis and step, the data of every slot, and
 * the tolerances of results and gradients. See support/dump_file.h; each line of a text is the name of a case.
 */
#include <math.h>

#include "dump_file.h"
#include "graph_dump.h"
#include "oom.h"
#include "judge/case.h"
#include "judge/check.h"
#include "judge/data.h"
#include "judge/tolerance.h"

static void add_values(struct sl_buf *out, const char *name, const double *values, int64_t elems)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    if (values == NULL || elems == 0)
        return;
    for (int64_t i = 0; i < elems; i++) {
        sum += values[i];
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    sl_buf_printf(out, " %s %.5g … %.5g in [%.5g, %.5g] sum %.5g", name, values[0], values[elems - 1], low, high, sum);
}

static void add_slots(struct sl_buf *out, const struct sl_data *data)
{
    for (int32_t k = 0; k < data->count; k++) {
        const struct sl_slot *slot = &data->slots[k];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        sl_buf_printf(out, "  %d %s role %d axis %d %s%s %lld:", k, slot->name, (int)slot->role, (int)slot->axis,
                      sl_dtype_name(slot->dtype), slot->optional ? " optional" : "", (long long)data->elems[k]);
        add_values(out, "values", data->values[k], data->elems[k]);
        add_values(out, "upstream", data->upstream[k], data->elems[k]);
        add_values(out, "base", data->base[k], data->elems[k]);
        for (int gradient = 0; gradient < 2 && sl_slot_is_float(slot); gradient++) {
            const struct sl_tolerance t = sl_tolerance_get(data, k, gradient);
            sl_buf_printf(out, "%s %.4g + %.4g", gradient ? ", of the gradient" : "; tolerance", t.factor, t.floor);
        }
        sl_buf_append_char(out, '\n');
    }
}

static void add_case(struct sl_buf *out, const char *name)
{
    struct sl_case c;
    struct sl_data *data;
    struct sl_arena arena;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_arena_init(&arena);
    sl_buf_printf(out, "-- %s\n", name);
    if (sl_case_parse(name, &c, &err) == SEQLSTM_OK && sl_data_create(&arena, &c, 2, 3, &data, &err) == SEQLSTM_OK) {
        sl_buf_printf(out, "  pass %d lengths %d T%lld B%lld R%lld of %lld rows %lld of %lld", (int)c.pass,
                      (int)c.lengths, (long long)c.steps, (long long)c.sequences, (long long)c.rows,
                      (long long)c.rows_in, (long long)data->rows, (long long)data->rows_in);
        for (int64_t k = 0; k < data->axis.sequences && data->axis.steps; k++)
            sl_buf_printf(out, "%s%d", k ? " " : " axis ", data->axis.lengths[k]);
        for (int64_t k = 0; k < data->axis.sequences && data->axis.flags & SEQLSTM_BIT_AXIS_STREAM; k++)
            sl_buf_printf(out, "%s%llu+%u", k ? " " : " at ", (unsigned long long)data->axis.sequence_id[k],
                          data->axis.position0[k]);
        if (data->axis.steps)
            sl_buf_printf(out, " flags %u", data->axis.flags);
        for (int64_t k = 0; k < c.desc.head.max_sequences && data->offsets; k++)
            sl_buf_printf(out, "%s%d", k ? " " : " memories at ", data->offsets[k]);
        sl_buf_append_text(out, "\n ");
        dump_desc(out, &c.desc);
        sl_buf_printf(out, "\n  step %u %.9g %.9g\n", data->step.flags, (double)data->step.normaliser,
                      (double)data->step.loss_scale);
        add_slots(out, data);
    } else {
        sl_buf_printf(out, "  refused %d: %s\n", (int)err.code, err.message);
    }
    sl_arena_deinit(&arena);
}

static void add_cases(struct sl_buf *out, const char *title, const char *text)
{
    char *lines = strdup(text), *rest = lines, *line;
    (void)title;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line)
            add_case(out, line);
    free(lines);
}

static void cases_are_as_before(void **state)
{
    (void)state;
    compare_dumps("cases", add_cases);
}

/* One value after the other against the model's: got - expected may be the tolerance, not more. */
static void tolerances_are_limits(void **state)
{
    (void)state;
    const double expected[4] = {1, -2, 2, NAN}, movement[4] = {0, 0, 0.25, 0};
    const struct sl_tolerance tolerance = {0.01, 0.5};
    struct sl_comparison c;
    const double scale = sqrt((1 + 4 + 4) / 3.0);
    double got[4] = {1, -2 + 0.0099 * (2 + scale + 0.5), 2, NAN};
    sl_compare(got, expected, NULL, 3, tolerance, &c);
    assert_false(c.failed);
    assert_int_equal(c.index, 1);
    assert_true(fabs(c.worst - 0.99) < 1e-6 && c.expected == -2 && c.got == got[1]);
    got[1] = -2 - 0.0101 * (2 + scale + 0.5);
    sl_compare(got, expected, NULL, 3, tolerance, &c);
    assert_true(c.failed && fabs(c.worst - 1.01) < 1e-6);
    got[1] = -2;
    got[2] = 2.9;
    sl_compare(got, expected, NULL, 3, tolerance, &c);
    assert_true(c.failed && c.index == 2);
    sl_compare(got, expected, movement, 3, tolerance, &c); /* within four movements */
    assert_false(c.failed);
    got[2] = 3.1;
    sl_compare(got, expected, movement, 3, tolerance, &c);
    assert_true(c.failed);
    got[2] = NAN;
    sl_compare(got, expected, NULL, 3, tolerance, &c);
    assert_true(c.failed && c.index == 2);
    got[3] = NAN;
    sl_compare(got + 3, expected + 3, NULL, 1, tolerance, &c); /* two NaN are equal */
    assert_false(c.failed);
}

/* The size of a tensor is that of its finite values: one infinity does not excuse the others. */
static void infinities_excuse_nothing(void **state)
{
    (void)state;
    const double infinite[3] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    const struct sl_tolerance tolerance = {0.01, 0};
    struct sl_comparison c;
    for (int k = 0; k < 3; k++) {
        const double expected[2] = {1, infinite[k]};
        double got[2] = {1.009, infinite[k]};
        sl_compare(got, expected, NULL, 2, tolerance, &c);
        assert_false(c.failed);
        got[0] = 2;
        sl_compare(got, expected, NULL, 2, tolerance, &c);
        assert_true(c.failed && c.index == 0 && isfinite(c.tolerance));
        got[0] = 1;
        got[1] = 1;
        sl_compare(got, expected, NULL, 2, tolerance, &c);
        assert_true(c.failed && c.index == 1);
    }
}

/* A backend may refuse before anything has failed; every other error is a failure, and the first one stays. */
static void statuses_become_verdicts(void **state)
{
    static const struct {
        enum sl_verdict before;
        seqlstm_status status;
        const char *message;
        enum sl_verdict after;
        const char *detail; /* NULL: what failed, with its status and message */
    } rows[] = {
        {SL_VERDICT_PASS, SEQLSTM_OK, "", SL_VERDICT_PASS, "said before"},
        {SL_VERDICT_FAIL, SEQLSTM_OK, "", SL_VERDICT_FAIL, "said before"},
        {SL_VERDICT_PASS, SEQLSTM_UNSUPPORTED, "no GRU", SL_VERDICT_UNSUPPORTED, "no GRU"},
        {SL_VERDICT_FAIL, SEQLSTM_UNSUPPORTED, "no GRU", SL_VERDICT_FAIL, "said before"},
        {SL_VERDICT_UNSUPPORTED, SEQLSTM_UNSUPPORTED, "no GRU", SL_VERDICT_FAIL, NULL},
        {SL_VERDICT_PASS, SEQLSTM_NO_MEMORY, "full", SL_VERDICT_FAIL, NULL},
        {SL_VERDICT_PASS, SEQLSTM_DEVICE, "", SL_VERDICT_FAIL, NULL},
        {SL_VERDICT_FAIL, SEQLSTM_DEVICE, "gone", SL_VERDICT_FAIL, "said before"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_check_result result = {.verdict = rows[k].before, .detail = "said before"};
        struct sl_check check = {.result = &result, .variant = "wide"};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char failure[80];
        if (rows[k].status != SEQLSTM_OK)
            seqlstm_error_set(&err, rows[k].status, "f.c", 1, "%s", rows[k].message);
        assert_int_equal(sl_check_status(&check, rows[k].status, "bind", &err), rows[k].status == SEQLSTM_OK);
        assert_int_equal(result.verdict, rows[k].after);
        snprintf(failure, sizeof failure, "bind returned status %d: %s", (int)rows[k].status,
                 rows[k].message[0] ? rows[k].message : "(without a reason)");
        assert_string_equal(result.detail, rows[k].detail ? rows[k].detail : failure);
        assert_string_equal(result.variant, rows[k].detail ? "" : "wide");
    }
}

/* Without any rate a case has the descriptor of one that never had them. */
static void rates_are_cleared(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"lstm:same:T3B2I3H5:f32:ragged:peephole,dropout,recurrent_dropout,zoneout_cell,zoneout_hidden,weight_drop",
         "lstm:same:T3B2I3H5:f32:ragged:peephole"},
        {"gru:same:T3B2I3H5:f32:ragged:weight_drop,gate_clip", "gru:same:T3B2I3H5:f32:ragged:gate_clip"},
        {"dropout:same:T3B2C5:f32:ragged:rate=0.9,mask=sequence",
         "dropout:same:T3B2C5:f32:ragged:rate=0,mask=sequence"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct sl_case c[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(sl_case_parse(names[k][i], &c[i], NULL), SEQLSTM_OK);
        assert_memory_not_equal(&c[0].desc, &c[1].desc, c[1].desc.head.struct_size);
        sl_case_clear_rates(&c[0]);
        assert_memory_equal(&c[0].desc, &c[1].desc, c[1].desc.head.struct_size);
    }
}

/* Where sequences have three steps or more, one of them is NaN, which is neither the first nor the last. */
static void each_sequence_has_one_nan_in_its_middle(void **state)
{
    (void)state;
    struct sl_case c;
    struct sl_data *data;
    struct sl_arena arena;
    int64_t longer = 0, found = 0;
    sl_arena_init(&arena);
    assert_int_equal(sl_case_parse("pool:bwd:T7B9C4:f32:ragged:kind=max,nan", &c, NULL), SEQLSTM_OK);
    assert_int_equal(sl_data_create(&arena, &c, 2, 3, &data, NULL), SEQLSTM_OK);
    for (int32_t k = 0; k < 9; k++) {
        int64_t count = 0;
        for (int32_t t = 0; t < data->axis.lengths[k]; t++)
            for (int64_t f = 0; f < 4; f++) {
                const int64_t row = data->axis.row_offsets[t] + k;
                const bool is_nan = isnan(data->values[SEQLSTM_SLOT_UNARY_X][row * 4 + f]);
                assert_true(!is_nan || (t > 0 && t + 1 < data->axis.lengths[k] && f == k % 4));
                count += is_nan;
            }
        assert_int_equal(count, data->axis.lengths[k] > 2);
        longer += data->axis.lengths[k] > 2;
    }
    assert_true(longer > 4 && longer < 9);
    for (int64_t i = 0; i < data->elems[SEQLSTM_SLOT_UNARY_Y]; i++)
        found += isnan(data->upstream[SEQLSTM_SLOT_UNARY_Y][i]);
    assert_int_equal(found, 0);
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_are_as_before),      cmocka_unit_test(rates_are_cleared),
        cmocka_unit_test(tolerances_are_limits),    cmocka_unit_test(infinities_excuse_nothing),
        cmocka_unit_test(statuses_become_verdicts), cmocka_unit_test(each_sequence_has_one_nan_in_its_middle),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
