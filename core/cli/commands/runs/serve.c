/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm serve: predictions over HTTP. */
#include <stdlib.h>
#include <string.h>

#include "base/system/cpu.h"
#include "base/system/file.h"
#include "cli/cli.h"
#include "cli/commands/runs/batching.h"
#include "serve/http/access.h"
#include "serve/server.h"

enum { RUNS_MOST = 64, TOKENS_MOST = 256, TOKEN_FILE_BYTES = 1 << 20, TOKEN_BYTES_LEAST = 16, PORT = 8000 };

struct serving {
    struct sl_session *sessions[RUNS_MOST];
    char *names[RUNS_MOST];
    int count;
    char *token_text; /* of --token-file, cut at its line ends */
    const char *tokens[TOKENS_MOST + 1];
};

/* ---- flags ------------------------------------------------------------------------------------------------- */

/* One token a line; blanks around it, empty lines and lines with # are left out. */
static int cut_tokens(struct cli_context *cli, struct serving *serving, const char *path)
{
    int count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(serving->token_text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        line += strspn(line, " \t");
        line[strcspn(line, " \t")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (count == TOKENS_MOST)
            return cli_usage_error(cli, "%s holds more than %d tokens", path, TOKENS_MOST);
        if (strlen(line) < TOKEN_BYTES_LEAST)
            return cli_usage_error(cli,
                                   "a token in %s is shorter than %d characters\n  = help: `openssl rand -hex 32` "
                                   "makes a good one",
                                   path, TOKEN_BYTES_LEAST);
        serving->tokens[count++] = line;
    }
    return count > 0 ? CLI_OK : cli_usage_error(cli, "%s holds no token\n  = help: one in each line", path);
}

static int read_tokens(struct cli_context *cli, struct serving *serving)
{
    const char *path = cli_get(cli, "token-file");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (path == NULL)
        return CLI_OK;
    seqlstm_status status = sl_file_read(path, TOKEN_FILE_BYTES, &serving->token_text, NULL, &err);
    return status == SEQLSTM_OK ? cut_tokens(cli, serving, path) : cli_fail(cli, status, &err);
}

/* Without a token, all that can reach the address could ask. */
static int check_access(struct cli_context *cli, const struct sl_server_request *request)
{
    if (cli_has(cli, "no-auth") && request->tokens)
        return cli_usage_error(cli, "--no-auth and --token-file exclude each other");
    if (sl_access_is_loopback(request->address) || request->tokens || cli_has(cli, "no-auth"))
        return CLI_OK;
    return cli_usage_error(cli,
                           "`--listen %s` can be reached from other machines\n  = help: --token-file FILE says who may "
                           "ask; --no-auth answers without one",
                           request->address);
}

static int read_computing(struct cli_context *cli, struct sl_server_request *request)
{
    request->reproducible = cli_has(cli, "reproducible");
    const int code = cli_read_batching(cli, &request->batching);
    if (code != CLI_OK)
        return code;
    if (request->batching == SL_BATCHING_PADDED && (request->reproducible || request->target_ns > 0))
        return cli_usage_error(cli, "--batching padded excludes --%s",
                               request->reproducible ? "reproducible" : "target-p99");
    if (request->reproducible && request->target_ns > 0)
        return cli_usage_error(cli, "--reproducible and --target-p99 exclude each other: batches that follow the "
                                    "clock would have other bits");
    return CLI_OK;
}

static int read_flags(struct cli_context *cli, struct serving *serving, struct sl_server_request *request)
{
    int64_t port = PORT, workers = 0, megabytes = 16, threads = 1, idle = 60;
    double target = 0;
    const char *said = cli_get(cli, "threads");
    if (!cli_get_int(cli, "port", 0, 65535, &port) ||
        !cli_get_int(cli, "workers", 1, SL_SERVER_WORKERS_MOST, &workers) ||
        !cli_get_int(cli, "queue", 1, 1 << 20, &request->queue) || !cli_get_int(cli, "max-body", 1, 1024, &megabytes) ||
        !cli_get_int(cli, "max-steps", 1, 1 << 24, &request->steps) ||
        !cli_get_int(cli, "max-batch", 1, 1 << 16, &request->sequences) ||
        !cli_get_int(cli, "max-streams", 1, 1 << 30, &request->streams) ||
        !cli_get_int(cli, "stream-idle", 1, 1 << 30, &idle) || !cli_get_float(cli, "target-p99", 0.01, 1e6, &target) ||
        (said && strcmp(said, "auto") != 0 && !cli_get_int(cli, "threads", 1, 1024, &threads)))
        return CLI_USAGE;
    request->port = (uint16_t)port;
    request->threads = (int32_t)threads;
    request->workers = workers > 0 ? (int)workers : (sl_cpu_count() > 1 ? sl_cpu_count() - 1 : 1);
    request->body_bytes = megabytes << 20;
    request->stream_idle_ns = idle * 1000000000;
    request->target_ns = (int64_t)(target * 1e6);
    request->roams = cli_has(cli, "no-pin");
    if (cli_get(cli, "listen"))
        request->address = cli_get(cli, "listen");
    if (request->roams && request->threads > 1)
        return cli_usage_error(cli, "--no-pin is for workers of one thread: those of `--threads %d` keep no processor",
                               (int)request->threads);
    int code = read_tokens(cli, serving);
    request->tokens = serving->token_text ? serving->tokens : NULL;
    if (code == CLI_OK)
        code = read_computing(cli, request);
    return code == CLI_OK ? check_access(cli, request) : code;
}

/* ---- runs -------------------------------------------------------------------------------------------------- */

/* `NAME=RUN`, or RUN, which has the name of its model. */
static int open_run(struct cli_context *cli, struct serving *serving, const char *operand)
{
    const char *equals = strchr(operand, '=');
    const size_t bytes = equals ? (size_t)(equals - operand) : 0;
    int code = cli_open_run(cli, equals ? equals + 1 : operand, &serving->sessions[serving->count++]);
    if (code != CLI_OK)
        return code;
    const int k = serving->count - 1;
    const char *name = sl_session_get_model(serving->sessions[k])->name;
    serving->names[k] = equals ? strndup(operand, bytes) : strdup(name);
    if (serving->names[k] == NULL)
        return cli_fail_memory(cli, "the names of runs");
    for (int other = 0; other < k; other++)
        if (strcmp(serving->names[other], serving->names[k]) == 0)
            return cli_usage_error(cli, "two runs have the name `%s`\n  = help: NAME=RUN gives one another name",
                                   serving->names[k]);
    return CLI_OK;
}

/* ---- newer weights ----------------------------------------------------------------------------------------- */

/* A session that was opened again, with findings of its own. */
struct again {
    struct sl_session *session;
    struct sl_diagnostics *diagnostics;
    struct again *next;
};

struct following {
    struct cli_context *cli;
    struct again *first;
};

static void close_again(void *context, struct sl_session *session)
{
    struct following *following = context;
    struct again **at = &following->first;
    while ((*at)->session != session)
        at = &(*at)->next;
    struct again *again = *at;
    *at = again->next;
    sl_session_close(session);
    sl_diagnostics_destroy(again->diagnostics);
    free(again);
}

static seqlstm_status reopen(void *context, const struct sl_session *session, struct sl_session **out_session,
                             struct seqlstm_error *err)
{
    struct following *following = context;
    struct again *again = calloc(1, sizeof *again);
    if (again == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a session");
    seqlstm_status status = sl_diagnostics_create(&again->diagnostics, err);
    if (status == SEQLSTM_OK)
        status = sl_session_open_run(sl_session_get_folder(session), &following->cli->options, again->diagnostics,
                                     &again->session, err);
    if (status != SEQLSTM_OK) {
        sl_diagnostics_destroy(again->diagnostics);
        free(again);
        return status;
    }
    again->next = following->first;
    following->first = again;
    *out_session = again->session;
    return SEQLSTM_OK;
}

static void tell(void *context, const char *text)
{
    const struct following *following = context;
    cli_note(following->cli, "%s", text);
}

static int run_server(struct cli_context *cli, const struct sl_server_request *request)
{
    struct sl_server *server = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    cli_save_on_signals();
    seqlstm_status status = sl_server_open(request, &server, &err);
    if (status == SEQLSTM_OK) {
        const bool six = strchr(request->address, ':') != NULL;
        cli_note(cli, "serving on http://%s%s%s:%d/; Ctrl-C ends it", six ? "[" : "", request->address, six ? "]" : "",
                 sl_server_get_port(server));
        status = sl_server_run(server, &err);
    }
    sl_server_close(server);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
}

static int serve(struct cli_context *cli)
{
    struct serving serving = {.count = 0};
    struct following following = {.cli = cli};
    struct sl_server_request request = {
        .address = "127.0.0.1", .queue = 1024, .streams = 10000, .interrupt = cli->interrupt};
    if (cli_has(cli, "follow")) {
        request.reopen = reopen;
        request.close = close_again;
        request.tell = tell;
        request.follow_context = &following;
    }
    int code = read_flags(cli, &serving, &request);
    if (code == CLI_OK)
        for (int k = 0; k < cli->values.operand_count && code == CLI_OK; k++)
            code = open_run(cli, &serving, cli->values.operands[k]);
    request.sessions = serving.sessions;
    request.names = (const char *const *)serving.names;
    request.count = serving.count;
    if (code == CLI_OK)
        code = run_server(cli, &request);
    for (int k = 0; k < serving.count; k++) {
        sl_session_close(serving.sessions[k]);
        free(serving.names[k]);
    }
    free(serving.token_text);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "port", .letter = 'p', .argument = "N", .help = "port to listen on; 0: a free one (default 8000)"},
    {.name = "listen", .argument = "ADDRESS", .help = "address to listen on (default 127.0.0.1: this machine only)"},
    {.name = "token-file", .argument = "FILE", .help = "only requests with a token of this file are answered"},
    {.name = "no-auth", .help = "answer without a token"},
    {.name = "workers", .argument = "N", .help = "threads that compute (default: one less than the processors)"},
    {.name = "no-pin", .help = "workers keep no processor (default: they do where they need all but one)"},
    {.name = "queue", .argument = "N", .help = "requests that may wait; more are answered with 429 (default 1024)"},
    {.name = "max-batch", .argument = "N", .help = "sequences that are computed together (default 64)"},
    {.name = "max-steps",
     .argument = "N",
     .help = "steps of a sequence (default: the longest in training, at least 256; 4096 of a text)"},
    {.name = "target-p99",
     .argument = "MS",
     .help = "latency that 99 of 100 requests keep: batches take at most an eighth of it"},
    {.name = "batching",
     .argument = "WAY",
     .help = "steps: sequences join and leave at any step; padded: to compare with (default steps)"},
    {.name = "reproducible",
     .help = "each sequence is computed by itself, so answers have the same bits under any load"},
    {.name = "follow", .help = "take over newer checkpoints of the runs as they are written"},
    {.name = "max-streams", .argument = "N", .help = "streams that may be open (default 10000)"},
    {.name = "stream-idle", .argument = "S", .help = "seconds after which an unused stream ends (default 60)"},
    {.name = "max-body", .argument = "MB", .help = "size of a request (default 16)"},
    {0},
};

const struct cli_command cli_command_serve = {
    .name = "serve",
    .has_no_json = true,
    .summary = "serve the predictions of runs over HTTP",
    .usage = "RUN... [flags]",
    .examples = "  seqlstm serve sentiment\n"
                "  seqlstm serve small=ptb-small/001 large=ptb-small/002 --port 9000\n"
                "  seqlstm serve sentiment tagger --listen 0.0.0.0 --token-file tokens\n",
    .text = "RUN may be NAME=RUN; else its name is that of its model.\n"
            "Speaks the Open Inference Protocol, version 2: POST /v2/models/NAME/infer.\n"
            "Language models continue texts: POST /v1/completions.\n"
            "Requests are computed together, whatever the lengths of their sequences.\n"
            "/metrics is for Prometheus, / a status page.\n"
            "SIGTERM answers what was accepted, and ends.\n",
    .flags = flags,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_SERVE,
    .operands_min = 1,
    .operands_max = 64,
    .run = serve,
};
