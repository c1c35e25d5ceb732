/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_serve.h. */
#include "cli/commands/backends/bench_serve.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/cpu.h"
#include "base/system/interrupt.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "cli/commands/runs/batching.h"
#include "serve/compute/offline.h"
#include "serve/load/curve.h"
#include "serve/load/history.h"
#include "serve/server.h"

enum { BODIES = 512, ADDRESS_BYTES = 64, CONNECTIONS = 256, QUEUE = 1024, BODY_BYTES = 64 << 20 };

struct served {
    struct sl_server *server; /* NULL: it is another process */
    struct sl_interrupt interrupt;
    pthread_t thread;
    seqlstm_status status; /* of its run */
    struct seqlstm_error err;
    char address[ADDRESS_BYTES];
    uint16_t port;
    cpu_set_t processors; /* of the generator, before the server in the same process took some */
};

/* "http://127.0.0.1:8000", with or without a slash at its end. */
static int read_url(struct cli_context *cli, const char *url, struct served *served)
{
    static const char scheme[] = "http://";
    const char *at = strncmp(url, scheme, sizeof scheme - 1) == 0 ? url + sizeof scheme - 1 : url;
    const char *colon = strrchr(at, ':');
    char *end = NULL;
    const long port = colon ? strtol(colon + 1, &end, 10) : 0;
    const bool bracket = colon && at[0] == '[' && colon[-1] == ']';
    const size_t bytes = colon ? (size_t)(colon - at) - (bracket ? 2 : 0) : 0;
    if (colon == NULL || port < 1 || port > 65535 || (*end && strcmp(end, "/") != 0) || bytes >= ADDRESS_BYTES)
        return cli_usage_error(cli, "`--serve %s`: expected `self`, or an address such as http://127.0.0.1:8000", url);
    memcpy(served->address, at + bracket, bytes);
    served->address[bytes] = '\0';
    if (strcmp(served->address, "localhost") == 0)
        strcpy(served->address, "127.0.0.1");
    served->port = (uint16_t)port;
    return CLI_OK;
}

static void *serve(void *context)
{
    struct served *served = context;
    served->status = sl_server_run(served->server, &served->err);
    return NULL;
}

/* A server in this process. */
static int start(struct cli_context *cli, struct sl_session *session, const char *name, enum sl_serve_batching batching,
                 struct sl_history *history, struct served *served)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_server_request request = {.sessions = &session,
                                              .names = &name,
                                              .count = 1,
                                              .address = "127.0.0.1",
                                              .workers = sl_cpu_count() > 1 ? sl_cpu_count() - 1 : 1,
                                              .threads = 1,
                                              .roams = cli_has(cli, "no-pin"),
                                              .batching = batching,
                                              .history = history,
                                              .queue = QUEUE,
                                              .body_bytes = BODY_BYTES,
                                              .streams = 1,
                                              .stream_idle_ns = 1000000000,
                                              .interrupt = &served->interrupt};
    pthread_getaffinity_np(pthread_self(), sizeof served->processors, &served->processors);
    const seqlstm_status status = sl_server_open(&request, &served->server, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    strcpy(served->address, "127.0.0.1");
    served->port = sl_server_get_port(served->server);
    if (pthread_create(&served->thread, NULL, serve, served) == 0)
        return CLI_OK;
    sl_server_close(served->server);
    served->server = NULL;
    seqlstm_error_set(&err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "a thread cannot be started");
    return cli_fail(cli, SEQLSTM_UNAVAILABLE, &err);
}

static void stop(struct served *served)
{
    if (served->server == NULL)
        return;
    served->interrupt.stop = 1;
    pthread_join(served->thread, NULL);
    sl_server_close(served->server);
}

/* ---- flags ------------------------------------------------------------------------------------------------- */

/* What is measured. */
struct wanted {
    double rates[SL_CURVE_POINTS_MOST], seconds; /* in the order of load; of all loads together */
    int32_t count;
    int64_t connections;
};

static int read_rates(struct cli_context *cli, double rates[SL_CURVE_POINTS_MOST], int32_t *out_count)
{
    const char *text = cli_get(cli, "load");
    for (const char *at = text; at && *at;) {
        const size_t bytes = strcspn(at, ",");
        double rate = 0;
        if (!sl_text_parse_float64(at, bytes, &rate) || !(rate > 0 && rate <= 1e7) ||
            *out_count == SL_CURVE_POINTS_MOST)
            return cli_usage_error(cli,
                                   "`--load %s`: expected at most %d numbers of requests per second, as in 100,200",
                                   text, SL_CURVE_POINTS_MOST);
        int32_t k = (*out_count)++;
        for (; k > 0 && rates[k - 1] > rate; k--)
            rates[k] = rates[k - 1];
        rates[k] = rate;
        at += bytes + (at[bytes] == ',');
    }
    return CLI_OK;
}

static int read_wanted(struct cli_context *cli, struct wanted *out)
{
    *out = (struct wanted){.seconds = 30, .connections = CONNECTIONS};
    if (!cli_get_float(cli, "seconds", 0.01, 86400, &out->seconds) ||
        !cli_get_int(cli, "connections", 1, 100000, &out->connections))
        return CLI_USAGE;
    return read_rates(cli, out->rates, &out->count);
}

static int write_html(struct cli_context *cli, const struct sl_curve *curve)
{
    const char *path = cli_get(cli, "html");
    struct sl_buf page = {0};
    if (path == NULL)
        return CLI_OK;
    sl_curve_print_html(curve, &page);
    return cli_write_file(cli, path, &page);
}

static int print(struct cli_context *cli, const struct sl_curve *curve)
{
    struct sl_buf out = {0};
    if (cli->json)
        sl_curve_print_json(curve, &out);
    else
        sl_curve_print_table(curve, &out);
    const int code = cli_write_out(cli, &out);
    sl_buf_deinit(&out);
    return code == CLI_OK ? write_html(cli, curve) : code;
}

/* ---- the measurement --------------------------------------------------------------------------------------- */

static int measure(struct cli_context *cli, struct sl_session *session, const struct wanted *wanted,
                   const struct served *served, const char *name, struct sl_history *history)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const bool offline = served->server != NULL; /* it is compared with computing without a server */
    struct sl_curve *curve = calloc(1, sizeof *curve);
    struct sl_load_bodies bodies = {.count = 0};
    char where[ADDRESS_BYTES + 16];
    snprintf(where, sizeof where, "%s:%d", served->address, served->port);
    seqlstm_status status =
        curve ? sl_load_bodies_init(&bodies, session, name, where, BODIES, 1, &err)
              : seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the load");
    const struct sl_load_request request = {.address = served->address,
                                            .port = served->port,
                                            .bodies = &bodies,
                                            .connections = (int32_t)wanted->connections,
                                            .seconds =
                                                wanted->seconds / (sl_curve_count_loads(wanted->count) + offline),
                                            .seed = 1,
                                            .interrupt = cli->interrupt,
                                            .history = history};
    if (status == SEQLSTM_OK) {
        *curve = (struct sl_curve){.name = name, .server = where, .steps = bodies.steps, .requests = bodies.count};
        if (offline)
            status = sl_offline_measure(session, &bodies, request.seconds, cli->interrupt, &curve->offline, &err);
        if (curve->offline > 1e9 / SL_REQUEST_NS) /* small requests: workers leave time, the server does not */
            pthread_setaffinity_np(pthread_self(), sizeof served->processors, &served->processors);
    }
    if (status == SEQLSTM_OK)
        status = sl_curve_measure(curve, &request, wanted->rates, wanted->count, &err);
    const int code = status == SEQLSTM_OK ? print(cli, curve) : cli_fail(cli, status, &err);
    sl_load_bodies_deinit(&bodies);
    free(curve);
    return code;
}

/* It is written when the server has ended, and with it the last batch. */
static int write_history(struct cli_context *cli, const struct sl_history *history)
{
    struct sl_buf table = {0};
    if (history == NULL)
        return CLI_OK;
    sl_history_write(history, &table);
    return cli_write_file(cli, cli_get(cli, "requests"), &table);
}

int cli_bench_serve(struct cli_context *cli)
{
    static const char *const other[] = {"batch", "backend", "threads", "phase"};
    struct sl_session *session = NULL;
    struct served served = {.err = SEQLSTM_ERROR_INIT};
    struct sl_history history, *noted = cli_get(cli, "requests") ? &history : NULL;
    struct wanted wanted;
    enum sl_serve_batching batching;
    const char *where = cli_get(cli, "serve");
    const bool own = strcmp(where, "self") == 0;
    for (size_t k = 0; k < sizeof other / sizeof *other; k++)
        if (cli_get(cli, other[k]))
            return cli_usage_error(cli, "--serve and --%s exclude each other", other[k]);
    if ((cli_get(cli, "batching") || cli_has(cli, "no-pin")) && !own)
        return cli_usage_error(cli, "--%s goes with `--serve self`", cli_has(cli, "no-pin") ? "no-pin" : "batching");
    int code = cli_read_batching(cli, &batching);
    if (code == CLI_OK)
        code = read_wanted(cli, &wanted);
    if (code == CLI_OK)
        code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    const char *name = sl_session_get_model(session)->name;
    cli_save_on_signals();
    sl_history_init(&history);
    code = own ? start(cli, session, name, batching, noted, &served) : read_url(cli, where, &served);
    if (code == CLI_OK)
        code = measure(cli, session, &wanted, &served, name, noted);
    stop(&served);
    if (served.status != SEQLSTM_OK)
        code = cli_fail(cli, served.status, &served.err);
    if (code == CLI_OK)
        code = write_history(cli, noted);
    sl_history_deinit(&history);
    sl_session_close(session);
    return code;
}
