/* SPDX-License-Identifier: Apache-2.0 */
/* `verify` on judgements that the test makes up: what its flags ask for, what it prints of each verdict, and its exit
 * status. */
#include "cli/cli.h"
#include "compare/verify/verify.h"

#include "report.h"

/* What it answers. */
static struct {
    seqlstm_status status;
    const struct sl_judgement *judgements;
    const enum sl_phase *phases;
    int32_t count;
    struct sl_envelope batch;
} answer;

int __wrap_cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session);
const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
seqlstm_status __wrap_sl_verify_run(const struct sl_verify_request *request, struct sl_verify_report **out_report,
                                    struct seqlstm_error *err);
void __wrap_sl_verify_report_destroy(struct sl_verify_report *report);
int32_t __wrap_sl_verify_report_get_count(const struct sl_verify_report *report);
const struct sl_judgement *__wrap_sl_verify_report_get(const struct sl_verify_report *report, int32_t index,
                                                       enum sl_phase *out_phase);
int32_t __wrap_sl_verify_report_get_failures(const struct sl_verify_report *report);
struct sl_envelope __wrap_sl_verify_report_get_batch(const struct sl_verify_report *report);
seqlstm_status __wrap_sl_verify_report_print_json(const struct sl_verify_report *report, struct sl_buf *buf,
                                                  struct seqlstm_error *err);

int __wrap_cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session)
{
    *out_session = NULL;
    sl_buf_printf(&noted, "opens the model %s\n", path);
    return cli_prepare(cli, path);
}

/* A backend of the test is its name. */
const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    return (const char *)backend;
}

seqlstm_status __wrap_sl_verify_run(const struct sl_verify_request *r, struct sl_verify_report **out_report,
                                    struct seqlstm_error *err)
{
    sl_buf_printf(&noted, "verifies %s, sequences %lld, threads %d%s\n", r->backend ? r->backend : "all",
                  (long long)r->sequences, r->threads, r->interrupt ? "" : ", never interrupted");
    *out_report = NULL;
    return answer.status == SEQLSTM_OK ? SEQLSTM_OK : seqlstm_error_set(err, answer.status, "a.c", 1, "it fails");
}

void __wrap_sl_verify_report_destroy(struct sl_verify_report *report)
{
    (void)report;
}

int32_t __wrap_sl_verify_report_get_count(const struct sl_verify_report *report)
{
    (void)report;
    return answer.count;
}

const struct sl_judgement *__wrap_sl_verify_report_get(const struct sl_verify_report *report, int32_t index,
                                                       enum sl_phase *out_phase)
{
    (void)report;
    *out_phase = answer.phases[index];
    return &answer.judgements[index];
}

int32_t __wrap_sl_verify_report_get_failures(const struct sl_verify_report *report)
{
    int32_t failures = 0;
    (void)report;
    for (int32_t k = 0; k < answer.count; k++)
        failures += answer.judgements[k].verdict == SL_VERDICT_FAIL;
    return failures;
}

struct sl_envelope __wrap_sl_verify_report_get_batch(const struct sl_verify_report *report)
{
    (void)report;
    return answer.batch;
}

seqlstm_status __wrap_sl_verify_report_print_json(const struct sl_verify_report *report, struct sl_buf *buf,
                                                  struct seqlstm_error *err)
{
    (void)report, (void)err;
    sl_buf_append_text(buf, "{the report}\n");
    return SEQLSTM_OK;
}

static const struct sl_backend *name_backend(const char *id)
{
    return (const struct sl_backend *)(const void *)id;
}

static void run_all(void)
{
    static const char *const lines[] = {
        "verify m.yaml",           "verify m.yaml --json -q",   "verify m.yaml --backend x --batch 3 --threads 2",
        "verify m.yaml --batch 0", "verify m.yaml --threads 0",
    };
    static const struct sl_node lstm = {.name = "lstm_1"}, head = {.name = "a_longer_name+loss"};
    const struct sl_offer packed = {.accepted = true, .variant = "packed", .option = ""};
    const struct sl_offer no_stacks = {.option = "layers",
                                       .place = {.file = "m.yaml", .line = 7, .column = 5},
                                       .value = "2",
                                       .reason = "it has no stacks"};
    const struct sl_offer no_place = {.option = "precision", .value = "bfloat16"};
    const struct sl_offer nothing = {.no_operation = true, .option = ""};
    const struct sl_judgement all[] = {
        {&lstm, name_backend("x"), true, SL_VERDICT_PASS, 0.25, packed, ""},
        {&head, name_backend("x"), true, SL_VERDICT_FAIL, 12.5, packed, "dx[0, 1] is 2, expected 1"},
        {&lstm, name_backend("longest"), true, SL_VERDICT_UNSUPPORTED, 0, no_stacks, "it has no stacks"},
        {&head, name_backend("y"), true, SL_VERDICT_UNSUPPORTED, 0, no_place, "float32 only"},
        {&head, name_backend("z"), true, SL_VERDICT_UNSUPPORTED, 0, nothing, "it has no products"},
        {&lstm, name_backend("x"), false, SL_VERDICT_SKIP, 1.5, packed, "too sensitive to judge"},
        {&lstm, name_backend("longest"), false, SL_VERDICT_UNSUPPORTED, 0, no_stacks, "it has no stacks"},
        {&head, name_backend("x"), false, SL_VERDICT_FAIL, 1.0009, packed, "y[0, 0] is NaN"},
    };
    static const enum sl_phase phases[] = {SL_PHASE_TRAIN, SL_PHASE_TRAIN,   SL_PHASE_TRAIN,   SL_PHASE_TRAIN,
                                           SL_PHASE_TRAIN, SL_PHASE_PREDICT, SL_PHASE_PREDICT, SL_PHASE_PREDICT};
    answer.judgements = all;
    answer.phases = phases;
    answer.count = 1;
    answer.batch = (struct sl_envelope){.sequences = 1, .rows = 0};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    answer.count = 8;
    answer.batch = (struct sl_envelope){.sequences = 3, .rows = 17};
    run("verify m.yaml");
    run("verify m.yaml --json");
    answer.batch.rows = 1;
    run("verify m.yaml");
    answer.status = SEQLSTM_UNAVAILABLE;
    run("verify m.yaml");
    answer.status = SEQLSTM_CANCELLED;
    run("verify m.yaml");
    answer.status = SEQLSTM_OK;
}

int main(void)
{
    return report_main((struct report){run_all, "reports/verifying.txt", &answer, sizeof answer, NULL});
}
