/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm serve` and `seqlstm bench --serve`, on servers and loads that the test makes up: what their flags ask for,
 * which runs have which names, who may ask, and what is opened and closed. */
#include <stdatomic.h>

#include "base/system/cpu.h"
#include "cli/cli.h"
#include "model/model.h"
#include "serve/compute/offline.h"
#include "serve/load/curve.h"
#include "serve/server.h"
#include "session/session.h"

#include "report.h"

enum { SESSIONS_MOST = 8, NAME_BYTES = 64 };

/* What stands for a session is its place in this list. */
static struct {
    char run[NAME_BYTES], name[NAME_BYTES];
    struct sl_model model;
} opened[SESSIONS_MOST];
static int opened_count, closed_count;

static struct {
    seqlstm_status open, run, reopen, bodies, offline, curve;
    double rate; /* of sl_offline_measure */
    int32_t cores;
} answer;
static struct sl_server_request served; /* what the open server has copied */

static int get_number(const struct sl_session *session)
{
    for (int k = 0; k < opened_count; k++)
        if ((const void *)session == (const void *)&opened[k])
            return k;
    return -1;
}

static struct sl_session *open_fake(const char *run)
{
    assert_true(opened_count < SESSIONS_MOST);
    snprintf(opened[opened_count].run, NAME_BYTES, "%s", run);
    snprintf(opened[opened_count].name, NAME_BYTES, "model-of-%.40s", run);
    opened[opened_count].model.name = opened[opened_count].name;
    return (struct sl_session *)(void *)&opened[opened_count++];
}

static seqlstm_status give(seqlstm_status status, struct seqlstm_error *err)
{
    return status == SEQLSTM_OK ? SEQLSTM_OK : seqlstm_error_set(err, status, "a.c", 1, "it fails; use another");
}

int __wrap_cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session);
const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session);
const char *__wrap_sl_session_get_folder(const struct sl_session *session);
void __wrap_sl_session_close(struct sl_session *session);
seqlstm_status __wrap_sl_session_open_run(const char *run, const struct sl_session_options *options,
                                          struct sl_diagnostics *diagnostics, struct sl_session **out_session,
                                          struct seqlstm_error *err);
int32_t __wrap_sl_cpu_count(void);
seqlstm_status __wrap_sl_server_open(const struct sl_server_request *request, struct sl_server **out_server,
                                     struct seqlstm_error *err);
uint16_t __wrap_sl_server_get_port(const struct sl_server *server);
seqlstm_status __wrap_sl_server_run(struct sl_server *server, struct seqlstm_error *err);
void __wrap_sl_server_close(struct sl_server *server);
seqlstm_status __wrap_sl_load_bodies_init(struct sl_load_bodies *bodies, struct sl_session *session, const char *name,
                                          const char *host, int64_t count, uint64_t seed, struct seqlstm_error *err);
seqlstm_status __wrap_sl_offline_measure(struct sl_session *session, const struct sl_load_bodies *bodies,
                                         double seconds, const struct sl_interrupt *interrupt, double *out_rate,
                                         struct seqlstm_error *err);
seqlstm_status __wrap_sl_curve_measure(struct sl_curve *curve, const struct sl_load_request *request,
                                       const double *rates, int32_t count, struct seqlstm_error *err);

/* ---- sessions --------------------------------------------------------------------------------------------------- */

int __wrap_cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session)
{
    *out_session = NULL;
    if (strcmp(run, "broken") == 0)
        return cli_usage_error(cli, "it is broken");
    *out_session = open_fake(run);
    return cli_prepare(cli, NULL);
}

const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session)
{
    return &opened[get_number(session)].model;
}

const char *__wrap_sl_session_get_folder(const struct sl_session *session)
{
    return opened[get_number(session)].run;
}

void __wrap_sl_session_close(struct sl_session *session)
{
    closed_count += session != NULL;
    if (session)
        sl_buf_printf(&noted, "closes %d %s\n", get_number(session), opened[get_number(session)].run);
}

seqlstm_status __wrap_sl_session_open_run(const char *run, const struct sl_session_options *options,
                                          struct sl_diagnostics *diagnostics, struct sl_session **out_session,
                                          struct seqlstm_error *err)
{
    (void)options;
    assert_non_null(diagnostics);
    sl_buf_printf(&noted, "opens %s again\n", run);
    if (answer.reopen == SEQLSTM_OK)
        *out_session = open_fake(run);
    return give(answer.reopen, err);
}

int32_t __wrap_sl_cpu_count(void)
{
    return answer.cores;
}

/* ---- servers ---------------------------------------------------------------------------------------------------- */

seqlstm_status __wrap_sl_server_open(const struct sl_server_request *r, struct sl_server **out_server,
                                     struct seqlstm_error *err)
{
    served = *r;
    sl_buf_append_text(&noted, "serves");
    for (int k = 0; k < r->count; k++)
        sl_buf_printf(&noted, " %s=%s", r->names[k], opened[get_number(r->sessions[k])].run);
    sl_buf_printf(&noted, " on %s, port %d, workers %d, threads %d%s, queue %lld, body %lld, steps %lld,", r->address,
                  r->port, r->workers, r->threads, r->roams ? ", roaming" : "", (long long)r->queue,
                  (long long)r->body_bytes, (long long)r->steps);
    sl_buf_printf(&noted, " sequences %lld, streams %lld, idle %lld, target %lld, %s%s%s%s%s, tokens",
                  (long long)r->sequences, (long long)r->streams, (long long)r->stream_idle_ns, (long long)r->target_ns,
                  r->batching == SL_BATCHING_PADDED ? "padded" : "by steps", r->reproducible ? ", reproducible" : "",
                  r->reopen ? ", following" : "", r->history ? ", noted" : "",
                  r->interrupt ? "" : ", never interrupted");
    int count = 0;
    for (; r->tokens && r->tokens[count]; count++)
        if (count < 4)
            sl_buf_printf(&noted, " %s", r->tokens[count]);
    sl_buf_printf(&noted, r->tokens ? " (%d)\n" : " are not asked for\n", count);
    *out_server = (struct sl_server *)(void *)&served;
    return give(answer.open, err);
}

uint16_t __wrap_sl_server_get_port(const struct sl_server *server)
{
    assert_ptr_equal(server, &served);
    return served.port > 0 ? served.port : 4711;
}

/* Takes newer weights of the last run over, of the first, and of the last again, and lets the older ones go. */
static void follow(const struct sl_server_request *r)
{
    const int which[] = {r->count - 1, 0, r->count - 1};
    struct sl_session *again[3] = {NULL};
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = r->reopen(r->follow_context, r->sessions[which[k]], &again[k], &err);
        r->tell(r->follow_context, status == SEQLSTM_OK ? "newer" : err.message);
    }
    for (int k = 0; k < 3; k++)
        if (again[(k + 1) % 3])
            r->close(r->follow_context, again[(k + 1) % 3]);
}

seqlstm_status __wrap_sl_server_run(struct sl_server *server, struct seqlstm_error *err)
{
    assert_ptr_equal(server, &served);
    if (served.reopen)
        follow(&served);
    return give(answer.run, err);
}

void __wrap_sl_server_close(struct sl_server *server)
{
    if (server)
        sl_buf_append_text(&noted, "closes the server\n");
}

/* All that a line has opened are closed. */
static void forget_sessions(void)
{
    assert_int_equal(closed_count, opened_count);
    opened_count = closed_count = 0;
}

static void make_tokens(const char *name, int count, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    for (int k = 0; k < count; k++)
        fprintf(file, "token-%04d-of-many\n", k);
    fclose(file);
}

static void run_serve(void)
{
    static const char *const lines[] = {
        "serve a",
        "serve x=a y=b=c d",
        "serve a -q",
        "serve a --json",
        "serve",
        "serve broken",
        "serve a b broken c",
        "serve a b c b",
        "serve x=a y=b z=c x=d",
        "serve x=a y=b z=c z=d",
        "serve a b model-of-b=c",
        "serve a --port 0",
        "serve a -p 65535 --workers 256 --queue 1 --max-batch 1 --max-steps 1 --max-streams 1 --stream-idle 1 "
        "--max-body 1",
        "serve a --port 7 --workers 3 --queue 1048576 --max-batch 65536 --max-steps 16777216 --max-streams 1073741824",
        "serve a --stream-idle 1073741824 --max-body 1024 --threads 1024",
        "serve a --port 65536",
        "serve a --workers 0",
        "serve a --workers 257",
        "serve a --queue 0",
        "serve a --queue 1048577",
        "serve a --max-batch 65537",
        "serve a --max-steps 16777217",
        "serve a --max-streams 0",
        "serve a --stream-idle 0",
        "serve a --max-body 1025",
        "serve a --threads 0",
        "serve a --threads 1025",
        "serve a --threads auto",
        "serve a --no-pin",
        "serve a --no-pin --threads 2",
        "serve a --target-p99 0.01",
        "serve a --target-p99 2.5 --batching steps",
        "serve a --target-p99 0.009",
        "serve a --batching padded",
        "serve a --batching odd",
        "serve a --batching stepped",
        "serve a --reproducible",
        "serve a --reproducible --batching steps",
        "serve a --reproducible --batching padded",
        "serve a --target-p99 5 --batching padded",
        "serve a --reproducible --target-p99 5",
        "serve a --listen 127.0.0.2",
        "serve a --listen ::1 --port 9",
        "serve a --listen localhost",
        "serve a --listen 0.0.0.0",
        "serve a --listen ::",
        "serve a --listen 0.0.0.0 --no-auth",
        "serve a --listen :: --no-auth --port 0",
        "serve a --no-auth",
        "serve a --token-file nowhere",
        "serve a b c --follow",
        "serve a --follow -q",
    };
    char line[400];
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    sl_buf_append_text(&out, "== one processor\n");
    answer.cores = 1;
    run("serve a");
    answer.cores = 4;
    sl_buf_append_text(&out, "== tokens\n");
    assert_int_equal(chdir(scratch_folder), 0);
    make_tokens("some", 0, "# comment\n\n  0123456789abcdef  and more\r\n\t#0123456789abcdef0\nfedcba9876543210f\r\n");
    make_tokens("short", 0, "0123456789abcdef\n0123456789abcde\n");
    make_tokens("empty", 0, "# 0123456789abcdef\n \t\r\n");
    make_tokens("most", 256, "");
    make_tokens("beyond", 257, "");
    for (size_t k = 0; k < 5; k++) {
        static const char *const names[] = {"some", "short", "empty", "most", "beyond"};
        snprintf(line, sizeof line, "serve a --token-file %s", names[k]);
        run(line);
    }
    run("serve a --token-file some --listen 0.0.0.0");
    run("serve a --token-file some --no-auth");
    run("serve a --token-file some --no-auth --listen 0.0.0.0");
    sl_buf_append_text(&out, "== a run cannot be opened again\n");
    answer.reopen = SEQLSTM_CORRUPT_DATA;
    run("serve a b --follow");
    answer.reopen = SEQLSTM_OK;
    sl_buf_append_text(&out, "== the address is taken\n");
    answer.open = SEQLSTM_IO;
    run("serve a b");
    answer.open = SEQLSTM_OK;
    sl_buf_append_text(&out, "== it fails later\n");
    answer.run = SEQLSTM_NO_MEMORY;
    run("serve a");
    answer.run = SEQLSTM_OK;
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

seqlstm_status __wrap_sl_load_bodies_init(struct sl_load_bodies *bodies, struct sl_session *session, const char *name,
                                          const char *host, int64_t count, uint64_t seed, struct seqlstm_error *err)
{
    sl_buf_printf(&noted, "asks %s at %s for %s, %lld requests, seed %llu\n", opened[get_number(session)].run, host,
                  name, (long long)count, (unsigned long long)seed);
    *bodies = (struct sl_load_bodies){.steps = 30};
    return give(answer.bodies, err);
}

seqlstm_status __wrap_sl_offline_measure(struct sl_session *session, const struct sl_load_bodies *bodies,
                                         double seconds, const struct sl_interrupt *interrupt, double *out_rate,
                                         struct seqlstm_error *err)
{
    sl_buf_printf(&noted, "computes %s for %g s\n", opened[get_number(session)].run, seconds);
    assert_int_equal(bodies->steps, 30);
    assert_non_null(interrupt);
    *out_rate = answer.rate;
    return give(answer.offline, err);
}

seqlstm_status __wrap_sl_curve_measure(struct sl_curve *curve, const struct sl_load_request *r, const double *rates,
                                       int32_t count, struct seqlstm_error *err)
{
    sl_buf_printf(&noted, "loads %s, port %d, %d connections, %g s each, seed %llu%s%s, rates", r->address, r->port,
                  r->connections, r->seconds, (unsigned long long)r->seed, r->history ? ", noted" : "",
                  r->interrupt ? "" : ", never interrupted");
    for (int32_t k = 0; k < count; k++)
        sl_buf_printf(&noted, " %g", rates[k]);
    sl_buf_append_char(&noted, '\n');
    curve->requests = 4;
    curve->alone = (struct sl_load_result){.reached = 10, .mean = 0.001, .failed = 1};
    curve->closed = (struct sl_load_result){.reached = 20, .mean = 0.002, .lost = 2};
    for (; curve->count < (count > 0 ? count : 1); curve->count++)
        curve->points[curve->count] =
            (struct sl_load_result){.wanted = count > 0 ? rates[curve->count] : 8, .reached = 8, .p50 = 0.003};
    if (r->history)
        sl_history_note(r->history, &(struct sl_history_event){.number = 2, .end_ns = 1000000000, .steps = 7});
    return give(answer.curve, err);
}

static void expect_file(const char *name, const char *expected)
{
    char *text = NULL;
    assert_int_equal(sl_file_read(scratch_path(name), 1 << 20, &text, NULL, NULL), SEQLSTM_OK);
    assert_non_null(strstr(text, expected));
    free(text);
}

static void run_bench(void)
{
    static const char *const lines[] = {
        "bench a --serve self",
        "bench a --serve self --seconds 5 --connections 7 --load 300,100.5,200 --no-pin --batching padded",
        "bench a --serve self --batching steps --json",
        "bench a --serve http://127.0.0.1:8000",
        "bench a --serve http://10.0.0.7:65535/ --seconds 5 --load 2",
        "bench a --serve localhost:1",
        "bench a --serve http://[::1]:80/",
        "bench a --serve [::1]:80",
        "bench a --serve ::1:80",
        "bench a --serve http://127.0.0.1",
        "bench a --serve http://127.0.0.1:0",
        "bench a --serve http://127.0.0.1:65536",
        "bench a --serve http://127.0.0.1:80x",
        "bench a --serve http://127.0.0.1:80/x",
        "bench a --serve https://127.0.0.1:80",
        "bench a --serve http://0123456789012345678901234567890123456789012345678901234567890123456789:1",
        "bench a --serve self --load 0",
        "bench a --serve self --load 10000000",
        "bench a --serve self --load 10000001",
        "bench a --serve self --load 1,x",
        "bench a --serve self --load 1,2,",
        "bench a --serve self --load 9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1,9,8,7,6,5",
        "bench a --serve self --load 9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1,9,8,7,6,5,4",
        "bench a --serve self --seconds 0.01 --connections 1",
        "bench a --serve self --seconds 86400 --connections 100000",
        "bench a --serve self --seconds 86401",
        "bench a --serve self --connections 0",
        "bench a --serve self --connections 100001",
        "bench a --serve self --batch 1",
        "bench a --serve self --backend x",
        "bench a --serve self --threads 1",
        "bench a --serve self --phase infer",
        "bench a --serve http://127.0.0.1:1 --no-pin",
        "bench a --serve http://127.0.0.1:1 --batching steps",
        "bench a --serve self --batching odd",
        "bench broken --serve self",
        "bench a --serve self --requests all.csv --html page.html",
        "bench a --serve http://127.0.0.1:8000 --requests own.csv",
        "bench a --serve self --requests no/where.csv",
        "bench a --serve self --html no/where.html",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    expect_file("all.csv", "request,2,0.000000,1.000000,7,0,0\n");
    expect_file("own.csv", "request,2,0.000000,1.000000,7,0,0\n");
    expect_file("page.html", "model-of-a");
    sl_buf_append_text(&out, "== one processor\n");
    answer.cores = 1;
    run("bench a --serve self");
    seqlstm_status *const failing[] = {&answer.open, &answer.run, &answer.bodies, &answer.offline, &answer.curve};
    for (size_t k = 0; k < sizeof failing / sizeof *failing; k++) {
        sl_buf_printf(&out, "== what fails: %zu\n", k);
        *failing[k] = SEQLSTM_UNAVAILABLE;
        run("bench a --serve self --requests all.csv");
        *failing[k] = SEQLSTM_OK;
    }
}

static void run_all(void)
{
    answer.cores = 4;
    answer.rate = 50;
    before_each = forget_sessions;
    run_serve();
    run_bench();
    forget_sessions(); /* those of the last line */
}

int main(void)
{
    return report_main((struct report){run_all, "reports/serving.txt", &answer, sizeof answer, NULL});
}
