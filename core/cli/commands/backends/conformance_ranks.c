/* SPDX-License-Identifier: Apache-2.0 */
/* See conformance_ranks.h. */
#include "cli/commands/backends/conformance_ranks.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/json_tree.h"
#include "cli/cli.h"
#include "conformance/collectives/kit.h"
#include "parallel/identity.h"
#include "registry/kind/elf.h"
#include "registry/search.h"
#include "session/record/collectives.h"

enum { RANKS_MOST = 64, RESULT_FILE = 3, LAUNCHER_WORDS = 24 };

struct state {
    struct cli_context *cli;
    struct sl_collectives_kit_request request;
    const char *cases[CLI_VALUES_MAX];
    const char *worker[24];
    const char *launcher[LAUNCHER_WORDS + 1];
    char *launcher_text;
    const char *file;
    json_t *results;
    int count, bad;
};

bool cli_find_collectives(const struct cli_context *cli, char **out_file)
{
    const char *said = cli->values.operands[0], **files;
    uint32_t count = 0;
    struct sl_arena arena = {0};
    struct sl_search search;
    *out_file = NULL;
    if (strcmp(said, sl_collectives_builtins[0].id) == 0)
        return true;
    char *path = realpath(said, NULL);
    bool found = path && sl_elf_check_plugin(path, &sl_collectives_kind, NULL) == SEQLSTM_OK;
    if (!path && !strchr(said, '/') && sl_search_init(&search, &arena, NULL, 0, false, NULL) == SEQLSTM_OK &&
        sl_search_find(&search, &arena, &sl_collectives_kind, said, &files, &count, NULL) == SEQLSTM_OK)
        found = count > 0;
    if (found)
        *out_file = path;
    else
        free(path);
    sl_arena_deinit(&arena);
    return found;
}

static void note_result(void *context, const struct sl_collectives_result *result)
{
    struct state *s = context;
    const bool bad = sl_verdict_is_bad(result->verdict);
    s->count++;
    s->bad += bad;
    if (bad || s->cli->verbosity > 0)
        cli_say(stderr, "%-6s %s%s%s\n", sl_verdict_name(result->verdict), result->name, result->detail[0] ? ": " : "",
                result->detail);
    s->results = sl_json_add(s->results, json_pack("{s:s,s:s,s:s,s:f}", "case", result->name, "verdict",
                                                   sl_verdict_name(result->verdict), "detail", result->detail,
                                                   "seconds", (double)result->took_ns * 1e-9));
    if (result->report[0] && !s->cli->json)
        cli_say(stdout, "all_reduce of float32 on %d rank%s\n%12s %14s %14s %8s\n%s", s->request.ranks,
                s->request.ranks == 1 ? "" : "s", "bytes", "us", "memcpy us", "ratio", result->report);
}

static int read_flags(struct state *s)
{
    static const char *const others[] = {"level",   "variant", "option",     "random", "claims",
                                         "seconds", "threads", "in-process", "junit",  "worker"};
    int64_t seed = 0, timeout = 120, ranks = 4;
    struct cli_context *cli = s->cli;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (cli_has(cli, others[k]))
            return cli_usage_error(cli, "`--%s` is for backends, and `%s` is a plugin for collectives", others[k],
                                   cli->values.operands[0]);
    if (!cli_get_int(cli, "seed", 0, INT64_MAX, &seed) || !cli_get_int(cli, "timeout", 1, 86400, &timeout) ||
        !cli_get_int(cli, "ranks", 2, RANKS_MOST, &ranks))
        return CLI_USAGE;
    s->request.seed = (uint64_t)seed;
    s->request.timeout_ns = timeout * INT64_C(1000000000);
    s->request.ranks = (int32_t)ranks;
    s->request.full = cli_has(cli, "full");
    s->request.times = cli_has(cli, "bench");
    for (int i = 0; i < cli->values.count; i++)
        if (strcmp(cli->values.items[i].flag->name, "case") == 0)
            s->cases[s->request.case_count++] = cli->values.items[i].value;
    s->request.cases = s->cases;
    s->request.connection = (struct sl_connection_request){.name = s->file,
                                                           .builtins = sl_collectives_builtins,
                                                           .builtin_count = 1,
                                                           .trust = cli_has(cli, "trust"),
                                                           .log = &cli->log,
                                                           .interrupt = cli->interrupt};
    s->request.on_result = note_result;
    s->request.context = s;
    return CLI_OK;
}

static const char *get_variable(const char *name)
{
    return getenv(name);
}

/* The number of a rank is an argument, or the launcher says it in the environment. */
static bool find_rank(const struct state *s, int64_t *out_rank)
{
    struct sl_rank_identity identity;
    if (!cli_has(s->cli, "results"))
        return cli_get_int(s->cli, "rank", 0, RANKS_MOST - 1, out_rank);
    if (!sl_rank_identity_find(get_variable, &identity) || identity.ranks != s->request.ranks)
        return false;
    *out_rank = identity.rank;
    return true;
}

static int be_rank(struct state *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t rank = 0;
    if (!find_rank(s, &rank) || !cli_has(s->cli, "job") || s->request.case_count != 1)
        return cli_usage_error(s->cli, "the launcher does not say which rank of %d this is", s->request.ranks);
    s->request.results = cli_get(s->cli, "results");
    const seqlstm_status status =
        sl_collectives_kit_work(&s->request, s->cases[0], (int32_t)rank, cli_get(s->cli, "job"), RESULT_FILE, &err);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(s->cli, status, &err);
}

/* The words of --launcher. */
static int split_launcher(struct state *s)
{
    char *rest = NULL;
    int n = 0;
    if (!cli_has(s->cli, "launcher"))
        return CLI_OK;
    s->launcher_text = strdup(cli_get(s->cli, "launcher"));
    if (!s->launcher_text)
        return cli_fail_memory(s->cli, "the launcher");
    for (char *word = strtok_r(s->launcher_text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (n == LAUNCHER_WORDS)
            return cli_usage_error(s->cli, "`--launcher` has more than %d words", LAUNCHER_WORDS);
        s->launcher[n++] = word;
    }
    if (n == 0)
        return cli_usage_error(s->cli, "`--launcher` is empty; give it a command such as \"mpirun\"");
    s->request.launcher = s->launcher;
    return CLI_OK;
}

/* The command of a rank; the flags that change a case are passed on. */
static void make_worker(struct state *s)
{
    static const char *const passed[][2] = {{"ranks", "--ranks"}, {"seed", "--seed"}, {"timeout", "--timeout"}};
    int n = 0;
    s->worker[n++] = "/proc/self/exe";
    s->worker[n++] = "conformance";
    s->worker[n++] = s->file;
    if (s->request.connection.trust)
        s->worker[n++] = "--trust";
    for (size_t k = 0; k < sizeof passed / sizeof *passed; k++)
        if (cli_has(s->cli, passed[k][0])) {
            s->worker[n++] = passed[k][1];
            s->worker[n++] = cli_get(s->cli, passed[k][0]);
        }
    s->request.worker = s->worker;
}

static int list(const struct cli_context *cli)
{
    struct sl_buf out = {0};
    for (const struct sl_trial_case *c = sl_trial_cases; c->name; c++)
        if (c->kind != SL_TRIAL_TIMES)
            sl_buf_printf(&out, "%s\n", c->name);
    const int code = cli_write_out(cli, &out);
    sl_buf_deinit(&out);
    return code;
}

/* Loads it once here, so that a plugin that does not load is one message. */
static int load(struct state *s)
{
    struct sl_arena arena = {0};
    struct sl_backend_record record;
    struct seqlstm_collectives table;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_collectives_load(&arena, &s->request.connection, &record, &table, &err);
    if (status == SEQLSTM_OK && record.status != SL_BACKEND_OK)
        status = seqlstm_error_set(&err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "%s: %.700s", s->file, record.reason);
    else if (status == SEQLSTM_OK && !s->cli->json)
        cli_say(stdout, "%s %s (%s)\n", record.id, record.version, record.build);
    sl_arena_deinit(&arena);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(s->cli, status, &err);
}

static int run(struct state *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int code = split_launcher(s);
    code = code == CLI_OK ? load(s) : code;
    if (code != CLI_OK)
        return code;
    make_worker(s);
    s->results = json_array();
    const seqlstm_status status = sl_collectives_kit_run(&s->request, &err);
    if (status == SEQLSTM_CANCELLED)
        code = 128 + sl_interrupt_get_stop(s->cli->interrupt);
    else if (status != SEQLSTM_OK)
        code = cli_fail(s->cli, status, &err);
    else if (s->cli->json)
        code =
            cli_write_json(s->cli, json_pack("{s:s,s:s,s:i,s:O}", "schema", "seqlstm.conformance-collectives/1",
                                             "plugin", s->file, "ranks", (int)s->request.ranks, "cases", s->results));
    else
        cli_say(stdout, "%d case%s on %d rank%s: %d passed, %d failed\n", s->count, s->count == 1 ? "" : "s",
                s->request.ranks, s->request.ranks == 1 ? "" : "s", s->count - s->bad, s->bad);
    json_decref(s->results);
    return code == CLI_OK && s->bad > 0 ? CLI_FAILURE : code;
}

int cli_conform_collectives(struct cli_context *cli, const char *file)
{
    struct state s = {.cli = cli, .file = file ? file : cli->values.operands[0]};
    int code = read_flags(&s);
    if (code == CLI_OK)
        code = cli_has(cli, "list")                              ? list(cli)
               : cli_has(cli, "rank") || cli_has(cli, "results") ? be_rank(&s)
                                                                 : run(&s);
    free(s.launcher_text);
    return code;
}
