/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for sequences that are longer than the model takes: each step of the file has its row, which is blank
 * where nothing was predicted, and otherwise that of the steps before it alone. */
#include "opened_run.h"

#include <math.h>
#include <unistd.h>

enum { RECORDS = 4, STEPS_MOST = 7 };

/* The steps of each record; x: a value is missing. */
static const char *const steps[RECORDS] = {"..", ".x..xx.", "xx", "x..."};

#define MODEL                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: csv\n  group: id\n  inputs: [a]\n  targets: [y]\n"                   \
    "  train: {file: train.csv}\n  missing: drop\n  batch_size: 3\nmodel:\n"                                           \
    "  - {type: lstm, units: 3, return_sequences: true}\n  - {type: dense, units: from_target}\n"                      \
    "train: {updates: 2, loss: mse}\nbackends: [reference]\ndispatch: {policy: order}\n"

struct seen {
    int count;
    int64_t rows[RECORDS];
    float values[RECORDS][STEPS_MOST];
    bool none[RECORDS][STEPS_MOST];
};

static seqlstm_status see(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    struct seen *seen = context;
    (void)err;
    assert_true(p->record == seen->count && p->features == 1 && p->rows <= STEPS_MOST);
    seen->rows[seen->count] = p->rows;
    memcpy(seen->values[seen->count], p->values, (size_t)p->rows * sizeof *p->values);
    memcpy(seen->none[seen->count++], p->none, (size_t)p->rows * sizeof *p->none);
    return SEQLSTM_OK;
}

/* `whole`: with the steps that are left out. */
static void write_steps(const char *name, bool whole)
{
    struct sl_buf text = {0};
    sl_buf_append_text(&text, "id,a,y\n");
    for (int r = 0; r < RECORDS; r++)
        for (int t = 0; steps[r][t] != '\0'; t++)
            if (steps[r][t] == '.')
                sl_buf_printf(&text, "%d,%g,%g\n", r, sin(3 * r + t), cos(r + 2 * t));
            else if (whole)
                sl_buf_printf(&text, "%d,,%d\n", r, t);
    put_file(name, sl_buf_text(&text));
    sl_buf_deinit(&text);
}

static void predict(struct opened_run *run, const char *file, struct seen *seen)
{
    const struct sl_input_request input = {.path = file};
    *seen = (struct seen){.count = 0};
    ok(sl_session_predict(run->session, &input, false, see, seen, &run->err), &run->err);
}

static void steps_that_are_left_out_are_blank(void **state)
{
    struct opened_run run;
    struct sl_run_result result;
    struct seen all, rest;
    (void)state;
    write_steps("train.csv", true);
    write_steps("rest.csv", false);
    open_text(&run, "left-out", MODEL);
    ok(train_run(&run, &result), &run.err);
    predict(&run, "train.csv", &all);
    predict(&run, "rest.csv", &rest);
    assert_int_equal(all.count, RECORDS);
    for (int r = 0, k = 0; r < RECORDS; r++) {
        int known = 0;
        assert_int_equal(all.rows[r], strlen(steps[r]));
        for (int t = 0; steps[r][t] != '\0'; t++) {
            const bool is_known = steps[r][t] == '.';
            const double expected = is_known ? (double)rest.values[k][known] : (double)NAN;
            known += is_known;
            if (all.none[r][t] == is_known || isfinite(all.values[r][t]) != is_known ||
                (is_known && !(fabs((double)all.values[r][t] - expected) <= 1e-6)))
                fail_msg("record %d, step %d is %g, expected %g", r, t, (double)all.values[r][t], expected);
        }
        assert_true(known == 0 || rest.rows[k] == known);
        k += known > 0;
    }
    close_run(&run);
}

static int setup(void **state)
{
    return scratch_make(state) == 0 ? chdir(scratch_folder) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_are_left_out_are_blank),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
