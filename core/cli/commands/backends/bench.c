/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm bench */
#include <string.h>

#include "base/value/text.h"
#include "cli/cli.h"
#include "cli/commands/backends/bench_serve.h"
#include "compare/sample/sample.h"
#include "compare/sweep/sweep.h"

struct state {
    struct cli_context *cli;
    struct sl_sweep_request request;
    const char *backends[SL_SWEEP_BACKENDS_MOST];
};

/* Reads "1,2,4": increasing numbers from `low` to `high`. */
static int read_list(struct cli_context *cli, const char *flag, int64_t low, int64_t high, int32_t most, int64_t *out,
                     int32_t *out_count)
{
    const char *text = cli_get(cli, flag);
    for (const char *at = text; at && *at;) {
        size_t bytes = strcspn(at, ",");
        int64_t value;
        if (!sl_text_parse_int64(at, bytes, &value) || value < low || value > high || *out_count == most ||
            (*out_count > 0 && value <= out[*out_count - 1]))
            return cli_usage_error(cli,
                                   "`--%s %s`: expected increasing whole numbers separated by commas, as in "
                                   "1,2,4; at most %d numbers, each from %lld to %lld",
                                   flag, text, most, (long long)low, (long long)high);
        out[(*out_count)++] = value;
        at += bytes + (at[bytes] == ',');
    }
    return CLI_OK;
}

static void show_progress(void *context, int64_t batch)
{
    const struct state *s = context;
    if (s->cli->progress == CLI_PROGRESS_NONE || s->cli->verbosity < 0 || !s->cli->color)
        return;
    cli_clear_line();
    fprintf(stderr, "batch %lld", (long long)batch);
    cli_set_line();
}

static int read_flags(struct state *s)
{
    struct sl_sweep_request *r = &s->request;
    const struct cli_values *values = &s->cli->values;
    int64_t threads[SL_SWEEP_THREADS_MOST];
    const char *phase = cli_get(s->cli, "phase");
    for (int i = 0; i < values->count; i++) {
        if (strcmp(values->items[i].flag->name, "backend") != 0)
            continue;
        if (r->backend_count == SL_SWEEP_BACKENDS_MOST)
            return cli_usage_error(s->cli, "more than %d backends", SL_SWEEP_BACKENDS_MOST);
        s->backends[r->backend_count++] = values->items[i].value;
    }
    r->backends = s->backends;
    r->seconds = 30;
    r->phase = SL_PHASE_TRAIN;
    r->interrupt = s->cli->interrupt;
    r->on_progress = show_progress;
    r->context = s;
    if (phase && strcmp(phase, "infer") == 0)
        r->phase = SL_PHASE_PREDICT;
    else if (phase && strcmp(phase, "train") != 0)
        return cli_usage_error(s->cli, "`--phase %s`: expected train or infer", phase);
    if (!cli_get_float(s->cli, "seconds", 0.01, 86400, &r->seconds))
        return CLI_USAGE;
    int code =
        read_list(s->cli, "batch", 1, SL_SAMPLE_SEQUENCES_MOST, SL_SWEEP_BATCHES_MOST, r->batches, &r->batch_count);
    if (code == CLI_OK)
        code = read_list(s->cli, "threads", 1, SL_POOL_MEMBERS_MOST, SL_SWEEP_THREADS_MOST, threads, &r->thread_count);
    for (int32_t t = 0; code == CLI_OK && t < r->thread_count; t++)
        r->threads[t] = (int32_t)threads[t];
    return code;
}

static int write_html(struct state *s, const struct sl_sweep_report *report)
{
    const char *path = cli_get(s->cli, "html");
    struct sl_buf page = {0};
    if (!path)
        return CLI_OK;
    sl_sweep_print_html(report, &page);
    return cli_write_file(s->cli, path, &page);
}

static int report_result(struct state *s, const struct sl_sweep_report *report)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    seqlstm_status status = SEQLSTM_OK;
    cli_clear_line();
    if (s->cli->json)
        status = sl_sweep_print_json(report, &out, &err);
    else
        sl_sweep_print_table(report, &out);
    int code = status != SEQLSTM_OK ? cli_fail(s->cli, status, &err) : cli_write_out(s->cli, &out);
    if (code == CLI_OK)
        code = write_html(s, report);
    sl_buf_deinit(&out);
    return code == CLI_OK && report->failures > 0 ? CLI_FAILURE : code;
}

static int bench(struct cli_context *cli)
{
    struct state s = {.cli = cli};
    struct sl_session *session = NULL;
    struct sl_sweep_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (cli_get(cli, "serve"))
        return cli_bench_serve(cli);
    if (cli_get(cli, "load") || cli_get(cli, "connections") || cli_get(cli, "batching") || cli_has(cli, "no-pin") ||
        cli_get(cli, "requests"))
        return cli_usage_error(cli, "--load, --connections, --batching, --requests and --no-pin need --serve");
    int code = read_flags(&s);
    if (code == CLI_OK)
        code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    s.request.session = session;
    seqlstm_status status = sl_sweep_run(&s.request, &report, &err);
    code = status == SEQLSTM_OK ? report_result(&s, report) : cli_fail(cli, status, &err);
    sl_sweep_report_destroy(report);
    sl_session_close(session);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "batch", .argument = "LIST", .help = "batch sizes, such as 1,2,4 (default: powers of two up to 1024)"},
    {.name = "backend",
     .argument = "X",
     .repeats = true,
     .help = "id, ./file.so, id:variant, id,key=value or id,device=1; repeatable (default: all)"},
    {.name = "threads", .argument = "LIST", .help = "numbers of threads, such as 1,2 (default: 1 and all cores)"},
    {.name = "phase", .argument = "PHASE", .help = "what to time: train or infer (default train)"},
    {.name = "seconds", .argument = "S", .help = "approximate total time in seconds (default 30)"},
    {.name = "html", .argument = "FILE", .writes = true, .help = "also write an HTML page with a plot"},
    {.name = "serve", .argument = "URL", .help = "measure a server of the run instead: http://ADDRESS:PORT, or self"},
    {.name = "load", .argument = "LIST", .help = "requests per second, such as 100,200 (default: by what it reaches)"},
    {.name = "connections", .argument = "N", .help = "connections to the server, at most (default 256)"},
    {.name = "batching",
     .argument = "WAY",
     .help = "of --serve self: steps, or padded to compare with (default steps)"},
    {.name = "requests",
     .argument = "FILE",
     .writes = true,
     .help = "of --serve: also write each request, and of self each batch, as CSV"},
    {.name = "no-pin", .help = "of --serve self: workers keep no processor, as of seqlstm serve"},
    CLI_FLAG_BACKEND_PATH,
    CLI_FLAG_TRUST,
    {0},
};

const struct cli_command cli_command_bench = {
    .name = "bench",
    .summary = "report which backend is fastest at each batch size",
    .usage = "model.yaml|RUN [flags]",
    .examples = "  seqlstm bench model.yaml\n"
                "  seqlstm bench model.yaml --batch 1,8,64,512 --phase infer --html bench.html\n"
                "  seqlstm bench model.yaml --backend cpu-blas --backend ./mine.so,tile=64 --threads 1,2 --json\n"
                "  seqlstm bench RUN --serve self --html latency.html\n",
    .text = "Times whole steps with your model and data. The candidates take turns at each\n"
            "batch size. If a batch is larger than the data, sequences are repeated. A\n"
            "candidate whose results differ from the reference is not timed, and the exit\n"
            "status is 1. `*` marks the fastest candidate; if two are within 3 %, the\n"
            "winner of the previous size stays.\n"
            "With --serve: how many requests a server answers in a second when each\n"
            "connection waits for its answer, and how long answers take when requests\n"
            "arrive at random times. Their lengths are those of the test or training data.\n"
            "`no server` is the rate at which one thread computes the same requests.\n",
    .flags = flags,
    .takes_model_flags = true,
    .use = SL_RUN_USE_BENCH,
    .operands_min = 1,
    .operands_max = 1,
    .run = bench,
};
