/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm verify */
#include <string.h>

#include "cli/cli.h"
#include "compare/verify/verify.h"

/* One sentence about a failure or a refusal, below the table. */
static void explain(const struct sl_judgement *j, enum sl_phase phase, struct sl_buf *out)
{
    const struct sl_offer *offer = &j->offer;
    sl_buf_printf(out, "  %s on %s", j->node->name, sl_backend_get_id(j->backend));
    if (offer->accepted)
        sl_buf_printf(out, ":%s (%s)", offer->variant, phase == SL_PHASE_TRAIN ? "train" : "infer");
    if (!offer->accepted && offer->option[0])
        sl_buf_printf(out, ": %s %s", offer->option, offer->value);
    if (!offer->accepted && offer->place.line > 0)
        sl_buf_printf(out, " (%s:%d:%d)", offer->place.file, offer->place.line, offer->place.column);
    sl_buf_printf(out, ": %s\n", j->detail);
}

static bool is_told(const struct sl_judgement *j, enum sl_phase phase)
{
    /* Refusals are the same in both phases. An operation that a backend does not have at all needs no sentence. */
    if (j->verdict == SL_VERDICT_UNSUPPORTED)
        return phase == SL_PHASE_TRAIN && !j->offer.no_operation;
    return j->verdict != SL_VERDICT_PASS;
}

static void print_table(const struct sl_verify_report *report, struct sl_buf *out)
{
    enum sl_phase phase;
    int32_t count = sl_verify_report_get_count(report), passed = 0, unsupported = 0;
    int name_width = 5, backend_width = 7;
    for (int32_t i = 0; i < count; i++) {
        const struct sl_judgement *j = sl_verify_report_get(report, i, &phase);
        int name = (int)strlen(j->node->name);
        int backend = (int)(strlen(sl_backend_get_id(j->backend)) + strlen(j->offer.variant) + 1);
        name_width = name > name_width ? name : name_width;
        backend_width = backend > backend_width ? backend : backend_width;
    }
    sl_buf_printf(out, "%-*s  phase  %-*s  %-11s  error / tolerance\n", name_width, "layer", backend_width, "backend",
                  "verdict");
    for (int32_t i = 0; i < count; i++) {
        const struct sl_judgement *j = sl_verify_report_get(report, i, &phase);
        char backend[96];
        passed += j->verdict == SL_VERDICT_PASS;
        unsupported += j->verdict == SL_VERDICT_UNSUPPORTED;
        snprintf(backend, sizeof backend, "%s%s%s", sl_backend_get_id(j->backend), j->offer.accepted ? ":" : "",
                 j->offer.variant);
        sl_buf_printf(out, "%-*s  %-5s  %-*s  ", name_width, j->node->name, phase == SL_PHASE_TRAIN ? "train" : "infer",
                      backend_width, backend);
        if (j->offer.accepted)
            sl_buf_printf(out, "%-11s  %.3f\n", sl_verdict_name(j->verdict), j->worst);
        else
            sl_buf_printf(out, "%s\n", sl_verdict_name(j->verdict));
    }
    for (int32_t i = 0, told = 0; i < count; i++) {
        const struct sl_judgement *j = sl_verify_report_get(report, i, &phase);
        if (!is_told(j, phase))
            continue;
        sl_buf_append_text(out, told++ ? "" : "\n");
        explain(j, phase, out);
    }
    struct sl_envelope batch = sl_verify_report_get_batch(report);
    const int64_t rows = batch.rows > 0 ? batch.rows : batch.sequences;
    sl_buf_printf(out, "\n%d passed, %d failed, %d unsupported, %d undecided; batch of %lld sequence%s, %lld row%s\n",
                  passed, sl_verify_report_get_failures(report), unsupported,
                  count - passed - unsupported - sl_verify_report_get_failures(report), (long long)batch.sequences,
                  batch.sequences == 1 ? "" : "s", (long long)rows, rows == 1 ? "" : "s");
}

static int report_result(struct cli_context *cli, const struct sl_verify_report *report)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (cli->json)
        status = sl_verify_report_print_json(report, &out, &err);
    else
        print_table(report, &out);
    int code = status != SEQLSTM_OK ? cli_fail(cli, status, &err) : cli_write_out(cli, &out);
    sl_buf_deinit(&out);
    return code == CLI_OK && sl_verify_report_get_failures(report) > 0 ? CLI_FAILURE : code;
}

static int verify(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    struct sl_verify_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t sequences = 0;
    if (!cli_get_int(cli, "batch", 1, SL_SAMPLE_SEQUENCES_MOST, &sequences))
        return CLI_USAGE;
    int code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    struct sl_verify_request request = {.session = session,
                                        .backend = cli_get(cli, "backend"),
                                        .sequences = sequences,
                                        .threads = cli->options.threads,
                                        .interrupt = cli->interrupt};
    seqlstm_status status = sl_verify_run(&request, &report, &err);
    code = status == SEQLSTM_OK ? report_result(cli, report) : cli_fail(cli, status, &err);
    sl_verify_report_destroy(report);
    sl_session_close(session);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "backend", .argument = "ID", .help = "check only this backend (default: all that load)"},
    {.name = "batch", .argument = "N", .help = "sequences per batch (default: up to 8)"},
    CLI_FLAG_BACKEND_PATH,
    CLI_FLAG_THREADS,
    CLI_FLAG_TRUST,
    {0},
};

const struct cli_command cli_command_verify = {
    .name = "verify",
    .summary = "check every loaded backend against the reference on your model",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm verify model.yaml\n"
                "  seqlstm verify model.yaml --backend cpu-blas --batch 2\n"
                "  seqlstm verify model.yaml --backend-path build --json\n",
    .text = "Runs the model once on the float64 reference, with a batch of the training\n"
            "data. Then every backend gets the inputs and upstream gradients of each layer,\n"
            "and computes outputs and gradients, in training and in inference. The number\n"
            "in the table is the largest error divided by what the error model allows. If\n"
            "it is above 1, the layer fails, and the exit status is 1. `unsupported` is an\n"
            "answer, not a failure; the refusals are listed below the table.\n",
    .flags = flags,
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = verify,
};
