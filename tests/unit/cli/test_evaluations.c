/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm eval`, on metrics that the test makes up: which split it asks for, what it prints, and its exit statuses. */
#include <math.h>

#include "base/system/file_writer.h"
#include "session/evaluate/evaluate.h"

#include "report.h"

/* What the layers below answer. */
static struct {
    seqlstm_status status;
    struct sl_evaluation evaluation;
} answer;

int __wrap_cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session);
const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session);
enum sl_split __wrap_sl_dataset_choose_split(const struct sl_model *model);
seqlstm_status __wrap_sl_session_evaluate(struct sl_session *session, enum sl_split split,
                                          struct sl_evaluation *evaluation, struct seqlstm_error *err);

int __wrap_cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session)
{
    *out_session = NULL;
    sl_buf_printf(&noted, "opens the run %s%s\n", run, cli->log.level == SL_LOG_INFO ? "" : ", and is quiet");
    return cli_prepare(cli, NULL);
}

const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session)
{
    (void)session;
    return NULL;
}

enum sl_split __wrap_sl_dataset_choose_split(const struct sl_model *model)
{
    (void)model;
    return SL_SPLIT_VALID;
}

seqlstm_status __wrap_sl_session_evaluate(struct sl_session *session, enum sl_split split,
                                          struct sl_evaluation *evaluation, struct seqlstm_error *err)
{
    (void)session;
    sl_buf_printf(&noted, "evaluates %s\n", sl_split_get_name(split));
    *evaluation = answer.evaluation;
    return answer.status == SEQLSTM_OK ? SEQLSTM_OK
                                       : seqlstm_error_set(err, answer.status, "a.c", 1, "it fails; use another");
}

/* ---- command lines ---------------------------------------------------------------------------------------------- */

static struct sl_metric_values make_values(double loss, double accuracy)
{
    struct sl_metric_values values = {.count = 2};
    values.items[0] = (struct sl_metric_value){.name = "loss", .value = loss};
    values.items[1] = (struct sl_metric_value){.name = "accuracy", .value = accuracy};
    return values;
}

static void eval_answers(double loss, double accuracy)
{
    answer.evaluation.values = make_values(loss, accuracy);
    sl_buf_printf(&out, "== loss %g, accuracy %g\n", loss, accuracy);
}

static void run_all(void)
{
    static const char *const lines[] = {
        "eval m",
        "eval m --json",
        "eval m --split train",
        "eval m --split valid --json",
        "eval m --split test",
        "eval m --split tests",
        "eval m --input in.csv",
        "eval m --input in.csv --json",
        "eval m --input in.csv --set a=1",
        "eval m --input in.csv --split test",
        "eval m --input none.csv",
    };
    eval_answers(1.23456789, 0.75);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    answer.evaluation.values.count = 4;
    answer.evaluation.values.items[2] = (struct sl_metric_value){.name = "bleu", .value = 30, .signature = "a|b"};
    answer.evaluation.values.items[3] = (struct sl_metric_value){.name = "chrf", .value = 1e-7, .signature = "c"};
    run("eval m");
    run("eval m --json");
    static const double unsound[][2] = {{NAN, 1},       {INFINITY, 1}, {-INFINITY, 1},  {1, INFINITY},
                                        {1, -INFINITY}, {1, NAN},      {NAN, INFINITY}, {INFINITY, NAN}};
    for (size_t k = 0; k < sizeof unsound / sizeof *unsound; k++) {
        eval_answers(unsound[k][0], unsound[k][1]);
        run("eval m --split train");
    }
    run("eval m --json");
    run("eval m --input in.csv");
    answer.status = SEQLSTM_CORRUPT_DATA;
    run("eval m");
}

static void prepare(void)
{
    assert_int_equal(chdir(scratch_folder), 0);
    assert_int_equal(sl_file_write("in.csv", "a\n", 2, NULL), SEQLSTM_OK);
}

int main(void)
{
    return report_main((struct report){run_all, "reports/evaluations.txt", &answer, sizeof answer, prepare});
}
