/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm ab */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "compare/ab/ab.h"
#include "compare/ab/ab_time.h"
#include "compare/side/remote_side.h"
#include "compare/sample/sample.h"

enum { COMMAND_LINE_MOST = 1 << 20 };

struct state {
    struct cli_context *cli;
    struct sl_session *session;
    struct sl_ab_request request;
    double max_regress; /* a share, such as 0.05; < 0: no limit */
    char *command_line; /* memory that `worker` points to */
    const char *worker[SL_REMOTE_ARGUMENTS_MOST];
};

static void show_progress(void *context, double gone)
{
    const struct state *s = context;
    if (s->cli->progress == CLI_PROGRESS_NONE || s->cli->verbosity < 0 || !s->cli->color)
        return;
    cli_clear_line();
    fprintf(stderr, "%.0f of %.0f s", gone, s->request.seconds);
    cli_set_line();
}

static int read_phase(struct cli_context *cli, enum sl_phase *out_phase)
{
    const char *text = cli_get(cli, "phase");
    *out_phase = SL_PHASE_TRAIN;
    if (!text || strcmp(text, "train") == 0)
        return CLI_OK;
    if (strcmp(text, "infer") != 0)
        return cli_usage_error(cli, "`--phase %s`: expected train or infer", text);
    *out_phase = SL_PHASE_PREDICT;
    return CLI_OK;
}

static int read_flags(struct state *s)
{
    struct sl_ab_request *r = &s->request;
    double confidence = 95, within = 1;
    r->a = cli_get(s->cli, "a");
    r->b = cli_get(s->cli, "b");
    if (!r->a || !r->b)
        return cli_usage_error(s->cli,
                               "an argument is missing: seqlstm ab %s\n  = help: `seqlstm help ab` has examples",
                               s->cli->command->usage);
    r->seconds = 10;
    if (!cli_get_int(s->cli, "batch", 1, SL_SAMPLE_SEQUENCES_MOST, &r->batch_size) ||
        !cli_get_int(s->cli, "rounds", 1, SL_AB_ROUNDS_MOST, &r->rounds) ||
        !cli_get_float(s->cli, "seconds", 0.01, 3600, &r->seconds) ||
        !cli_get_float(s->cli, "confidence", 50, 99.9, &confidence) ||
        !cli_get_float(s->cli, "within", 0, 100, &within))
        return CLI_USAGE;
    r->within = within / 100;
    r->confidence = confidence / 100;
    r->separate = cli_has(s->cli, "separate");
    r->interrupt = s->cli->interrupt;
    r->on_progress = show_progress;
    r->context = s;
    int code = read_phase(s->cli, &r->phase);
    s->max_regress = -1;
    return code == CLI_OK && !cli_get_share(s->cli, "max-regress", &s->max_regress) ? CLI_USAGE : code;
}

/* The process of one side runs this command line again, with its role appended. */
static int make_worker(struct state *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    size_t bytes = 0;
    int count = 0;
    seqlstm_status status = sl_file_read("/proc/self/cmdline", COMMAND_LINE_MOST, &s->command_line, &bytes, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(s->cli, status, &err);
    const int most = SL_REMOTE_ARGUMENTS_MOST - 3; /* beside them: --side, its role, NULL */
    for (size_t at = 0; at < bytes; at += strlen(s->command_line + at) + 1) {
        if (count == most)
            return cli_usage_error(s->cli, "a command line of `ab` has at most %d arguments", most);
        s->worker[count++] = s->command_line + at;
    }
    s->worker[0] = "/proc/self/exe";
    s->worker[count++] = "--side";
    s->request.worker = s->worker;
    return CLI_OK;
}

/* Runs as the process of one side. */
static int serve(struct state *s, const char *role)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *const *roles = (const char *const[]){"a", "b", "probe-a", "probe-b", NULL};
    int r = 0;
    while (roles[r] && strcmp(roles[r], role) != 0)
        r++;
    if (!roles[r])
        return cli_usage_error(s->cli, "`--side %s`: this flag is internal", role);
    seqlstm_status status = r < 2 ? sl_ab_serve(&s->request, r == 1, &err) : sl_ab_probe(&s->request, r == 3, &err);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(s->cli, status, &err);
}

static int report_result(struct state *s, const struct sl_ab_report *report)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    seqlstm_status status = SEQLSTM_OK;
    cli_clear_line();
    if (s->cli->json)
        status = sl_ab_report_print_json(report, &out, &err);
    else
        sl_ab_report_print_table(report, &out);
    int code = status != SEQLSTM_OK ? cli_fail(s->cli, status, &err) : cli_write_out(s->cli, &out);
    sl_buf_deinit(&out);
    if (code != CLI_OK || !report->numeric_ok)
        return code == CLI_OK ? CLI_FAILURE : code;
    if (s->max_regress >= 0 && report->step.low > 1 + s->max_regress) {
        char text[160];
        sl_text_snprintf(text, sizeof text,
                         "B is slower than A by more than %.3g %%: even the low end of the interval is %.3f",
                         100 * s->max_regress, report->step.low);
        cli_print_error(s->cli, "E0614", NULL, text);
        return CLI_FAILURE;
    }
    return CLI_OK;
}

static int run(struct state *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_ab_report *report = NULL;
    const char *side = cli_get(s->cli, "side");
    int code = cli_open_model(s->cli, s->cli->values.operands[0], &s->session);
    if (code != CLI_OK)
        return code;
    s->request.session = s->session;
    s->request.threads = s->cli->options.threads;
    if (side)
        return serve(s, side);
    code = make_worker(s);
    if (code != CLI_OK)
        return code;
    seqlstm_status status = sl_ab_run(&s->request, &report, &err);
    code = status == SEQLSTM_OK ? report_result(s, report) : cli_fail(s->cli, status, &err);
    sl_ab_report_destroy(report);
    return code;
}

static int ab(struct cli_context *cli)
{
    struct state s = {.cli = cli};
    int code = read_flags(&s);
    if (code == CLI_OK)
        code = run(&s);
    sl_session_close(s.session);
    free(s.command_line);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "a",
     .letter = 'a',
     .argument = "X",
     .help = "side A: id, ./file.so, id:variant, id,key=value or id,device=1"},
    {.name = "b", .letter = 'b', .argument = "Y", .help = "side B, written like side A"},
    {.name = "phase", .argument = "PHASE", .help = "what to time: train or infer (default train)"},
    {.name = "batch", .argument = "N", .help = "sequences per batch (default: as in the model file)"},
    {.name = "seconds", .argument = "S", .help = "time for at least S seconds (default 10)"},
    {.name = "within",
     .argument = "P",
     .help = "continue until the step's interval is +- P percent, at most 5 times as long (default 1)"},
    {.name = "rounds", .argument = "N", .help = "run exactly N rounds instead"},
    {.name = "confidence", .argument = "P", .help = "confidence level of the intervals, in percent (default 95)"},
    {.name = "max-regress",
     .argument = "SHARE",
     .help = "exit with status 1 if B is certainly slower than A by more than this, such as 5%"},
    {.name = "separate", .help = "run each side in its own process"},
    CLI_FLAG_BACKEND_PATH,
    CLI_FLAG_THREADS,
    CLI_FLAG_TRUST,
    {.name = "side", .argument = "ROLE", .help = "internal: run as the process of one side"},
    {0},
};

const struct cli_command cli_command_ab = {
    .name = "ab",
    .summary = "compare two backends on your model: numbers, then time",
    .usage = "model.yaml --a X --b Y [flags]",
    .examples = "  seqlstm ab model.yaml --a cpu-blas --b ./libseqlstm_backend_mine.so\n"
                "  seqlstm ab model.yaml --a cpu-blas --b cpu-blas,instructions=avx2 --phase infer\n"
                "  seqlstm ab model.yaml --a cpu-blas:packed --b cpu-blas:slices --batch 64\n"
                "  seqlstm ab model.yaml --a old.d/mine.so --b new.d/mine.so --max-regress 5% --json\n",
    .text = "Both sides have the same weights, batches and masks, and run steps in turn. A\n"
            "layer is compared only if both sides accept it; all other layers run on the\n"
            "same third backend on both sides, and the report names it. First, each\n"
            "compared layer of each side is checked against the reference. If a check\n"
            "fails, nothing is timed, and the exit status is 1. B / A above 1 means that B\n"
            "is slower. docs/ab-testing.md explains how the intervals are computed.\n",
    .flags = flags,
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = ab,
};
