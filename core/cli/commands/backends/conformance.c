/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm conformance */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/cli.h"
#include "cli/commands/backends/conformance_ranks.h"
#include "registry/search.h"
#include "conformance/conformance.h"
#include "conformance/workers.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const char *const ranks_only[] = {"ranks", "rank", "job", "launcher", "results"};

enum { CASES_MAX = CLI_VALUES_MAX, WORKER_ARGUMENTS = 16 + 2 * SL_BACKEND_SETTINGS_MOST };

struct state {
    struct cli_context *cli;
    struct sl_conformance_request request;
    struct sl_arena arena;
    const char *cases[CASES_MAX];
    const char *worker[WORKER_ARGUMENTS];
    struct seqlstm_setting settings[SL_BACKEND_SETTINGS_MOST];
    const char *setting_texts[SL_BACKEND_SETTINGS_MOST];
    const char *name;           /* as the user gave it, for the command that reruns a case */
    struct sl_case_time *times; /* --bench */
    uint32_t time_count;
    int64_t threads;
    double seconds; /* for each case */
};

static void print_result(void *context, const struct sl_conformance_result *r)
{
    const struct state *s = context;
    enum sl_verdict v = r->check.verdict;
    bool bad = sl_verdict_is_bad(v);
    if (!bad && s->cli->verbosity < 1)
        return;
    cli_say(stderr, "%-11s %s%s%s\n", sl_verdict_name(v), r->name, r->check.detail[0] ? ": " : "", r->check.detail);
    if (bad && strncmp(r->name, "load:", 5) != 0 && strncmp(r->name, "contract:", 9) != 0 &&
        strncmp(r->name, "claims:", 7) != 0)
        cli_say(stderr, "            rerun: seqlstm conformance %s --case '%s'%s%s --in-process\n", s->name, r->name,
                r->check.variant[0] ? " --variant " : "", r->check.variant);
}

/* --option KEY=VALUE */
static int read_option(struct state *s, const char *text)
{
    const char *equals = strchr(text, '=');
    uint32_t n = s->request.setting_count;
    if (!equals || equals == text || n == SL_BACKEND_SETTINGS_MOST)
        return cli_usage_error(s->cli, "`--option %s`: expected KEY=VALUE, at most %d of them", text,
                               SL_BACKEND_SETTINGS_MOST);
    s->settings[n].key = sl_arena_strndup(&s->arena, text, (size_t)(equals - text));
    s->settings[n].value = equals + 1;
    if (!s->settings[n].key)
        return cli_fail_memory(s->cli, "the options");
    s->setting_texts[n] = text;
    s->request.settings = s->settings;
    s->request.setting_count++;
    return CLI_OK;
}

static int read_lists(struct state *s)
{
    const struct cli_values *values = &s->cli->values;
    for (int i = 0; i < values->count; i++) {
        if (strcmp(values->items[i].flag->name, "case") == 0)
            s->cases[s->request.case_count++] = values->items[i].value;
        if (strcmp(values->items[i].flag->name, "option") == 0) {
            int code = read_option(s, values->items[i].value);
            if (code != CLI_OK)
                return code;
        }
        if (strcmp(values->items[i].flag->name, "level") != 0)
            continue;
        enum sl_level level = sl_level_find(values->items[i].value);
        if (level == SL_LEVEL_COUNT)
            return cli_usage_error(s->cli,
                                   "`--level %s`: expected load, contract, claims, forward, backward, memory or "
                                   "threads",
                                   values->items[i].value);
        s->request.levels |= 1u << level;
    }
    s->request.cases = s->cases;
    return CLI_OK;
}

/* Finds the backend: a file, the built-in reference, or an id that is searched for. */
static int find_file(struct state *s)
{
    const char *said = s->cli->values.operands[0], **files;
    uint32_t count;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_search search;
    s->name = said;
    s->request.file = said;
    if (strcmp(said, "reference") == 0)
        return CLI_OK;
    char *path = realpath(said, NULL);
    if (path) {
        s->request.file = sl_arena_strdup(&s->arena, path);
        free(path);
        return s->request.file ? CLI_OK : cli_fail_memory(s->cli, "the path of the plugin");
    }
    if (strchr(said, '/'))
        return cli_usage_error(s->cli, "no such file: `%s`", said);
    seqlstm_status rc = sl_search_init(&search, &s->arena, NULL, 0, false, &err);
    if (rc == SEQLSTM_OK)
        rc = sl_search_find(&search, &s->arena, &sl_backend_kind, said, &files, &count, &err);
    if (rc != SEQLSTM_OK)
        return cli_fail(s->cli, rc, &err);
    if (count == 0) {
        cli_usage_error(s->cli,
                        "no such file or backend: `%s`\n  = help: `seqlstm backends -v` shows the folders "
                        "that were searched",
                        said);
        return CLI_MISSING;
    }
    s->request.file = files[0];
    return CLI_OK;
}

static int read_claims(struct state *s)
{
    const char *path = cli_get(s->cli, "claims");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_claim *claims;
    char *text;
    if (!path)
        return CLI_OK;
    seqlstm_status rc = sl_file_read(path, 1 << 20, &text, NULL, &err);
    if (rc != SEQLSTM_OK)
        return cli_fail(s->cli, rc, &err);
    rc = sl_claims_parse(&s->arena, text, &claims, &s->request.claim_count, &err);
    free(text);
    if (rc == SEQLSTM_NO_MEMORY)
        return cli_fail(s->cli, rc, &err);
    if (rc != SEQLSTM_OK)
        return cli_usage_error(s->cli, "%s: %s", path, err.message);
    s->request.claims = claims;
    return CLI_OK;
}

static int prepare(struct state *s)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    struct sl_conformance_request *request = &s->request;
    int64_t seed = 0, timeout = 60, random = 0;
    if (!cli_get_int(s->cli, "seed", 0, INT64_MAX, &seed) || !cli_get_int(s->cli, "timeout", 1, 86400, &timeout) ||
        !cli_get_int(s->cli, "random", 0, 100000000, &random))
        return CLI_USAGE;
    s->seconds = 1;
    if (!cli_get_int(s->cli, "threads", 1, SL_POOL_MEMBERS_MOST, &s->threads) ||
        !cli_get_float(s->cli, "seconds", 0.01, 3600, &s->seconds))
        return CLI_USAGE;
    if (!cli_has(s->cli, "bench") && (cli_has(s->cli, "seconds") || cli_has(s->cli, "threads")))
        return cli_usage_error(s->cli, "`--seconds` and `--threads` need `--bench`");
    request->random = (uint32_t)random;
    request->builtins = builtins;
    request->builtin_count = 1;
    request->reference = seqlstm_reference_query_v0;
    request->trust = cli_has(s->cli, "trust");
    request->variant = cli_get(s->cli, "variant");
    request->full = cli_has(s->cli, "full");
    request->seed = (uint64_t)seed;
    request->timeout_ns = timeout * INT64_C(1000000000);
    request->log = &s->cli->log;
    request->interrupt = s->cli->interrupt;
    request->on_result = print_result;
    request->context = s;
    int code = read_lists(s);
    if (cli_has(s->cli, "bench") && request->case_count == 0) {
        request->cases = sl_case_bench_usual;
        while (sl_case_bench_usual[request->case_count])
            request->case_count++;
    }
    if (code == CLI_OK)
        code = read_claims(s);
    return code == CLI_OK ? find_file(s) : code;
}

/* The command line of a worker: the file, how to check it, and the seed. */
static void make_worker(struct state *s)
{
    int n = 0;
    const char *seed = cli_get(s->cli, "seed");
    s->worker[n++] = "/proc/self/exe";
    s->worker[n++] = "conformance";
    s->worker[n++] = s->request.file;
    s->worker[n++] = "--worker";
    if (s->request.trust)
        s->worker[n++] = "--trust";
    if (s->request.variant) {
        s->worker[n++] = "--variant";
        s->worker[n++] = s->request.variant;
    }
    if (seed) {
        s->worker[n++] = "--seed";
        s->worker[n++] = seed;
    }
    for (uint32_t i = 0; i < s->request.setting_count; i++) {
        s->worker[n++] = "--option";
        s->worker[n++] = s->setting_texts[i];
    }
    s->request.worker = s->worker;
}

/* One line per level. The columns for claims appear only if they are not empty. */
static void print_summary(const struct sl_conformance_report *report, struct sl_buf *out)
{
    const struct sl_backend_record *record = sl_conformance_report_get_record(report);
    sl_buf_printf(out, "%s %s on %s (%s)\n\n%-10s", record->id, record->version, record->devices[0].name,
                  record->devices[0].device_class, "level");
    for (int v = 0; v < SL_VERDICT_COUNT; v++)
        if (v <= SL_VERDICT_UNSUPPORTED || sl_conformance_report_get_count(report, (enum sl_verdict)v) > 0)
            sl_buf_printf(out, " %11s", sl_verdict_name((enum sl_verdict)v));
    sl_buf_append_char(out, '\n');
    for (int level = 0; level < SL_LEVEL_COUNT; level++) {
        uint32_t count[SL_VERDICT_COUNT] = {0}, all = 0;
        for (uint32_t i = 0; i < sl_conformance_report_get_size(report); i++) {
            const struct sl_conformance_result *r = sl_conformance_report_get(report, i);
            if (r->level == (enum sl_level)level) {
                count[r->check.verdict]++;
                all++;
            }
        }
        if (all == 0)
            continue;
        sl_buf_printf(out, "%-10s", sl_level_name((enum sl_level)level));
        for (int v = 0; v < SL_VERDICT_COUNT; v++)
            if (v <= SL_VERDICT_UNSUPPORTED || sl_conformance_report_get_count(report, (enum sl_verdict)v) > 0)
                sl_buf_printf(out, " %11u", count[v]);
        sl_buf_append_char(out, '\n');
    }
}

/* ---- --bench ---- */

static seqlstm_status keep_time(void *context, const struct sl_case_time *time, struct seqlstm_error *err)
{
    struct state *s = context;
    struct sl_case_time *more = realloc(s->times, (s->time_count + 1) * sizeof *more);
    if (more == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times");
    s->times = more;
    s->times[s->time_count++] = *time;
    return SEQLSTM_OK;
}

/* Times the cases that passed. */
static int bench(struct state *s, struct sl_conformance_report *report)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint32_t size = sl_conformance_report_get_size(report), count = 0;
    const char **names = sl_arena_alloc_array(&s->arena, (size_t)size + 1, sizeof *names);
    for (uint32_t i = 0; names && i < size; i++) {
        const struct sl_conformance_result *r = sl_conformance_report_get(report, i);
        struct sl_case c;
        if (r->check.verdict == SL_VERDICT_PASS && sl_case_parse(r->name, &c, NULL) == SEQLSTM_OK &&
            c.pass <= SL_PASS_BACKWARD)
            names[count++] = r->name;
    }
    const struct sl_conformance_request *from = &s->request;
    struct sl_case_bench_request request = {
        .backend = {.name = from->file, .settings = from->settings, .setting_count = from->setting_count},
        .trust = from->trust,
        .builtins = from->builtins,
        .builtin_count = from->builtin_count,
        .cases = names,
        .case_count = count,
        .variant = from->variant,
        .threads = (int32_t)s->threads,
        .seconds = s->seconds,
        .seed = from->seed,
        .log = from->log,
        .interrupt = from->interrupt,
        .on_time = keep_time,
        .context = s};
    seqlstm_status rc = names
                            ? sl_case_bench_run(&request, &err)
                            : seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the cases");
    sl_conformance_report_set_times(report, s->times, s->time_count);
    return rc == SEQLSTM_OK ? CLI_OK : cli_fail(s->cli, rc, &err);
}

static void print_times(const struct state *s, struct sl_buf *out)
{
    sl_buf_printf(out, "\n%-46s %-12s %11s %7s %9s %6s  %s\n", "case", "variant", "median us", "spread", "GFLOP/s",
                  "peak", "relative to the first variant");
    for (uint32_t i = 0; i < s->time_count; i++) {
        const struct sl_case_time *t = &s->times[i];
        sl_buf_printf(out, "%-46s %-12s %11.1f %6.0f%% %9.1f %5.0f%%", t->name, t->variant, t->median_ns * 1e-3,
                      100 * t->spread, t->gflops, 100 * t->fraction);
        if (i > 0 && strcmp(s->times[i - 1].name, t->name) == 0)
            sl_buf_printf(out, "  %.2f (%.2f to %.2f)", t->interval.ratio, t->interval.low, t->interval.high);
        sl_buf_append_char(out, '\n');
    }
}

static int finish(struct state *s, const struct sl_conformance_report *report)
{
    uint32_t bad = sl_conformance_report_count_bad(report);
    struct sl_buf out = {0};
    if (s->cli->json)
        sl_conformance_report_print_json(report, &out);
    else if (cli_has(s->cli, "junit"))
        sl_conformance_report_print_junit(report, &out);
    else
        print_summary(report, &out);
    if (s->time_count && !s->cli->json && !cli_has(s->cli, "junit"))
        print_times(s, &out);
    const int written = cli_write_out(s->cli, &out);
    sl_buf_deinit(&out);
    if (sl_conformance_report_get_size(report) == 0)
        return cli_usage_error(s->cli, "no case was selected\n  = help: `--list` prints the names of all cases");
    if (bad || written != CLI_OK)
        return written != CLI_OK ? written : CLI_FAILURE;
    const char *untested = s->request.variant ? sl_conformance_report_find_untested(report) : NULL;
    return untested ? cli_usage_error(s->cli, "`--variant %s`: no case ran: %s", s->request.variant, untested) : CLI_OK;
}

static int list(struct state *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    seqlstm_status rc = sl_conformance_list(&s->request, &out, &err);
    int code = rc != SEQLSTM_OK ? cli_fail(s->cli, rc, &err) : cli_write_out(s->cli, &out);
    sl_buf_deinit(&out);
    return code;
}

static int run(struct state *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report;
    if (cli_has(s->cli, "worker")) {
        if (fcntl(SL_WORKER_IN, F_GETFD) < 0 || fcntl(SL_WORKER_OUT, F_GETFD) < 0)
            return cli_usage_error(s->cli, "`--worker` is for a process that `conformance` starts, and its pipes are "
                                           "closed\n  = help: leave the flag out");
        seqlstm_status rc = sl_conformance_work(&s->request, SL_WORKER_IN, SL_WORKER_OUT, &err);
        if (rc == SEQLSTM_OK)
            cli_exit(CLI_OK); /* as any program ends, so that what the plugin registered for the end shows */
        return cli_fail(s->cli, rc, &err);
    }
    if (cli_has(s->cli, "list"))
        return list(s);
    if (!cli_has(s->cli, "in-process"))
        make_worker(s);
    seqlstm_status rc = sl_conformance_run(&s->request, &report, &err);
    if (rc == SEQLSTM_CANCELLED)
        return 128 + sl_interrupt_get_stop(s->cli->interrupt);
    if (rc != SEQLSTM_OK) {
        cli_fail(s->cli, rc, &err);
        return rc == SEQLSTM_NO_MEMORY ? CLI_NO_MEMORY : rc == SEQLSTM_INVALID_ARGUMENT ? CLI_FAILURE : CLI_MISSING;
    }
    int code = cli_has(s->cli, "bench") ? bench(s, report) : CLI_OK;
    int finished = finish(s, report);
    sl_conformance_report_destroy(report);
    return code == CLI_OK ? finished : code;
}

static int conformance(struct cli_context *cli)
{
    char *file;
    if (cli_find_collectives(cli, &file)) {
        const int status = cli_conform_collectives(cli, file);
        free(file);
        return status;
    }
    for (size_t k = 0; k < sizeof ranks_only / sizeof *ranks_only; k++)
        if (cli_has(cli, ranks_only[k]))
            return cli_usage_error(cli, "`--%s` is for plugins for collectives, such as comm-shm", ranks_only[k]);
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return cli_fail_memory(cli, "the cases");
    s->cli = cli;
    int code = prepare(s);
    if (code == CLI_OK)
        code = run(s);
    sl_arena_deinit(&s->arena);
    free(s->times);
    free(s);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "ranks", .argument = "N", .help = "for collectives: number of ranks, 2 to 64 (default 4)"},
    {.name = "rank", .argument = "N", .help = "internal: be this rank of a case"},
    {.name = "job", .argument = "NAME", .help = "internal: the job of a case"},
    {.name = "launcher",
     .argument = "COMMAND",
     .help = "for collectives: the command that starts the ranks, such as mpirun; `-n N` is added"},
    {.name = "results", .argument = "DIR", .help = "internal: where a rank of a launcher writes its result"},
    {.name = "level",
     .argument = "NAME",
     .words = "load contract claims forward backward memory threads",
     .repeats = true,
     .help = "load, contract, claims, forward, backward, memory or threads; repeatable (default: all)"},
    {.name = "case",
     .argument = "NAME",
     .repeats = true,
     .help = "only this case, or all that match a pattern with * and ?; repeatable"},
    {.name = "variant", .argument = "NAME", .help = "only this variant of the backend"},
    {.name = "option",
     .argument = "KEY=VALUE",
     .repeats = true,
     .help = "set an option of the backend, as in the model file; repeatable"},
    {.name = "full", .help = "test every option at every shape; takes minutes instead of seconds"},
    {.name = "random", .argument = "N", .help = "test N random cases instead of the catalogue; --seed selects them"},
    {.name = "claims",
     .argument = "FILE",
     .help = "file with the author's claims, one per line: claim, unsupported or xfail"},
    {.name = "seed", .argument = "N", .help = "random seed of the data (default 0)"},
    {.name = "timeout", .argument = "S", .help = "CPU seconds that one case may take (default 60)"},
    {.name = "bench",
     .help = "also time all variants, on the cases that pass (without --case: on a few typical cases)"},
    {.name = "seconds", .argument = "S", .help = "with --bench: seconds per case (default 1)"},
    {.name = "threads", .argument = "N", .help = "with --bench: number of CPU threads (default: all cores)"},
    {.name = "in-process", .help = "run the cases in this process, for a debugger"},
    {.name = "list", .help = "print the names of the cases; load nothing"},
    {.name = "junit", .help = "write JUnit XML to stdout"},
    {.name = "trust", .env = "SEQLSTM_TRUST", .help = "load the file without checking owner and permissions"},
    {.name = "worker", .help = "internal: run cases for another conformance process"},
    {0},
};

const struct cli_command cli_command_conformance = {
    .name = "conformance",
    .summary = "test one backend against the float64 reference, or one plugin for collectives",
    .usage = "FILE.so|ID [flags]",
    .examples = "  seqlstm conformance ./libseqlstm_backend_mine.so\n"
                "  seqlstm conformance cpu-blas --level backward --full\n"
                "  seqlstm conformance cpu-blas --case 'lstm:bwd:*recurrent_dropout*' -v\n"
                "  seqlstm conformance ./libseqlstm_backend_mine.so --bench\n"
                "  seqlstm conformance comm-shm --ranks 4\n",
    .text = "Each case is named by a string such as\n"
            "lstm:bwd:T37B5I16H33L2D2:f32:ragged:recurrent_dropout. It runs in a worker\n"
            "process, so a crash or a hang affects only one case. `unsupported` is an\n"
            "answer, not a failure. The exit status is 1 if a case failed or crashed, and 3\n"
            "if the backend does not load. A plugin for collectives is tested on ranks, which\n"
            "are processes that are started for each case.\n",
    .flags = flags,
    .operands_min = 1,
    .operands_max = 1,
    .run = conformance,
};
